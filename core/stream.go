package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// maxCreateAttempts is how many random names are tried for a new state file, as in Flink; a further one only after a name
// turned out to be taken.
const maxCreateAttempts = 10

// streamConfig is what all state streams of one directory share.
type streamConfig struct {
	fsys      FileSystem
	dir       string // may hold an entropy marker
	qualified string // dir, qualified
	relative  bool
	threshold int
	buffers   *bufferPool
	create    CreateOptions
	newUUID   func() (uuid.UUID, error)
	// segments, for states that are packed, makes the segment of one; else nil.
	segments func(ctx context.Context) (*segmentWriter, error)
}

// StateStream writes one state. State of at most the inline threshold touches no storage; more goes to one new file under a
// fresh random name, which is created when the first byte beyond the buffer arrives. The directory must exist.
//
// A stream has two endings and takes exactly one. CloseAndGetHandle keeps the state; Close discards it, and may always be
// deferred: after a successful CloseAndGetHandle it does nothing. The first outcome is final. After a failed call the state
// is lost: every later Write, Flush, Sync and CloseAndGetHandle fails with the same error.
//
// Writing is for one goroutine. Close may be called from any goroutine at any time; it breaks a call that hangs in the file
// system. The context given when the stream was made governs it: once it has ended, every call but Close fails.
//
// The rules are Flink's (FsCheckpointStreamFactory.FsCheckpointStateOutputStream), except that a state of exactly the
// threshold is inline whatever the sizes of its writes, Sync works before a file exists, and a stream that was closed
// reports it on every call.
type StateStream struct {
	cfg *streamConfig
	ctx context.Context //nolint:containedctx // the context given at creation governs the stream; nil after the end

	closing atomic.Bool                        // set by Close before it waits for mu
	cancel  atomic.Pointer[context.CancelFunc] // of the file's context, once there is one

	mu      sync.Mutex
	buffer  *[]byte        // pooled; its length is the buffered bytes; nil after the end
	size    int64          // bytes accepted
	writer  Writer         // nil before the first spill
	name    string         // of the file, base name
	path    string         // of the file on the file system
	segment *SegmentHandle // of a packed state
	doubt   bool           // creating path failed in a way that may have made it all the same
	sums    chunkSummer
	failed  error // the first failure
	ended   atomic.Bool
	inline  BytesHandle // part of the stream, to save an allocation
}

func newStateStream(ctx context.Context, cfg *streamConfig) *StateStream {
	return &StateStream{cfg: cfg, ctx: ctx, buffer: cfg.buffers.get()}
}

