package blockread

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// stream is one answer to READ_BLOCK. All offsets are in the block.
type stream struct {
	conn    *datanode.Conn
	in      intake
	unwatch func() bool
	timeout time.Duration
	block   uint64

	table *crc32.Table
	shape
	pos   int64 // of the next byte for the caller
	end   int64 // of what was asked for
	at    int64 // of the next byte from the connection: the beginning of a chunk
	limit int64 // at never exceeds it: the end of the chunk that end is in
	seqno int64

	left  int    // bytes of the present packet that are still to come
	sums  []byte // their checksums
	space []byte // of sums
	held  []byte // bytes behind pos of a chunk that was verified
	whole []byte // space of a chunk

	// Of a batch.
	headSpace []byte
	pieces    [maxPieces]piece
	parts     [maxParts][]byte

	broken error
}

var streams = sync.Pool{New: func() any { return new(stream) }}

// cachedTries is how many connections that are kept are tried before a new one is made.
const cachedTries = 3

// openStream asks a node for bytes from..to of a block. The stream ends with ctx.
func (c *Client) openStream(ctx context.Context, b *wire.LocatedBlock, node *wire.DatanodeInfo, from, to int64) (*stream, error) {
	address := c.o.Dialer.Address(node)
	for tries := 0; ; tries++ {
		var conn *datanode.Conn
		if tries < cachedTries {
			conn = c.cache.get(address)
		}
		cached := conn != nil
		if !cached {
			var err error
			if conn, err = c.o.Dialer.Connect(ctx, node, b.GetBlockToken()); err != nil {
				return nil, err
			}
		}
		s, _ := streams.Get().(*stream) // the pool has no others
		*s = stream{
			conn: conn, timeout: c.o.Dialer.Timeout(), block: b.GetB().GetBlockId(), pos: from, end: to,
			in: s.in, space: s.space, whole: s.whole, headSpace: s.headSpace,
			unwatch: context.AfterFunc(ctx, func() { _ = conn.Close() }),
		}
		err := s.begin(b, c.o.NameNode.Name())
		if err == nil {
			c.dead.clear(address)
			return s, nil
		}
		s.close()
		var refusal *datanode.NodeError
		if answered := errors.As(err, &refusal) && refusal.Status != wire.Status_SUCCESS; answered || !cached || ctx.Err() != nil {
			return nil, err
		}
	}
}

// begin sends the request and reads the answer.
func (s *stream) begin(b *wire.LocatedBlock, client string) error {
	s.in.begin(s.conn, s.timeout)
	if err := s.conn.SetDeadline(time.Now().Add(s.timeout)); err != nil {
		return &datanode.NodeError{Node: s.conn.Node, Op: "request", Err: err}
	}
	request := &wire.OpReadBlock{
		Header: &wire.ClientOperationHeader{BaseHeader: &wire.BaseHeader{Block: b.GetB(), Token: b.GetBlockToken()}, ClientName: &client},
		Offset: proto.Uint64(uint64(s.pos)), Len: proto.Uint64(uint64(s.end - s.pos)), SendChecksums: proto.Bool(true),
		CachingStrategy: &wire.CachingStrategy{},
	}
	if err := s.conn.Request(wire.OpCodeReadBlock, request); err != nil {
		return err
	}
	answer, err := s.conn.Response()
	if err != nil {
		return err
	}
	s.in.collect()
	return s.take(answer.GetReadOpChecksumInfo())
}

