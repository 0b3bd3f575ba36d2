package blockread

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// said is a connection on which the peer has said something and gone.
type said struct{ *bytes.Reader }

func (said) Write(p []byte) (int, error)      { return len(p), nil }
func (said) Close() error                     { return nil }
func (said) LocalAddr() net.Addr              { return nil }
func (said) RemoteAddr() net.Addr             { return nil }
func (said) SetDeadline(time.Time) error      { return nil }
func (said) SetReadDeadline(time.Time) error  { return nil }
func (said) SetWriteDeadline(time.Time) error { return nil }

// FuzzStream: whatever a DataNode sends for bytes 100..3000 of a block, nothing panics, no more is delivered than was sent, and a
// stream that ends well has delivered all.
func FuzzStream(f *testing.F) {
	data := content(3072)
	var good []byte
	answer := &wire.BlockOpResponse{Status: wire.Status_SUCCESS.Enum(), ReadOpChecksumInfo: &wire.ReadOpChecksumInfo{
		Checksum:    &wire.Checksum{Type: wire.ChecksumType_CHECKSUM_CRC32C.Enum(), BytesPerChecksum: proto.Uint32(512)},
		ChunkOffset: proto.Uint64(0),
	}}
	good, _ = wire.AppendDelimited(good, answer)
	for i := range 2 {
		part := data[i*1536 : (i+1)*1536]
		good = wire.PacketHeader{Offset: int64(i) * 1536, Seqno: int64(i), DataLen: len(part)}.Append(good, 12)
		for at := 0; at < len(part); at += 512 {
			good = binary.BigEndian.AppendUint32(good, crc32.Checksum(part[at:at+512], castagnoli))
		}
		good = append(good, part...)
	}
	f.Add(wire.PacketHeader{Offset: 3072, Seqno: 2, Last: true}.Append(good, 0), uint16(700))
	f.Add(good[:len(good)-1], uint16(1))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint16) {
		conn := said{bytes.NewReader(sent)}
		s := &stream{
			conn: &datanode.Conn{Conn: conn, Reader: bufio.NewReaderSize(conn, 4<<10)}, timeout: time.Second, pos: 100, end: 3000,
			unwatch: func() bool { return true },
		}
		if s.begin(&wire.LocatedBlock{B: &wire.ExtendedBlock{PoolId: new(string), BlockId: new(uint64), GenerationStamp: new(uint64)}}, "test") != nil {
			return
		}
		p := make([]byte, int(piece)+1)
		got := 0
		for !s.done() {
			n, err := s.read(p)
			if got += n; got > len(sent) {
				t.Fatalf("%d bytes out of %d", got, len(sent))
			}
			if err != nil {
				return
			}
		}
		if got != 2900 {
			t.Fatalf("the stream is done after %d bytes", got)
		}
	})
}
