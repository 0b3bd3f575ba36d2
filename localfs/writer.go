package localfs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

// writeoutStep is how many bytes are written before the kernel is asked to start on them.
const writeoutStep = 4 << 20

// maxBlocks is how many blocks a writer may have on their way to the kernel, beside the one that is being filled.
const maxBlocks = 3

// writer is a file on its way to the kernel; a call that hangs there never holds the caller.
type writer struct {
	fs         *FS
	name       string
	durability core.Durability
	dir        *os.File // the directory that the file was created in, wherever it is now
	leaf       string
	file       *os.File
	id         fileID
	queue      *blocks.Queue

	// Of the queue's goroutine.
	written int64 // bytes given to the kernel
	started int64 // of these, bytes that it was asked to write out
}

// Write implements core.Writer.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.queue.Write(p)
	return n, pathError("write", w.name, err)
}

// Sync implements core.Writer. It makes the directory entry durable too.
func (w *writer) Sync() error { return pathError("sync", w.name, w.queue.Flush(w.persist)) }

// Close implements core.Writer.
func (w *writer) Close() error { return pathError("close", w.name, w.queue.Close(w.commit)) }

func (w *writer) write(p []byte) error {
	if err := w.fs.sys.write(w.file, p); err != nil {
		return err
	}
	w.written += int64(len(p))
	if w.durability != core.Synced || w.written-w.started < writeoutStep {
		return nil
	}
	from := w.started
	w.started = w.written
	return w.fs.sys.startWriteout(w.file, from, w.written-from)
}

// persist gives what was written, and the entry, the durability that was asked for.
func (w *writer) persist() error {
	if w.durability != core.Synced {
		return nil
	}
	if err := w.fs.sys.fsync(w.file); err != nil {
		return fmt.Errorf("fsync of the file: %w", err)
	}
	if err := w.fs.fsyncDir(w.dir); err != nil {
		return fmt.Errorf("fsync of the directory: %w", err)
	}
	return nil
}

// commit is the end of a file that is kept. The name is checked while the file is still open: until then its inode cannot
// become another file's.
func (w *writer) commit() error {
	synced := w.durability == core.Synced
	if synced {
		if err := w.fs.sys.fsync(w.file); err != nil {
			return fmt.Errorf("fsync of the file: %w", err)
		}
	}
	if err := w.checkPublished(); err != nil {
		return err
	}
	if err := w.fs.sys.close(w.file); err != nil {
		return err
	}
	if synced {
		if err := w.fs.fsyncDir(w.dir); err != nil {
			return fmt.Errorf("fsync of the directory: %w", err)
		}
	}
	if err := w.queue.Commit(); err != nil {
		return err
	}
	w.fs.release(w.dir)
	return nil
}

// checkPublished makes sure that the name, taken from the base on, still leads to the file. Somebody may have removed it,
// or moved a directory on the way.
func (w *writer) checkPublished() error {
	now, err := w.fs.sys.stat(w.file)
	if err != nil {
		return err
	}
	if now.links == 0 {
		return fmt.Errorf("the file was removed while it was written: %w", syscall.ENOENT)
	}
	named, err := w.fs.stat(w.name)
	if err != nil {
		return fmt.Errorf("the file is no longer found under its name: %w", err)
	}
	if named.id != w.id {
		return fmt.Errorf("another file has taken the name while this one was written: %w", fs.ErrNotExist)
	}
	return nil
}
