package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// readPathList is a ReadObjects for metadata that is a JSON list of objects.
func readPathList(data []byte, _ string) ([]core.Object, error) {
	var objects []core.Object
	return objects, json.Unmarshal(data, &objects)
}

// commitScattered writes a checkpoint with one exclusive and one shared file and refers to the given objects too.
func commitScattered(t *testing.T, owner *core.Owner, id int64, again ...core.Object) (exclusive, shared core.Object) {
	t.Helper()
	pending, err := owner.Begin(t.Context(), id)
	require.NoError(t, err)
	keep := func(scope core.Scope) core.Object {
		handle, err := written(t, pending.CreateStateStream(t.Context(), scope), 10).CloseAndGetHandle()
		require.NoError(t, err)
		file, ok := handle.(*core.FileHandle)
		require.True(t, ok)
		return core.Object{Path: file.Path, Size: file.Size}
	}
	exclusive, shared = keep(core.Exclusive), keep(core.Shared)
	list, err := json.Marshal(append(again, exclusive, shared))
	require.NoError(t, err)
	m, err := pending.CreateMetadataStream(t.Context())
	require.NoError(t, err)
	_, err = m.Write(list)
	require.NoError(t, err)
	_, err = m.CloseAndFinalize()
	require.NoError(t, err)
	return exclusive, shared
}

func TestDisposalFindsFilesThatEntropyHasScattered(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	storage, err := core.NewStorage(newEntropy(t, mem, 4), "/ckpt/_entropy_/x", rigJob,
		core.Options{InlineThreshold: core.NeverInline})
	require.NoError(t, err)
	owner, err := storage.Claim(ctx)
	require.NoError(t, err)
	exclusive1, shared1 := commitScattered(t, owner, 1)
	exclusive2, shared2 := commitScattered(t, owner, 2, shared1)
	there := func(object core.Object) bool {
		_, err := mem.Stat(ctx, strings.TrimPrefix(object.Path, "mem:"))
		return err == nil
	}

	report, err := owner.Dispose(ctx, 1, core.DisposeOptions{Read: readPathList})
	require.NoError(t, err)
	require.False(t, there(exclusive1))
	require.True(t, there(shared1), "the other checkpoint needs it")
	require.Equal(t, []core.KeptObject{{Path: strings.TrimPrefix(shared1.Path, "mem:"), Reason: "another checkpoint needs it"}}, report.Kept)

	_, err = owner.Dispose(ctx, 2, core.DisposeOptions{Read: readPathList})
	require.NoError(t, err)
	for _, object := range []core.Object{shared1, exclusive2, shared2} {
		require.False(t, there(object), object.Path)
	}
}
