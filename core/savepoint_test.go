package core_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestSavepointGoesToTheTargetElseToTheConfiguredDirectory(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name, configured, target, want string
	}{
		// Flink: FsCheckpointStorageAccessTest.testSavepointPathConfiguredAndTarget.
		{"both", "mem:/configured", "mem:/target", "/target"},
		// Flink: FsCheckpointStorageAccessTest.testSavepointPathConfiguredNoTarget.
		{"configured", "mem:/configured", "", "/configured"},
		// Flink: FsCheckpointStorageAccessTest.testSavepointPathNoConfiguredAndTarget.
		{"target", "", "mem:/target/", "/target"},
		{"without a scheme", "", "/target//deep", "/target/deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newJobRig(t)
			owner, err := storageOn(t, r.mem, core.Options{SavepointDir: c.configured}).Claim(ctx)
			require.NoError(t, err)
			pending, err := owner.BeginSavepoint(ctx, c.target)
			require.NoError(t, err)
			require.Equal(t, c.want, path.Dir(pending.CheckpointDir()))
			require.True(t, core.IsSavepointDirName(path.Base(pending.CheckpointDir())))
			require.True(t, exists(t, r.mem, pending.CheckpointDir()))
		})
	}
	// Flink: FsCheckpointStorageAccessTest.testSavepointPathNoConfiguredNoTarget.
	t.Run("none", func(t *testing.T) {
		r := newJobRig(t)
		_, err := r.claim(t).BeginSavepoint(ctx, "")
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.ErrorContains(t, err, "Options.SavepointDir")
	})
}

// Flink: FsCheckpointStorageAccessTest.testSavepointsInOneDirectoryDefaultLocation.
// Flink: FsCheckpointStorageAccessTest.testSavepointsInOneDirectoryCustomLocation.
func TestSavepointHoldsStateOfEveryScopeInOneDirectory(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner, err := storageOn(t, r.mem, core.Options{SavepointDir: "mem:/default"}).Claim(ctx)
	require.NoError(t, err)
	for _, target := range []string{"", "mem:/custom"} {
		pending, err := owner.BeginSavepoint(ctx, target)
		require.NoError(t, err)
		dir := pending.CheckpointDir()
		require.Equal(t, dir, pending.SharedDir())
		require.Equal(t, dir, pending.TaskOwnedDir())
		require.Equal(t, dir+"/_metadata", pending.MetadataName())
		for _, scope := range []core.Scope{core.Exclusive, core.Shared} {
			stream := pending.CreateStateStream(ctx, scope)
			_, err = stream.Write([]byte("state"))
			require.NoError(t, err)
			handle, err := stream.CloseAndGetHandle()
			require.NoError(t, err)
			relative, ok := handle.(*core.RelativeFileHandle)
			require.True(t, ok, "%T: a savepoint can be moved", handle)
			require.Equal(t, "mem:"+dir, relative.Dir)
		}
		stream, err := pending.CreateMetadataStream(ctx)
		require.NoError(t, err)
		completed, err := stream.CloseAndFinalize()
		require.NoError(t, err)
		require.Equal(t, "mem:"+dir, completed.Pointer)
		_, ok := completed.ID()
		require.False(t, ok, "a savepoint's name holds no id")
		require.Len(t, filesIn(snapshot(t, r.mem, dir)), 3, "two states and the metadata, no temporary")
	}
}

