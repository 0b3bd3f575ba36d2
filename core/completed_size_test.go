package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// hugeFS claims an absurd size for every file, as a damaged or sparse one has.
type hugeFS struct{ core.FileSystem }

type hugeReader struct{ core.Reader }

func (f hugeFS) Open(ctx context.Context, name string) (core.Reader, error) {
	r, err := f.FileSystem.Open(ctx, name)
	return hugeReader{r}, err
}

func (hugeReader) Size() int64 { return 15 << 40 }

func TestAMetadataFileOfAbsurdSizeIsCorruptAndTakesNoMemory(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	put(t, mem, "/chk-1/_metadata", "x")
	done, err := core.ResolvePointer(ctx, core.OnlyOn(hugeFS{mem}), "/chk-1")
	require.NoError(t, err)
	_, err = done.ReadMetadata(ctx)
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "/chk-1/_metadata")
	_, err = core.Dispose(ctx, hugeFS{mem}, "/chk-1", core.DisposeOptions{Read: readMeta})
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.True(t, exists(t, mem, "/chk-1/_metadata"))
}
