package core_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestBeginMakesTheDirectoryOfTheId(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	for _, id := range []int64{0, 1, 42, math.MaxInt64} {
		pending, err := owner.Begin(ctx, id)
		require.NoError(t, err)
		require.Equal(t, r.chk(id), pending.CheckpointDir())
		require.Equal(t, r.chk(id)+"/_metadata", pending.MetadataName())
		require.Equal(t, r.dir()+"/shared", pending.SharedDir())
		require.Equal(t, r.dir()+"/taskowned", pending.TaskOwnedDir())
		require.True(t, pending.Reference().IsDefault())
		require.True(t, exists(t, r.mem, r.chk(id)))
	}
	_, err := owner.Begin(ctx, -1)
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.False(t, exists(t, r.mem, r.chk(-1)))
}

func TestBeginRefusesIdsThatCannotBeNew(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		entry string
		want  error
	}{
		{"complete", "chk-3/_metadata", fs.ErrExist},
		{"being disposed of", "chk-3/._metadata.disposed", fs.ErrExist},
		{"disposed of but for the last step", "chk-3/._metadata.emptied", fs.ErrExist},
		{"a file has its name", "chk-3", fs.ErrInvalid},
		{"left by an abort", "chk-3/0b7c0b7c-0000-4000-8000-000000000000", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newJobRig(t)
			owner := r.claim(t)
			put(t, r.mem, r.dir()+"/"+c.entry, "x")
			before := snapshot(t, r.mem, r.dir())
			_, err := owner.Begin(ctx, 3)
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, r.chk(3))
			}
			require.Equal(t, before, snapshot(t, r.mem, r.dir()))
		})
	}
}

func TestBeginReportsAPassingErrorInsteadOfGoingOn(t *testing.T) {
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(context.Background())
	require.NoError(t, err)
	for _, op := range []faultfs.Op{faultfs.OpMkdirAll, faultfs.OpList, faultfs.OpStat} {
		flaky.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: core.ErrUnavailable}))
		_, err := owner.Begin(context.Background(), 1)
		require.ErrorIs(t, err, core.ErrUnavailable, "%s", op)
	}
}

// Of two owners that finish the same id exactly one wins, also when both write the same bytes.
func TestTwoOwnersOfOneIdHaveOneWinner(t *testing.T) {
	ctx := context.Background()
	for _, content := range []string{"[]", string(encodeMeta())} {
		r := newJobRig(t)
		older := r.claim(t)
		oldPending, err := older.Begin(ctx, 7)
		require.NoError(t, err)
		oldStream, err := oldPending.CreateMetadataStream(ctx)
		require.NoError(t, err)
		_, err = oldStream.Write([]byte(content))
		require.NoError(t, err)

		newer := r.claim(t)
		c := r.commit(t, newer, 7, 0, 0, nil)
		_, err = oldStream.CloseAndFinalize()
		require.ErrorIs(t, err, core.ErrFenced, "%q", content)
		require.NoError(t, oldStream.Close())
		require.ErrorIs(t, oldPending.DisposeOnFailure(ctx), core.ErrFenced)
		requireIntact(t, r.mem, c)
	}
}

func TestDisposeOnFailureTakesEverythingBack(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	kept := r.commit(t, owner, 1, 1, 1, nil)
	pending, err := owner.Begin(ctx, 2)
	require.NoError(t, err)
	put(t, r.mem, r.chk(2)+"/sub/dir/file", "x")
	put(t, r.mem, r.chk(2)+"/README", "x")
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.False(t, exists(t, r.mem, r.chk(2)))
	require.NoError(t, pending.DisposeOnFailure(ctx), "again")
	requireIntact(t, r.mem, kept)

	stream := pending.CreateStateStream(ctx, core.Exclusive)
	_, err = stream.Write([]byte("late"))
	if err == nil {
		_, err = stream.CloseAndGetHandle()
	}
	require.ErrorIs(t, err, fs.ErrNotExist, "a late worker does not bring the directory back")
	require.ErrorContains(t, err, "aborted or disposed of")
	require.False(t, exists(t, r.mem, r.chk(2)))
}

func TestDisposeOnFailureWorksAfterTheEndOfTheContext(t *testing.T) {
	r := newJobRig(t)
	owner := r.claim(t)
	ctx, cancel := context.WithCancel(context.Background())
	pending, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	put(t, r.mem, r.chk(1)+"/0b7c0b7c-0000-4000-8000-000000000000", "x")
	cancel()
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.False(t, exists(t, r.mem, r.chk(1)))
}