// take checks what a node says of the replica.
func (s *stream) take(info *wire.ReadOpChecksumInfo) error {
	chunk, at := int64(info.GetChecksum().GetBytesPerChecksum()), int64(info.GetChunkOffset()) //nolint:gosec // checked below
	wrong := func(err error) error { return &datanode.NodeError{Node: s.conn.Node, Op: "answer", Err: err} }
	switch info.GetChecksum().GetType() {
	case wire.ChecksumType_CHECKSUM_CRC32C:
		s.table = chunksum.Castagnoli
	case wire.ChecksumType_CHECKSUM_CRC32:
		s.table = crc32.IEEETable
	default:
		if info != nil {
			return wrong(fmt.Errorf("%w: the replica has no checksums (%v)", ErrLayout, info.GetChecksum().GetType()))
		}
	}
	if info == nil || chunk <= 0 || chunk > wire.MaxPacketSize || at > s.pos || at <= s.pos-chunk || at < 0 || at%chunk != 0 {
		return wrong(fmt.Errorf("%w: chunks of %d bytes from %d on, for a read from %d", wire.ErrMalformed, chunk, at, s.pos))
	}
	s.chunk, s.at, s.limit = int(chunk), at, (s.end+chunk-1)/chunk*chunk
	s.in.expect(s.end - s.at)
	return nil
}

// read delivers verified bytes: all of p, or up to the end of the stream, or fewer with an error, after which the stream is of no
// further use. What is in p behind those bytes is not defined.
func (s *stream) read(p []byte) (int, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	p = p[:min(int64(len(p)), s.end-s.pos)]
	// The caller may have rested since the last read: that is no silence of the node.
	if err := s.in.arm(); err != nil {
		s.broken = s.lost(err)
		return 0, s.broken
	}
	n := 0
	for n < len(p) {
		k, err := s.some(p[n:])
		n += k
		s.pos += int64(k)
		if err != nil {
			s.broken = err
			return n, err
		}
	}
	return n, nil
}

// some delivers bytes of one packet, or makes progress towards them.
func (s *stream) some(p []byte) (int, error) {
	if len(s.held) > 0 {
		k := copy(p, s.held)
		s.held = s.held[k:]
		return k, nil
	}
	if s.left == 0 {
		return 0, s.next(false)
	}
	if skip := min(s.pos-s.at, int64(s.left)) / int64(s.chunk) * int64(s.chunk); skip > 0 {
		return 0, s.discard(int(skip))
	}
	if s.pos == s.at && len(p) >= min(s.chunk, s.left) {
		return s.batch(p)
	}
	return 0, s.hold()
}

// verify takes checksums for p, the next bytes of the present packet, and returns how many of its bytes are chunks with the right
// ones.
func (s *stream) verify(p []byte) int {
	n := chunksum.Right(s.sums, p, s.chunk, s.table)
	s.sums = s.sums[chunksum.Size*chunksum.Count(n, s.chunk):]
	s.left -= n
	s.at += int64(n)
	return n
}

// hold reads one chunk of which the caller wants a part.
func (s *stream) hold() error {
	k := min(s.chunk, s.left)
	if cap(s.whole) < k {
		s.whole = make([]byte, s.chunk)
	}
	from := s.at
	if err := s.in.fillOne(s.whole[:k]); err != nil {
		return s.lost(err)
	}
	if s.verify(s.whole[:k]) < k {
		return &checksumError{node: s.conn.Node, block: s.block, offset: s.at}
	}
	s.held = s.whole[min(s.pos-from, int64(k)):k]
	return nil
}

// discard drops whole chunks of the present packet.
func (s *stream) discard(n int) error {
	for dropped := 0; dropped < n; {
		k := min(n-dropped, 4<<10)
		if _, err := s.in.peek(k, k); err != nil {
			return s.lost(err)
		}
		s.in.skip(k)
		dropped += k
	}
	s.sums = s.sums[chunksum.Size*chunksum.Count(n, s.chunk):]
	s.left -= n
	s.at += int64(n)
	return nil
}

