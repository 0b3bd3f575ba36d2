package codec

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Our files have a zstd frame for each block of content, all of the same size but the last. Such frames are found by
// the lengths in their blocks' headers alone, and then decoded side by side. (Spark writes one frame without a size.)
//
//	size   frame (RFC 8878), integers little-endian
//	4      28 b5 2f fd
//	1      descriptor: content size flag (2 bits), single segment, 2 bits, checksum, dictionary id flag (2 bits)
//	0…1    window, unless single segment
//	0…4    dictionary id
//	0…8    content size
//	…      blocks: 3 bytes last (1 bit) │ type (2 bits) │ size (21 bits), then size bytes, or 1 if it is run-length encoded
//	0, 4   checksum of the content
const (
	zstdLargestFrame = 8 << 20 // of content; larger frames are decoded as a stream
	zstdHeaderMax    = 18
	zstdMaxBlock     = 128 << 10
	zstdRunLength    = 1
	unknownSize      = -1
)

// zstdFraming decodes the frames of our files. Its decoder's DecodeAll is safe for many goroutines.
type zstdFraming struct {
	limit int // of a frame's content
	d     *zstd.Decoder
}

// newZstdFraming returns nil if s is not to be read by frames.
func newZstdFraming(s *source, workers int) (*zstdFraming, error) {
	if s.sums == nil {
		return nil, nil // not written by us
	}
	if err := s.fill(); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	var h zstd.Header
	rest := s.buf[s.r:]
	if err := h.Decode(rest[:min(len(rest), zstdHeaderMax)]); err != nil || !h.HasFCS || h.FrameContentSize > zstdLargestFrame {
		return nil, nil //nolint:nilerr // the decoder of streams says what is wrong
	}
	limit := int(h.FrameContentSize)
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdMinWindow),
		zstd.WithDecoderMaxMemory(zstdLargestFrame)) // not limit: windows above it, which short frames have, would be refused
	if err != nil {
		return nil, zstdError(s, err)
	}
	return &zstdFraming{limit: limit, d: d}, nil
}

func (z *zstdFraming) scan(s *source, f *frame) error {
	f.off = s.pos()
	f.payload = f.payload[:0]
	if s.remaining() == 0 {
		return io.EOF
	}
	if err := f.take(s, 5); err != nil {
		return err
	}
	if [4]byte(f.payload) != [4]byte(zstdMagic) {
		return corrupt(f.off, "no zstd frame begins here")
	}
	descriptor := f.payload[4]
	rest := [4]int{0, 1, 2, 4}[descriptor&3] + [4]int{0, 2, 4, 8}[descriptor>>6]
	if single := descriptor&0x20 != 0; !single || descriptor>>6 == 0 {
		rest++ // the window, or a content size of one byte
	}
	if err := f.take(s, rest); err != nil {
		return err
	}
	var h zstd.Header
	if err := h.Decode(f.payload); err != nil || h.FrameContentSize > uint64(z.limit) {
		return corrupt(f.off, "a zstd frame that is not as the first one")
	}
	f.rawLen = unknownSize // of short frames
	if h.HasFCS {
		f.rawLen = int(h.FrameContentSize)
	}
	blocks := 0
	for last := false; !last; blocks++ {
		if err := f.take(s, 3); err != nil {
			return err
		}
		b := f.payload[len(f.payload)-3:]
		head := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = head&1 != 0
		size := int(head >> 3)
		if size > zstdMaxBlock {
			return corrupt(f.off, "a zstd block of %d bytes", size)
		}
		if head>>1&3 == zstdRunLength {
			size = 1
		}
		if err := f.take(s, size); err != nil {
			return err
		}
	}
	if f.rawLen > blocks*zstdMaxBlock {
		return corrupt(f.off, "a zstd frame of %d blocks cannot hold %d bytes", blocks, f.rawLen)
	}
	if h.HasCheckSum {
		return f.take(s, 4)
	}
	return nil
}

// take appends the next n bytes to the payload.
func (f *frame) take(s *source, n int) error {
	if int64(n) > s.remaining() {
		return corrupt(f.off, "the file ends within a zstd frame")
	}
	for n > 0 {
		if err := s.fill(); err != nil {
			return err
		}
		part := s.buf[s.r:min(len(s.buf), s.r+n)]
		f.payload = append(f.payload, part...)
		s.r += len(part)
		n -= len(part)
	}
	return nil
}

func (z *zstdFraming) decode(dst []byte, f *frame) ([]byte, error) {
	raw, err := z.d.DecodeAll(f.payload, dst[:0])
	if err != nil || len(raw) > z.limit || f.rawLen != unknownSize && len(raw) != f.rawLen {
		return nil, corrupt(f.off, "the zstd frame does not decompress to its content: %v", err)
	}
	return raw, nil
}
