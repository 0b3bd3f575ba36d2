package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// StateReader reads one state. Where the handle has checksums, every chunk is verified before a byte of it is returned: a
// mismatch is ErrCorrupt with the file and the chunk's offset, and no byte of the chunk reaches the caller. Read and Seek
// are for one goroutine; ReadAt is safe for many. Close may come from any goroutine.
type StateReader struct {
	name   string
	base   int64 // offset of the state in src
	size   int64
	src    Reader // nil for inline state
	shared bool   // src belongs to another reader
	data   []byte // inline state
	sums   *Checksums

	reading sync.Mutex // held by Read and Seek
	pos     int64
	chunk   []byte // the chunk that was verified last for Read
	at      int64  // offset of chunk, -1 if there is none
	buffer  *[]byte
	closed  atomic.Bool
}

// chunkBuffers hold one verified chunk each.
var chunkBuffers = sync.Pool{New: func() any {
	buffer := make([]byte, ChecksumChunk)
	return &buffer
}}

// OpenState opens the state of a handle; a nil handle is an empty state. A file whose length is not the recorded one is
// ErrCorrupt, and so is one that ends before a segment does. ctx governs the reader.
func OpenState(ctx context.Context, open Opener, handle StreamHandle) (*StateReader, error) {
	switch h := handle.(type) {
	case nil, EmptySegment:
		return &StateReader{name: "(no state)", at: -1}, nil
	case *BytesHandle:
		return &StateReader{name: h.Name, size: int64(len(h.Data)), data: h.Data, at: -1}, nil
	case *FileHandle:
		return openStateFile(ctx, open, h.Path, h.Size, h.Checksums)
	case *SegmentHandle:
		return openSegment(ctx, open, h)
	case *RelativeFileHandle:
		if err := CheckRelative(h.Name); err != nil {
			return nil, PathError("open", h.Path(), err)
		}
		return openStateFile(ctx, open, h.Path(), h.Size, h.Checksums)
	}
	return nil, fmt.Errorf("%w: open of a %T", errors.ErrUnsupported, handle)
}