// next reads the head and the checksums of a packet, which has no data if it is to be the last.
func (s *stream) next(last bool) error {
	if err := s.in.arm(); err != nil {
		return s.lost(err)
	}
	prefix, err := s.in.peek(wire.PacketPrefixSize, s.ahead(last))
	if err != nil {
		return s.lost(err)
	}
	length, payload, err := wire.ParsePacketPrefix(prefix)
	if err != nil {
		return s.lost(err)
	}
	head, err := s.in.peek(wire.PacketPrefixSize+length, s.ahead(last))
	if err != nil {
		return s.lost(err)
	}
	h, err := wire.ParsePacketHeader(head[wire.PacketPrefixSize:], payload)
	if err != nil {
		return s.lost(err)
	}
	s.in.skip(wire.PacketPrefixSize + length)
	if err := s.check(h, payload, last); err != nil {
		return s.lost(err)
	}
	sums := payload - h.DataLen
	if cap(s.space) < sums {
		s.space = make([]byte, sums)
	}
	s.sums = s.space[:sums]
	if err := s.in.fillOne(s.sums); err != nil {
		return s.lost(err)
	}
	s.prefix, s.shape.data = wire.PacketPrefixSize+length, h.DataLen
	s.left = h.DataLen
	s.seqno++
	return nil
}

// ahead is how much of a packet may be taken in together with the first bytes of it.
func (s *stream) ahead(last bool) int {
	switch {
	case last:
		return 0
	case s.prefix == 0:
		return maxHead / 4
	}
	return min(s.shape.head(s.shape.data), maxHead)
}

// check refuses packets that do not continue the stream.
func (s *stream) check(h wire.PacketHeader, payload int, last bool) error {
	switch {
	case h.Seqno != s.seqno:
		return fmt.Errorf("%w: packet %d instead of %d", wire.ErrMalformed, h.Seqno, s.seqno)
	case h.Last != last:
		return fmt.Errorf("%w: the block ends at %d", wire.ErrMalformed, s.at)
	case last && payload == 0:
		return nil
	case last || h.DataLen == 0 || h.Offset != s.at || s.at%int64(s.chunk) != 0 || s.at+int64(h.DataLen) > s.limit:
		return fmt.Errorf("%w: %d bytes at %d instead of %d, of %d", wire.ErrMalformed, h.DataLen, h.Offset, s.at, s.limit)
	case payload-h.DataLen != (h.DataLen+s.chunk-1)/s.chunk*4:
		return fmt.Errorf("%w: %d bytes of checksums for %d of data", wire.ErrMalformed, payload-h.DataLen, h.DataLen)
	}
	return nil
}

func (s *stream) lost(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &streamError{node: s.conn.Node, err: err}
}

// skipTo moves the position forward.
func (s *stream) skipTo(pos int64) {
	s.held = s.held[min(pos-s.pos, int64(len(s.held))):]
	s.pos = pos
}

// done: all that was asked for is delivered.
func (s *stream) done() bool { return s.pos == s.end && s.broken == nil }

// lastWait is how long the packet may take that ends a stream. The bytes are there; what is at stake is only a connection.
const lastWait = 200 * time.Millisecond

// finish ends a stream that is done, and keeps its connection.
func (c *Client) finish(s *stream) {
	if s.left > 0 || s.at < s.end {
		s.close()
		return
	}
	s.timeout = min(s.timeout, lastWait)
	s.in.limit(s.timeout)
	err := s.next(true)
	if err == nil {
		err = s.conn.SetWriteDeadline(time.Now().Add(s.timeout))
	}
	if err == nil {
		var b []byte
		b, err = wire.AppendDelimited(make([]byte, 0, 8), &wire.ClientReadStatus{Status: wire.Status_CHECKSUM_OK.Enum()})
		if err == nil {
			_, err = s.conn.Write(b)
		}
	}
	if err == nil && len(s.in.early) == 0 && s.in.rest() && s.unwatch() {
		conn := s.conn
		s.recycle()
		c.cache.put(conn)
		return
	}
	s.close()
}

// close breaks a stream off.
func (s *stream) close() {
	s.unwatch()
	_ = s.conn.Close()
	s.recycle()
}

func (s *stream) recycle() {
	const most = 64 << 10 // chunks are small; what a strange one has needed is not kept
	s.in.end(most)
	kept := stream{in: s.in}
	if cap(s.space) <= most {
		kept.space = s.space
	}
	if cap(s.whole) <= most {
		kept.whole = s.whole
	}
	if cap(s.headSpace) <= most {
		kept.headSpace = s.headSpace
	}
	*s = kept
	streams.Put(s)
}
