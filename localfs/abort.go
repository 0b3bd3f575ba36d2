package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// Abort implements core.Writer. It removes the file from the directory that it was created in, wherever that is now, and
// never another file that took its name.
func (w *writer) Abort() error {
	w.mu.Lock()
	if w.outcome == committed {
		w.mu.Unlock()
		return nil
	}
	first := w.outcome != discarded
	w.outcome = discarded
	idle := w.idle
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), w.fs.abortLimit)
	defer cancel()
	if first {
		close(w.stop)
		w.fs.gate.EnterAlways()
		_, _ = calls.Finish(ctx, &w.fs.gate, answerer, func() (struct{}, error) { // the outcome is in abortErr
			w.discard()
			return struct{}{}, nil
		}, nil)
	}
	select {
	case <-w.discarded:
	case <-ctx.Done():
		return core.PathError("abort", w.name, fmt.Errorf("%w: the operating system has not removed the file, it may be left behind",
			core.ErrUnavailable))
	}
	w.awaitIdle(idle)
	return pathError("abort", w.name, w.abortErr)
}

// awaitIdle gives the goroutine a moment to end.
func (w *writer) awaitIdle(idle <-chan struct{}) {
	if idle == nil {
		return
	}
	timer := time.NewTimer(calls.Grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		w.leave()
	}
}

// discardNow is Abort for a writer that no caller has yet.
func (w *writer) discardNow() {
	w.mu.Lock()
	w.outcome = discarded
	w.mu.Unlock()
	close(w.stop)
	w.discard()
}

func (w *writer) discard() {
	w.abortErr = w.remove()
	w.fs.release(w.dir)
	close(w.discarded)
}

// remove closes the file and then removes it, in this order, because NFS keeps a removed file that is open.
func (w *writer) remove() error {
	before, statErr := w.fs.sys.stat(w.file)
	w.fs.release(w.file)
	if statErr == nil && before.links == 0 {
		return nil
	}
	named, err := w.fs.sys.lstat(w.dir, w.leaf)
	gone := errors.Is(err, fs.ErrNotExist) || err == nil && named.id != w.id
	switch {
	case gone && statErr == nil:
		return fmt.Errorf("%w: the file was moved while it was written, it may be left behind under another name", fs.ErrNotExist)
	case gone: // the file was closed before, so that nothing more can be known
		return nil
	case err == nil:
		if err = w.fs.sys.unlink(w.dir, w.leaf); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("the file may be left behind: %w", err)
	}
	return nil
}
