package blockread

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// fakeNode is a DataNode that has one replica of each block of a file.
type fakeNode struct {
	t        *testing.T
	listener net.Listener
	info     *wire.DatanodeInfo
	work     sync.WaitGroup

	chunk  int
	kind   wire.ChecksumType
	packet int // bytes of data

	vary    func() int // bytes of data of the next packet; nil is packet
	last    func()     // before the packet that ends a stream; may be nil
	trickle func()     // between pieces of a packet, of 2 KiB; nil sends it at once

	mu     sync.Mutex
	blocks map[uint64][]byte
	conns  map[net.Conn]struct{}
	flip   func(block uint64, offset int64, data []byte) // damages what is sent, after its checksum was made
	status func(request int) wire.Status                 // of the answer; nil is success
	cut    func(sent int) bool                           // closes the connection after so many bytes of data
	stall  func(request int) <-chan struct{}             // waits before the answer

	requests, connections atomic.Int64
	goodEnds              atomic.Int64
}

func newFakeNode(t *testing.T) *fakeNode {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it is
	n := &fakeNode{
		t: t, listener: l, chunk: 512, kind: wire.ChecksumType_CHECKSUM_CRC32C, packet: 64 << 10,
		blocks: map[uint64][]byte{}, conns: map[net.Conn]struct{}{},
		info: &wire.DatanodeInfo{Id: &wire.DatanodeID{
			IpAddr: proto.String("127.0.0.1"), HostName: proto.String("localhost"), DatanodeUuid: proto.String(address.String()),
			XferPort: proto.Uint32(uint32(address.Port)), InfoPort: proto.Uint32(1), IpcPort: proto.Uint32(1),
		}},
	}
	n.work.Go(n.accept)
	t.Cleanup(n.close)
	return n
}

func (n *fakeNode) close() {
	_ = n.listener.Close()
	n.mu.Lock()
	for c := range n.conns {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
}

func (n *fakeNode) address() string { return n.listener.Addr().String() }

func (n *fakeNode) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.connections.Add(1)
		n.mu.Lock()
		n.conns[c] = struct{}{}
		n.mu.Unlock()
		n.work.Go(func() {
			defer func() {
				_ = c.Close()
				n.mu.Lock()
				delete(n.conns, c)
				n.mu.Unlock()
			}()
			r := bufio.NewReader(c)
			for n.serve(c, r) == nil {
				continue
			}
		})
	}
}

var errFake = errors.New("as the test wants")

func (n *fakeNode) serve(c net.Conn, r *bufio.Reader) error {
	head := make([]byte, 3)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	var request wire.OpReadBlock
	if err := wire.ReadDelimited(r, 1<<20, &request); err != nil {
		return err
	}
	number := int(n.requests.Add(1))
	n.mu.Lock()
	data, flip, status, cut, stall := n.blocks[request.GetHeader().GetBaseHeader().GetBlock().GetBlockId()], n.flip, n.status, n.cut, n.stall
	n.mu.Unlock()
	if stall != nil {
		if until := stall(number); until != nil {
			<-until
		}
	}
	answer := &wire.BlockOpResponse{Status: wire.Status_SUCCESS.Enum()}
	if status != nil {
		answer.Status = status(number).Enum()
	}
	from, to := int(request.GetOffset()), int(request.GetOffset()+request.GetLen())
	if to > len(data) {
		answer.Status = wire.Status_ERROR.Enum()
	}
	at := from / n.chunk * n.chunk
	answer.ReadOpChecksumInfo = &wire.ReadOpChecksumInfo{
		Checksum: &wire.Checksum{Type: n.kind.Enum(), BytesPerChecksum: proto.Uint32(uint32(n.chunk))}, ChunkOffset: proto.Uint64(uint64(at)),
	}
	b, err := wire.AppendDelimited(nil, answer)
	require.NoError(n.t, err)
	if _, err := c.Write(b); err != nil || answer.GetStatus() != wire.Status_SUCCESS {
		return errors.Join(err, errFake)
	}
	if err := n.send(c, request.GetHeader().GetBaseHeader().GetBlock().GetBlockId(), data, at, min((to+n.chunk-1)/n.chunk*n.chunk, len(data)), flip, cut); err != nil {
		return err
	}
	var end wire.ClientReadStatus
	if err := wire.ReadDelimited(r, 1<<10, &end); err != nil {
		return err
	}
	require.Equal(n.t, wire.Status_CHECKSUM_OK, end.GetStatus())
	n.goodEnds.Add(1)
	return nil
}

