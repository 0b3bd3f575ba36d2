package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// breakAfter is how long Abort gives a healthy writer to end by itself, before it breaks its connections.
const breakAfter = time.Second

// Abort implements core.Writer. It removes the file by its inode, so that it finds it wherever it has been moved, and never
// another file that took its name.
func (w *writer) Abort() error {
	w.mu.Lock()
	if w.outcome == committed {
		w.mu.Unlock()
		return nil
	}
	first := w.outcome != discarded
	w.outcome = discarded
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), w.fs.abortLimit)
	defer cancel()
	if first {
		close(w.stop)
		w.fs.gate.EnterAlways()
		_, _ = calls.Finish(ctx, &w.fs.gate, answerer, func() (struct{}, error) { // the outcome is in abortErr
			w.discard(ctx)
			return struct{}{}, nil
		}, nil)
	}
	select {
	case <-w.discarded:
	case <-ctx.Done():
		return core.PathError("abort", w.name, fmt.Errorf("%w: the NameNode has not removed the file, it may be left behind", core.ErrUnavailable))
	}
	return core.PathError("abort", w.name, w.abortErr)
}

// discardNow is Abort for a writer that no caller has yet.
func (w *writer) discardNow() {
	w.mu.Lock()
	w.outcome = discarded
	w.mu.Unlock()
	close(w.stop)
	ctx, cancel := context.WithTimeout(context.Background(), w.fs.abortLimit)
	defer cancel()
	w.discard(ctx)
}

// discard removes the file first: after that nothing can commit it.
func (w *writer) discard(ctx context.Context) {
	w.abortErr = w.remove(ctx)
	if w.abortErr != nil {
		w.fs.opts.Logger.Warn("a file could not be removed after its writer was aborted", "name", w.name, "error", w.abortErr)
	}
	close(w.discarded)
	w.await()
	w.client.discard(w.abortErr == nil)
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

// await waits until the goroutine has ended; one that hangs is interrupted.
func (w *writer) await() {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if idle == nil {
		return
	}
	timer := time.NewTimer(breakAfter)
	defer timer.Stop()
	select {
	case <-idle:
		return
	case <-timer.C:
	}
	w.client.interrupt()
	<-idle
}