// OpenObject opens a file of a checkpoint as OpenState does. A file of merged states is opened as a whole, unverified; one that
// ends before the last segment is ErrCorrupt. Use Segment for the parts of it.
func OpenObject(ctx context.Context, open Opener, object Object) (*StateReader, error) {
	size := object.Size
	if object.FlagByte && size >= 0 {
		size++
	}
	r, err := openStateFile(ctx, open, object.Path, size, object.Checksums)
	if err == nil && r.size < object.AtLeast {
		err = errors.Join(tooShort(r.name, r.size, object.AtLeast), r.Close())
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openSegment opens the file of a segment and returns a reader of the segment alone.
func openSegment(ctx context.Context, open Opener, h *SegmentHandle) (*StateReader, error) {
	r, err := openStateFile(ctx, open, h.Path, -1, nil)
	if err != nil {
		return nil, err
	}
	part, err := r.Segment(Segment{Offset: h.Offset, Size: h.Size, Scope: h.Scope, Checksums: h.Checksums})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	part.shared = false
	return part, nil
}

// Segment returns a reader of a part of the file, which OpenObject has opened: offsets are the segment's, the chunks are
// verified if it has checksums, and a file that ends before the segment does is ErrCorrupt. The reader is good until r is
// closed, and opens nothing; closing it leaves r open. A segment of unknown size reaches to the end of the file.
func (r *StateReader) Segment(s Segment) (*StateReader, error) {
	if s.Size < 0 {
		s.Size = max(r.size-s.Offset, 0)
	}
	part := &StateReader{name: r.name, base: r.base + s.Offset, size: s.Size, src: r.src, shared: true, sums: s.Checksums, at: -1}
	switch {
	case r.src == nil:
		return nil, PathError("open", r.name, fmt.Errorf("%w: inline state has no segments", fs.ErrInvalid))
	case s.Offset < 0:
		return nil, PathError("open", r.name, fmt.Errorf("%w: a segment at offset %d", ErrCorrupt, s.Offset))
	case s.End() > r.size:
		return nil, tooShort(r.name, r.size, s.End())
	}
	if problem := s.Checksums.Validate(s.Size); problem != nil {
		return nil, PathError("open", r.name, problem)
	}
	return part, nil
}

func tooShort(name string, size, atLeast int64) error {
	return PathError("open", name, fmt.Errorf("%w: the file has %d bytes, a segment of it ends at %d", ErrCorrupt, size, atLeast))
}

func openStateFile(ctx context.Context, open Opener, qualified string, size int64, sums *Checksums) (*StateReader, error) {
	fsys, name, err := open(ctx, qualified)
	if err != nil {
		return nil, err
	}
	src, err := fsys.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	err = nil
	if size >= 0 && src.Size() != size {
		err = PathError("open", name, fmt.Errorf("%w: the file has %d bytes, its handle says %d", ErrCorrupt, src.Size(), size))
	} else if problem := sums.Validate(src.Size()); problem != nil {
		err = PathError("open", name, problem)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return &StateReader{name: name, size: src.Size(), src: src, sums: sums, at: -1}, nil
}

// Size is the number of bytes of the state.
func (r *StateReader) Size() int64 { return r.size }

// Verified reports whether the bytes are checked against checksums on the way. Inline state is covered by the checksum of
// the metadata instead.
func (r *StateReader) Verified() bool { return r.sums != nil }

// Read implements io.Reader.
func (r *StateReader) Read(p []byte) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	n, err := r.readAt(p, r.pos, true)
	r.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (r *StateReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, PathError("read", r.name, fmt.Errorf("%w: negative offset", fs.ErrInvalid))
	}
	return r.readAt(p, off, false)
}

// Seek implements io.Seeker; a target outside of the state is fs.ErrInvalid, as in Flink.
func (r *StateReader) Seek(offset int64, whence int) (int64, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	target := offset
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		target += r.pos
	case io.SeekEnd:
		target += r.size
	default:
		return r.pos, PathError("seek", r.name, fmt.Errorf("%w: whence %d", fs.ErrInvalid, whence))
	}
	switch {
	case r.closed.Load():
		return r.pos, PathError("seek", r.name, fs.ErrClosed)
	case target < 0 || target > r.size:
		return r.pos, PathError("seek", r.name, fmt.Errorf("%w: position %d of %d", fs.ErrInvalid, target, r.size))
	}
	r.pos = target
	return target, nil
}

// Close implements io.Closer; it is idempotent.
func (r *StateReader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	// A Read that is still under way keeps the buffer: what it does to it must not reach another reader.
	if r.reading.TryLock() {
		r.releaseChunk()
		r.reading.Unlock()
	}
	if r.src == nil || r.shared {
		return nil
	}
	return r.src.Close()
}

func (r *StateReader) releaseChunk() {
	if r.buffer != nil {
		chunkBuffers.Put(r.buffer)
	}
	r.buffer, r.chunk, r.at = nil, nil, -1
}

// readAt reads as io.ReaderAt does. keep allows it to keep the last chunk for the next call of the one reading goroutine.
func (r *StateReader) readAt(p []byte, off int64, keep bool) (int, error) {
	switch {
	case r.closed.Load():
		return 0, PathError("read", r.name, fs.ErrClosed)
	case len(p) == 0:
		return 0, nil
	case off >= r.size:
		return 0, io.EOF
	case r.src == nil:
		return bytes.NewReader(r.data).ReadAt(p, off)
	case r.sums == nil:
		return r.readUnverified(p, off)
	}
	total := 0
	for total < len(p) && off < r.size {
		n, err := r.readChunk(p[total:], off, keep)
		total += n
		off += int64(n)
		if err != nil {
			return total, err
		}
	}
	if total < len(p) {
		return total, io.EOF
	}
	return total, nil
}

// readUnverified reads from a file without checksums, whose length is all that can be checked.
func (r *StateReader) readUnverified(p []byte, off int64) (int, error) {
	want := p[:min(int64(len(p)), r.size-off)]
	n, err := r.src.ReadAt(want, r.base+off)
	if end := off + int64(n); errors.Is(err, io.EOF) && end < r.size {
		err = PathError("read", r.name, fmt.Errorf("%w: the file ends at offset %d of %d", ErrCorrupt, r.base+end, r.base+r.size))
	} else if n == len(want) {
		err = nil
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// readChunk copies from the one chunk that holds off.
func (r *StateReader) readChunk(p []byte, off int64, keep bool) (int, error) {
	chunkSize := int64(r.sums.ChunkSize)
	start := off - off%chunkSize
	length := min(chunkSize, r.size-start)
	if keep && r.at == start {
		return copy(p, r.chunk[off-start:]), nil
	}
	if off == start && int64(len(p)) >= length {
		if err := r.loadChunk(p[:length], start); err != nil {
			return 0, err
		}
		return int(length), nil
	}
	buffer, pooled := r.chunkBuffer(int(length), keep)
	if !keep && pooled != nil {
		defer chunkBuffers.Put(pooled)
	}
	if keep {
		r.at = -1
	}
	if err := r.loadChunk(buffer, start); err != nil {
		return 0, err
	}
	if keep {
		r.chunk, r.at = buffer, start
	}
	return copy(p, buffer[off-start:]), nil
}

// chunkBuffer returns a buffer of length bytes. Foreign chunk sizes may be larger than the pooled buffers.
func (r *StateReader) chunkBuffer(length int, keep bool) ([]byte, *[]byte) {
	if length > ChecksumChunk {
		return make([]byte, length), nil
	}
	if keep {
		if r.buffer == nil {
			r.buffer = chunkBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
		}
		return (*r.buffer)[:length], nil
	}
	pooled := chunkBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	return (*pooled)[:length], pooled
}

// loadChunk fills p with the whole chunk at start and verifies it; after a failure p holds none of its bytes.
func (r *StateReader) loadChunk(p []byte, start int64) error {
	n, err := r.src.ReadAt(p, r.base+start)
	if n == len(p) {
		if CRC32C(p) == r.sums.Sums[start/int64(r.sums.ChunkSize)] {
			return nil
		}
		err = PathError("read", r.name, fmt.Errorf("%w: the checksum of the chunk at offset %d does not match", ErrCorrupt, r.base+start))
	} else if errors.Is(err, io.EOF) {
		err = PathError("read", r.name, fmt.Errorf("%w: the file ends in the chunk at offset %d", ErrCorrupt, r.base+start))
	}
	clear(p)
	return err
}
