package codec

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// corruptAt is damage at an offset of the file.
type corruptAt struct {
	off  int64
	text string
}

func (e *corruptAt) Error() string {
	return fmt.Sprintf("%v: at byte %d: %s", core.ErrCorrupt, e.off, e.text)
}
func (e *corruptAt) Unwrap() error { return core.ErrCorrupt }

func corrupt(off int64, format string, args ...any) error {
	return &corruptAt{off: off, text: fmt.Sprintf(format, args...)}
}

// castagnoli is the CRC of Spark's row checksum and of our footer.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// plainChunk is how much is read at once where there are no chunk checksums.
const plainChunk = 256 << 10

// inMemory is a whole file that was read at once.
type inMemory []byte

func (m inMemory) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, m[min(off, int64(len(m))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readAt fills p; a file that is shorter than it said is damage.
func readAt(at io.ReaderAt, p []byte, off int64) error {
	n, err := at.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return corrupt(off+int64(n), "the file ends here, %d bytes too early", len(p)-n)
	}
	return err
}

// source reads the codec's stream of a file front to back, a chunk at a time. With chunk checksums no byte of a chunk is
// given out before the chunk was checked.
type source struct {
	at    io.ReaderAt
	end   int64 // of the codec's stream; our footer may follow
	chunk int64
	sums  []uint32 // a CRC32C for each chunk, or nil

	off  int64 // in the file, of buf[0]
	buf  []byte
	r    int
	hold []byte // what buf is cut from
	keep bool   // content that is given out is not written again
	lent bool   // a part of hold was given out, and is kept
	err  error  // the first failure to read; decoders may have turned it into something else
}

func newSource(at io.ReaderAt, end int64, f *Footer, keep bool) *source {
	s := &source{at: at, end: end, chunk: plainChunk, keep: keep}
	if f != nil {
		s.chunk, s.sums = int64(f.ChunkSize), f.ChunkSums
	}
	return s
}

// pos is the offset in the file of the next byte.
func (s *source) pos() int64       { return s.off + int64(s.r) }
func (s *source) remaining() int64 { return s.end - s.pos() }

// seek continues at an offset of the file.
func (s *source) seek(off int64) { s.off, s.buf, s.r = off, nil, 0 }

// fill makes at least one byte available; io.EOF is the end of the codec's stream.
func (s *source) fill() error {
	if s.r < len(s.buf) {
		return nil
	}
	if s.err != nil {
		return s.err
	}
	at := s.pos()
	if at >= s.end {
		return io.EOF
	}
	first := at - at%s.chunk
	n := int(min(s.chunk, s.end-first))
	var buf []byte
	if all, ok := s.at.(inMemory); ok {
		buf = all[first : first+int64(n)]
	} else {
		if s.lent {
			s.hold, s.lent = nil, false
		}
		s.hold = grow(s.hold, n)
		buf = s.hold
		if s.err = readAt(s.at, buf, first); s.err != nil {
			return s.err
		}
	}
	if s.sums != nil {
		if sum := core.CRC32C(buf); sum != s.sums[first/s.chunk] {
			s.err = corrupt(first, "checksum of the chunk of %d bytes: stored %08x, computed %08x", n, s.sums[first/s.chunk], sum)
			return s.err
		}
	}
	s.off, s.buf, s.r = first, buf, int(at-first)
	return nil
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if err := s.fill(); err != nil {
		return 0, err
	}
	n := copy(p, s.buf[s.r:])
	s.r += n
	return n, nil
}

// readFull fills p. An end in between is damage, an end before the first byte is io.EOF.
func (s *source) readFull(p []byte) error {
	start := s.pos()
	n, err := io.ReadFull(s, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt(start, "%d bytes are missing from the end of the file", len(p)-n)
	}
	return err
}

// readPayload reads the n bytes of f's payload, which were found in its header. It checks n before it allocates. What f stores
// is not copied where content is kept and lies in one chunk.
func (s *source) readPayload(f *frame, n int64) error {
	if n < 0 || n > s.remaining() {
		return corrupt(f.off, "a block of %d bytes where %d are left", n, max(s.remaining(), 0))
	}
	given := f.stored && s.keep
	if given && n <= int64(len(s.buf)-s.r) {
		s.lent = true
		f.payload = s.buf[s.r : s.r+int(n) : s.r+int(n)]
		s.r += int(n)
		return nil
	}
	f.own = grow(f.own, int(n))
	f.payload = f.own
	if given {
		f.own = nil
	}
	if n == 0 {
		return nil
	}
	return s.readFull(f.payload)
}
