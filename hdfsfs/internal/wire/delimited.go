package wire

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ErrMalformed: the peer does not speak the protocol, or breaks it. The connection is of no further use.
var ErrMalformed = errors.New("malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// AppendDelimited appends m with its length before it:
//
//	┌────────────────┬───────────┐
//	│ length: uvarint│ message   │
//	└────────────────┴───────────┘
func AppendDelimited(b []byte, m proto.Message) ([]byte, error) {
	// The size is computed once: MarshalAppend may use what Size has cached.
	b = protowire.AppendVarint(b, uint64(proto.Size(m)))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
}

// CutDelimited splits b after its first delimited message and returns the bytes of that message, which are part of b.
func CutDelimited(b []byte) (message, rest []byte, err error) {
	length, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return nil, nil, malformed("no length before a message")
	}
	if b = b[n:]; length > uint64(len(b)) {
		return nil, nil, malformed("a message of %d bytes in %d", length, len(b))
	}
	return b[:length], b[length:], nil
}

// Unmarshal decodes one message, which must be complete. Missing required fields are malformed.
func Unmarshal(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return malformed("%s: %v", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// ByteReader is what a delimited message is read from, such as *bufio.Reader.
type ByteReader interface {
	io.Reader
	io.ByteReader
}

// ReadDelimited reads one message of at most limit bytes. The error is io.EOF if the stream ends before the first byte, and
// io.ErrUnexpectedEOF if it ends later.
func ReadDelimited(r ByteReader, limit int, m proto.Message) error {
	b, err := readDelimitedBytes(r, limit, nil)
	if err != nil {
		return err
	}
	return Unmarshal(b, m)
}

// readDelimitedBytes reads into the space of buf where it suffices.
func readDelimitedBytes(r ByteReader, limit int, buf []byte) ([]byte, error) {
	length, err := readLength(r)
	if err != nil {
		return nil, err
	}
	if length > uint64(limit) {
		return nil, malformed("a message of %d bytes, more than %d", length, limit)
	}
	if uint64(cap(buf)) < length {
		buf = make([]byte, length)
	}
	buf = buf[:length]
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf, nil
}

// readLength reads the varint before a message. Five bytes hold every length that a limit allows.
func readLength(r io.ByteReader) (uint64, error) {
	var length uint64
	for i := range 5 {
		b, err := r.ReadByte()
		if err != nil {
			if i > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		length |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return length, nil
		}
	}
	return 0, malformed("the length of a message has more than 5 bytes")
}
