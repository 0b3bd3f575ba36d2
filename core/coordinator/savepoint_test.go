package coordinator

import (
	"context"
	"io/fs"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func nameOf(tb testing.TB, pointer string) string {
	tb.Helper()
	_, name, err := core.SplitQualified(pointer)
	require.NoError(tb, err)
	return name
}

func TestASavepointOwnsItsFilesAndIsNeverDeleted(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 1 })
	w.checkpoint()
	require.NoError(t, fsys.MkdirAll(t.Context(), "/mine"))
	savepoint, err := w.c.TriggerSavepoint(t.Context(), "mem:/mine")
	require.NoError(t, err)
	require.Equal(t, int64(2), savepoint.ID)
	require.Equal(t, Savepoint, savepoint.Kind)
	dir := nameOf(t, savepoint.Pointer)
	require.Equal(t, "/mine", path.Dir(dir))
	for range 3 {
		w.checkpoint()
	}
	for _, name := range requireRestorable(t, fsys, dir) {
		require.Equal(t, dir, path.Dir(name))
	}
	completed, err := core.ResolvePointer(t.Context(), core.OnlyOn(fsys), savepoint.Pointer)
	require.NoError(t, err)
	f, err := w.c.read(t.Context(), completed)
	require.NoError(t, err)
	require.Equal(t, Savepoint, f.Kind)
	require.True(t, f.Checkpoint.Properties.IsSavepoint())
	require.Equal(t, "CANONICAL", f.Checkpoint.Properties.Type.Format)
	require.Equal(t, metadata.KindSavepoint, f.Checkpoint.Footer.Kind)
	requireTidy(t, fsys, []int64{5})

	// Restores do not go back to it, so sinks are not told, and checkpoints are not based on it.
	require.Equal(t, []int64{1, 3, 4, 5}, w.committedIDs())
	sent := w.triggers()
	require.Equal(t, int64(0), sent[1].Base)
	require.Equal(t, int64(1), sent[2].Base)
}

func TestASavepointThatIsMovedIsRestored(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	savepoint, err := w.c.TriggerSavepoint(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, fsys.MkdirAll(t.Context(), "/moved"))
	require.NoError(t, fsys.Rename(t.Context(), nameOf(t, savepoint.Pointer), "/moved/s", core.RenameNoReplace))
	again := startWorld(t, fsys, func(o *Options) { o.Restore.Pointer = "mem:/moved/s/" })
	require.Equal(t, []int64{1}, again.committedIDs())
	require.Equal(t, Savepoint, again.committed[0].Kind)
	require.Equal(t, int64(2), again.checkpoint().ID)
	require.Zero(t, again.lastTrigger().Base, "a savepoint's files are not referred to by checkpoints")
}

func TestASavepointWithFilesElsewhereIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		w.checkpoint()
		shared := w.tasks.known(Task{counter.ID, 0}, 1)
		trigger, outcome := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.TriggerSavepoint(ctx, "") })
		state, err := w.tasks.snapshot(t.Context(), trigger, Task{counter.ID, 0})
		require.NoError(t, err)
		handle, ok := state.ManagedKeyed.(*metadata.IncrementalHandle)
		require.True(t, ok)
		handle.Shared = append(handle.Shared, shared...)
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), trigger.Ack(Task{counter.ID, 0}, state)), ErrDeclined)
		_, err = outcome()
		require.ErrorContains(t, err, "a savepoint owns all its files")
		requireTidy(t, fsys, []int64{1})
		require.Empty(t, tree(t, fsys, savepointDir))
	})
}

func TestASavepointWithoutATarget(t *testing.T) {
	fsys := newFS(t)
	storage, err := core.NewStorage(fsys, base, jobID, core.Options{})
	require.NoError(t, err)
	w := startWorld(t, fsys, func(o *Options) { o.Storage = storage })
	_, err = w.c.TriggerSavepoint(t.Context(), "")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = w.c.TriggerSavepoint(t.Context(), "hdfs://ns1/x")
	require.ErrorIs(t, err, fs.ErrInvalid)
	w.checkpoint()
}

