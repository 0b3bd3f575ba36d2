package blocks

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// outcome is how far a stream has come. It leaves streaming once; only Abort goes on from failed to discarded.
type outcome uint8

const (
	streaming outcome = iota
	failed
	committed
	discarded
)

// Options of a [Queue]. All are needed.
type Options struct {
	// Context governs the stream.
	Context context.Context //nolint:containedctx // a stream has the context of the call that began it
	// Gate counts the goroutine, and ends the stream when it is closed.
	Gate *calls.Gate
	// Answerer names those who store, in the error of a caller who has waited in vain.
	Answerer string
	// Max is how many blocks wait for the goroutine, or are with it, beside the one that is being filled.
	Max int
	// Write stores a block. It is called by one goroutine at a time, in order, and not again after an error.
	Write func(p []byte) error
	// Direct: Write, and what Flush and Close run, end by themselves soon after the context has ended or Abort has discarded the
	// file. So they may have the caller's memory and goroutine: nothing is copied, or waits in the queue.
	Direct bool
}

// Queue is a stream on its way. The goroutine runs while there is something in the queue, so a stream that rests has none, and a
// store that hangs never holds the caller.
//
//	Write → block that is being filled → queue → goroutine → Options.Write
//	Flush, Close: the same, and then something that runs behind it, whose error the caller gets
//
// Write, Flush and Close are for one goroutine; Abort may come from any. Errors are bare.
type Queue struct {
	opts Options

	filling *Block        // belongs to the caller of Write, Flush and Close
	slots   chan struct{} // one for each block in the queue

	stop      chan struct{} // closed by Abort: whoever waits, leaves
	discarded chan struct{} // closed when the stream has been discarded; then abortErr is set
	abortErr  error

	mu      sync.Mutex
	outcome outcome
	cause   error // of failed
	jobs    []job
	idle    chan struct{} // not nil while the goroutine runs; closed at its end
	left    bool          // the goroutine is counted, because nobody waits for it any more
}

// job is a block to write, if any, and then something to do, if any, whose result somebody waits for.
type job struct {
	block *Block
	then  func() error
	done  chan struct{} // closed when err is set
	err   *error
}

// NewQueue returns an empty queue. It has nothing to be ended.
func NewQueue(opts Options) *Queue {
	return &Queue{opts: opts, slots: make(chan struct{}, opts.Max), stop: make(chan struct{}), discarded: make(chan struct{})}
}

// Write takes a copy of p.
func (q *Queue) Write(p []byte) (int, error) {
	if err := q.Check(); err != nil {
		return 0, err
	}
	if q.opts.Direct {
		if err := q.direct(p, q.opts.Write); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	n := 0
	for n < len(p) {
		if q.filling == nil {
			q.filling = New()
		}
		b := q.filling
		k := copy(b.Data[b.N:], p[n:])
		n += k
		b.N += k
		if b.N < Size {
			break
		}
		if err := q.takeSlot(); err != nil {
			return n - k, err
		}
		q.filling = nil
		q.enqueue(job{block: b})
	}
	return n, nil
}

// Flush writes all that was taken and then runs then, whose error ends the stream and is returned.
func (q *Queue) Flush(then func() error) error {
	err := q.Check()
	if err == nil {
		err = q.flush(then)
	}
	return err
}

// Close writes all that was taken and runs commit, which must call Commit at the point from which on the file is kept; after that
// a further Close does nothing. If it fails, the goroutine, if it runs, is counted as left behind.
func (q *Queue) Close(commit func() error) error {
	err := q.Flush(commit)
	if err == nil || q.is(committed) {
		return nil
	}
	q.Leave()
	if q.is(discarded) && errors.Is(err, fs.ErrNotExist) {
		err = fs.ErrClosed // Abort has removed the file under the commit
	}
	return err
}

// Commit settles the race with a caller that has left and with Abort: after nil the file is kept.
func (q *Queue) Commit() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.outcome {
	case failed:
		return q.cause
	case discarded:
		return fs.ErrClosed
	}
	q.outcome = committed
	return nil
}

func (q *Queue) is(o outcome) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.outcome == o
}

// Check returns why the stream cannot go on.
func (q *Queue) Check() error {
	if err := q.opts.Context.Err(); err != nil {
		q.fail(err)
		q.Leave()
	}
	if q.opts.Gate.Closed() {
		q.fail(fs.ErrClosed)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.outcome {
	case failed:
		return q.cause
	case committed, discarded:
		return fs.ErrClosed
	}
	return nil
}

// fail notes the first failure.
func (q *Queue) fail(cause error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.outcome == streaming {
		q.outcome, q.cause = failed, cause
	}
}

// takeSlot waits until there are not too many blocks in the queue.
func (q *Queue) takeSlot() error {
	select {
	case q.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case q.slots <- struct{}{}:
		return nil
	case <-q.stop:
		return fs.ErrClosed
	case <-q.opts.Context.Done():
		err := q.opts.Context.Err()
		q.fail(err)
		q.Leave()
		return err
	}
}

// flush writes the block that is being filled, waits until then has run behind it, and makes its error the outcome.
func (q *Queue) flush(then func() error) error {
	if q.opts.Direct {
		return q.direct(nil, func([]byte) error { return then() })
	}
	b := q.filling
	if b != nil {
		if err := q.takeSlot(); err != nil {
			return err
		}
		q.filling = nil
	}
	j := job{block: b, then: then, done: make(chan struct{}), err: new(error)}
	q.enqueue(j)
	answered := calls.Await(q.opts.Context, j.done, q.stop)
	select {
	case <-j.done:
		return *j.err
	default:
	}
	err := fs.ErrClosed // Abort has stopped the wait
	if !answered {
		err = calls.Abandoned(q.opts.Context, q.opts.Answerer)
	}
	q.fail(err)
	q.Leave()
	return err
}

func (q *Queue) enqueue(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, j)
	if q.idle == nil {
		q.idle = make(chan struct{})
		q.opts.Gate.EnterAlways()
		go q.run()
	}
}

// run works off the queue.
func (q *Queue) run() {
	defer q.opts.Gate.Leave()
	for {
		q.mu.Lock()
		if len(q.jobs) == 0 {
			close(q.idle)
			q.idle = nil
			if q.left {
				q.left = false
				q.opts.Gate.AddBackground(-1)
			}
			q.mu.Unlock()
			return
		}
		j := q.jobs[0]
		q.jobs = q.jobs[1:]
		err := q.cause
		if q.outcome == discarded {
			err = fs.ErrClosed
		}
		q.mu.Unlock()
		q.do(j, err)
	}
}

// do does one job; after a failure it only hands out the error and the block.
func (q *Queue) do(j job, err error) {
	if j.block != nil {
		if err == nil {
			if err = q.opts.Write(j.block.Bytes()); err != nil {
				q.fail(err)
			}
		}
		j.block.Free()
		<-q.slots
	}
	if j.then == nil {
		return
	}
	if err == nil {
		if err = j.then(); err != nil {
			q.fail(err)
		}
	}
	*j.err = err
	close(j.done)
}
