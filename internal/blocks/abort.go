package blocks

import (
	"context"
	"time"

	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// Abort ends the stream, unless it is committed. discard, which removes what has been stored, runs once, however many call Abort,
// possibly beside a write that hangs, and says by Settle how that went. Abort waits for that until the limit is over, and returns
// false if it was in vain; discard goes on then, counted.
func (q *Queue) Abort(limit time.Duration, discard func(ctx context.Context)) (settled bool, err error) {
	first, kept := q.end()
	if kept {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if first {
		q.opts.Gate.EnterAlways()
		_, _ = calls.Finish(ctx, q.opts.Gate, q.opts.Answerer, func() (struct{}, error) { // the outcome is in abortErr
			discard(ctx)
			return struct{}{}, nil
		}, nil)
	}
	select {
	case <-q.discarded:
		return true, q.abortErr
	case <-ctx.Done():
		return false, nil
	}
}

// End is Abort for a stream that no caller has yet: its owner discards and calls Settle.
func (q *Queue) End() { _, _ = q.end() }

// end reports whether this call has ended the stream, or whether it is committed.
func (q *Queue) end() (first, kept bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.outcome {
	case committed:
		return false, true
	case discarded:
		return false, false
	}
	q.outcome = discarded
	close(q.stop)
	return true, false
}

// Settle says how the removal of what has been stored went. It is called once.
func (q *Queue) Settle(err error) {
	q.abortErr = err
	close(q.discarded)
}

// Idle is closed while no goroutine runs, or when the one that runs has ended.
func (q *Queue) Idle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		return closed
	}
	return q.idle
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// AwaitIdle waits until no goroutine runs, for at most limit; then it returns false.
func (q *Queue) AwaitIdle(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-q.Idle():
		return true
	case <-timer.C:
		return false
	}
}

// Leave counts the goroutine, if it runs, as left behind until it ends.
func (q *Queue) Leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle != nil && !q.left {
		q.left = true
		q.opts.Gate.AddBackground(1)
	}
}