func (n *fakeNode) send(c net.Conn, id uint64, data []byte, at, to int, flip func(uint64, int64, []byte), cut func(int) bool) error {
	table := crc32.MakeTable(crc32.Castagnoli)
	if n.kind == wire.ChecksumType_CHECKSUM_CRC32 {
		table = crc32.IEEETable
	}
	seqno, sent := int64(0), 0
	for at < to {
		size := n.packet
		if n.vary != nil {
			size = n.vary()
		}
		part := append([]byte(nil), data[at:min(at+size, to)]...)
		var sums []byte
		for i := 0; i < len(part); i += n.chunk {
			sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(part[i:min(i+n.chunk, len(part))], table))
		}
		if flip != nil {
			flip(id, int64(at), part)
		}
		packet := wire.PacketHeader{Offset: int64(at), Seqno: seqno, DataLen: len(part)}.Append(nil, len(sums))
		packet = append(append(packet, sums...), part...)
		if cut != nil && cut(sent+len(part)) {
			_, _ = c.Write(packet[:len(packet)/2])
			return errFake
		}
		for n.trickle != nil && len(packet) > 2<<10 {
			if _, err := c.Write(packet[:2<<10]); err != nil {
				return err
			}
			packet = packet[2<<10:]
			n.trickle()
		}
		if _, err := c.Write(packet); err != nil {
			return err
		}
		at += len(part)
		sent += len(part)
		seqno++
	}
	if n.last != nil {
		n.last()
	}
	_, err := c.Write(wire.PacketHeader{Offset: int64(at), Seqno: seqno, Last: true}.Append(nil, 0))
	return err
}

// set changes what a node does.
func (n *fakeNode) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// fakeNames is a NameNode with one file.
type fakeNames struct {
	mu      sync.Mutex
	blocks  [][]byte
	nodes   func(block int) []*fakeNode
	open    bool // the last block is being written
	calls   int
	id      func(block int) uint64
	reports chan *wire.LocatedBlock
}

func (f *fakeNames) Name() string { return "test" }

func (f *fakeNames) GetBlockLocations(ctx context.Context, _ string, offset, length int64) (*wire.LocatedBlocks, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	found := &wire.LocatedBlocks{UnderConstruction: &f.open, IsLastBlockComplete: proto.Bool(!f.open), FileLength: new(uint64)}
	at := int64(0)
	for i, data := range f.blocks {
		b := &wire.LocatedBlock{
			B: &wire.ExtendedBlock{
				PoolId: proto.String("pool"), BlockId: proto.Uint64(f.id(i)), GenerationStamp: proto.Uint64(1), NumBytes: proto.Uint64(uint64(len(data))),
			},
			Offset: proto.Uint64(uint64(at)), Corrupt: new(bool),
			BlockToken: &wire.Token{Identifier: []byte{}, Password: []byte{}, Kind: new(string), Service: new(string)},
		}
		for _, n := range f.nodes(i) {
			b.Locs = append(b.Locs, n.info)
		}
		last := i == len(f.blocks)-1
		if last {
			found.LastBlock = b
		}
		if last && f.open {
			b.B.NumBytes = proto.Uint64(0)
			break
		}
		if end := at + int64(len(data)); end > offset && at < offset+length {
			found.Blocks = append(found.Blocks, b)
		}
		at += int64(len(data))
	}
	*found.FileLength = uint64(at)
	return found, nil
}

func (f *fakeNames) ReportBadBlocks(_ context.Context, blocks ...*wire.LocatedBlock) error {
	for _, b := range blocks {
		f.reports <- b
	}
	return nil
}

// fake is a file of several blocks on several nodes.
type fake struct {
	*fakeNames
	datanodes []*fakeNode
	content   []byte
	client    *Client
}

const fakeBlock = 300_000 // no multiple of any chunk

func newFake(t *testing.T, nodes, size int, o Options, change ...func(*fakeNode)) *fake {
	f := &fake{fakeNames: &fakeNames{reports: make(chan *wire.LocatedBlock, 100)}, content: make([]byte, size)}
	random := rand.New(rand.NewPCG(uint64(size), 1))
	for i := range f.content {
		f.content[i] = byte(random.Uint32())
	}
	for range nodes {
		n := newFakeNode(t)
		for _, c := range change {
			c(n)
		}
		f.datanodes = append(f.datanodes, n)
	}
	f.id = func(block int) uint64 { return uint64(1000 + block) }
	f.nodes = func(int) []*fakeNode { return f.datanodes }
	for at := 0; at < size; at += fakeBlock {
		data := f.content[at:min(at+fakeBlock, size)]
		for _, n := range f.datanodes {
			n.blocks[f.id(len(f.blocks))] = data
		}
		f.blocks = append(f.blocks, data)
	}
	o.NameNode = f.fakeNames
	if o.Dialer == nil {
		o.Dialer = datanode.NewDialer(datanode.Options{Timeout: 5 * time.Second})
	}
	var err error
	f.client, err = New(o)
	require.NoError(t, err)
	t.Cleanup(f.client.Close)
	return f
}

func (f *fake) file(t *testing.T) *File {
	file, err := f.client.Open(t.Context(), "/file", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	require.Equal(t, int64(len(f.content)), file.Size())
	return file
}
