package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// hangs are calls of a stream that hang because the storage does: each runs in a goroutine of its own until storage's op hangs.
var hangs = []struct {
	op   faultfs.Op
	call func(s *core.StateStream) error
}{
	{faultfs.OpCreate, func(s *core.StateStream) error { _, err := s.Write(noise(1000)); return err }},
	{faultfs.OpWrite, func(s *core.StateStream) error { _, err := s.Write(noise(1000)); return err }},
	{faultfs.OpWrite, (*core.StateStream).Flush},
	{faultfs.OpSync, (*core.StateStream).Sync},
	{faultfs.OpCreate, func(s *core.StateStream) error { _, err := s.CloseAndGetHandle(); return err }},
	{faultfs.OpClose, func(s *core.StateStream) error { _, err := s.CloseAndGetHandle(); return err }},
}

// hangEach runs check for each of hangs, before and after the storage did what it was asked. Everything happens in a bubble:
// its clock stands still while anything can run, and it fails when a goroutine is left behind.
func hangEach(t *testing.T, check func(t *testing.T, r *streamRig, s *core.StateStream, cancel context.CancelFunc, outcome <-chan error)) {
	for _, h := range hangs {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s hangs/after %v", h.op, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 800})
					release := make(chan struct{})
					r.faults.SetInjector(faultfs.OnOp(h.op, faultfs.Fault{Block: release, After: after}))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s := written(t, r.exclusive(ctx), 500)
					outcome := make(chan error, 1)
					go func() { outcome <- h.call(s) }()
					synctest.Wait()
					require.Empty(t, outcome, "the call hangs")
					check(t, r, s, cancel, outcome)

					close(release) // nothing that went on in the background brings a file back
					synctest.Wait()
					r.requireNothingLeft(t)
				})
			})
		}
	}
}

func TestStateStreamCloseBreaksACallThatHangs(t *testing.T) {
	hangEach(t, func(t *testing.T, r *streamRig, s *core.StateStream, _ context.CancelFunc, outcome <-chan error) {
		start := time.Now()
		require.NoError(t, s.Close())
		require.Zero(t, time.Since(start))
		err := <-outcome
		require.ErrorIs(t, err, fs.ErrClosed)
		require.True(t, s.IsClosed())
		r.requireNothingLeft(t)
	})
}

func TestStateStreamEndOfItsContextBreaksACallThatHangs(t *testing.T) {
	hangEach(t, func(t *testing.T, r *streamRig, s *core.StateStream, cancel context.CancelFunc, outcome <-chan error) {
		start := time.Now()
		cancel()
		require.ErrorIs(t, <-outcome, context.Canceled)
		calls := r.faults.Count()
		_, err := s.Write([]byte{1})
		require.ErrorIs(t, err, context.Canceled, "later writes fail at once")
		require.Equal(t, calls, r.faults.Count())
		require.NoError(t, s.Close())
		require.Zero(t, time.Since(start))
		r.requireNothingLeft(t)
	})
}

// TestStateStreamCloseIsBoundedWhenNothingAnswers has every call hang, the removal included.
func TestStateStreamCloseIsBoundedWhenNothingAnswers(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpCreate, faultfs.OpWrite} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
				dead := false
				r.faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
					if dead = dead || c.Op == op; dead {
						return faultfs.Fault{Block: make(chan struct{}), After: c.Op == op}
					}
					return faultfs.Fault{}
				})
				s := r.exclusive(t.Context())
				outcome := make(chan error, 1)
				go func() { _, err := s.Write(noise(100)); outcome <- err }()
				synctest.Wait()
				start := time.Now()
				err := s.Close()
				require.LessOrEqual(t, time.Since(start), 10*time.Second)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Len(t, r.files(), 1)
				r.requireLeftoversNamed(t, err)
				require.ErrorIs(t, <-outcome, fs.ErrClosed)
			})
		})
	}
}

