package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// segmentWriter is the Writer of one packed state. It buffers the bytes and appends them to a file of the pack when it is closed;
// a state that becomes too large for that takes a file for itself until it ends.
type segmentWriter struct {
	pack     *Pack
	ctx      context.Context //nolint:containedctx // that of the stream, as with any Writer
	handle   *SegmentHandle
	buffer   []byte
	reserved int64
	file     *packFile // held; nil while everything is buffered
	size     int64
	failed   error
	ended    bool
}

var errNoSyncInPack = fmt.Errorf("%w: packed states become durable together, with the pack's Commit", errors.ErrUnsupported)

// Write implements Writer.
func (w *segmentWriter) Write(p []byte) (int, error) {
	if err := w.usable("write"); err != nil {
		return 0, err
	}
	if w.file == nil && w.grow(len(p)) {
		w.buffer = append(w.buffer, p...)
		w.size += int64(len(p))
		return len(p), nil
	}
	if w.file == nil {
		if err := w.hold(); err != nil {
			return 0, w.fail(err)
		}
	}
	if err := w.append(w.file, p); err != nil {
		return 0, w.fail(err)
	}
	w.size += int64(len(p))
	return len(p), nil
}

// grow makes room for n more buffered bytes, and reports false if there may not be as many.
func (w *segmentWriter) grow(n int) bool {
	need := len(w.buffer) + n
	if need > maxSegmentBuffer {
		return false
	}
	if w.buffer == nil {
		if pooled, ok := w.pack.packer.segmentBuffer.Get().(*[]byte); ok {
			w.buffer = (*pooled)[:0]
		}
	}
	size := cap(w.buffer)
	if need > size {
		size = min(max(need, 2*size), maxSegmentBuffer)
	}
	if int64(size) == w.reserved {
		return true
	}
	if !w.pack.packer.reserve(int64(size) - w.reserved) {
		return false
	}
	w.reserved = int64(size)
	if size > cap(w.buffer) {
		w.buffer = append(make([]byte, 0, size), w.buffer...)
	}
	return true
}

// hold takes a file of the pack for this state alone and gives it what is buffered.
func (w *segmentWriter) hold() error {
	if err := w.pack.acquire(w.ctx, "write"); err != nil {
		return err
	}
	defer w.pack.release()
	f, err := w.open()
	if err != nil {
		return err
	}
	f.held, w.file = true, f
	err = w.appendInTurn(f, w.buffer)
	w.freeBuffer()
	return err
}

// open returns a file to append to. It is called with the lock held.
func (w *segmentWriter) open() (*packFile, error) {
	defer w.guard()()
	f, err := w.pack.file(w.handle.Scope)
	if err != nil {
		w.pack.fail(err)
	}
	return f, err
}

// append writes to a file that this state holds; the pack is lost if that fails.
func (w *segmentWriter) append(f *packFile, p []byte) error {
	err := w.guarded(f, p)
	if err != nil {
		w.pack.lock <- struct{}{}
		defer w.pack.release()
		w.pack.fail(err)
	}
	return err
}

// appendInTurn is append with the lock held.
func (w *segmentWriter) appendInTurn(f *packFile, p []byte) error {
	err := w.guarded(f, p)
	if err != nil {
		w.pack.fail(err)
	}
	return err
}

func (w *segmentWriter) guarded(f *packFile, p []byte) error {
	defer w.guard()()
	return f.append(p)
}

// guard breaks the pack if the stream's context ends during a call to the storage, which the pack's context governs.
func (w *segmentWriter) guard() func() bool { return context.AfterFunc(w.ctx, w.pack.cancel) }

// Sync implements Writer.
func (w *segmentWriter) Sync() error { return PathError("sync", w.where(), errNoSyncInPack) }

// Close implements Writer: the segment has its place in the file, but is not durable before the pack is committed.
func (w *segmentWriter) Close() error {
	if err := w.usable("close"); err != nil {
		return err
	}
	if err := w.pack.acquire(w.ctx, "close"); err != nil {
		return w.fail(err)
	}
	defer w.pack.release()
	f := w.file
	if f == nil {
		var err error
		if f, err = w.open(); err == nil {
			err = w.appendInTurn(f, w.buffer)
		}
		if err != nil {
			return w.fail(err)
		}
	}
	w.end()
	f.held = false
	f.add(w.handle, w.size)
	return nil
}

// Abort implements Writer: what is in a file already stays there as bytes that nobody needs.
func (w *segmentWriter) Abort() error {
	if w.ended {
		return nil
	}
	w.end()
	if w.file != nil {
		w.pack.lock <- struct{}{}
		w.file.held = false
		w.pack.release()
	}
	return nil
}

func (w *segmentWriter) end() {
	w.ended = true
	w.freeBuffer()
}

// freeBuffer gives the memory back. A buffer whose write failed is not used again: a call that was cut off may still be reading
// it.
func (w *segmentWriter) freeBuffer() {
	if w.reserved > 0 {
		w.pack.packer.release(w.reserved)
	}
	if buffer := w.buffer; cap(buffer) > 0 && cap(buffer) <= ChecksumChunk && w.failed == nil {
		w.pack.packer.segmentBuffer.Put(&buffer)
	}
	w.buffer, w.reserved = nil, 0
}

func (w *segmentWriter) usable(op string) error {
	switch {
	case w.failed != nil:
		return w.failed
	case w.ended:
		return &fs.PathError{Op: op, Path: w.where(), Err: fs.ErrClosed}
	}
	return nil
}

func (w *segmentWriter) fail(err error) error {
	w.failed = err
	return err
}

func (w *segmentWriter) where() string {
	if w.file != nil {
		return w.file.name
	}
	return w.pack.packer.dir(w.handle.Scope)
}
