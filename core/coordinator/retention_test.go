package coordinator

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestOnlyTheNewestCheckpointsAreRetained(t *testing.T) {
	for _, retain := range []int{1, 2, 5} {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Retain = retain })
		var ids []int64
		for range 8 {
			ids = append(ids, w.checkpoint().ID)
			ids = ids[max(0, len(ids)-retain):]
			requireTidy(t, fsys, ids)
		}
		require.Equal(t, int64(8-retain), w.counts.Count(EventSubsumed))
	}
}

func TestForeignFilesInASubsumedCheckpointStay(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	notes := path.Dir(metadataName(1)) + "/notes.txt"
	writeFile(t, fsys, notes, "x")
	w.checkpoint()
	w.checkpoint()
	requireTidy(t, fsys, []int64{3}, notes, path.Dir(notes)+"/._metadata.emptied")
}

func TestACheckpointIsKeptWhileOneUnderWayIsBasedOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 2 })
		w.checkpoint()
		_, second := w.underWay(w.c.TriggerCheckpoint)
		_, third := w.underWay(w.c.TriggerCheckpoint)
		sent := w.triggers()
		require.Equal(t, int64(1), sent[1].Base)
		require.Equal(t, int64(1), sent[2].Base)

		// The state of the third is written before the commit of the second, and acknowledged after it.
		acks := map[Task]Ack{}
		for _, task := range allTasks() {
			state, err := w.tasks.snapshot(t.Context(), sent[2], task)
			require.NoError(t, err)
			acks[task] = sent[2].Ack(task, state)
		}
		for _, task := range allTasks() {
			// The second drops the shared files of the first.
			w.tasks.remember(task, 1, nil)
		}
		require.NoError(t, w.ackAll(t.Context(), sent[1]))
		_, err := second()
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2}, completeIDs(t, fsys), "the third may need the first")
		for _, ack := range acks {
			require.NoError(t, w.c.Acknowledge(t.Context(), ack))
		}
		_, err = third()
		require.NoError(t, err)
		requireTidy(t, fsys, []int64{3})
	})
}

func TestWhatAnAcknowledgementRefersToIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 2; o.Retain = 2 })
		w.checkpoint()
		first := map[Task][]metadata.NamedFile{}
		for _, task := range allTasks() {
			first[task] = w.tasks.known(task, 1)
			w.tasks.remember(task, 1, nil)
		}
		w.checkpoint() // does not refer to the files of the first
		_, third := w.underWay(w.c.TriggerCheckpoint)
		_, fourth := w.underWay(w.c.TriggerCheckpoint)
		sent := w.triggers()
		for _, task := range allTasks() {
			// More than tasks may do: the base is the second.
			w.tasks.remember(task, 2, first[task])
		}
		require.NoError(t, w.ack(t.Context(), sent[3], Task{counter.ID, 0}))
		for _, task := range allTasks() {
			w.tasks.remember(task, 2, nil)
		}
		require.NoError(t, w.ackAll(t.Context(), sent[2]))
		_, err := third()
		require.NoError(t, err)
		require.Equal(t, []int64{2, 3}, completeIDs(t, fsys))
		require.NoError(t, w.ack(t.Context(), sent[3], Task{counter.ID, 1}))
		require.NoError(t, w.ack(t.Context(), sent[3], Task{feed.ID, 0}))
		_, err = fourth()
		require.NoError(t, err)
		requireTidy(t, fsys, []int64{3, 4})
	})
}

func TestWhatARetainedCheckpointNeedsIsKeptWhileItIsMovedAway(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 3 })
	w.checkpoint()
	w.checkpoint()
	for _, task := range allTasks() {
		w.tasks.remember(task, 2, nil) // the next ones need no file of the first two
	}
	w.checkpoint()
	second := path.Dir(metadataName(2))
	require.NoError(t, fsys.Rename(t.Context(), second, "/away", core.RenameNoReplace))
	w.checkpoint()
	require.Equal(t, []int64{3, 4}, completeIDs(t, fsys))
	require.NoError(t, fsys.Rename(t.Context(), "/away", second, core.RenameNoReplace))
	requireRestorable(t, fsys, second)
}

