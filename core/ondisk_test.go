package core_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// The claims and deletions of this package, once on a real disk: real renames, real symbolic links, real races.
func TestJobOnALocalDisk(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	disk, err := localfs.Open(base, localfs.Options{UnsafeNoFsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, disk.Close()) })
	s, err := core.NewStorage(disk, filepath.ToSlash(base)+"/ckpt", jobID, core.Options{InlineThreshold: core.NeverInline})
	require.NoError(t, err)

	var mu sync.Mutex
	var owners []*core.Owner
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			owner, err := s.Claim(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				owners = append(owners, owner)
				return
			}
			if !errors.Is(err, core.ErrFenced) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var valid []*core.Owner
	for _, owner := range owners {
		if err := owner.Check(ctx); err == nil {
			valid = append(valid, owner)
		} else {
			require.ErrorIs(t, err, core.ErrFenced)
		}
	}
	require.Len(t, valid, 1)
	owner := valid[0]

	outside := t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/"+uuidA, []byte("outside"), 0o600))
	require.NoError(t, os.WriteFile(outside+"/_metadata", []byte("[]"), 0o600))
	state := func(pending *core.PendingLocation) metaEntry {
		stream := pending.CreateStateStream(ctx, core.Shared)
		_, err := stream.Write([]byte("state"))
		require.NoError(t, err)
		handle, err := stream.CloseAndGetHandle()
		require.NoError(t, err)
		return metaEntry{Path: handle.(*core.FileHandle).Path} //nolint:forcetypeassert // shared state has no other handle
	}
	var ids []int64
	for id := int64(1); id <= 3; id++ {
		pending, err := owner.Begin(ctx, id)
		require.NoError(t, err)
		own := uuid.NewString()
		put(t, disk, pending.CheckpointDir()+"/"+own, "state")
		stream, err := pending.CreateMetadataStream(ctx)
		require.NoError(t, err)
		_, err = stream.Write(encodeMeta(metaEntry{Name: own}, state(pending)))
		require.NoError(t, err)
		_, err = stream.CloseAndFinalize()
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Equal(t, ids, completeIDs(t, disk, s.JobDir()))
	require.NoError(t, os.Symlink(outside, s.JobDir()+"/chk-2/"+uuidB))
	require.NoError(t, os.Symlink(outside, s.JobDir()+"/chk-9"))
	require.NoError(t, os.Symlink(outside+"/"+uuidA, s.JobDir()+"/shared/"+uuidC))

	_, err = owner.Dispose(ctx, 9, readAll)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = os.Lstat(s.JobDir() + "/chk-9")
	require.NoError(t, err, "a link in place of a checkpoint is kept")
	require.NoError(t, os.Remove(s.JobDir()+"/chk-9")) // it might need what is shared
	report, err := owner.Dispose(ctx, 2, readAll)
	require.NoError(t, err)
	require.Len(t, report.Removed, 3, "two states and the link")
	pending, err := owner.Begin(ctx, 4)
	require.NoError(t, err)
	late := pending.CreateStateStream(ctx, core.Exclusive)
	_, err = late.Write(make([]byte, 64<<10))
	require.NoError(t, err)
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.NoError(t, late.Close())

	successor, err := s.Claim(ctx)
	require.NoError(t, err)
	swept, err := successor.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []string{s.JobDir() + "/shared/" + uuidC}, swept.Removed)
	_, err = owner.Dispose(ctx, 1, readAll)
	require.ErrorIs(t, err, core.ErrFenced)
	require.Equal(t, []int64{1, 3}, completeIDs(t, disk, s.JobDir()))
	content, err := os.ReadFile(outside + "/" + uuidA)
	require.NoError(t, err)
	require.Equal(t, "outside", string(content))
}