// TestStateStreamCloseWaitsForACreateThatCannotBeInterrupted is the leak of state files that slow object stores caused:
// the file must not outlive a Close that came while it was being created.
func TestStateStreamCloseWaitsForACreateThatCannotBeInterrupted(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testCleanupWhenCloseableRegistryClosedBeforeCreatingStream
	synctest.Test(t, func(t *testing.T) {
		hooks := &hookFS{}
		r := newStreamRigOn(t, memfs.New(memfs.Options{}), core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10}, func(inner core.FileSystem) core.FileSystem {
			hooks.FileSystem = inner
			return hooks
		})
		release := make(chan struct{})
		hooks.create = func(_ context.Context, name string, _ func() (core.Writer, error)) (core.Writer, error) {
			<-release
			return r.faults.Create(context.Background(), name, core.CreateOptions{})
		}
		s := r.exclusive(t.Context())
		outcome, closed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := s.Write(noise(100)); outcome <- err }()
		synctest.Wait()
		go func() { closed <- s.Close() }()
		for !s.IsClosed() {
			runtime.Gosched()
		}
		require.Empty(t, closed)
		close(release)
		require.NoError(t, <-closed)
		err := <-outcome
		require.True(t, err == nil || errors.Is(err, fs.ErrClosed), "%v", err)
		r.requireNothingLeft(t)
	})
}

// TestStateStreamCloseRacesWithKeeping lets Close come at any moment of CloseAndGetHandle: either there is a handle and its
// file stays, or there is none and nothing is left.
func TestStateStreamCloseRacesWithKeeping(t *testing.T) {
	for round := range 500 {
		r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 100})
		s := written(t, r.exclusive(t.Context()), 1000)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		for range round % 50 {
			_ = s.IsClosed() // shifts the moments against each other
		}
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, <-closed)
		if err == nil {
			requireState(t, r.mem, noise(1000), handle)
			require.Empty(t, r.mem.OpenFiles())
			continue
		}
		require.ErrorIs(t, err, fs.ErrClosed)
		r.requireNothingLeft(t)
	}
}

// hookedContext calls hook once when someone first asks for its Done channel after arming.
type hookedContext struct {
	context.Context
	armed atomic.Bool
	hook  func()
}

func (c *hookedContext) Done() <-chan struct{} {
	if c.armed.CompareAndSwap(true, false) {
		c.hook()
	}
	return c.Context.Done()
}

// TestStateStreamCloseBreaksACreateThatHasNotBegun lets Close come when a Write has decided to create the file and has not
// begun to: there is nothing to break yet, and the storage would hang for ever.
func TestStateStreamCloseBreaksACreateThatHasNotBegun(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
	release := make(chan struct{})
	defer close(release)
	r.faults.SetInjector(faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Block: release}))
	ctx := &hookedContext{Context: t.Context()}
	s := r.exclusive(ctx)
	closed := make(chan error, 1)
	ctx.hook = func() {
		go func() { closed <- s.Close() }()
		for !s.IsClosed() {
			runtime.Gosched()
		}
	}
	ctx.armed.Store(true)
	_, err := s.Write(noise(100))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.NoError(t, <-closed)
	require.Zero(t, r.faults.Count())
	r.requireNothingLeft(t)
}

// TestStateStreamDoesNotReuseABufferThatACutOffWriteMayStillRead has a storage whose call goes on in the background after
// the caller was let go.
func TestStateStreamDoesNotReuseABufferThatACutOffWriteMayStillRead(t *testing.T) {
	hooks, r := newHookedRig(t)
	for range 20 {
		release, seen := make(chan struct{}), make(chan []byte, 1)
		hooks.write = func(p []byte, _ func([]byte) (int, error)) (int, error) {
			go func() {
				<-release
				seen <- bytes.Clone(p)
			}()
			return 0, context.DeadlineExceeded
		}
		s := written(t, r.exclusive(t.Context()), 100)
		require.ErrorIs(t, s.WriteByte(1), context.DeadlineExceeded)
		require.NoError(t, s.Close())
		for range 5 {
			next := written(t, r.exclusive(t.Context()), 99)
			defer func() { require.NoError(t, next.Close()) }()
		}
		close(release)
		require.Equal(t, noise(100), <-seen)
	}
}