func TestSavepointGetsAFreshDirectoryAndGivesUpAfterTenNames(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	same := uuid.MustParse("aabbccdd-eeff-4000-8000-000000000001")
	fresh, calls := 0, 0
	s := storageOn(t, r.mem, core.Options{NewUUID: func() (uuid.UUID, error) {
		if calls++; calls <= fresh {
			return uuid.NewRandom()
		}
		return same, nil
	}})
	fresh = 1 // the claim's
	owner, err := s.Claim(ctx)
	require.NoError(t, err)
	first, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	require.Equal(t, "/save/savepoint-"+jobID.String()[:6]+"-aabbccddeeff", first.CheckpointDir())

	before := calls
	_, err = owner.BeginSavepoint(ctx, "/save")
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, 10, calls-before)

	calls, fresh = 0, 0
	pick := []uuid.UUID{same, same, uuid.MustParse("00bbccdd-eeff-4000-8000-000000000001")}
	s2 := storageOn(t, r.mem, core.Options{NewUUID: func() (uuid.UUID, error) {
		if calls == 0 {
			calls++
			return uuid.NewRandom()
		}
		id := pick[calls-1]
		calls++
		return id, nil
	}})
	_, err = finishSavepoint(first) // else the next owner removes it
	require.NoError(t, err)
	owner, err = s2.Claim(ctx)
	require.NoError(t, err)
	calls = 1
	second, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	require.Equal(t, "/save/savepoint-"+jobID.String()[:6]+"-00bbccddeeff", second.CheckpointDir())
}

func TestSavepointIsTakenBackAsAWhole(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	other, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	pending, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	put(t, r.mem, pending.CheckpointDir()+"/0b7c0b7c-0000-4000-8000-000000000000", "x")
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.False(t, exists(t, r.mem, pending.CheckpointDir()))
	require.True(t, exists(t, r.mem, other.CheckpointDir()))
}

func TestSavepointOfAFencedOwnerIsNotPublished(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	pending, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	stream, err := pending.CreateMetadataStream(ctx)
	require.NoError(t, err)
	r.claim(t)
	_, err = stream.CloseAndFinalize()
	require.ErrorIs(t, err, core.ErrFenced)
	require.Empty(t, filesIn(snapshot(t, r.mem, "/save")))
}

func TestSavepointFailsWhereItsDirectoryCannotBeMade(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	put(t, r.mem, "/file", "x")
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	for _, target := range []string{"/file", "/file/below"} {
		_, err = owner.BeginSavepoint(ctx, target)
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.ErrorContains(t, err, "/file")
	}
	flaky.SetInjector(faultfs.OnOp(faultfs.OpMkdirAll, faultfs.Fault{Err: fs.ErrPermission}))
	_, err = owner.BeginSavepoint(ctx, "/save")
	require.ErrorIs(t, err, fs.ErrPermission)
	flaky.SetInjector(faultfs.OnOp(faultfs.OpStat, faultfs.Fault{Err: core.ErrUnavailable}))
	_, err = owner.BeginSavepoint(ctx, "/save")
	require.ErrorIs(t, err, core.ErrUnavailable, "it is not taken for a free name")
	require.False(t, exists(t, r.mem, "/save"))
}

// The durability is fixed when the storage is made, and asked of every other file system before anything is written there.
func TestSavepointRefusesAFileSystemThatLacksTheDurability(t *testing.T) {
	ctx := context.Background()
	weak := core.Capabilities{Durabilities: []core.Durability{core.Unsynced}, NoReplaceFiles: true}
	here, there := memfs.New(memfs.Options{}), memfs.New(memfs.Options{URI: "weak://nn", Capabilities: &weak})
	opener := func(ctx context.Context, qualified string) (core.FileSystem, string, error) {
		return core.OnlyOn(there)(ctx, qualified)
	}
	owner, err := storageOn(t, here, core.Options{Durability: core.Synced, Opener: opener}).Claim(ctx)
	require.NoError(t, err)
	_, err = owner.BeginSavepoint(ctx, "weak://nn/save")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, there.Tree())

	owner, err = storageOn(t, here, core.Options{Opener: opener}).Claim(ctx)
	require.NoError(t, err)
	pending, err := owner.BeginSavepoint(ctx, "weak://nn/save")
	require.NoError(t, err, "the default is the strongest of each")
	require.True(t, strings.HasPrefix(pending.String(), "weak://nn/save/savepoint-"))
}
