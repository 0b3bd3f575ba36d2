package coordinator

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestACheckpointIsCommittedWhenAllTasksHaveAcknowledged(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	committed := w.checkpoint()
	require.Equal(t, int64(1), committed.ID)
	require.Equal(t, Checkpoint, committed.Kind)
	require.Equal(t, core.Qualify(fsys.URI(), jobDir+"/chk-1"), committed.Pointer)
	require.Equal(t, core.Qualify(fsys.URI(), metadataName(1)), committed.Metadata.Path)
	require.Equal(t, []int64{1}, w.committedIDs())
	require.Equal(t, int64(3*testInline/2+4*10*testInline), committed.StateSize)
	requireTidy(t, fsys, []int64{1})

	id, size, _ := w.counts.LastCommitted()
	require.Equal(t, int64(1), id)
	require.Equal(t, committed.StateSize, size)
	require.Equal(t, int64(1), w.counts.Count(EventTriggered))
}

func TestTheMetadataHoldsWhatIsKnownOfTheJob(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		require.NoError(t, w.c.Acknowledge(ctx, tr.AckFinished(Task{feed.ID, 0})))
		require.NoError(t, w.c.Acknowledge(ctx, tr.AckFinished(Task{counter.ID, 0})))
		return w.c.Acknowledge(ctx, tr.Ack(Task{counter.ID, 1}, nil))
	})
	committed := w.checkpoint()
	completed, err := core.ResolvePointer(t.Context(), core.OnlyOn(fsys), committed.Pointer)
	require.NoError(t, err)
	data, err := completed.ReadMetadata(t.Context())
	require.NoError(t, err)
	c, err := metadata.Parse(data, committed.Pointer)
	require.NoError(t, err)
	require.Equal(t, 4, c.Version)
	require.Equal(t, int64(1), c.ID)
	require.Equal(t, metadata.Footer{Created: committed.Timestamp, Kind: metadata.KindCheckpoint, Durability: core.Synced}, *c.Footer)
	require.False(t, c.Properties.IsSavepoint())
	require.False(t, c.Properties.DiscardCancelled)
	require.True(t, c.Properties.DiscardSubsumed)

	require.Equal(t, "the source", c.Operators[0].Name)
	require.Equal(t, "source", c.Operators[0].UID)
	require.True(t, c.Operators[0].FullyFinished)
	require.Equal(t, 8, c.Operators[1].MaxParallelism)
	require.False(t, c.Operators[1].FullyFinished)
	require.True(t, c.Operators[1].Subtasks[0].Finished())
	require.False(t, c.Operators[1].Subtasks[1].Finished())
}

func TestOtherMetadataVersions(t *testing.T) {
	for version := 3; version <= 6; version++ {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.MetadataVersion = version })
		w.checkpoint()
		requireTidy(t, fsys, []int64{1})
		again := startWorld(t, fsys, nil)
		require.Equal(t, []int64{1}, again.committedIDs())
	}
}

func TestADeclineAbortsTheCheckpoint(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	w.setSend(func(ctx context.Context, tr Trigger) error {
		require.NoError(t, w.ack(ctx, tr, Task{counter.ID, 0}))
		return w.c.Decline(ctx, tr.Decline(Task{counter.ID, 1}, "not now"))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.ErrorContains(t, err, "not now")
	require.Equal(t, []int64{2}, w.abortedIDs())
	require.ErrorIs(t, w.aborted[0].Reason, ErrDeclined)
	// The shared file that the one task wrote is gone too.
	requireTidy(t, fsys, []int64{1})

	w.setSend(nil)
	require.Equal(t, int64(3), w.checkpoint().ID)
	requireTidy(t, fsys, []int64{3})
}

func TestATriggerThatCannotBeSentAbortsTheCheckpoint(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	problem := errors.New("no route to the tasks")
	w.setSend(func(ctx context.Context, tr Trigger) error {
		require.NoError(t, w.ack(ctx, tr, Task{counter.ID, 0}))
		return problem
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, problem)
	require.Equal(t, []int64{1}, w.abortedIDs())
	requireTidy(t, fsys, nil)
}

func TestATaskThatKnowsOfANewerCoordinatorEndsThisOne(t *testing.T) {
	w := startWorld(t, newFS(t), nil)
	w.setSend(func(context.Context, Trigger) error { return core.ErrFenced })
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
	require.Empty(t, w.abortedIDs())
	require.Equal(t, int64(1), w.counts.Count(EventFenced))
}

func TestACheckpointThatTakesTooLongIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		w.setSend(func(ctx context.Context, tr Trigger) error { return w.ack(ctx, tr, Task{counter.ID, 0}) })
		begin := time.Now()
		_, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "10m0s")
		require.Equal(t, 10*time.Minute, time.Since(begin))
		require.Equal(t, []int64{1}, w.abortedIDs())
		requireTidy(t, fsys, nil)
	})
}

func TestTheEndOfTheCallersContextAbortsTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		w.setSend(func(ctx context.Context, tr Trigger) error { return w.ack(ctx, tr, Task{counter.ID, 0}) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := w.c.TriggerCheckpoint(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, []int64{1}, w.abortedIDs())
		requireTidy(t, fsys, nil)

		_, err = w.c.TriggerCheckpoint(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, w.triggers(), 1, "nothing is begun for a context that has ended")
	})
}

func TestAThirdCheckpointWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.MaxConcurrent = 2; o.Retain = 5 })
		w.setSend(func(context.Context, Trigger) error { return nil })
		results := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := w.c.TriggerCheckpoint(t.Context())
				results <- err
			}()
		}
		synctest.Wait()
		require.Len(t, w.triggers(), 2)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.c.TriggerCheckpoint(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no slot")

		for i := range 3 {
			require.NoError(t, w.ackAll(t.Context(), w.triggers()[i]))
			synctest.Wait()
		}
		for range 3 {
			require.NoError(t, <-results)
		}
		require.Equal(t, []int64{1, 2, 3}, w.committedIDs())
	})
}

func TestANewerCheckpointSubsumesOlderOnesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 3 })
		w.setSend(func(context.Context, Trigger) error { return nil })
		results := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := w.c.TriggerCheckpoint(t.Context())
				results <- err
			}()
			synctest.Wait()
		}
		sent := w.triggers()
		require.NoError(t, w.ack(t.Context(), sent[0], Task{counter.ID, 0}))
		require.NoError(t, w.ackAll(t.Context(), sent[1]))
		synctest.Wait()
		require.Equal(t, []int64{2}, w.committedIDs())
		require.Equal(t, []int64{1}, w.abortedIDs())
		require.ErrorIs(t, w.aborted[0].Reason, ErrSubsumed)
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), sent[0].Ack(Task{feed.ID, 0}, nil)), ErrNotPending)

		require.NoError(t, w.ackAll(t.Context(), sent[2]))
		synctest.Wait()
		require.Equal(t, []int64{2, 3}, w.committedIDs())
		failed := 0
		for range 3 {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, ErrSubsumed)
				failed++
			}
		}
		require.Equal(t, 1, failed)
		requireTidy(t, fsys, []int64{3})
	})
}

func TestAnOlderCheckpointThatIsReadyWhileANewerOneIsCommittedIsSubsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newFS(t)
		release := make(chan struct{})
		fsys := faultfs.Wrap(mem, faultfs.Match(func(c faultfs.Call) bool {
			return c.Op == faultfs.OpRename && c.NewName == metadataName(2)
		}, faultfs.Fault{Block: release}))
		w := startWorld(t, fsys, func(o *Options) { o.MaxConcurrent = 2 })
		_, first := w.underWay(w.c.TriggerCheckpoint)
		_, second := w.underWay(w.c.TriggerCheckpoint)
		sent := w.triggers()
		require.NoError(t, w.ackAll(t.Context(), sent[1]))
		synctest.Wait()
		require.NoError(t, w.ackAll(t.Context(), sent[0]))
		synctest.Wait()
		require.Empty(t, w.committedIDs())
		close(release)
		_, err := second()
		require.NoError(t, err)
		_, err = first()
		require.ErrorIs(t, err, ErrSubsumed)
		require.Equal(t, []int64{2}, w.committedIDs())
		require.Equal(t, []int64{1}, w.abortedIDs())
		requireTidy(t, mem, []int64{2})
	})
}

