// Package calls lets the caller of something that cannot be interrupted get away when its context ends: what is left behind goes on,
// is counted, and is waited for when the file system is closed. The file systems of this module share it.
package calls

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

// Grace is how long a call goes on waiting for its own outcome after its context has ended, so that an ordinary call that
// is nearly done still tells the truth. The contract allows 250 ms.
const Grace = 100 * time.Millisecond

// Gate counts what is under way on a file system, so that its Close can wait for it. The zero value is open.
type Gate struct {
	closed     atomic.Bool  // set with mu held
	background atomic.Int64 // calls and goroutines whose callers have left

	mu     sync.Mutex
	inside int
	empty  chan struct{} // made by Wait, closed by the last one to leave
}

// Enter reports whether the file system is open; then Leave must follow.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return false
	}
	g.inside++
	return true
}

// EnterAlways is for what must be possible after Close too: to stop and to clean up.
func (g *Gate) EnterAlways() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

// Leave follows each Enter.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Close lets nobody in any more.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
}

// Closed reports whether Close was called.
func (g *Gate) Closed() bool { return g.closed.Load() }

// Background is how many calls and goroutines go on although their callers have left.
func (g *Gate) Background() int { return int(g.background.Load()) }

// AddBackground counts n more of them, or fewer.
func (g *Gate) AddBackground(n int64) { g.background.Add(n) }

// Wait waits until everybody has left.
func (g *Gate) Wait() {
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

// Call runs op so that the caller gets away when ctx ends, whatever those do who are to answer it: answerer names them. A
// context that has ended means that op is not run, a closed gate is fs.ErrClosed. If the caller leaves first, op goes on, counted, and undo gets what it returns without an error; undo may be
// nil. op should look at ctx between its steps.
func Call[T any](ctx context.Context, g *Gate, answerer string, op func() (T, error), undo func(T)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if !g.Enter() {
		return none, fs.ErrClosed
	}
	return Finish(ctx, g, answerer, op, undo)
}

// The states of a call whose caller can leave.
const (
	callWaited int32 = iota
	callLeft
	callDone
)

// Finish is Call for what must be run even if ctx has ended. The caller has entered the gate.
func Finish[T any](ctx context.Context, g *Gate, answerer string, op func() (T, error), undo func(T)) (T, error) {
	if ctx.Done() == nil {
		defer g.Leave()
		return op()
	}
	var state atomic.Int32
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer g.Leave()
		value, err = op()
		if state.CompareAndSwap(callWaited, callDone) {
			close(done)
			return
		}
		if err == nil && undo != nil {
			undo(value)
		}
		g.background.Add(-1)
	}()
	if Await(ctx, done, nil) {
		return value, err
	}
	g.background.Add(1)
	if state.CompareAndSwap(callWaited, callLeft) {
		var none T
		return none, Abandoned(ctx, answerer)
	}
	g.background.Add(-1)
	<-done
	return value, err
}

// Abandoned is the error of a caller that leaves work behind.
func Abandoned(ctx context.Context, answerer string) error {
	return fmt.Errorf("%w: %s has not answered yet, the outcome is open", ctx.Err(), answerer)
}

// Await waits until done or stop is closed, or ctx has ended and the grace is over; then it returns false.
func Await(ctx context.Context, done, stop <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-stop:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(Grace)
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
