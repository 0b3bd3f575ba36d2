package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// someCheckpoints makes n checkpoints and retains them all.
func someCheckpoints(t *testing.T, fsys core.FileSystem, n int) *world {
	t.Helper()
	w := startWorld(t, fsys, func(o *Options) { o.Retain = n })
	for range n {
		w.checkpoint()
	}
	return w
}

func start(t *testing.T, fsys core.FileSystem, restore Restore) (*world, *Restored, error) {
	t.Helper()
	w := newWorld(t, fsys, func(o *Options) { o.Restore = restore; o.Retain = 3 })
	r, err := w.c.Start(t.Context())
	return w, r, err
}

func TestAJobBeginsWithoutState(t *testing.T) {
	fsys := newFS(t)
	w, r, err := start(t, fsys, Restore{})
	require.NoError(t, err)
	require.True(t, r.Empty())
	require.Empty(t, w.committedIDs())
	require.Equal(t, int64(1), w.checkpoint().ID)
	require.Zero(t, w.lastTrigger().Base)
}

func TestTheNewestCheckpointIsRestored(t *testing.T) {
	fsys := newFS(t)
	first := someCheckpoints(t, fsys, 10)
	w, r, err := start(t, fsys, Restore{})
	require.NoError(t, err)
	require.Equal(t, int64(10), r.ID, "by number, not by text")
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []Committed{{
		ID: 10, Epoch: 2, Pointer: r.Pointer, Metadata: first.committed[9].Metadata, Timestamp: first.committed[9].Timestamp,
		StateSize: first.committed[9].StateSize, Repeated: true,
	}}, w.committed)

	require.Equal(t, int64(11), w.checkpoint().ID)
	require.Equal(t, int64(10), w.lastTrigger().Base)
	requireTidy(t, fsys, []int64{9, 10, 11})
	_, err = first.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
}

func TestWhatLooksLikeACheckpointIsNotRestored(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	kept := []string{
		"/chk-4/notes.txt", "/chk-013/_metadata", "/chk-abc/x", "/chk--1/x", "/chk-20", "/chk-99999999999999999999/_metadata", "/savepoint-x/_metadata",
	}
	for i, name := range kept {
		kept[i] = jobDir + name
		writeFile(t, fsys, kept[i], "foreign")
	}
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-7"))
	writeFile(t, fsys, jobDir+"/chk-8/._metadata.inprogress.7d8f4b5e-0000-4000-8000-000000000001", "half")
	w, r, err := start(t, fsys, Restore{})
	require.NoError(t, err)
	require.Equal(t, int64(2), r.ID)
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 7, 8}, w.abortedIDs())
	require.True(t, w.aborted[0].Repeated)
	require.Equal(t, int64(21), w.checkpoint().ID, "above everything that was there")
	requireTidy(t, fsys, []int64{1, 2, 21}, kept...)
}

func TestAPointerIsRestored(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 3)
	for _, pointer := range []string{"mem:" + jobDir + "/chk-2", "mem:" + jobDir + "/chk-2/", "mem:" + metadataName(2), "mem://" + jobDir + "/x/../chk-2"} {
		_, r, err := start(t, fsys, Restore{Pointer: pointer})
		require.NoError(t, err, pointer)
		require.Equal(t, int64(2), r.ID)
	}
	w, r, err := start(t, fsys, Restore{Pointer: "mem:" + jobDir + "/chk-2"})
	require.NoError(t, err)
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, int64(4), w.checkpoint().ID)
	require.Equal(t, int64(2), w.lastTrigger().Base)
	requireTidy(t, fsys, []int64{2, 3, 4})

	for pointer, want := range map[string]error{
		"mem:/nothing": fs.ErrNotExist, "mem:" + jobDir: fs.ErrNotExist, "hdfs://ns1/x": fs.ErrInvalid, "nonsense": fs.ErrInvalid,
	} {
		_, _, err := start(t, fsys, Restore{Pointer: pointer})
		require.ErrorIs(t, err, want, pointer)
	}
}

func TestACheckpointOfAnotherJobIsRestoredButNotBuiltUpon(t *testing.T) {
	fsys := newFS(t)
	other, err := core.NewStorage(fsys, base, core.JobIDOf("other"), core.Options{InlineThreshold: testInline})
	require.NoError(t, err)
	theirs := newWorld(t, fsys, func(o *Options) { o.Storage = other })
	theirs.tasks = newTasks(other)
	_, err = theirs.c.Start(t.Context())
	require.NoError(t, err)
	for range 4 {
		theirs.checkpoint()
	}
	pointer := theirs.committed[3].Pointer
	w, r, err := start(t, fsys, Restore{Pointer: pointer})
	require.NoError(t, err)
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, int64(5), w.checkpoint().ID)
	require.Zero(t, w.lastTrigger().Base)
	requireTidy(t, fsys, []int64{5})
	requireRestorable(t, fsys, nameOf(t, pointer))
}

