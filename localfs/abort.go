package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// Abort implements core.Writer. It removes the file from the directory that it was created in, wherever that is now, and
// never another file that took its name.
func (w *writer) Abort() error {
	settled, err := w.queue.Abort(w.fs.abortLimit, func(context.Context) { w.discard() })
	if !settled {
		return core.PathError("abort", w.name, fmt.Errorf("%w: the operating system has not removed the file, it may be left behind",
			core.ErrUnavailable))
	}
	if !w.queue.AwaitIdle(calls.Grace) {
		w.queue.Leave()
	}
	return pathError("abort", w.name, err)
}

// discardNow is Abort for a writer that no caller has yet.
func (w *writer) discardNow() {
	w.queue.End()
	w.discard()
}

func (w *writer) discard() {
	err := w.remove()
	w.fs.release(w.dir)
	w.queue.Settle(err)
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
