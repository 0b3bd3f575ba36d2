package faultfs

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/hdfsckpt/hdfsckpt/core"
)

type reader struct {
	fs     *FS
	ctx    context.Context // the context of Open governs the stream
	name   string
	inner  core.Reader
	offset int64
	closed atomic.Bool
}

func (r *reader) describe() string { return "read " + r.name }

func (r *reader) Size() int64 { return r.inner.Size() }

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.read(Call{Op: OpRead, Name: r.name, Offset: r.offset, Size: len(p)}, p, r.inner.Read)
	r.offset += int64(n)
	return n, err
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	return r.read(Call{Op: OpReadAt, Name: r.name, Offset: off, Size: len(p)}, p, func(p []byte) (int, error) {
		return r.inner.ReadAt(p, off)
	})
}

func (r *reader) read(c Call, p []byte, do func([]byte) (int, error)) (int, error) {
	if r.closed.Load() {
		return do(p) // refused there, in the words of the file system itself
	}
	c, fault := r.fs.begin(c)
	if fault.After {
		// The bytes are lost with the reply, so they must not be found in the caller's buffer.
		n, err := do(fault.scratch(p))
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if held := fault.hold(r.ctx, nil); held != nil || fault.Err != nil {
			if held == nil {
				held = fault.Err
			}
			return 0, c.wrap(held)
		}
		copy(p, fault.flip(p[:n]))
		return n, err
	}
	if err := fault.hold(r.ctx, nil); err != nil {
		return 0, c.wrap(err)
	}
	if fault.Tear > 0 {
		n, err := do(p[:min(fault.Tear, len(p))])
		if err == nil || errors.Is(err, io.EOF) {
			err = c.wrap(fault.cause())
		}
		return n, err
	}
	if fault.Err != nil {
		return 0, c.wrap(fault.Err)
	}
	n, err := do(p)
	copy(p, fault.flip(p[:n]))
	return n, err
}

// scratch is where a read goes: a buffer of its own if the caller is not to get the bytes.
func (f Fault) scratch(p []byte) []byte {
	if f.Err != nil {
		return make([]byte, len(p))
	}
	return p
}

func (r *reader) Seek(offset int64, whence int) (int64, error) {
	at, err := r.inner.Seek(offset, whence)
	if err == nil {
		r.offset = at
	}
	return at, err
}

func (r *reader) Close() error {
	r.closed.Store(true)
	r.fs.ended(r)
	return r.inner.Close()
}
