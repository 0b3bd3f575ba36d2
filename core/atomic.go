package core

import (
	"bufio"
	"context"
	"errors"
	"hash/crc32"
	"io/fs"
	"sync"
	"sync/atomic"
)

// AtomicOptions of an [AtomicFile].
type AtomicOptions struct {
	// Temp is the name of the temporary, which must be one that nobody else uses; Final is the name to publish under.
	Temp, Final string
	// Mode says what happens if Final exists when the file is published.
	Mode RenameMode
	// Create options of the temporary.
	Create CreateOptions
}

// AtomicFile is the one way in which this module publishes a file in a single step, on every file system: it writes a
// temporary, commits that, and renames it.
//
//	create temp → write … → Close (durable) → Rename temp to final (durable)
//
// Whatever the moment of a crash, final is the complete new file or what it was before; a temporary may be left over. Write
// and Commit are for one goroutine; Abort may come from any and breaks a call that hangs.
type AtomicFile struct {
	fsys FileSystem
	opts AtomicOptions
	ctx  context.Context //nolint:containedctx // the context given at creation governs the file

	cancel   context.CancelFunc
	aborting atomic.Bool

	mu     sync.Mutex
	writer Writer
	buffer *bufio.Writer
	size   int64
	crc    uint32
	failed error
	ended  bool
	// settled: that the file is published was concluded from a look at it, not from the answer to the rename.
	settled bool
}

// atomicBuffer is the size in bytes of an AtomicFile's buffer.
const atomicBuffer = 64 << 10

// CreateAtomic creates the temporary. ctx governs the file.
func CreateAtomic(ctx context.Context, fsys FileSystem, opts AtomicOptions) (*AtomicFile, error) {
	streamCtx, cancel := context.WithCancel(ctx)
	w, err := fsys.Create(streamCtx, opts.Temp, opts.Create)
	if err != nil {
		cancel()
		return nil, removeDoubtful(ctx, fsys, opts.Temp, err)
	}
	return &AtomicFile{
		fsys: fsys, opts: opts, ctx: streamCtx, cancel: cancel, writer: w, buffer: bufio.NewWriterSize(w, atomicBuffer),
	}, nil
}

// Write implements io.Writer.
func (a *AtomicFile) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("write"); err != nil {
		return 0, err
	}
	n, err := a.buffer.Write(p)
	a.crc = crc32.Update(a.crc, castagnoli, p[:n])
	a.size += int64(n)
	return n, a.fail(err)
}

// Size is the number of bytes written so far.
func (a *AtomicFile) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// Sync makes durable what was written so far, in the temporary. Where the file system does not declare the capability, the
// error is errors.ErrUnsupported and the file goes on.
func (a *AtomicFile) Sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("sync"); err != nil {
		return err
	}
	if err := a.fail(a.buffer.Flush()); err != nil {
		return err
	}
	err := a.writer.Sync()
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return a.fail(err)
}

// Commit publishes the file: when it returns nil, all bytes are durable under the final name. When it fails, because of an
// earlier failure too, nothing of this file is published and the temporary is removed, except when the error says that the
// outcome is unknown. A Commit that is cut off by Abort or its context is a failure even if the rename has happened: the
// file is taken back, or, where it has replaced another, its outcome is unknown.
func (a *AtomicFile) Commit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("commit"); err != nil {
		if a.failed == nil || a.ended {
			return err
		}
		return a.giveUp(err)
	}
	err := a.buffer.Flush()
	if err == nil {
		err = a.writer.Close()
	}
	if err != nil {
		return a.giveUp(err)
	}
	defer a.end()
	return a.fail(a.publish())
}

// abandon ends the file because of an error that lies elsewhere, unless it has ended.
func (a *AtomicFile) abandon(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return a.whyBroken(err)
	}
	return a.giveUp(err)
}

// giveUp ends a file that will not be published.
func (a *AtomicFile) giveUp(err error) error {
	defer a.end()
	return errors.Join(a.fail(err), a.removeTemp())
}

// live reports whether the file can still be committed.
func (a *AtomicFile) live() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usable("commit") == nil
}

// Abort discards the file unless it is committed. It is harmless after any ending.
func (a *AtomicFile) Abort() error {
	a.aborting.Store(true)
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	defer a.end()
	return a.removeTemp()
}

func (a *AtomicFile) removeTemp() error { return tempLeft(a.writer.Abort()) }

func (a *AtomicFile) end() {
	a.ended = true
	a.cancel()
}

func (a *AtomicFile) usable(op string) error {
	switch {
	case a.failed != nil:
		return a.failed
	case a.ended || a.aborting.Load():
		return &fs.PathError{Op: op, Path: a.opts.Final, Err: fs.ErrClosed}
	}
	return a.fail(PathError(op, a.opts.Final, a.ctx.Err()))
}

// fail remembers the first error.
func (a *AtomicFile) fail(err error) error {
	if err == nil || a.failed != nil {
		return err
	}
	a.failed = a.whyBroken(err)
	return a.failed
}

// whyBroken says of a call that Abort broke that this is the reason, whatever the file system calls it.
func (a *AtomicFile) whyBroken(err error) error {
	if a.aborting.Load() && errors.Is(err, context.Canceled) {
		return brokenOff(err)
	}
	return err
}
