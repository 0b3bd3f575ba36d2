package localfs

import (
	"context"
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// TestMetadataWhoseLinkIsRepeatedIsPublished has NFS lose the answer to the link that publishes a checkpoint's metadata: the
// owner must not take it for another's, and must not find it visible after a failure.
func TestMetadataWhoseLinkIsRepeatedIsPublished(t *testing.T) {
	sys, top := newTap(), memoryDir(t)
	sys.system = oldKernel{kernel{}}
	f := openFor(t, sys, top, Options{})
	ctx := context.Background()
	storage, err := core.NewStorage(f, top, core.JobIDOf("test"), core.Options{})
	require.NoError(t, err)
	owner, err := storage.Claim(ctx)
	require.NoError(t, err)
	pending, err := owner.Begin(ctx, 2)
	require.NoError(t, err)
	stream, err := pending.CreateMetadataStream(ctx)
	require.NoError(t, err)
	_, err = stream.Write([]byte("metadata"))
	require.NoError(t, err)
	lost := 0
	sys.hook = func(e event) (bool, error) {
		if e.op != "link" || path.Base(e.to) != core.MetadataName {
			return false, nil
		}
		lost++
		require.NoError(t, os.Link(e.path, e.to))
		return true, syscall.EEXIST
	}
	done, err := stream.CloseAndFinalize()
	require.NoError(t, err)
	require.NoError(t, stream.Close())
	require.Equal(t, 1, lost)
	content, err := done.ReadMetadata(ctx)
	require.NoError(t, err)
	require.Equal(t, "metadata", string(content))
}
