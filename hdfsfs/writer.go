package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// maxBlocks is how many blocks wait for the goroutine of a writer.
const maxBlocks = 4

// outcome is how far a writer has come. It leaves streaming once; only Abort goes on from failed to discarded.
type outcome uint8

const (
	streaming outcome = iota
	failed
	committed
	discarded
)

// writer copies what it is given into blocks, which a goroutine writes. The goroutine runs while there is something in the
// queue, so a writer that rests has none, and a DataNode that hangs never holds the caller.
type writer struct {
	fs          *FS
	ctx         context.Context //nolint:containedctx // the context of Create governs the stream
	name        string
	client      clientWriter
	minReplicas int

	filling *block        // belongs to the caller of Write, Sync and Close
	slots   chan struct{} // one for each block in the queue

	stop      chan struct{} // closed by Abort: whoever waits, leaves
	discarded chan struct{} // closed when Abort has done what it can; then abortErr is set
	abortErr  error

	mu      sync.Mutex
	outcome outcome
	cause   error // of failed
	queue   []job
	idle    chan struct{} // not nil while the goroutine runs; closed at its end
	left    bool          // the goroutine is counted, because nobody waits for it any more
}

// job is a block to write, if any, and then something to do, if any, whose result somebody waits for.
type job struct {
	block *block
	then  func() error
	done  chan struct{} // closed when err is set
	err   *error
}

// Write implements core.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.usable(); err != nil {
		return 0, core.PathError("write", w.name, err)
	}
	n := 0
	for n < len(p) {
		if w.filling == nil {
			w.filling = newBlock()
		}
		b := w.filling
		k := copy(b.data[b.n:], p[n:])
		n += k
		b.n += k
		if b.n < blockSize {
			break
		}
		if err := w.takeSlot(); err != nil {
			return n - k, core.PathError("write", w.name, err)
		}
		w.filling = nil
		w.enqueue(job{block: b})
	}
	return n, nil
}

// Sync implements core.Writer. Where it is not supported the file goes on as if it had not been called.
func (w *writer) Sync() error {
	err := w.usable()
	switch {
	case err != nil:
	case !w.fs.caps.Sync:
		err = fmt.Errorf("%w: this client cannot tell what DataNodes have before Close", errors.ErrUnsupported)
	default:
		err = w.flush(w.client.sync)
	}
	return core.PathError("sync", w.name, err)
}

// Close implements core.Writer.
func (w *writer) Close() error {
	err := w.usable()
	if err == nil {
		err = w.flush(w.commit)
	}
	if err == nil || w.is(committed) {
		return nil
	}
	w.leave()
	if w.is(discarded) && errors.Is(err, fs.ErrNotExist) {
		err = fs.ErrClosed // Abort has removed the file under the commit
	}
	return core.PathError("close", w.name, err)
}

func (w *writer) is(o outcome) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome == o
}

// usable returns why the writer cannot go on.
func (w *writer) usable() error {
	if err := w.ctx.Err(); err != nil {
		w.fail(err)
		w.leave()
	}
	if w.fs.gate.Closed() {
		w.fail(fs.ErrClosed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case failed:
		return w.cause
	case committed, discarded:
		return fs.ErrClosed
	}
	return nil
}

// fail notes the first failure.
func (w *writer) fail(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome == streaming {
		w.outcome, w.cause = failed, cause
	}
}

// leave counts the goroutine, if it runs, as left behind.
func (w *writer) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil && !w.left {
		w.left = true
		w.fs.gate.AddBackground(1)
	}
}

// takeSlot waits until there are not too many blocks in the queue.
func (w *writer) takeSlot() error {
	select {
	case w.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-w.stop:
		return fs.ErrClosed
	case <-w.ctx.Done():
		w.fail(w.ctx.Err())
		w.leave()
		return w.ctx.Err()
	}
}

// flush writes the block that is being filled, waits until then has run behind it, and makes its error the outcome.
func (w *writer) flush(then func() error) error {
	b := w.filling
	if b != nil {
		if err := w.takeSlot(); err != nil {
			return err
		}
		w.filling = nil
	}
	j := job{block: b, then: then, done: make(chan struct{}), err: new(error)}
	w.enqueue(j)
	answered := calls.Await(w.ctx, j.done, w.stop)
	select {
	case <-j.done:
		return *j.err
	default:
	}
	err := fs.ErrClosed // Abort has stopped the wait
	if !answered {
		err = calls.Abandoned(w.ctx, answerer)
	}
	w.fail(err)
	w.leave()
	return err
}

func (w *writer) enqueue(j job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, j)
	if w.idle == nil {
		w.idle = make(chan struct{})
		w.fs.gate.EnterAlways()
		go w.run()
	}
}

// run works off the queue.
func (w *writer) run() {
	defer w.fs.gate.Leave()
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			close(w.idle)
			w.idle = nil
			if w.left {
				w.left = false
				w.fs.gate.AddBackground(-1)
			}
			w.mu.Unlock()
			return
		}
		j := w.queue[0]
		w.queue = w.queue[1:]
		err := w.cause
		if w.outcome == discarded {
			err = fs.ErrClosed
		}
		w.mu.Unlock()
		w.do(j, err)
	}
}

// do does one job; after a failure it only hands out the error and the block.
func (w *writer) do(j job, err error) {
	if j.block != nil {
		if err == nil {
			if err = w.client.write(j.block.bytes()); err != nil {
				w.fail(err)
			}
		}
		j.block.free()
		<-w.slots
	}
	if j.then == nil {
		return
	}
	if err == nil {
		if err = j.then(); err != nil {
			w.fail(err)
		}
	}
	*j.err = err
	close(j.done)
}

// commit is the end of a file that is kept.
func (w *writer) commit() error {
	replicas, err := w.client.finish(w.fs.opts.CloseTimeout)
	if err != nil {
		return err
	}
	if replicas < w.minReplicas {
		return fmt.Errorf("%w: the file has been acknowledged by %d of the %d DataNodes that it needs: are DataNodes down?",
			core.ErrUnavailable, replicas, w.minReplicas)
	}
	return w.endCommitted()
}

// endCommitted settles the race with a caller that has left and with Abort.
func (w *writer) endCommitted() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case failed:
		return w.cause
	case discarded:
		return fs.ErrClosed
	}
	w.outcome = committed
	return nil
}
