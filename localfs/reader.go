package localfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// Open implements core.FileSystem. A symbolic link is followed to a file in the base.
func (f *FS) Open(ctx context.Context, name string) (core.Reader, error) {
	if err := core.CheckName("open", f.tree.base, name); err != nil {
		return nil, err
	}
	r, err := call(ctx, f, func() (*reader, error) { return f.open(ctx, name) }, func(r *reader) { f.release(r.file) })
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return r, nil
}

func (f *FS) open(ctx context.Context, name string) (*reader, error) {
	// O_NONBLOCK, because the open of a FIFO would wait for a writer.
	file, err := f.sys.open(f.tree, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, missing(err)
	}
	e, err := f.sys.stat(file)
	if err == nil && !e.mode.IsRegular() {
		err = fmt.Errorf("%w: not a regular file", fs.ErrInvalid)
	}
	if err != nil {
		f.release(file)
		return nil, err
	}
	r := &reader{fs: f, ctx: ctx, name: name, file: file, size: e.size}
	r.tryCached.Store(true)
	return r, nil
}

// reader reads with pread. Where its context can end, it first takes what the kernel has in memory, straight into the
// caller's slice; what may have to wait is read into a block on another goroutine, because a call that hangs must not
// write into a slice that its caller has back.
type reader struct {
	fs        *FS
	ctx       context.Context //nolint:containedctx // the context of Open governs the stream
	name      string
	file      *os.File
	size      int64
	tryCached atomic.Bool
	closed    atomic.Bool

	// Of Read and Seek.
	offset    int64
	ahead     *blocks.Block // bytes from aheadFrom on; nil if none
	aheadFrom int64
}

// Size implements core.Reader.
func (r *reader) Size() int64 { return r.size }

// usable returns why the reader cannot go on.
func (r *reader) usable() error {
	if r.closed.Load() || r.fs.gate.Closed() {
		return fs.ErrClosed
	}
	return r.ctx.Err()
}

// Read implements core.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.usable(); err != nil {
		return 0, pathError("read", r.name, err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.offset >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.offset)]
	n := r.copyAhead(p)
	if n == 0 {
		var err error
		if n, err = r.readNow(p, r.offset); n == 0 && err == nil {
			n, err = r.readAhead(p)
		}
		if err != nil {
			return 0, pathError("read", r.name, err)
		}
	}
	r.offset += int64(n)
	return n, nil
}

// copyAhead serves a read from what was read ahead.
func (r *reader) copyAhead(p []byte) int {
	if r.ahead == nil {
		return 0
	}
	skip := r.offset - r.aheadFrom
	if skip < 0 || skip >= int64(r.ahead.N) {
		r.ahead.Free()
		r.ahead = nil
		return 0
	}
	return copy(p, r.ahead.Bytes()[skip:])
}

// readAhead reads a block at the offset and serves p from it.
func (r *reader) readAhead(p []byte) (int, error) {
	b, err := r.readBlock(r.offset, blocks.Size)
	if err != nil {
		return 0, err
	}
	r.ahead, r.aheadFrom = b, r.offset
	return copy(p, b.Bytes()), nil
}

// ReadAt implements core.Reader.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.usable(); err != nil {
		return 0, pathError("read", r.name, err)
	}
	if off < 0 {
		return 0, core.PathError("read", r.name, fmt.Errorf("%w: negative offset %d", fs.ErrInvalid, off))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= r.size {
		return 0, io.EOF
	}
	inside := p[:min(int64(len(p)), r.size-off)]
	for n := 0; n < len(inside); {
		k, err := r.readSome(inside[n:], off+int64(n))
		n += k
		if err != nil {
			return n, pathError("read", r.name, err)
		}
	}
	if len(inside) < len(p) {
		return len(inside), io.EOF
	}
	return len(p), nil
}

// readSome reads at least one byte of a range inside the file.
func (r *reader) readSome(p []byte, off int64) (int, error) {
	if n, err := r.readNow(p, off); n > 0 || err != nil {
		return n, err
	}
	b, err := r.readBlock(off, min(len(p), blocks.Size))
	if err != nil {
		return 0, err
	}
	defer b.Free()
	return copy(p, b.Bytes()), nil
}

// readNow reads straight into p, or nothing, without an error, if that might hold the caller beyond the end of its context.
func (r *reader) readNow(p []byte, off int64) (int, error) {
	if r.ctx.Done() == nil {
		return r.read(p, off)
	}
	if !r.tryCached.Load() {
		return 0, nil
	}
	n, able := r.fs.sys.readCached(r.file, p, off)
	if !able {
		r.tryCached.Store(false)
	}
	return n, nil
}

// readBlock reads up to n bytes into a new block on a goroutine that the caller can leave behind.
func (r *reader) readBlock(off int64, n int) (*blocks.Block, error) {
	n = int(min(int64(n), r.size-off))
	return call(r.ctx, r.fs, func() (*blocks.Block, error) {
		b := blocks.New()
		var err error
		if b.N, err = r.read(b.Data[:n], off); err != nil {
			b.Free()
			return nil, err
		}
		return b, nil
	}, (*blocks.Block).Free)
}

// read reads at least one byte of a range inside the file.
func (r *reader) read(p []byte, off int64) (int, error) {
	n, err := r.fs.sys.read(r.file, p, off)
	if n == 0 && errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: the file ends before its length at open, %d: %w", core.ErrCorrupt, r.size, io.ErrUnexpectedEOF)
	}
	return n, err
}

// Seek implements core.Reader.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if err := r.usable(); err != nil {
		return 0, pathError("seek", r.name, err)
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	default:
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: whence %d", fs.ErrInvalid, whence))
	}
	if offset < 0 {
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: negative position %d", fs.ErrInvalid, offset))
	}
	r.offset = offset
	return offset, nil
}

// Close implements core.Reader.
func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.fs.gate.EnterAlways()
	_, err := calls.Finish(r.ctx, &r.fs.gate, answerer, func() (struct{}, error) { return struct{}{}, r.fs.sys.close(r.file) }, nil)
	return pathError("close", r.name, err)
}
