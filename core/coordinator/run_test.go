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
)

// run starts Run in a bubble; the function returned waits for its result.
func (w *world) run(ctx context.Context) func() error {
	done := make(chan error, 1)
	go func() { done <- w.c.Run(ctx) }()
	return func() error { return <-done }
}

// times are the seconds since begin at which triggers were sent.
func (w *world) times(begin time.Time) []float64 {
	var times []float64
	for _, trigger := range w.triggers() {
		times = append(times, trigger.Timestamp.Sub(begin).Seconds())
	}
	return times
}

func TestRunTakesACheckpointAtEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Interval = 10 * time.Second })
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Equal(t, []float64{10, 20, 30, 40}, w.times(begin))
		requireTidy(t, fsys, []int64{4})
	})
}

func TestRunWithoutAnIntervalTriggersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		wait := w.run(ctx)
		synctest.Wait()
		require.ErrorIs(t, w.c.Run(ctx), fs.ErrInvalid, "one Run at a time")
		w.checkpoint()
		require.ErrorIs(t, wait(), context.DeadlineExceeded)
		require.Len(t, w.triggers(), 1)
	})
}

// slow lets the tasks take a while to acknowledge.
func (w *world) slow(d time.Duration) {
	w.setSend(func(ctx context.Context, tr Trigger) error {
		go func() {
			time.Sleep(d)
			_ = w.ackAll(context.WithoutCancel(ctx), tr)
		}()
		return nil
	})
}

func TestASlowCheckpointDelaysTheNextWithoutMakingUpForMissedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.Interval = 10 * time.Second })
		w.slow(25 * time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Equal(t, []float64{10, 35, 60}, w.times(begin))
		require.Equal(t, []int64{1, 2}, w.committedIDs())
		require.Equal(t, []int64{3}, w.abortedIDs(), "what is under way when the context ends is aborted")
		time.Sleep(time.Minute) // the tasks of the last one acknowledge, too late
	})
}

func TestThePauseBetweenCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.Interval = 10 * time.Second; o.MinPause = 8 * time.Second })
		w.slow(5 * time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 52*time.Second)
		defer cancel()
		wait := w.run(ctx)
		time.Sleep(28 * time.Second)
		w.checkpoint() // by hand, from 28 to 33: the next waits until 41
		require.ErrorIs(t, wait(), context.DeadlineExceeded)
		require.Equal(t, []float64{10, 23, 28, 41}, w.times(begin)[:4])
	})
}

func TestConcurrentCheckpointsOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Interval = 10 * time.Second; o.MaxConcurrent = 2 })
		w.slow(25 * time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 64*time.Second)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Equal(t, []float64{10, 20, 35, 45, 60}, w.times(begin))
		require.Equal(t, []int64{1, 2, 3}, w.committedIDs())
		require.ElementsMatch(t, []int64{4, 5}, w.abortedIDs())
		time.Sleep(time.Minute)             // the tasks acknowledge, too late
		requireTidy(t, fsys, []int64{2, 3}) // the second was the base of the fourth
		w.setSend(nil)
		w.checkpoint()
		requireTidy(t, fsys, []int64{6})
	})
}

func TestTooManyFailuresEndRun(t *testing.T) {
	for _, c := range []struct {
		tolerable, attempts int
	}{{0, 1}, {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			fsys := newFS(t)
			w := startWorld(t, fsys, func(o *Options) { o.Interval = time.Second; o.TolerableFailures = c.tolerable })
			problem := errors.New("no route")
			w.setSend(func(context.Context, Trigger) error { return problem })
			err := w.run(t.Context())()
			require.ErrorIs(t, err, problem)
			require.Len(t, w.triggers(), c.attempts)
			requireTidy(t, fsys, nil)
			w.setSend(nil)
			w.checkpoint() // the coordinator has not ended
		})
	}
}

func TestAFailureIsSeenBeforeTheNextTrigger(t *testing.T) {
	for range 30 { // which of two things that are ready is seen first is left to chance
		synctest.Test(t, func(t *testing.T) {
			w := startWorld(t, newFS(t), func(o *Options) { o.Interval = time.Second; o.Timeout = 5 * time.Second })
			w.setSend(func(context.Context, Trigger) error { return nil })
			require.ErrorIs(t, w.run(t.Context())(), context.DeadlineExceeded)
			require.Len(t, w.triggers(), 1)
		})
	}
}

func TestASuccessForgivesEarlierFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.Interval = time.Second; o.TolerableFailures = 1; o.Logger = logTo(t) })
		w.setSend(func(ctx context.Context, tr Trigger) error {
			if tr.CheckpointID%2 == 0 {
				return w.ackAll(ctx, tr)
			}
			return errors.New("odd")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Equal(t, []int64{2, 4, 6, 8, 10}, w.committedIDs())
		require.Equal(t, []int64{1, 3, 5, 7, 9}, w.abortedIDs())
	})
}

func TestAnyNumberOfFailuresCanBeTolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.Interval = time.Second; o.TolerableFailures = UnlimitedFailures })
		w.setSend(func(context.Context, Trigger) error { return errors.New("never") })
		ctx, cancel := context.WithTimeout(t.Context(), 100500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Len(t, w.abortedIDs(), 100)
	})
}

func TestASubsumedCheckpointHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, newFS(t), func(o *Options) { o.Interval = time.Second; o.MaxConcurrent = 2 })
		w.setSend(func(ctx context.Context, tr Trigger) error {
			if tr.CheckpointID == 1 {
				return nil // never answered
			}
			return w.ackAll(ctx, tr)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, w.run(ctx)(), context.DeadlineExceeded)
		require.Equal(t, []int64{2, 3, 4}, w.committedIDs())
		require.Equal(t, []int64{1}, w.abortedIDs())
	})
}

func TestACallbackThatFailsEndsRunButNotTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		problem := errors.New("the sink cannot commit")
		fail := func(o *Options) {
			o.Interval, o.TolerableFailures = time.Second, UnlimitedFailures
			o.OnCommitted = func(context.Context, Committed) error { return problem }
		}
		w := startWorld(t, fsys, fail)
		err := w.run(t.Context())()
		require.ErrorIs(t, err, problem)
		committed, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, problem)
		require.Equal(t, int64(2), committed.ID)
		requireTidy(t, fsys, []int64{2})
	})
}

func TestRunReturnsWhenTheCoordinatorIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Interval = time.Second; o.TolerableFailures = UnlimitedFailures })
		wait := w.run(t.Context())
		time.Sleep(1500 * time.Millisecond)
		successor := startWorld(t, fsys, nil)
		require.Equal(t, []int64{1}, successor.committedIDs())
		require.ErrorIs(t, wait(), core.ErrFenced)
		require.Len(t, w.triggers(), 1, "the tasks are not asked in vain")
		require.Empty(t, w.abortedIDs())
		for _, call := range []func() error{
			func() error { return w.c.Run(t.Context()) },
			func() error { return w.c.Acknowledge(t.Context(), Ack{}) },
			func() error { return w.c.Decline(t.Context(), Decline{}) },
			func() error { _, err := w.c.Start(t.Context()); return err },
			func() error { _, err := w.c.TriggerSavepoint(t.Context(), ""); return err },
			func() error { _, err := w.c.StopWithSavepoint(t.Context(), ""); return err },
		} {
			require.ErrorIs(t, call(), core.ErrFenced)
		}
		require.NoError(t, w.c.Close(t.Context()))
		require.ErrorIs(t, w.c.Run(t.Context()), core.ErrFenced, "also after Close")
		successor.checkpoint()
		requireTidy(t, fsys, []int64{2})
	})
}