func TestStateThatTheFormatCannotHoldAbortsTheCheckpoint(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		for _, task := range allTasks() {
			state := &metadata.SubtaskState{ManagedOperator: &metadata.OperatorHandle{}} // no bytes
			require.NoError(t, w.c.Acknowledge(ctx, tr.Ack(task, state)))
		}
		return nil
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "operators[0].subtasks[0]")
	require.Equal(t, []int64{1}, w.abortedIDs())
	requireTidy(t, fsys, nil)
}

func TestATriggerThatWaitsForASlotEndsWithTheCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), nil)
		_, first := w.underWay(w.c.TriggerCheckpoint)
		_, second := w.underWay(w.c.TriggerCheckpoint)
		require.Len(t, w.triggers(), 1)
		require.NoError(t, w.c.Close(t.Context()))
		_, err := first()
		require.ErrorIs(t, err, fs.ErrClosed)
		_, err = second()
		require.ErrorIs(t, err, fs.ErrClosed)
		require.Len(t, w.triggers(), 1)
	})
}

func TestTheReasonOfAnAbortHidesNoOtherError(t *testing.T) {
	w := startWorld(t, newFS(t), nil)
	problem := errors.New("another problem")
	w.setSend(func(ctx context.Context, tr Trigger) error {
		return errors.Join(problem, w.c.Decline(ctx, tr.Decline(Task{feed.ID, 0}, "no")))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.ErrorIs(t, err, problem)
}

func TestNothingWorksBeforeStart(t *testing.T) {
	w := newWorld(t, newFS(t), nil)
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = w.c.StopWithSavepoint(t.Context(), "")
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, w.c.Run(t.Context()), fs.ErrInvalid)
	require.ErrorIs(t, w.c.Acknowledge(t.Context(), Ack{}), fs.ErrInvalid)
	require.ErrorIs(t, w.c.Decline(t.Context(), Decline{}), fs.ErrInvalid)
	_, err = w.c.Start(t.Context())
	require.NoError(t, err)
	_, err = w.c.Start(t.Context())
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestCloseAbortsWhatIsUnderWayAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Interval = time.Second })
		w.checkpoint()
		w.setSend(func(ctx context.Context, tr Trigger) error { return w.ack(ctx, tr, Task{counter.ID, 0}) })
		ran := make(chan error, 1)
		go func() { ran <- w.c.Run(t.Context()) }()
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, w.c.Close(t.Context()))
		require.ErrorIs(t, <-ran, fs.ErrClosed)
		require.Equal(t, []int64{2}, w.abortedIDs())
		require.ErrorIs(t, w.aborted[0].Reason, fs.ErrClosed)
		requireTidy(t, fsys, []int64{1})

		require.NoError(t, w.c.Close(t.Context()), "closing again is harmless")
		_, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, fs.ErrClosed)
		_, err = w.c.Start(t.Context())
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), w.lastTrigger().Ack(Task{counter.ID, 1}, nil)), fs.ErrClosed)
	})
}

func TestCloseReturnsWithItsContextWhileAnAbortHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := startWorld(t, newFS(t), func(o *Options) {
			o.OnAborted = func(context.Context, Aborted) { <-release }
		})
		w.setSend(func(context.Context, Trigger) error { return nil })
		done := make(chan error, 1)
		go func() {
			_, err := w.c.TriggerCheckpoint(t.Context())
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, w.c.Close(ctx), context.DeadlineExceeded)
		close(release)
		require.ErrorIs(t, <-done, fs.ErrClosed)
		require.NoError(t, w.c.Close(t.Context()))
	})
}

func TestACoordinatorThatFindsItselfFencedWhileItClosesIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		_, outcome := w.underWay(w.c.TriggerCheckpoint)
		successor := startWorld(t, fsys, nil)
		require.NoError(t, w.c.Close(t.Context()))
		_, err := outcome()
		require.ErrorIs(t, err, core.ErrFenced)
		_, err = w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, core.ErrFenced)
		require.Empty(t, w.abortedIDs())
		successor.checkpoint()
		requireTidy(t, fsys, []int64{2})
	})
}
