package hdfsfs

import (
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

// maxBlocks is how many blocks wait for the goroutine of a writer.
const maxBlocks = 4

// writer is a file on its way to DataNodes; one that hangs never holds the caller.
type writer struct {
	fs          *FS
	name        string
	client      clientWriter
	minReplicas int
	queue       *blocks.Queue
}

// Write implements core.Writer.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.queue.Write(p)
	return n, core.PathError("write", w.name, err)
}

// Sync implements core.Writer. Where it is not supported the file goes on as if it had not been called.
func (w *writer) Sync() error {
	err := w.queue.Check()
	switch {
	case err != nil:
	case !w.fs.caps.Sync:
		err = fmt.Errorf("%w: this client cannot tell what DataNodes have before Close", errors.ErrUnsupported)
	default:
		err = w.queue.Flush(w.client.sync)
	}
	return core.PathError("sync", w.name, err)
}

// Close implements core.Writer.
func (w *writer) Close() error { return core.PathError("close", w.name, w.queue.Close(w.commit)) }

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
	return w.queue.Commit()
}