func TestFreshRestoresNothing(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	w, r, err := start(t, fsys, Restore{Fresh: true})
	require.NoError(t, err)
	require.True(t, r.Empty())
	require.Empty(t, w.committedIDs())
	require.Equal(t, int64(3), w.checkpoint().ID)
	require.Zero(t, w.lastTrigger().Base)
	w.checkpoint()
	requireTidy(t, fsys, []int64{2, 3, 4})
}

func TestADamagedNewestCheckpointIsAnErrorUnlessAnOlderOneWillDo(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 3)
	damage(t, fsys, metadataName(3))
	before := tree(t, fsys, jobDir)
	_, _, err := start(t, fsys, Restore{})
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "checkpoint 3")

	w, r, err := start(t, fsys, Restore{AllowOlder: true})
	require.NoError(t, err)
	require.Equal(t, int64(2), r.ID)
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, int64(1), w.counts.Count(EventSkipped))
	require.Equal(t, len(before), len(tree(t, fsys, jobDir)), "nothing of the damaged one is deleted")

	// The damaged one does not count as retained, and stays. It may need shared files, so these stay too.
	for range 4 {
		w.checkpoint()
	}
	require.Equal(t, []int64{3, 5, 6, 7}, completeIDs(t, fsys))
	require.Contains(t, tree(t, fsys, jobDir), metadataName(3))
	for _, id := range []int64{5, 6, 7} {
		requireRestorable(t, fsys, path.Dir(metadataName(id)))
	}
	shared := slices.DeleteFunc(before, func(name string) bool { return path.Base(path.Dir(name)) != core.SharedDirName })
	require.Subset(t, tree(t, fsys, jobDir), shared)
}

func TestNoReadableCheckpointIsAnErrorAlsoIfAnOlderOneWillDo(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	damage(t, fsys, metadataName(1))
	damage(t, fsys, metadataName(2))
	_, _, err := start(t, fsys, Restore{AllowOlder: true})
	require.ErrorIs(t, err, core.ErrCorrupt)
	_, r, err := start(t, fsys, Restore{Fresh: true})
	require.NoError(t, err)
	require.True(t, r.Empty())
}

func TestADamagedOlderCheckpointDoesNotMatter(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	damage(t, fsys, metadataName(1))
	w, r, err := start(t, fsys, Restore{})
	require.NoError(t, err)
	require.Equal(t, int64(2), r.ID)
	require.Equal(t, int64(1), w.counts.Count(EventSkipped))

	// It may need any shared file, so an abort leaves those of its attempt too.
	before := len(tree(t, fsys, jobDir))
	w.setSend(func(ctx context.Context, tr Trigger) error {
		require.NoError(t, w.ack(ctx, tr, Task{counter.ID, 0}))
		return w.c.Decline(ctx, tr.Decline(Task{counter.ID, 1}, "no"))
	})
	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.Len(t, tree(t, fsys, jobDir), before+1)
}

func TestTheMetadataOfAnotherCheckpointIsDamage(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	require.NoError(t, fsys.Rename(t.Context(), path.Dir(metadataName(1)), path.Dir(metadataName(5)), core.RenameNoReplace))
	_, _, err := start(t, fsys, Restore{})
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "checkpoint 1")
}

func TestStorageThatCannotBeReachedIsNoReasonToGoBack(t *testing.T) {
	mem := newFS(t)
	someCheckpoints(t, mem, 3)
	for _, passing := range []error{core.ErrUnavailable, fs.ErrPermission, context.DeadlineExceeded} {
		for _, id := range []int64{3, 1} {
			fsys := faultfs.Wrap(mem, faultfs.Match(func(c faultfs.Call) bool {
				return c.Op == faultfs.OpOpen && c.Name == metadataName(id)
			}, faultfs.Fault{Err: passing}))
			_, _, err := start(t, fsys, Restore{AllowOlder: true})
			require.ErrorIs(t, err, passing, "checkpoint %d", id)
		}
	}
	again := faultfs.Match(func(c faultfs.Call) bool {
		return c.Op == faultfs.OpOpen && c.Name == metadataName(3)
	}, faultfs.Fault{Err: fs.ErrPermission})
	once := faultfs.Once(again)
	_, _, err := start(t, faultfs.Wrap(mem, once), Restore{AllowOlder: true})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, r, err := start(t, mem, Restore{})
	require.NoError(t, err)
	require.Equal(t, int64(3), r.ID)
}

func TestACheckpointThatDoesNotFitTheJob(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 1)
	begin := func(allow bool, ops ...Operator) error {
		w := newWorld(t, fsys, func(o *Options) { o.Operators = ops; o.Restore.AllowNonRestoredState = allow })
		_, err := w.c.Start(t.Context())
		return err
	}
	wider := counter
	wider.MaxParallelism = 16
	require.ErrorIs(t, begin(true, feed, wider), fs.ErrInvalid)
	require.ErrorIs(t, begin(false, counter), fs.ErrInvalid)
	require.NoError(t, begin(true, counter))
	more := counter
	more.Parallelism = 3
	require.NoError(t, begin(false, feed, more, Operator{UID: "new"}))
}

