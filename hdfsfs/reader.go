package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

const (
	// maxIdle is how many connections of a Reader are kept for the next ReadAt.
	maxIdle = 4
	// moreAttempts is how often a read is tried beyond once for each replica.
	moreAttempts = 2
)

// Open implements core.FileSystem. The file is read by its inode, whatever becomes of its name.
func (f *FS) Open(ctx context.Context, name string) (core.Reader, error) {
	if err := core.CheckName("open", f.opts.Base, name); err != nil {
		return nil, err
	}
	var streams streamClient
	switch c := f.client.(type) {
	case directClient:
		return f.openDirect(ctx, name, c)
	case streamClient:
		streams = c
	}
	s, err := call(ctx, f, func() (status, error) { return f.stat(ctx, name) }, nil)
	if err == nil {
		err = readable(s)
	}
	if err != nil {
		return nil, core.PathError("open", name, err)
	}
	return &reader{fs: f, client: streams, ctx: ctx, name: name, file: s}, nil
}

func readable(s status) error {
	if s.dir || s.symlink {
		return fmt.Errorf("%w: it is %s", fs.ErrInvalid, s.kind())
	}
	return usableLayout(s)
}

// reader keeps a connection for each goroutine that reads at a time, because the library's readers are for one each. What
// it reads comes in blocks of its own, because a call that hangs must not write into a slice that its caller has back.
type reader struct {
	fs     *FS
	client streamClient
	ctx    context.Context //nolint:containedctx // the context of Open governs the stream
	name   string
	file   status
	closed atomic.Bool

	mu   sync.Mutex
	idle []clientReader
	busy map[clientReader]struct{}

	// Of Read and Seek.
	offset    int64
	ahead     *blocks.Block // bytes from aheadFrom on; nil if none
	aheadFrom int64
}

// Size implements core.Reader.
func (r *reader) Size() int64 { return r.file.size }

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
		return 0, core.PathError("read", r.name, err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.offset >= r.file.size {
		return 0, io.EOF
	}
	n := r.copyAhead(p)
	if n == 0 {
		b, err := r.readBlock(r.offset, blocks.Size)
		if err != nil {
			return 0, core.PathError("read", r.name, err)
		}
		r.ahead, r.aheadFrom = b, r.offset
		n = copy(p, b.Bytes())
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

// ReadAt implements core.Reader.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.usable(); err != nil {
		return 0, core.PathError("read", r.name, err)
	}
	if off < 0 {
		return 0, core.PathError("read", r.name, fmt.Errorf("%w: negative offset %d", fs.ErrInvalid, off))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= r.file.size {
		return 0, io.EOF
	}
	inside := p[:min(int64(len(p)), r.file.size-off)]
	for n := 0; n < len(inside); {
		b, err := r.readBlock(off+int64(n), min(len(inside)-n, blocks.Size))
		if err != nil {
			return n, core.PathError("read", r.name, err)
		}
		n += copy(inside[n:], b.Bytes())
		b.Free()
	}
	if len(inside) < len(p) {
		return len(inside), io.EOF
	}
	return len(p), nil
}

// readBlock reads up to n bytes into a new block on a goroutine that the caller can leave behind.
func (r *reader) readBlock(off int64, n int) (*blocks.Block, error) {
	n = int(min(int64(n), r.file.size-off))
	return call(r.ctx, r.fs, func() (*blocks.Block, error) {
		b := blocks.New()
		if err := r.fill(b.Data[:n], off); err != nil {
			b.Free()
			return nil, err
		}
		b.N = n
		return b, nil
	}, (*blocks.Block).Free)
}

// fill reads all of p. After an error it goes on from there with another connection: the library then prefers a DataNode
// that has not failed.
func (r *reader) fill(p []byte, off int64) error {
	deadline := time.Now().Add(r.fs.opts.RetryFor)
	wait := 10 * time.Millisecond
	for attempt, n := 1, 0; ; attempt++ {
		k, err := r.readOnce(p[n:], off+int64(n))
		n += k
		if k > 0 {
			attempt = 1
		}
		if err == nil {
			return nil
		}
		if stop := r.usable(); stop != nil {
			return stop
		}
		enough := attempt >= r.file.replication+moreAttempts && (!transient(err) || time.Now().After(deadline))
		if enough || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
		case <-r.fs.ended:
		}
		timer.Stop()
		wait = min(2*wait, time.Second)
	}
}

func (r *reader) readOnce(p []byte, off int64) (int, error) {
	c, err := r.take(off)
	if err != nil {
		return 0, err
	}
	n, err := c.readAt(p, off)
	r.put(c, err == nil)
	return n, err
}

// take returns a connection that nobody uses: the one that has come to that offset, else any, else a new one.
func (r *reader) take(off int64) (clientReader, error) {
	r.mu.Lock()
	var c clientReader
	for i := len(r.idle) - 1; i >= 0; i-- {
		if c == nil || r.idle[i].position() == off {
			c = r.idle[i]
		}
	}
	if c != nil {
		r.remove(c)
		r.use(c)
	}
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := r.client.open(r.ctx, r.file)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.use(c)
	r.mu.Unlock()
	if r.closed.Load() {
		c.close()
	}
	return c, nil
}

// use and remove need the lock.
func (r *reader) use(c clientReader) {
	if r.busy == nil {
		r.busy = map[clientReader]struct{}{}
	}
	r.busy[c] = struct{}{}
}

func (r *reader) remove(c clientReader) {
	for i := range r.idle {
		if r.idle[i] == c {
			r.idle = append(r.idle[:i], r.idle[i+1:]...)
			return
		}
	}
}

func (r *reader) put(c clientReader, good bool) {
	r.mu.Lock()
	delete(r.busy, c)
	good = good && !r.closed.Load() && len(r.idle) < maxIdle
	if good {
		r.idle = append(r.idle, c)
	}
	r.mu.Unlock()
	if !good {
		c.close()
	}
}

// Seek implements core.Reader.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if err := r.usable(); err != nil {
		return 0, core.PathError("seek", r.name, err)
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.file.size
	default:
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: whence %d", fs.ErrInvalid, whence))
	}
	if offset < 0 {
		return 0, core.PathError("seek", r.name, fmt.Errorf("%w: negative position %d", fs.ErrInvalid, offset))
	}
	r.offset = offset
	return offset, nil
}

// Close implements core.Reader. It breaks reads that are under way.
func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.mu.Lock()
	open := r.idle
	r.idle = nil
	for c := range r.busy {
		open = append(open, c)
	}
	r.mu.Unlock()
	for _, c := range open {
		c.close()
	}
	return nil
}
