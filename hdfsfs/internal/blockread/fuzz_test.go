package blockread

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
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

// kept is a connection as said is, with what was said in a file: so it can be read as those of the system are.
type kept struct {
	said
	file *os.File
}

func (k kept) Read(p []byte) (int, error) { return k.file.Read(p) }

// keep writes into a file what is said next.
func keep(t *testing.T, file *os.File, sent []byte) kept {
	require.NoError(t, file.Truncate(0))
	_, err := file.WriteAt(sent, 0)
	require.NoError(t, err)
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	return kept{file: file}
}

// FuzzStream: whatever a DataNode sends for bytes 100..3000 of a block, nothing panics, no more is delivered than was sent, a
// stream that ends well has delivered all, and packets that are taken in together are what they are one by one.
func FuzzStream(f *testing.F) {
	file, err := os.Create(filepath.Join(f.TempDir(), "said"))
	require.NoError(f, err)
	f.Cleanup(func() { _ = file.Close() })
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
			good = binary.BigEndian.AppendUint32(good, crc32.Checksum(part[at:at+512], chunksum.Castagnoli))
		}
		good = append(good, part...)
	}
	f.Add(wire.PacketHeader{Offset: 3072, Seqno: 2, Last: true}.Append(good, 0), uint16(700))
	f.Add(good[:len(good)-1], uint16(1))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint16) {
		single, ended := deliver(t, said{bytes.NewReader(sent)}, int(piece)+1)
		if len(single) > len(sent) {
			t.Fatalf("%d bytes out of %d", len(single), len(sent))
		}
		if ended && len(single) != 2900 {
			t.Fatalf("the stream is done after %d bytes", len(single))
		}
		batched, endedToo := deliver(t, keep(t, file, sent), int(piece)+1)
		if ended != endedToo || !bytes.Equal(single, batched) {
			t.Fatalf("%d bytes (all: %v) one by one, %d (%v) together", len(single), ended, len(batched), endedToo)
		}
	})
}

// deliver returns what a stream delivers in pieces, and whether that is all.
func deliver(t *testing.T, conn net.Conn, piece int) (got []byte, all bool) {
	s := &stream{
		conn: datanode.NewConn(conn, "node"), timeout: 5 * time.Second, pos: 100, end: 3000,
		unwatch: func() bool { return true },
	}
	if s.begin(&wire.LocatedBlock{B: &wire.ExtendedBlock{PoolId: new(string), BlockId: new(uint64), GenerationStamp: new(uint64)}}, "test") != nil {
		return nil, false
	}
	if k, ok := conn.(kept); ok && runtime.GOOS == "linux" {
		var err error
		s.in.raw, err = k.file.SyscallConn()
		require.NoError(t, err)
	}
	p := make([]byte, piece)
	for !s.done() {
		n, err := s.read(p)
		got = append(got, p[:n]...)
		if err != nil {
			return got, false
		}
		if n == 0 {
			t.Fatal("no bytes and no error")
		}
	}
	return got, true
}