// Write implements io.Writer. It never keeps p.
func (s *StateStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("write"); err != nil {
		return 0, err
	}
	buffer := *s.buffer
	if len(p) <= cap(buffer)-len(buffer) {
		*s.buffer = append(buffer, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	return s.writeBeyondBuffer(p)
}

// writeBeyondBuffer writes a p that does not fit into the rest of the buffer.
func (s *StateStream) writeBeyondBuffer(p []byte) (int, error) {
	buffer := *s.buffer
	written := 0
	if len(p) < cap(buffer) {
		written = copy(buffer[len(buffer):cap(buffer)], p)
		*s.buffer = buffer[:cap(buffer)]
		s.size += int64(written)
	}
	if err := s.spill(); err != nil {
		return written, err
	}
	rest := p[written:]
	if len(rest) < cap(buffer) {
		*s.buffer = append(*s.buffer, rest...)
	} else if err := s.toFile(rest); err != nil {
		return written, err
	}
	s.size += int64(len(rest))
	return len(p), nil
}

// WriteByte implements io.ByteWriter.
func (s *StateStream) WriteByte(c byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("write"); err != nil {
		return err
	}
	if len(*s.buffer) == cap(*s.buffer) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	*s.buffer = append(*s.buffer, c)
	s.size++
	return nil
}

// Pos is the number of bytes accepted so far, for the writing goroutine; it keeps its last value after a failure and after
// the stream has ended.
func (s *StateStream) Pos() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Flush hands buffered bytes to the file system if the state is above the threshold or already in a file; below, it does
// nothing. It promises no durability.
func (s *StateStream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("flush"); err != nil {
		return err
	}
	return s.flush()
}

func (s *StateStream) flush() error {
	if s.inlined() {
		return nil
	}
	return s.spill()
}

// inlined reports whether the state, as it is now, needs no file.
func (s *StateStream) inlined() bool { return s.writer == nil && s.size <= int64(s.cfg.threshold) }

// Sync is Flush and then makes what is in the file durable. State that is still inline needs none: it becomes durable with
// the checkpoint's metadata. Where the file system does not declare the capability, the error is errors.ErrUnsupported and
// the stream goes on.
func (s *StateStream) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("sync"); err != nil {
		return err
	}
	if err := s.flush(); err != nil || s.writer == nil {
		return err
	}
	err := s.writer.Sync()
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return s.fail(err)
}

// IsClosed reports whether the stream has ended, by either ending. It never blocks.
func (s *StateStream) IsClosed() bool {
	return s.ended.Load() || s.closing.Load()
}

// CloseAndGetHandle ends the stream and keeps the state. It returns a nil handle if nothing was written, a *BytesHandle for
// state of at most the threshold, else a *RelativeFileHandle (exclusive state) or a *FileHandle (shared and task-owned state)
// whose file is closed, has the durability of the storage and exactly the recorded length. For a stream of a [Pack] it is a
// *SegmentHandle, which names no file and is not durable before Pack.Commit. When it fails, because of an
// earlier failure too, the file is removed, and the error names it if that was not possible either.
func (s *StateStream) CloseAndGetHandle() (StreamHandle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.usable("close")
	switch {
	case err != nil && (s.failed == nil || s.ended.Load()):
		return nil, err
	case err != nil:
		return nil, errors.Join(err, s.discard())
	case s.inlined():
		return s.endInline()
	}
	return s.endFile()
}

func (s *StateStream) endInline() (StreamHandle, error) {
	defer s.end()
	if len(*s.buffer) == 0 {
		return nil, nil //nolint:nilnil // "no state" is a nil handle throughout, as in Flink
	}
	id, err := s.cfg.newUUID()
	if err != nil {
		return nil, s.fail(PathError("close", s.cfg.dir, err))
	}
	s.inline.Name = inlineName(s.cfg.qualified, id)
	s.inline.Data = append([]byte(nil), *s.buffer...)
	return &s.inline, nil
}

func (s *StateStream) endFile() (StreamHandle, error) {
	err := s.spill()
	if err == nil {
		err = s.fail(s.writer.Close())
	}
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	handle := s.fileHandle()
	s.end()
	return handle, nil
}

func (s *StateStream) fileHandle() StreamHandle {
	sums := s.sums.finish()
	if s.segment != nil {
		s.segment.Checksums = sums
		return s.segment
	}
	if s.cfg.relative {
		return &RelativeFileHandle{Dir: s.cfg.qualified, Name: s.name, Size: s.size, Checksums: sums}
	}
	return &FileHandle{Path: Qualify(s.cfg.fsys.URI(), s.path), Size: s.size, Checksums: sums}
}

// Close ends the stream and discards the state, its file included. After another ending it does nothing and returns nil. The
// error names a file that could not be removed; a later sweep of the job directory finds it.
func (s *StateStream) Close() error {
	s.closing.Store(true)
	if cancel := s.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return nil
	}
	return s.discard()
}

// discard ends the stream and removes its file.
func (s *StateStream) discard() error {
	defer s.end()
	switch {
	case s.writer != nil:
		if err := s.writer.Abort(); err != nil {
			return fmt.Errorf("state file left behind: %w", err)
		}
	case s.doubt:
		ctx, cancel := discardContext(s.ctx)
		defer cancel()
		if err := removeFile(ctx, s.cfg.fsys, s.path); err != nil {
			return fmt.Errorf("state file may be left behind: %w", err)
		}
	}
	return nil
}

