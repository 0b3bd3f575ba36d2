package blocks_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

const most = 3

// store is what a queue writes to. It hangs until released, if it is asked to.
type store struct {
	bytes.Buffer
	writes  int
	fail    int // the write that fails, from 1 on
	release chan struct{}
}

var errStore = errors.New("the store is broken")

func (s *store) write(p []byte) error {
	if s.release != nil {
		<-s.release
	}
	s.writes++
	if s.writes == s.fail {
		return errStore
	}
	s.Write(p)
	return nil
}

func open(ctx context.Context, s *store) (*blocks.Queue, *calls.Gate) {
	gate := new(calls.Gate)
	return blocks.NewQueue(blocks.Options{Context: ctx, Gate: gate, Answerer: "the store", Max: most, Write: s.write}), gate
}

func nothing() error { return nil }

func TestWhatIsWrittenComesInOrderWhateverTheSizes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := &store{}
	q, gate := open(t.Context(), s)
	var want []byte
	for range 20 {
		p := make([]byte, random.IntN(3*blocks.Size))
		for i := 0; i < len(p); i += 100 {
			p[i] = byte(random.Uint32())
		}
		want = append(want, p...)
		n, err := q.Write(p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
		clear(p) // the caller may use its slice again
		if random.IntN(10) == 0 {
			require.NoError(t, q.Flush(func() error {
				require.True(t, bytes.Equal(want, s.Bytes()), "it runs behind all that was written")
				return nil
			}))
		}
	}
	require.NoError(t, q.Close(q.Commit))
	require.True(t, bytes.Equal(want, s.Bytes()))
	require.ErrorIs(t, q.Check(), fs.ErrClosed)
	require.NoError(t, q.Close(q.Commit), "a second Close of a file that is kept does nothing")
	gate.Wait()
}

func TestTheFirstFailureIsTheOutcome(t *testing.T) {
	s := &store{fail: 2}
	q, gate := open(t.Context(), s)
	_, err := q.Write(make([]byte, 3*blocks.Size))
	require.True(t, err == nil || errors.Is(err, errStore), "%v", err)
	require.ErrorIs(t, q.Flush(nothing), errStore)
	require.ErrorIs(t, q.Close(q.Commit), errStore)
	require.ErrorIs(t, q.Commit(), errStore)
	require.Equal(t, 2, s.writes, "nothing is written after a failure")
	settled, err := q.Abort(time.Second, func(context.Context) { q.Settle(fs.ErrPermission) })
	require.True(t, settled)
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = q.Write([]byte("more"))
	require.ErrorIs(t, err, fs.ErrClosed)
	gate.Wait()
}

func TestAStoreThatHangsHoldsOnlySoManyBlocksAndNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s := &store{release: make(chan struct{})}
		q, gate := open(ctx, s)
		start := time.Now()
		n, err := q.Write(make([]byte, 10*blocks.Size))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, most*blocks.Size, n)
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, 1, gate.Background(), "the goroutine is counted")
		require.ErrorIs(t, q.Close(q.Commit), context.DeadlineExceeded)
		require.False(t, q.AwaitIdle(time.Second))
		close(s.release)
		<-q.Idle()
		gate.Wait()
		require.Zero(t, gate.Background())
	})
}

func TestACallerOfFlushGetsAwaySoonAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s := &store{release: make(chan struct{})}
		q, gate := open(ctx, s)
		_, err := q.Write([]byte("content"))
		require.NoError(t, err)
		start := time.Now()
		err = q.Close(q.Commit)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the store has not answered")
		require.Equal(t, time.Minute+calls.Grace, time.Since(start))
		close(s.release)
		<-q.Idle()
		gate.Wait()
		require.ErrorIs(t, q.Check(), context.DeadlineExceeded, "the commit came too late: the file is not kept")
	})
}

func TestAbortWakesWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{release: make(chan struct{})}
		q, gate := open(context.Background(), s)
		errs := make(chan error)
		go func() {
			_, err := q.Write(make([]byte, 10*blocks.Size))
			errs <- err
		}()
		synctest.Wait()
		removed := 0
		for range 2 {
			settled, err := q.Abort(time.Second, func(context.Context) {
				removed++
				q.Settle(nil)
			})
			require.True(t, settled)
			require.NoError(t, err)
		}
		require.Equal(t, 1, removed)
		require.ErrorIs(t, <-errs, fs.ErrClosed)
		close(s.release)
		<-q.Idle()
		gate.Wait()
		require.Zero(t, s.Len()-blocks.Size, "only the block on its way is written")
	})
}

func TestAnAbortThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, gate := open(context.Background(), &store{})
		release := make(chan struct{})
		settled, err := q.Abort(time.Second, func(ctx context.Context) {
			<-release
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			q.Settle(nil)
		})
		require.False(t, settled)
		require.NoError(t, err)
		require.Equal(t, 1, gate.Background())
		close(release)
		gate.Wait()
		settled, err = q.Abort(time.Second, nil)
		require.True(t, settled)
		require.NoError(t, err)
	})
}

func TestAFileIsKeptOrDiscardedAndNeverBoth(t *testing.T) {
	for range 500 {
		q, gate := open(t.Context(), &store{})
		_, err := q.Write([]byte("content"))
		require.NoError(t, err)
		var discarded atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			settled, err := q.Abort(time.Minute, func(context.Context) {
				discarded.Store(true)
				q.Settle(nil)
			})
			if !settled || err != nil {
				panic("not settled")
			}
		}()
		kept := q.Close(q.Commit) == nil
		<-done
		gate.Wait()
		require.NotEqual(t, kept, discarded.Load())
	}
}

func TestADirectStoreHasTheCallersMemoryAndNoGoroutine(t *testing.T) {
	var got [][]byte
	gate := new(calls.Gate)
	q := blocks.NewQueue(blocks.Options{Context: t.Context(), Gate: gate, Answerer: "the store", Direct: true, Write: func(p []byte) error {
		got = append(got, p)
		return nil
	}})
	content := make([]byte, 10*blocks.Size)
	n, err := q.Write(content)
	require.NoError(t, err)
	require.Equal(t, len(content), n)
	require.Len(t, got, 1)
	require.Same(t, &content[0], &got[0][0])
	require.True(t, q.AwaitIdle(time.Second))
	require.NoError(t, q.Close(q.Commit))
	_, err = q.Write(content)
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestTheFirstFailureOfADirectStoreIsTheOutcome(t *testing.T) {
	s := &store{fail: 1}
	gate := new(calls.Gate)
	q := blocks.NewQueue(blocks.Options{Context: t.Context(), Gate: gate, Answerer: "the store", Direct: true, Write: s.write})
	n, err := q.Write([]byte("content"))
	require.ErrorIs(t, err, errStore)
	require.Zero(t, n)
	_, err = q.Write([]byte("content"))
	require.ErrorIs(t, err, errStore)
	require.ErrorIs(t, q.Close(q.Commit), errStore)
	require.Equal(t, 1, s.writes)

	q = blocks.NewQueue(blocks.Options{Context: t.Context(), Gate: gate, Answerer: "the store", Direct: true, Write: s.write})
	gate.Close()
	_, err = q.Write([]byte("content"))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, q.Close(q.Commit), fs.ErrClosed)
	require.Equal(t, 1, s.writes)
}

// TestWhatADirectCallerGetsAfterAbort has Abort make a write fail that hangs: what it fails with is not what has happened.
func TestWhatADirectCallerGetsAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		gate := new(calls.Gate)
		q := blocks.NewQueue(blocks.Options{Context: context.Background(), Gate: gate, Answerer: "the store", Direct: true, Write: func([]byte) error {
			<-hang
			return errStore
		}})
		errs := make(chan error)
		go func() {
			_, err := q.Write([]byte("content"))
			errs <- err
		}()
		synctest.Wait()
		settled, err := q.Abort(time.Second, func(context.Context) {
			close(hang)
			q.Settle(nil)
		})
		require.True(t, settled)
		require.NoError(t, err)
		require.ErrorIs(t, <-errs, fs.ErrClosed)
		gate.Wait()
	})
}
