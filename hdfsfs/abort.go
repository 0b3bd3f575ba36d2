package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// breakAfter is how long Abort gives a healthy writer to end by itself, before it breaks its connections.
const breakAfter = time.Second

// Abort implements core.Writer. It removes the file by its inode, so that it finds it wherever it has been moved, and never
// another file that took its name.
func (w *writer) Abort() error {
	settled, err := w.queue.Abort(w.fs.abortLimit, w.discard)
	if !settled {
		err = fmt.Errorf("%w: the NameNode has not removed the file, it may be left behind", core.ErrUnavailable)
	}
	return core.PathError("abort", w.name, err)
}

// discardNow is Abort for a writer that no caller has yet.
func (w *writer) discardNow() {
	w.queue.End()
	ctx, cancel := context.WithTimeout(context.Background(), w.fs.abortLimit)
	defer cancel()
	w.discard(ctx)
}

// discard removes the file first: after that nothing can commit it. A goroutine that hangs is interrupted, a caller who may hang in
// the client at once.
func (w *writer) discard(ctx context.Context) {
	if w.fs.client.features().direct {
		w.client.interrupt()
	}
	err := w.remove(ctx)
	if err != nil {
		w.fs.opts.Logger.Warn("a file could not be removed after its writer was aborted", "name", w.name, "error", err)
	}
	w.queue.Settle(err)
	if !w.queue.AwaitIdle(breakAfter) {
		w.client.interrupt()
		<-w.queue.Idle()
	}
	w.client.discard(err == nil)
}

func (w *writer) remove(ctx context.Context) error {
	err := w.fs.retryAnyway(ctx, func() error {
		_, err := w.fs.client.remove(ctx, inodePath(w.client.status().id), false)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file may be left behind: %w", err)
	}
	return nil
}