func TestOlderSavepointsAreNotSubsumedAndDoNotSubsume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 3 })
		_, first := w.underWay(w.c.TriggerCheckpoint)
		_, second := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.TriggerSavepoint(ctx, "") })
		_, third := w.underWay(w.c.TriggerCheckpoint)
		sent := w.triggers()

		require.NoError(t, w.ackAll(t.Context(), sent[2]))
		_, err := third()
		require.NoError(t, err)
		_, err = first()
		require.ErrorIs(t, err, ErrSubsumed)
		_, fourth := w.underWay(w.c.TriggerCheckpoint)
		require.NoError(t, w.ackAll(t.Context(), sent[1]))
		savepoint, err := second()
		require.NoError(t, err)
		require.NoError(t, w.ackAll(t.Context(), w.lastTrigger()))
		_, err = fourth()
		require.NoError(t, err)
		requireTidy(t, fsys, []int64{4})
		requireRestorable(t, fsys, nameOf(t, savepoint.Pointer))
	})
}

func TestStopWithSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Interval = time.Second; o.Retain = 3 })
		ran := make(chan error, 1)
		go func() { ran <- w.c.Run(t.Context()) }()
		time.Sleep(4500 * time.Millisecond)
		require.Equal(t, []int64{2, 3, 4}, completeIDs(t, fsys))
		trigger, outcome := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.StopWithSavepoint(ctx, "") })
		require.True(t, trigger.Stop)
		require.Equal(t, Savepoint, trigger.Kind)

		_, err := w.c.StopWithSavepoint(t.Context(), "")
		require.ErrorIs(t, err, fs.ErrClosed, "it is being stopped already")
		time.Sleep(10 * time.Second)
		require.Len(t, w.triggers(), 5, "nothing else is triggered")
		require.NoError(t, w.ackAll(t.Context(), trigger))
		savepoint, err := outcome()
		require.NoError(t, err)
		require.True(t, savepoint.Stop)
		completed, err := core.ResolvePointer(t.Context(), core.OnlyOn(fsys), savepoint.Pointer)
		require.NoError(t, err)
		f, err := w.c.read(t.Context(), completed)
		require.NoError(t, err)
		require.Equal(t, "SUSPEND", f.Checkpoint.Properties.Type.Action)
		require.NoError(t, <-ran)
		require.Equal(t, []int64{1, 2, 3, 4, 5}, w.committedIDs(), "sinks are told")
		requireTidy(t, fsys, []int64{3, 4}) // it counts as the third

		_, err = w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, w.c.Run(t.Context()), fs.ErrClosed)
		require.NoError(t, w.c.Close(t.Context()))

		again := startWorld(t, fsys, func(o *Options) { o.Restore.Pointer = savepoint.Pointer })
		require.Equal(t, []int64{5}, again.committedIDs())
		require.Equal(t, int64(6), again.checkpoint().ID)
		requireTidy(t, fsys, []int64{6})
	})
}

func TestStoppingKeepsOneCheckpoint(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	w.checkpoint()
	savepoint, err := w.c.StopWithSavepoint(t.Context(), "")
	require.NoError(t, err)
	requireTidy(t, fsys, []int64{2})
	requireRestorable(t, fsys, nameOf(t, savepoint.Pointer))
}

func TestAfterAFailedStopEverythingGoesOn(t *testing.T) {
	for _, slots := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) { failedStop(t, slots) })
	}
}

func failedStop(t *testing.T, slots int) {
	t.Helper()
	fsys := newFS(t)
	w := startWorld(t, fsys, func(o *Options) { o.Interval, o.MaxConcurrent = time.Second, slots })
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ran <- w.c.Run(ctx) }()
	trigger, outcome := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.StopWithSavepoint(ctx, "") })
	time.Sleep(5 * time.Second)
	require.Len(t, w.triggers(), 1)
	w.setSend(nil)
	require.NoError(t, w.c.Decline(t.Context(), trigger.Decline(Task{feed.ID, 0}, "not now")))
	_, err := outcome()
	require.ErrorIs(t, err, ErrDeclined)
	require.Empty(t, tree(t, fsys, savepointDir))
	require.True(t, w.aborted[0].Stop)

	time.Sleep(1500 * time.Millisecond)
	require.NotEmpty(t, w.committedIDs())
	require.NoError(t, w.c.Close(t.Context()))
	require.ErrorIs(t, <-ran, fs.ErrClosed)
}

func TestNothingIsTriggeredByHandWhileTheJobIsBeingStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.MaxConcurrent = 2 })
		trigger, outcome := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.StopWithSavepoint(ctx, "") })
		_, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, fs.ErrClosed)
		_, err = w.c.TriggerSavepoint(t.Context(), "")
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NoError(t, w.ackAll(t.Context(), trigger))
		_, err = outcome()
		require.NoError(t, err)
	})
}