func TestDisposeOnFailureIsOneStepToWhoeverLooks(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	pending, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	put(t, r.mem, r.chk(1)+"/0b7c0b7c-0000-4000-8000-000000000000", "x")

	flaky.SetInjector(faultfs.OnOp(faultfs.OpRename, faultfs.Fault{Err: core.ErrUnavailable}))
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), core.ErrUnavailable)
	require.True(t, exists(t, r.mem, r.chk(1)+"/0b7c0b7c-0000-4000-8000-000000000000"), "nothing of it is gone yet")

	flaky.SetInjector(faultfs.OnOp(faultfs.OpRemoveAll, faultfs.Fault{Err: core.ErrUnavailable}))
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), core.ErrUnavailable)
	require.False(t, exists(t, r.mem, r.chk(1)), "all of it is gone")

	flaky.SetInjector(nil)
	require.NoError(t, pending.DisposeOnFailure(ctx))
	r.claim(t)
	require.Empty(t, withoutEpochs(filesIn(snapshot(t, r.mem, r.dir()))))
}

// An owner whose finalise had no clear outcome takes the location back, with the metadata if it is there.
func TestDisposeOnFailureSettlesAnUnknownOutcome(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	pending, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	stream, err := pending.CreateMetadataStream(ctx)
	require.NoError(t, err)
	_, err = stream.Write([]byte("[]"))
	require.NoError(t, err)
	flaky.SetInjector(faultfs.Any(
		faultfs.OnOp(faultfs.OpRename, faultfs.Fault{Err: core.ErrUnavailable, After: true}),
		faultfs.OnOp(faultfs.OpStat, faultfs.Fault{Err: core.ErrUnavailable}),
		faultfs.OnOp(faultfs.OpOpen, faultfs.Fault{Err: core.ErrUnavailable}),
	))
	_, err = stream.CloseAndFinalize()
	require.ErrorContains(t, err, "outcome unknown")
	flaky.SetInjector(nil)
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.Empty(t, completeIDs(t, r.mem, r.dir()))
	require.False(t, exists(t, r.mem, r.chk(1)))
}

func TestLocationsSayWhereTheyAre(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	pending, err := owner.Begin(ctx, 12)
	require.NoError(t, err)
	require.Equal(t, "mem:"+r.chk(12), pending.String())
	require.Same(t, core.FileSystem(r.mem), pending.FileSystem())
	savepoint, err := owner.BeginSavepoint(ctx, "mem:/save")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(savepoint.String(), "mem:/save/savepoint-"+jobID.String()[:6]+"-"), savepoint.String())
	require.Equal(t, core.EncodeReference(savepoint.String()), savepoint.Reference())
}

func TestStateOfATaskEqualsThatOfTheOwner(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	savepoint, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	task := jobRigOn(t, r.mem).store
	seen, err := task.ResolveLocation(ctx, 0, savepoint.Reference())
	require.NoError(t, err)
	require.Equal(t, savepoint.CheckpointDir(), seen.CheckpointDir())
	pending, err := owner.Begin(ctx, 3)
	require.NoError(t, err)
	seen, err = task.ResolveLocation(ctx, 3, pending.Reference())
	require.NoError(t, err)
	require.Equal(t, pending.CheckpointDir(), seen.CheckpointDir())
}

func TestBeginEndsWithItsContext(t *testing.T) {
	r := newJobRig(t)
	owner := r.claim(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := owner.Begin(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = owner.BeginSavepoint(ctx, "/save")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, exists(t, r.mem, r.chk(1)))
	require.False(t, exists(t, r.mem, "/save"))
}

func TestBeginOnEveryFileSystemIsDurable(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	r := jobRigOn(t, mem)
	owner := r.claim(t)
	_, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	_, err = owner.BeginSavepoint(ctx, "/save/deep")
	require.NoError(t, err)
	require.Equal(t, mem.Tree(), mem.CrashClone(memfs.CrashConfig{}).Tree())
}

func TestOwnerServesManyGoroutines(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	base := r.commit(t, owner, 1, 1, 2, nil)
	const each = 8
	var all sync.WaitGroup
	failures := make(chan error, 4*each)
	kept := make(chan *checkpoint, each)
	for i := range int64(each) {
		all.Go(func() {
			c, err := r.write(owner, 10+i, 2, 1, base.sharedOf())
			kept <- c
			failures <- err
		})
		all.Go(func() {
			_, err := r.write(owner, 100+i, 1, 1, nil)
			if err == nil {
				_, err = owner.Dispose(ctx, 100+i, readAll)
			}
			failures <- err
		})
		all.Go(func() {
			pending, err := owner.Begin(ctx, 200+i)
			if err == nil {
				err = pending.DisposeOnFailure(ctx)
			}
			failures <- errors.Join(err, owner.Check(ctx))
		})
		all.Go(func() {
			pending, err := owner.BeginSavepoint(ctx, "/save")
			if err == nil {
				_, err = pending.CreateMetadataStream(ctx)
			}
			failures <- err
		})
	}
	all.Wait()
	close(failures)
	close(kept)
	for err := range failures {
		require.NoError(t, err)
	}
	requireIntact(t, r.mem, base)
	ids := []int64{1}
	for c := range kept {
		requireIntact(t, r.mem, c)
		ids = append(ids, c.id)
	}
	slices.Sort(ids)
	require.Equal(t, ids, completeIDs(t, r.mem, r.dir()))
}
