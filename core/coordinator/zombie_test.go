package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// deeds are what a coordinator is doing when it is paused.
var deeds = map[string]func(ctx context.Context, w *world) (*Committed, error){
	"a checkpoint": func(ctx context.Context, w *world) (*Committed, error) { return w.c.TriggerCheckpoint(ctx) },
	"a savepoint":  func(ctx context.Context, w *world) (*Committed, error) { return w.c.TriggerSavepoint(ctx, "") },
	"an abort": func(ctx context.Context, w *world) (*Committed, error) {
		w.setSend(func(ctx context.Context, t Trigger) error {
			return errors.Join(w.ack(ctx, t, Task{counter.ID, 0}), w.c.Decline(ctx, t.Decline(Task{counter.ID, 1}, "not now")))
		})
		return w.c.TriggerCheckpoint(ctx)
	},
}

// A coordinator is paused in each single call to the storage, before or after its effect, while another one takes over. Then
// it goes on.
func TestAZombieDoesNoHarm(t *testing.T) {
	for name, deed := range deeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, count := zombieCalls(t, deed)
			require.Greater(t, count, first+10)
			for i := first; i < count; i += stride {
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) { zombie(t, deed, i, after) })
				}
			}
		})
	}
}

// zombieCalls returns the numbers of the first call of a deed and of the first call behind it.
func zombieCalls(t *testing.T, deed func(ctx context.Context, w *world) (*Committed, error)) (first, count int) {
	t.Helper()
	fsys := faultfs.Wrap(memfs.New(memfs.Options{}), nil)
	w := beforeTheDeed(t, fsys)
	first = fsys.Count()
	_, _ = deed(t.Context(), w)
	return first, fsys.Count()
}

func beforeTheDeed(t *testing.T, fsys core.FileSystem) *world {
	t.Helper()
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
	for range 3 {
		w.checkpoint()
	}
	return w
}

func zombie(t *testing.T, deed func(ctx context.Context, w *world) (*Committed, error), i int, after bool) {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	release := make(chan struct{})
	var held faultfs.Call
	fsys := faultfs.Wrap(mem, func(c faultfs.Call) faultfs.Fault {
		if c.Index != i {
			return faultfs.Fault{}
		}
		held = c
		return faultfs.Fault{Block: release, After: after}
	})
	w := beforeTheDeed(t, fsys)
	type outcome struct {
		committed *Committed
		err       error
	}
	done := make(chan outcome, 1)
	go func() {
		committed, err := deed(t.Context(), w)
		done <- outcome{committed, err}
	}()
	synctest.Wait() // until it is held
	what := fmt.Sprintf("call %v after=%v", held, after)

	successor := startWorld(t, mem, func(o *Options) { o.Retain = 2 })
	restored := successor.committedIDs()[0]
	successor.checkpoint()
	kept := []int64{restored, successor.checkpoint().ID}
	kept[0] = kept[1] - 1
	close(release)
	result := <-done
	switch {
	case result.err == nil && result.committed.Kind == Savepoint:
		requireRestorable(t, mem, nameOf(t, result.committed.Pointer))
	case result.err == nil:
		require.Equal(t, result.committed.ID, restored, "%s: what was reported as committed was restored", what)
	case errors.Is(result.err, ErrDeclined):
	default:
		require.True(t, errors.Is(result.err, core.ErrFenced) || errors.Is(result.err, fs.ErrExist), "%s: %v", what, result.err)
		require.Empty(t, w.abortedIDs(), what)
	}
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced, what)

	// Nothing of the successor's is damaged, and it goes on.
	for _, id := range kept {
		_, err := restorable(t, mem, jobDir+"/"+core.CheckpointDirName(id))
		require.NoError(t, err, what)
	}
	last := successor.checkpoint().ID
	require.Equal(t, []int64{last - 1, last}, completeIDs(t, mem), what)
	startWorld(t, mem, func(o *Options) { o.Retain = 2 }) // sweeps
	requireTidy(t, mem, []int64{last - 1, last})
	require.Empty(t, fsys.OpenFiles(), what)
}

// Two coordinators of one job begin at the same time, and both try to make checkpoints.
func TestOfTwoCoordinatorsOneWins(t *testing.T) {
	const rounds = 100
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	won, lost := 0, 0
	for round := range rounds {
		mem := memfs.New(memfs.Options{})
		placeForeignFiles(t, mem)
		l := newLedger()
		failures := make([]error, 2)
		var calls sync.WaitGroup
		for i := range failures {
			// Each call may let the other one go first.
			order := rand.New(rand.NewPCG(seed, uint64(2*round+i)))
			var mu sync.Mutex // files are deleted in parallel
			fsys := faultfs.Wrap(mem, func(faultfs.Call) faultfs.Fault {
				mu.Lock()
				yields := order.IntN(3)
				mu.Unlock()
				for range yields {
					runtime.Gosched()
				}
				return faultfs.Fault{}
			})
			w := newWorld(t, fsys, l.options)
			calls.Go(func() { failures[i] = threeCheckpoints(t.Context(), w, l) })
		}
		calls.Wait()
		require.True(t, slices.Contains(failures, nil), "one of them must get through: %v", failures)
		for _, err := range failures {
			if err == nil {
				won++
				continue
			}
			lost++
			require.True(t, errors.Is(err, core.ErrFenced) || errors.Is(err, fs.ErrExist), "%v", err)
		}
		require.NoError(t, l.verify(t, mem))
	}
	t.Logf("%d got through, %d did not", won, lost)
	require.Greater(t, lost, rounds/4)
}

func threeCheckpoints(ctx context.Context, w *world, l *ledger) error {
	restored, err := w.c.Start(ctx)
	if err == nil && !restored.Empty() {
		_, err = w.tasks.restore(ctx, restored)
	}
	for i := 0; i < 3 && err == nil; i++ {
		var committed *Committed
		committed, err = w.c.TriggerCheckpoint(ctx)
		l.committed(committed, err)
	}
	return err
}