func TestADeletionThatHangsDoesNotHoldUpTheJobForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newFS(t)
		fsys := faultfs.Wrap(mem, nil)
		w := startWorld(t, fsys, func(o *Options) { o.Timeout = time.Minute })
		w.checkpoint()
		fsys.SetInjector(faultfs.OnOp(faultfs.OpRemove, faultfs.Fault{Block: make(chan struct{})}))
		begin := time.Now()
		w.checkpoint()
		require.Equal(t, time.Minute, time.Since(begin))
		require.Equal(t, int64(1), w.counts.Count(EventLeftBehind))
		fsys.SetInjector(nil)
		w.checkpoint()
		requireTidy(t, mem, []int64{3})
	})
}

func TestAFailedDeletionIsTriedAgainAfterTheNextCommit(t *testing.T) {
	mem := newFS(t)
	fsys := faultfs.Wrap(mem, nil)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	for _, op := range []faultfs.Op{faultfs.OpRemove, faultfs.OpRename} {
		problem := errors.New("not now")
		fsys.SetInjector(faultfs.Match(func(c faultfs.Call) bool {
			return c.Op == op && path.Base(c.NewName) != core.MetadataName
		}, faultfs.Fault{Err: problem}))
		before := w.counts.Count(EventLeftBehind)
		w.checkpoint()
		require.Equal(t, before+1, w.counts.Count(EventLeftBehind))
		require.ErrorIs(t, w.events[len(w.events)-1].Err, problem)

		fsys.SetInjector(nil)
		requireTidy(t, mem, []int64{w.checkpoint().ID})
	}
}

func TestADirectoryOfAnAbortedCheckpointThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	mem := newFS(t)
	problem := errors.New("not now")
	fsys := faultfs.Wrap(mem, faultfs.Match(func(c faultfs.Call) bool {
		return c.Op == faultfs.OpRename && c.Name == jobDir+"/chk-2"
	}, faultfs.Fault{Err: problem}))
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	w.setSend(func(ctx context.Context, tr Trigger) error {
		require.NoError(t, w.ack(ctx, tr, Task{counter.ID, 0}))
		return w.c.Decline(ctx, tr.Decline(Task{counter.ID, 1}, "no"))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.Equal(t, []int64{2}, w.abortedIDs(), "it is aborted all the same")
	require.Equal(t, int64(1), w.counts.Count(EventLeftBehind))
	w.setSend(nil)
	w.checkpoint()
	require.Equal(t, int64(2), w.counts.Count(EventLeftBehind))
	fsys.SetInjector(nil)
	w.checkpoint()
	require.Equal(t, int64(2), w.counts.Count(EventLeftBehind))
	require.Equal(t, []int64{2}, w.abortedIDs(), "once")
	requireTidy(t, mem, []int64{4})
}

func TestADamagedSiblingStopsTheDeletionOfWhatItMayNeed(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
	w.checkpoint()
	w.checkpoint()
	damage(t, fsys, metadataName(2))
	for range 5 {
		w.checkpoint()
	}
	// The damaged one itself cannot be deleted either; the others are, except for shared files.
	require.Equal(t, []int64{2, 6, 7}, completeIDs(t, fsys))
	require.Positive(t, w.counts.Count(EventLeftBehind))
	for _, id := range []int64{6, 7} {
		requireRestorable(t, fsys, path.Dir(metadataName(id)))
	}
}

// goneWithReply loses the reply of the rename to a name, and lets everything fail from then on.
func goneWithReply(name string, err error) faultfs.Injector {
	var gone atomic.Bool
	return func(c faultfs.Call) faultfs.Fault {
		switch {
		case gone.Load():
			return faultfs.Fault{Err: err}
		case c.Op == faultfs.OpRename && c.NewName == name:
			gone.Store(true)
			return faultfs.Fault{Err: err, After: true}
		}
		return faultfs.Fault{}
	}
}

func TestACommitWhoseOutcomeIsNotKnownIsSettledBeforeAnythingElse(t *testing.T) {
	mem := newFS(t)
	fsys := faultfs.Wrap(mem, nil)
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
	w.checkpoint()
	var acked *metadata.SubtaskState
	w.setSend(func(ctx context.Context, tr Trigger) error {
		state, err := w.tasks.snapshot(ctx, tr, Task{counter.ID, 0})
		require.NoError(t, err)
		acked = state
		require.NoError(t, w.c.Acknowledge(ctx, tr.Ack(Task{counter.ID, 0}, state)))
		require.NoError(t, w.ack(ctx, tr, Task{counter.ID, 1}))
		return w.ack(ctx, tr, Task{feed.ID, 0})
	})
	// The metadata is renamed to its name, the answer is lost, and then the storage is gone.
	outage := errors.New("the storage is gone")
	fsys.SetInjector(goneWithReply(metadataName(2), outage))
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrUnsettled)
	require.ErrorIs(t, err, outage)
	require.Equal(t, int64(1), w.counts.Count(EventUnsettled))
	require.Equal(t, []int64{1, 2}, completeIDs(t, mem))
	requireRestorable(t, mem, path.Dir(metadataName(2)))
	require.Empty(t, w.abortedIDs(), "neither this")
	require.Equal(t, []int64{1}, w.committedIDs(), "nor that")

	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrUnsettled)
	require.Len(t, w.triggers(), 2, "nothing else is triggered")

	fsys.SetInjector(nil)
	late := w.lastTrigger().Ack(Task{counter.ID, 0}, acked)
	require.ErrorIs(t, w.c.Acknowledge(t.Context(), late), ErrNotPending)
	requireRestorable(t, mem, path.Dir(metadataName(2)))
	require.Equal(t, int64(3), w.checkpoint().ID)
	require.Equal(t, []int64{2}, w.abortedIDs())
	requireTidy(t, mem, []int64{1, 3})
}

func TestACommitWaitsUntilTheOneBeforeItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newFS(t)
		fsys := faultfs.Wrap(mem, nil)
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 2 })
		_, first := w.underWay(w.c.TriggerCheckpoint)
		_, second := w.underWay(w.c.TriggerCheckpoint)
		sent := w.triggers()
		fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Op == faultfs.OpRename {
				return faultfs.Fault{Err: faultfs.ErrInjected, After: c.NewName == metadataName(1)}
			}
			return faultfs.Fault{}
		})
		require.NoError(t, w.ackAll(t.Context(), sent[0]))
		_, err := first()
		require.ErrorIs(t, err, ErrUnsettled)
		require.Empty(t, w.abortedIDs())
		fsys.SetInjector(nil)
		require.NoError(t, w.ackAll(t.Context(), sent[1]))
		_, err = second()
		require.NoError(t, err)
		require.Equal(t, []int64{1}, w.abortedIDs())
		require.Equal(t, []int64{2}, w.committedIDs())
		requireTidy(t, mem, []int64{2})
	})
}

func TestARestartFindsOutAboutACommitWhoseOutcomeIsNotKnown(t *testing.T) {
	mem := newFS(t)
	fsys := faultfs.Wrap(mem, nil)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	fsys.SetInjector(goneWithReply(metadataName(2), faultfs.ErrInjected))
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrUnsettled)
	again := startWorld(t, mem, nil)
	require.Equal(t, []int64{2}, again.committedIDs())
	fsys.SetInjector(nil)
	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced, "it must not take back what its successor has restored")
	requireRestorable(t, mem, path.Dir(metadataName(2)))
	again.checkpoint()
	requireTidy(t, mem, []int64{3})
}

func TestAMetadataFileOfSomebodyElseIsLeftAlone(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	w.setSend(func(ctx context.Context, tr Trigger) error {
		writeFile(t, fsys, metadataName(2), "another")
		return w.ackAll(ctx, tr)
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, metadataName(2))
	require.Equal(t, []int64{2}, w.abortedIDs())
	require.Contains(t, tree(t, fsys, jobDir), metadataName(2))
	requireRestorable(t, fsys, path.Dir(metadataName(1)))
}
