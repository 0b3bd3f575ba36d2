package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"

	"github.com/pierrec/lz4/v4"
)

// lz4-java's block stream, which is not the LZ4 frame format. Integers are little-endian.
//
//	offset  size  block
//	0       8     "LZ4Block"
//	8       1     token: method (0x10 stored, 0x20 lz4) | level; a block has at most 1 << (10+level) bytes
//	9       4     length of the payload
//	13      4     length of the content
//	17      4     XXH32 of the content, seed 0x9747b28c, its four high bits cleared
//	21      …     payload
//
// A block of method 0x10 with both lengths and the checksum 0 ends a stream; another stream may follow.
const (
	lz4HeaderLen  = 21
	lz4Stored     = 0x10
	lz4Compressed = 0x20
	lz4Seed       = 0x9747b28c
	lz4SumMask    = 0x0fffffff
	lz4MaxBlock   = 32 << 20
	// lz4MaxRatio bounds what a block can expand to: a byte of a length adds 255.
	lz4MaxRatio = 255
)

// lz4Framing remembers whether the last block ended a stream: a file that stops elsewhere was cut.
type lz4Framing struct {
	ended  bool
	header [lz4HeaderLen]byte
}

func (l *lz4Framing) scan(s *source, f *frame) error {
	for {
		f.off = s.pos()
		if err := s.readFull(l.header[:]); err != nil {
			if errors.Is(err, io.EOF) && !l.ended {
				return corrupt(f.off, "the file ends without the block that ends an lz4 stream")
			}
			return err
		}
		end, err := l.parse(s, f)
		if err != nil {
			return err
		}
		l.ended = end
		if !end {
			return nil
		}
	}
}

// parse reads the rest of the block whose header was read.
func (l *lz4Framing) parse(s *source, f *frame) (end bool, err error) {
	h := l.header[:]
	if !bytes.Equal(h[:8], lz4Magic) {
		return false, corrupt(f.off, "no lz4 block begins here")
	}
	token := h[8]
	method := token & 0xf0
	f.stored, f.sum = method == lz4Stored, binary.LittleEndian.Uint32(h[17:])
	n, rawLen := int64(int32(binary.LittleEndian.Uint32(h[9:]))), int64(int32(binary.LittleEndian.Uint32(h[13:])))
	switch {
	case !f.stored && method != lz4Compressed:
		return false, corrupt(f.off, "lz4 method %#x", method)
	case n < 0, rawLen < 0, rawLen > 1<<(10+token&0x0f), (n == 0) != (rawLen == 0), f.stored && n != rawLen:
		return false, corrupt(f.off, "an lz4 block of %d bytes with %d bytes of content, level %d", n, rawLen, token&0x0f)
	case rawLen > n*lz4MaxRatio:
		return false, corrupt(f.off, "an lz4 block of %d bytes cannot hold %d", n, rawLen)
	case n == 0 && f.sum != 0:
		return false, corrupt(f.off, "an empty lz4 block with checksum %08x", f.sum)
	}
	f.rawLen = int(rawLen)
	if n == 0 {
		return true, nil
	}
	return false, s.readPayload(f, n)
}

func (*lz4Framing) decode(dst []byte, f *frame) ([]byte, error) {
	raw := f.payload
	if !f.stored {
		raw = grow(dst, f.rawLen)
		if n, err := lz4.UncompressBlock(f.payload, raw); err != nil || n != f.rawLen {
			return nil, corrupt(f.off, "the lz4 block does not decompress to its %d bytes", f.rawLen)
		}
	}
	if sum := xxh32(raw, lz4Seed) & lz4SumMask; sum != f.sum {
		return nil, corrupt(f.off, "checksum of the lz4 block: stored %08x, computed %08x", f.sum, sum)
	}
	return raw, nil
}

// lz4Level is the level in the tokens of a writer with this block size.
func lz4Level(blockSize int) byte { return byte(max(0, bits.Len(uint(blockSize-1))-10)) }

type lz4Encoder struct {
	c     lz4.Compressor
	level byte
}

func (e *lz4Encoder) encode(dst, raw []byte) ([]byte, error) {
	at := len(dst)
	dst = slices.Grow(dst, lz4HeaderLen+len(raw))
	block := dst[at : at+lz4HeaderLen+len(raw)]
	// One byte less than the content: what does not get smaller is stored, as lz4-java does.
	n, err := e.c.CompressBlock(raw, block[lz4HeaderLen:len(block)-1])
	if err != nil || n == 0 {
		copy(block[lz4HeaderLen:], raw)
		e.store(block)
		return dst[:at+len(block)], nil
	}
	e.header(block, lz4Compressed, n, raw)
	return dst[:at+lz4HeaderLen+n], nil
}

func (*lz4Encoder) gap() int { return lz4HeaderLen }

func (e *lz4Encoder) store(block []byte) {
	raw := block[lz4HeaderLen:]
	e.header(block, lz4Stored, len(raw), raw)
}

// header writes the header of a block whose payload has n bytes.
func (e *lz4Encoder) header(block []byte, method byte, n int, raw []byte) {
	copy(block, lz4Magic)
	block[8] = method | e.level
	binary.LittleEndian.PutUint32(block[9:], uint32(n))
	binary.LittleEndian.PutUint32(block[13:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(block[17:], xxh32(raw, lz4Seed)&lz4SumMask)
}

// lz4End is the block that ends a stream.
func lz4End(blockSize int) []byte {
	end := make([]byte, lz4HeaderLen)
	copy(end, lz4Magic)
	end[8] = lz4Stored | lz4Level(blockSize)
	return end
}