// end releases what the stream holds. A buffer whose Write failed is not used again: a call that was cut off may still be
// reading it.
func (s *StateStream) end() {
	s.ended.Store(true)
	if s.buffer != nil && s.failed == nil {
		s.cfg.buffers.put(s.buffer)
	}
	s.buffer = nil
	s.ctx = nil // an inline handle keeps the stream in memory, and should not keep this too
	if cancel := s.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

func (s *StateStream) usable(op string) error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.ended.Load() || s.closing.Load():
		return &fs.PathError{Op: op, Path: s.where(), Err: fs.ErrClosed}
	}
	return s.fail(PathError(op, s.where(), s.ctx.Err()))
}

func (s *StateStream) where() string {
	if s.path != "" {
		return s.path
	}
	return s.cfg.dir
}

// fail remembers the first error. A call that Close broke fails because of that, whatever the file system calls it.
func (s *StateStream) fail(err error) error {
	if err == nil || s.failed != nil {
		return err
	}
	if s.closing.Load() && errors.Is(err, context.Canceled) {
		err = brokenOff(err)
	}
	s.failed = err
	return err
}

// spill writes the buffer to the file, creating it if there is none.
func (s *StateStream) spill() error {
	if s.writer == nil {
		if err := s.create(); err != nil {
			return s.fail(err)
		}
	}
	buffered := *s.buffer
	if len(buffered) == 0 {
		return nil
	}
	*s.buffer = buffered[:0]
	return s.toFile(buffered)
}

func (s *StateStream) toFile(p []byte) error {
	s.sums.add(p)
	n, err := s.writer.Write(p)
	if err == nil && n < len(p) {
		err = PathError("write", s.path, io.ErrShortWrite)
	}
	return s.fail(err)
}

func (s *StateStream) create() error {
	ctx, cancel := context.WithCancel(s.ctx)
	s.cancel.Store(&cancel)
	// Close may have looked for the cancel function just before it was there.
	if s.closing.Load() {
		cancel()
		return &fs.PathError{Op: "create", Path: s.cfg.dir, Err: fs.ErrClosed}
	}
	if s.cfg.segments != nil {
		w, err := s.cfg.segments(ctx)
		if err != nil {
			cancel()
			return err
		}
		s.writer, s.segment, s.path = w, w.handle, s.cfg.dir
		return nil
	}
	var err error
	for range maxCreateAttempts {
		var id uuid.UUID
		if id, err = s.cfg.newUUID(); err != nil {
			return PathError("create", s.cfg.dir, err)
		}
		var path string
		if path, err = placeFile(ctx, s.cfg.fsys, join(s.cfg.dir, id.String())); err != nil {
			break
		}
		var w Writer
		if w, err = s.cfg.fsys.Create(ctx, path, s.cfg.create); err == nil {
			s.writer, s.name, s.path = w, id.String(), path
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			s.path, s.doubt = path, inDoubt(err)
			break
		}
	}
	cancel()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the checkpoint's directory is gone: it was aborted or disposed of: %w", err)
	}
	return err
}

// inlineName builds the name of inline state in one allocation.
func inlineName(dir string, id uuid.UUID) string {
	const digits = "0123456789abcdef"
	name := make([]byte, 0, 256)
	name = append(name, dir...)
	name = append(name, '/')
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			name = append(name, '-')
		}
		name = append(name, digits[b>>4], digits[b&15])
	}
	return string(name)
}

// bufferPool hands out write buffers of one capacity.
type bufferPool struct {
	size int
	pool sync.Pool
}

func newBufferPool(size int) *bufferPool { return &bufferPool{size: size} }

func (p *bufferPool) get() *[]byte {
	if buffer, ok := p.pool.Get().(*[]byte); ok {
		return buffer
	}
	buffer := make([]byte, 0, p.size)
	return &buffer
}

func (p *bufferPool) put(buffer *[]byte) {
	*buffer = (*buffer)[:0]
	p.pool.Put(buffer)
}
