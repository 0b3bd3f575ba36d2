package hdfsfs

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long a call goes on waiting for its own outcome after its context has ended, so that an ordinary call that
// is nearly done still tells the truth. The contract allows 250 ms.
const grace = 100 * time.Millisecond

// gate counts what is under way, so that Close can wait for it.
type gate struct {
	closed atomic.Bool // set with mu held

	mu     sync.Mutex
	inside int
	empty  chan struct{} // made by wait, closed by the last one to leave
}

// enter reports whether the file system is open; then leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return false
	}
	g.inside++
	return true
}

// enterAlways is for what must be possible after Close too: to stop and to clean up.
func (g *gate) enterAlways() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// close lets nobody in any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
}

// wait waits until everybody has left.
func (g *gate) wait() {
	g.mu.Lock()
	if g.inside == 0 {
		g.mu.Unlock()
		return
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	<-empty
}

// call runs op so that the caller gets away when ctx ends, whatever the servers do. A context that has ended means that op
// is not run. If the caller leaves first, op goes on, counted, and undo gets what it returns without an error; undo may be
// nil. op should look at ctx between its steps.
func call[T any](ctx context.Context, f *FS, op func() (T, error), undo func(T)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if !f.gate.enter() {
		return none, fs.ErrClosed
	}
	return finish(ctx, f, op, undo)
}

// do is call for what returns nothing.
func do(ctx context.Context, f *FS, op func() error) error {
	_, err := call(ctx, f, func() (struct{}, error) { return struct{}{}, op() }, nil)
	return err
}

// The states of a call whose caller can leave.
const (
	callWaited int32 = iota
	callLeft
	callDone
)

// finish is call for what must be run even if ctx has ended. The caller has entered the gate.
func finish[T any](ctx context.Context, f *FS, op func() (T, error), undo func(T)) (T, error) {
	if ctx.Done() == nil {
		defer f.gate.leave()
		return op()
	}
	var state atomic.Int32
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer f.gate.leave()
		value, err = op()
		if state.CompareAndSwap(callWaited, callDone) {
			close(done)
			return
		}
		if err == nil && undo != nil {
			undo(value)
		}
		f.background.Add(-1)
	}()
	if await(ctx, done, nil) {
		return value, err
	}
	f.background.Add(1)
	if state.CompareAndSwap(callWaited, callLeft) {
		var none T
		return none, abandoned(ctx)
	}
	f.background.Add(-1)
	<-done
	return value, err
}

// abandoned is the error of a caller that leaves work behind.
func abandoned(ctx context.Context) error {
	return fmt.Errorf("%w: HDFS has not answered yet, the outcome is open", ctx.Err())
}

// await waits until done or stop is closed, or ctx has ended and the grace is over; then it returns false.
func await(ctx context.Context, done, stop <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-stop:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-stop:
		return true
	case <-timer.C:
		return false
	}
}
