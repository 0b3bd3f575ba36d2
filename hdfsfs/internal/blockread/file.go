package blockread

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

const (
	// maxIdle is how many streams of a file are kept open for reads that go on where they are.
	maxIdle = 4
	// aheadSize is how much is read at once for a caller who reads in small pieces.
	aheadSize = 128 << 10
	// large is how long a Read must be to go into the caller's memory directly.
	large = aheadSize / 2
)

// File is one that is read, as long as it was when it was opened. ReadAt may be called concurrently; Read and Seek are for one
// goroutine. Close may be called at any time.
type File struct {
	c      *Client
	path   string
	places locations

	ctx    context.Context //nolint:containedctx // it governs the whole file, as the contract of a stream says
	cancel context.CancelFunc
	unbind func() bool // from the end of the client
	closed atomic.Bool

	mu   sync.Mutex
	idle []*openBlock         // the least recently used first
	bad  map[replica]struct{} // whose checksum was wrong
	next int64                // where the last ReadAt has ended

	// Of Read and Seek.
	offset    int64
	ahead     *[aheadSize]byte // bytes from aheadFrom on, aheadLen of them; nil if there are none
	aheadFrom int64
	aheadLen  int
}

// openBlock is a stream of a block, at rest.
type openBlock struct {
	*stream
	node  string
	start int64 // of the block in the file
}

// replica is a block on a node.
type replica struct {
	block uint64
	node  string
}

var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// Open opens a file for reading. Its path should be one that no other file can take. located is what the NameNode has told of its
// first blocks just now, nil if nothing. ctx governs the file until it is closed; a file that is not closed keeps connections.
//
// Errors are those of the NameNode, [ErrLayout], [ErrNoReplica] where the length of a file that is being written cannot be found
// out, and those of the context. The errors of its reads are these, [ErrChecksum], [ErrChanged] and fs.ErrClosed.
func (c *Client) Open(ctx context.Context, path string, located *wire.LocatedBlocks) (*File, error) {
	if c.ctx.Err() != nil {
		return nil, fs.ErrClosed
	}
	if located == nil {
		var err error
		if located, err = c.o.NameNode.GetBlockLocations(ctx, path, 0, c.o.Prefetch); err != nil {
			return nil, err
		}
	}
	f := &File{c: c, path: path, next: -1}
	if err := c.measure(ctx, &f.places, located); err != nil {
		return nil, err
	}
	if err := f.places.merge(located); err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.unbind = context.AfterFunc(c.ctx, f.cancel)
	return f, nil
}

// Size is the length of the file when it was opened.
func (f *File) Size() int64 { return f.places.size }

// ended returns why the file cannot be read any more.
func (f *File) ended() error {
	if f.closed.Load() || f.c.ctx.Err() != nil {
		return fs.ErrClosed
	}
	return f.ctx.Err()
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	switch err := f.ended(); {
	case err != nil:
		return 0, err
	case off < 0:
		return 0, fmt.Errorf("%w: negative offset %d", fs.ErrInvalid, off)
	case len(p) == 0:
		return 0, nil
	case off >= f.Size():
		return 0, io.EOF
	}
	inside := p[:min(int64(len(p)), f.Size()-off)]
	f.mu.Lock()
	onward := f.next == off
	f.next = off + int64(len(inside))
	f.mu.Unlock()
	n, err := f.fill(inside, off, onward)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Read implements io.Reader. It reads ahead for small pieces, and of a large one it returns the first 128 KiB, while they are in
// the caches of the processor.
func (f *File) Read(p []byte) (int, error) {
	switch err := f.ended(); {
	case err != nil:
		return 0, err
	case len(p) == 0:
		return 0, nil
	case f.offset >= f.Size():
		if f.ahead != nil {
			aheads.Put(f.ahead)
			f.ahead = nil
		}
		return 0, io.EOF
	}
	if n := f.copyAhead(p); n > 0 {
		return n, nil
	}
	left := f.Size() - f.offset
	if len(p) >= large {
		n, err := f.fill(p[:min(int64(len(p)), left, aheadSize)], f.offset, true)
		f.offset += int64(n)
		return n, err
	}
	if f.ahead == nil {
		f.ahead, _ = aheads.Get().(*[aheadSize]byte) // the pool has no others
	}
	n, err := f.fill(f.ahead[:min(aheadSize, left)], f.offset, true)
	f.aheadFrom, f.aheadLen = f.offset, n
	if n > 0 {
		return f.copyAhead(p), nil // an error comes again with the next call, if it lasts
	}
	return 0, err
}

func (f *File) copyAhead(p []byte) int {
	skip := f.offset - f.aheadFrom
	if f.ahead == nil || skip < 0 || skip >= int64(f.aheadLen) {
		return 0
	}
	n := copy(p, f.ahead[skip:f.aheadLen])
	f.offset += int64(n)
	return n
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if err := f.ended(); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.Size()
	default:
		return 0, fmt.Errorf("%w: whence %d", fs.ErrInvalid, whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("%w: negative position %d", fs.ErrInvalid, offset)
	}
	f.offset = offset
	return offset, nil
}

// Close breaks what is under way and gives up the connections. It may be called again.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	f.unbind()
	f.cancel()
	f.mu.Lock()
	idle := f.idle
	f.idle = nil
	f.mu.Unlock()
	for _, o := range idle {
		o.close()
	}
	return nil
}

// take returns a stream that is open at an offset, or shortly before it.
func (f *File) take(b block, off int64) *openBlock {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.idle) - 1; i >= 0; i-- {
		o := f.idle[i]
		if at := o.start + o.pos; o.block == b.id() && at <= off && off-at <= f.c.o.Skip && off < o.start+o.end {
			f.idle = append(f.idle[:i], f.idle[i+1:]...)
			o.skipTo(off - o.start)
			return o
		}
	}
	return nil
}

// leave keeps a stream for later reads, or what is left of it for other streams.
func (f *File) leave(o *openBlock) {
	switch {
	case o.broken != nil:
		o.close()
		return
	case o.done():
		f.c.finish(o.stream)
		return
	}
	f.mu.Lock()
	f.idle = append(f.idle, o)
	var surplus *openBlock
	if len(f.idle) > maxIdle || f.closed.Load() {
		surplus = f.idle[0]
		f.idle = f.idle[1:]
	}
	f.mu.Unlock()
	if surplus != nil {
		surplus.close()
	}
}
