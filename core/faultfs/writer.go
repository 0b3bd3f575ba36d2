package faultfs

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// abortLimit is how long Abort may take by the contract, whatever holds it up.
const abortLimit = 10 * time.Second

type writer struct {
	fs     *FS
	ctx    context.Context // the context of Create governs the stream
	name   string
	inner  core.Writer
	broken chan struct{} // closed by the first Abort
	busy   sync.Mutex    // held by the call that is in the inner Writer, Abort excepted

	mu      sync.Mutex // Abort may come from another goroutine
	offset  int64
	cause   error // of the first failure; later calls fail with it
	closed  bool  // the user was told that the file is committed
	aborted bool  // the user called Abort
	removed bool  // Abort has done its work
	// left: the file is committed in the inner file system, so that the inner Abort would not remove it.
	left bool
}

func (w *writer) describe() string { return "write " + w.name }

// call describes a call on the stream, or says why it cannot reach storage any more.
func (w *writer) call(op Op, size int) (Call, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Call{Op: op, Name: w.name, Offset: w.offset, Size: size}
	if w.closed || w.aborted {
		return c, fs.ErrClosed
	}
	return c, w.cause
}

// fail keeps the cause of the first failure. A refusal for want of a capability had no effect and is no failure.
func (w *writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil && !errors.Is(err, errors.ErrUnsupported) {
		w.cause = err
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			w.cause = pathError.Err
		}
	}
	return err
}

// hold is Fault.hold in the words of a Writer.
func (w *writer) hold(fault Fault) error {
	err := fault.hold(w.ctx, w.broken)
	if errors.Is(err, errBroken) {
		return fs.ErrClosed
	}
	return err
}

func (w *writer) Write(p []byte) (int, error) {
	c, err := w.call(OpWrite, len(p))
	if err != nil {
		return 0, c.wrap(err)
	}
	c, fault := w.fs.begin(c)
	if !fault.After {
		err = w.hold(fault)
		if err == nil && fault.Tear <= 0 {
			err = fault.Err
		}
		if err != nil {
			return 0, w.fail(c.wrap(err))
		}
	}
	p = fault.flip(p)
	if fault.Tear > 0 {
		p = p[:min(fault.Tear, len(p))]
	}
	w.busy.Lock()
	n, err := w.inner.Write(p)
	w.busy.Unlock()
	w.mu.Lock()
	w.offset += int64(n)
	w.mu.Unlock()
	if err != nil {
		return n, w.fail(err)
	}
	if fault.After {
		err = w.hold(fault)
	}
	switch {
	case err != nil:
	case fault.Tear > 0:
		err = fault.cause()
	default:
		err = fault.Err
	}
	if err != nil {
		return n, w.fail(c.wrap(err))
	}
	return n, nil
}

func (w *writer) Sync() error {
	c, err := w.call(OpSync, 0)
	if err != nil {
		return c.wrap(err)
	}
	return w.run(c, func() error {
		w.busy.Lock()
		defer w.busy.Unlock()
		return w.inner.Sync()
	})
}

func (w *writer) Close() error {
	defer w.fs.ended(w)
	c, err := w.call(OpClose, 0)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed {
			return nil
		}
		return c.wrap(err)
	}
	err = w.run(c, func() error {
		w.busy.Lock()
		err := w.inner.Close()
		w.busy.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.left = err == nil
		return err
	})
	w.mu.Lock()
	if !w.aborted {
		if err == nil {
			w.closed = true
		}
		w.mu.Unlock()
		return err
	}
	left := w.left
	w.mu.Unlock()
	if left {
		// Abort came while the inner Close was already past the point where its own Abort could stop it.
		ctx, cancel := w.abortContext()
		defer cancel()
		_ = w.remove(ctx) // the error of this Close tells that it failed, and Abort has its own
	}
	if err == nil {
		err = c.wrap(fs.ErrClosed)
	}
	return err
}

// run makes a call whose failure is final.
func (w *writer) run(c Call, do func() error) error {
	c, fault := w.fs.begin(c)
	if fault.After {
		if err := do(); err != nil {
			return w.fail(err)
		}
	}
	err := w.hold(fault)
	if err == nil {
		err = fault.Err
	}
	if err != nil {
		return w.fail(c.wrap(err))
	}
	if !fault.After {
		if err := do(); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

func (w *writer) Abort() error {
	w.mu.Lock()
	if w.closed || w.removed {
		w.mu.Unlock()
		return nil
	}
	if !w.aborted {
		w.aborted = true
		close(w.broken)
	}
	c := Call{Op: OpAbort, Name: w.name, Offset: w.offset}
	w.mu.Unlock()

	w.fs.ended(w)
	c, fault := w.fs.begin(c)
	ctx, cancel := w.abortContext()
	defer cancel()
	if fault.After {
		if err := w.discard(ctx); err != nil {
			return err
		}
	}
	err := fault.hold(ctx, nil)
	if err == nil {
		err = fault.Err
	}
	switch {
	case err == nil && !fault.After:
		return w.discard(ctx)
	case err != nil && !fault.After:
		w.abandon()
	}
	return c.wrap(err)
}

// abortContext outlives the context of Create.
func (w *writer) abortContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), abortLimit)
}

// discard removes the file.
func (w *writer) discard(ctx context.Context) error {
	w.mu.Lock()
	left := w.left
	w.mu.Unlock()
	var err error
	if left {
		err = w.remove(ctx)
	} else {
		err = w.inner.Abort()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removed = err == nil
	return err
}

// remove removes a file that the inner file system has committed.
func (w *writer) remove(ctx context.Context) error {
	err := w.fs.inner.Remove(ctx, w.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// abandon releases what the inner writer holds and leaves the file behind, as a client does that dies instead of aborting.
// Its own error changes nothing: the file is left in any case.
func (w *writer) abandon() {
	w.mu.Lock()
	left := w.left
	w.mu.Unlock()
	if left || !w.busy.TryLock() {
		return // Close may not break a call, as Abort may
	}
	err := w.inner.Close()
	w.busy.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = err == nil
}
