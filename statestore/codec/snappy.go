package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"
)

// xerial's stream. Integers are big-endian.
//
//	offset  size  header, at the beginning of a stream; another stream may follow
//	0       8     82 "SNAPPY" 00
//	8       4     version 1
//	12      4     oldest version that can read it, 1
//
//	0       4     length of a raw snappy block
//	4       …     the block
//
// There are no checksums and no end mark.
const (
	snappyHeaderLen  = 16
	snappyVersion    = 1
	snappyMaxRaw     = 64 << 20
	snappyMaxRatio   = 22 // a copy of 64 bytes takes 3
	snappyLengthSize = 4
)

type snappyFraming struct {
	begun  bool
	header [snappyHeaderLen]byte
}

func (x *snappyFraming) scan(s *source, f *frame) error {
	for {
		f.off = s.pos()
		if err := s.readFull(x.header[:snappyLengthSize]); err != nil {
			if !x.begun {
				return headerError(err, f.off, "the snappy header")
			}
			return err
		}
		if bytes.Equal(x.header[:snappyLengthSize], snappyMagic[:snappyLengthSize]) {
			if err := x.parseHeader(s, f.off); err != nil {
				return err
			}
			x.begun = true
			continue
		}
		if !x.begun {
			return corrupt(f.off, "no snappy header")
		}
		return x.parseBlock(s, f)
	}
}

func (x *snappyFraming) parseHeader(s *source, at int64) error {
	if err := s.readFull(x.header[snappyLengthSize:]); err != nil {
		return headerError(err, at, "the end of a snappy header")
	}
	if !bytes.HasPrefix(x.header[:], snappyMagic) {
		return corrupt(at, "no snappy header")
	}
	if oldest := binary.BigEndian.Uint32(x.header[12:]); oldest != snappyVersion {
		return corrupt(at, "a snappy stream for readers of version %d", oldest)
	}
	return nil
}

func (x *snappyFraming) parseBlock(s *source, f *frame) error {
	n := int64(int32(binary.BigEndian.Uint32(x.header[:])))
	if n == 0 {
		return corrupt(f.off, "a snappy block without bytes")
	}
	err := s.readPayload(f, n)
	if err != nil {
		return headerError(err, f.off, "the end of a snappy block")
	}
	f.rawLen, err = s2.DecodedLen(f.payload)
	if err != nil || f.rawLen > snappyMaxRaw || f.rawLen > len(f.payload)*snappyMaxRatio {
		return corrupt(f.off, "a snappy block of %d bytes that claims to hold %d", n, f.rawLen)
	}
	return nil
}

func (*snappyFraming) decode(dst []byte, f *frame) ([]byte, error) {
	raw, err := s2.Decode(grow(dst, f.rawLen), f.payload)
	if err != nil {
		return nil, corrupt(f.off, "the snappy block does not decompress to its %d bytes", f.rawLen)
	}
	return raw, nil
}

type snappyEncoder struct{}

func (snappyEncoder) encode(dst, raw []byte) ([]byte, error) {
	at := len(dst)
	room := s2.MaxEncodedLen(len(raw))
	dst = slices.Grow(dst, snappyLengthSize+room)[:at+snappyLengthSize]
	block := s2.EncodeSnappy(dst[len(dst):len(dst)+room], raw)
	if len(block) > room {
		return nil, errors.New("snappy block larger than its bound")
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
	return dst[:len(dst)+len(block)], nil
}

func snappyHeader() []byte {
	return append(bytes.Clone(snappyMagic), 0, 0, 0, snappyVersion, 0, 0, 0, snappyVersion)
}
