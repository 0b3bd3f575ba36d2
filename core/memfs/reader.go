package memfs

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Open implements core.FileSystem.
func (f *FS) Open(ctx context.Context, name string) (core.Reader, error) {
	if err := f.check(ctx, "open", name); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err == nil && n.isDir() {
		err = errIsDir
	}
	if err != nil {
		return nil, core.PathError("open", name, err)
	}
	// A file only grows, so these bytes stay as they are, whatever becomes of the file.
	r := &reader{fs: f, ctx: ctx, name: name, data: n.data}
	f.open[r] = struct{}{}
	return r, nil
}

type reader struct {
	fs     *FS
	ctx    context.Context // the context of Open governs the stream
	name   string
	data   []byte
	offset int64
	closed atomic.Bool
}

func (r *reader) describe() string { return "read " + r.name }

func (r *reader) Size() int64 { return int64(len(r.data)) }

func (r *reader) usable(op string) error {
	if r.closed.Load() {
		return core.PathError(op, r.name, fs.ErrClosed)
	}
	return core.PathError(op, r.name, r.ctx.Err())
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.usable("read"); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.offset >= int64(len(r.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.data[r.offset:])
	r.offset += int64(n)
	return n, nil
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.usable("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, core.PathError("read", r.name, fmt.Errorf("%w: negative offset", fs.ErrInvalid))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(r.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if err := r.usable("seek"); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += int64(len(r.data))
	default:
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: whence %d", fs.ErrInvalid, whence))
	}
	if offset < 0 {
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: negative position", fs.ErrInvalid))
	}
	r.offset = offset
	return offset, nil
}

func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.fs.mu.Lock()
	defer r.fs.mu.Unlock()
	delete(r.fs.open, r)
	return nil
}