func TestAStartThatFailedMayBeRepeated(t *testing.T) {
	mem := newFS(t)
	someCheckpoints(t, mem, 1)
	problem := errors.New("a sink that cannot commit")
	calls := 0
	w := newWorld(t, mem, func(o *Options) {
		o.OnCommitted = func(context.Context, Committed) error {
			if calls++; calls == 1 {
				return problem
			}
			return nil
		}
	})
	_, err := w.c.Start(t.Context())
	require.ErrorIs(t, err, problem)
	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, fs.ErrInvalid)
	r, err := w.c.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), r.ID)
	w.checkpoint()
	require.Equal(t, 3, calls)
}

func TestLeftoversAreSweptUnlessTheyAreToStay(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 1)
	orphan := jobDir + "/shared/7d8f4b5e-0000-4000-8000-000000000001"
	late := jobDir + "/chk-1/7d8f4b5e-0000-4000-8000-000000000002"
	for _, name := range []string{orphan, late} {
		writeFile(t, fsys, name, "x")
	}
	writeFile(t, fsys, jobDir+"/chk-2/7d8f4b5e-0000-4000-8000-000000000003", "x")

	lazy := startWorld(t, fsys, func(o *Options) { o.NoSweep = true })
	require.Contains(t, tree(t, fsys, jobDir), orphan)
	require.Equal(t, []int64{2}, lazy.abortedIDs())

	w := startWorld(t, fsys, nil)
	requireTidy(t, fsys, []int64{1})
	require.Equal(t, int64(1), w.counts.Count(EventClaimed))
	require.Equal(t, int64(1), w.counts.Count(EventSwept))
	require.Equal(t, 3, w.events[slices.IndexFunc(w.events, func(e Event) bool { return e.Type == EventSwept })].Files)
}

func TestNothingIsDeletedBeforeItIsKnownWhatIsRestored(t *testing.T) {
	fsys := newFS(t)
	someCheckpoints(t, fsys, 2)
	writeFile(t, fsys, jobDir+"/shared/7d8f4b5e-0000-4000-8000-000000000001", "x")
	writeFile(t, fsys, jobDir+"/chk-3/7d8f4b5e-0000-4000-8000-000000000002", "x")
	damage(t, fsys, metadataName(2))
	files := func() []string {
		return slices.DeleteFunc(tree(t, fsys, jobDir), func(name string) bool { return path.Base(name) == "owner" })
	}
	before := files()
	_, _, err := start(t, fsys, Restore{})
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.Equal(t, before, files())
}

func TestFilesOfTheJobThatARenamedCheckpointNeedsAreNotSwept(t *testing.T) {
	fsys := newFS(t)
	w := someCheckpoints(t, fsys, 2)
	for _, task := range allTasks() {
		w.tasks.remember(task, 2, nil)
	}
	w.checkpoint()
	require.NoError(t, fsys.Rename(t.Context(), jobDir+"/chk-2", jobDir+"/rescued", core.RenameNoReplace))
	w, r, err := start(t, fsys, Restore{Pointer: "mem:" + jobDir + "/rescued"})
	require.NoError(t, err)
	require.Equal(t, int64(2), r.ID)
	_, err = w.tasks.restore(t.Context(), r)
	require.NoError(t, err)
	require.Zero(t, w.counts.Count(EventSwept))
	require.Equal(t, int64(4), w.checkpoint().ID)
	require.Zero(t, w.lastTrigger().Base)
	requireRestorable(t, fsys, jobDir+"/rescued")
}

func TestASweepThatFailsDoesNotStopTheStart(t *testing.T) {
	mem := newFS(t)
	someCheckpoints(t, mem, 1)
	orphan := jobDir + "/shared/7d8f4b5e-0000-4000-8000-000000000001"
	writeFile(t, mem, orphan, "x")
	problem := errors.New("cannot remove")
	fsys := faultfs.Wrap(mem, faultfs.OnOp(faultfs.OpRemove, faultfs.Fault{Err: problem}))
	w := startWorld(t, fsys, nil)
	require.ErrorIs(t, w.events[slices.IndexFunc(w.events, func(e Event) bool { return e.Type == EventSwept })].Err, problem)
	require.Contains(t, tree(t, mem, jobDir), orphan)
}

func TestAJobDirectoryThatCannotBeMade(t *testing.T) {
	fsys := memfs.New(memfs.Options{})
	writeFile(t, fsys, base, "a file in the way")
	_, _, err := start(t, fsys, Restore{})
	require.Error(t, err)
	require.ErrorContains(t, err, base)
	require.Equal(t, []string{base}, tree(t, fsys, "/"))
}

func TestTheLastIDIsRefused(t *testing.T) {
	fsys := newFS(t)
	writeFile(t, fsys, jobDir+fmt.Sprintf("/chk-%d/x", int64(1<<63-1)), "foreign")
	_, _, err := start(t, fsys, Restore{})
	require.ErrorIs(t, err, fs.ErrInvalid)
}
