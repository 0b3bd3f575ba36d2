package pipeline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// fakes are a NameNode and DataNodes for answers that real ones cannot be made to give. The first DataNode of a pipeline answers
// for all of them.
type fakes struct {
	t    testing.TB
	mu   sync.Mutex
	log  []string // calls of the NameNode, and stages of pipelines
	data map[uint64][]byte
	// serve are the scripts of pipelines, in order of their set-up; after the last one they are good.
	serve []func(*session)

	nodes      []*wire.DatanodeInfo
	perBlock   int
	nextBlock  uint64
	stamp      uint64
	incomplete int // how often complete says no
	spare      *wire.DatanodeInfo
}

func newFakes(t testing.TB, nodes, perBlock int) *fakes {
	f := &fakes{t: t, data: make(map[uint64][]byte), perBlock: perBlock, nextBlock: 100, stamp: 1000}
	for i := range nodes {
		f.nodes = append(f.nodes, f.listen(i))
	}
	return f
}

func (f *fakes) listen(i int) *wire.DatanodeInfo {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.handle(c)
		}
	}()
	port, _ := l.Addr().(*net.TCPAddr)
	n := node(i)
	n.Id.XferPort = proto.Uint32(uint32(port.Port))
	return n
}

func (f *fakes) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fakes) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}

// session is one connection to a DataNode that writes a block.
type session struct {
	net.Conn
	r       *bufio.Reader
	f       *fakes
	request *wire.OpWriteBlock
	block   uint64
}

func (f *fakes) handle(c net.Conn) {
	defer c.Close() //nolint:errcheck // the client may have closed it
	r := bufio.NewReader(c)
	head := make([]byte, 3)
	if _, err := io.ReadFull(r, head); err != nil {
		return
	}
	op, _, err := wire.CutOp(head)
	if err != nil {
		return
	}
	if op == wire.OpCodeTransferBlock {
		var m wire.OpTransferBlock
		if wire.ReadDelimited(r, 1<<20, &m) == nil {
			f.say("transfer %d bytes", m.GetHeader().GetBaseHeader().GetBlock().GetNumBytes())
			s := &session{Conn: c, r: r, f: f}
			s.answer(wire.Status_SUCCESS, "")
		}
		return
	}
	var m wire.OpWriteBlock
	if wire.ReadDelimited(r, 1<<20, &m) != nil {
		return
	}
	s := &session{Conn: c, r: r, f: f, request: &m, block: m.GetHeader().GetBaseHeader().GetBlock().GetBlockId()}
	f.say("%v nodes=%d min=%d max=%d", m.GetStage(), m.GetPipelineSize(), m.GetMinBytesRcvd(), m.GetMaxBytesRcvd())
	f.mu.Lock()
	script := (*session).good
	if len(f.serve) > 0 {
		script, f.serve = f.serve[0], f.serve[1:]
	}
	f.mu.Unlock()
	script(s)
}

func (s *session) answer(status wire.Status, firstBadLink string) {
	b, err := wire.AppendDelimited(nil, &wire.BlockOpResponse{Status: status.Enum(), FirstBadLink: &firstBadLink})
	if err == nil {
		_, _ = s.Write(b)
	}
}

// packet reads one and keeps its data.
func (s *session) packet() (wire.PacketHeader, bool) {
	prefix := make([]byte, wire.PacketPrefixSize)
	if _, err := io.ReadFull(s.r, prefix); err != nil {
		return wire.PacketHeader{}, false
	}
	head, payload, err := wire.ParsePacketPrefix(prefix)
	if err != nil {
		return wire.PacketHeader{}, false
	}
	rest := make([]byte, head+payload)
	if _, err := io.ReadFull(s.r, rest); err != nil {
		return wire.PacketHeader{}, false
	}
	h, err := wire.ParsePacketHeader(rest[:head], payload)
	if err != nil {
		return h, false
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	have := s.f.data[s.block]
	if h.Seqno >= 0 && int(h.Offset) <= len(have) {
		s.f.data[s.block] = append(have[:h.Offset:h.Offset], rest[len(rest)-h.DataLen:]...)
	}
	return h, true
}

func (s *session) ack(seqno int64, replies ...wire.Status) {
	if replies == nil {
		for range s.request.GetPipelineSize() {
			replies = append(replies, wire.Status_SUCCESS)
		}
	}
	_, _ = s.Write(wire.AppendPipelineAck(nil, seqno, replies...))
}

// good acknowledges everything.
func (s *session) good() {
	s.answer(wire.Status_SUCCESS, "")
	if s.request.GetStage() == wire.OpWriteBlock_PIPELINE_CLOSE_RECOVERY {
		return
	}
	s.acknowledge(1 << 30)
}

// acknowledge does so for that many packets, or until the last of the block.
func (s *session) acknowledge(packets int) {
	for range packets {
		h, ok := s.packet()
		if !ok {
			return
		}
		s.ack(h.Seqno)
		if h.Last {
			return
		}
	}
}

func (f *fakes) Name() string { return "client" }

func (f *fakes) located(nodes []*wire.DatanodeInfo) *wire.LocatedBlock {
	return &wire.LocatedBlock{
		B:      &wire.ExtendedBlock{PoolId: proto.String("pool"), BlockId: &f.nextBlock, GenerationStamp: proto.Uint64(f.stamp)},
		Offset: proto.Uint64(0), Corrupt: proto.Bool(false), Locs: nodes, BlockToken: &wire.Token{Identifier: []byte{}, Password: []byte{}, Kind: proto.String(""), Service: proto.String("")},
	}
}

func (f *fakes) AddBlock(_ context.Context, _ namenode.File, previous *wire.ExtendedBlock, p namenode.Placement) (*wire.LocatedBlock, error) {
	f.say("addBlock after %d bytes, without %d", previous.GetNumBytes(), len(p.Exclude))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextBlock++
	var nodes []*wire.DatanodeInfo
	for _, n := range f.nodes {
		excluded := false
		for _, e := range p.Exclude {
			excluded = excluded || sameNode(e, n)
		}
		if !excluded && len(nodes) < f.perBlock {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, io.ErrNoProgress
	}
	located := f.located(nodes)
	id := f.nextBlock
	located.B.BlockId = &id
	return located, nil
}

func (f *fakes) AbandonBlock(context.Context, namenode.File, *wire.ExtendedBlock) error {
	f.say("abandonBlock")
	return nil
}

func (f *fakes) GetAdditionalDatanode(
	_ context.Context, _ namenode.File, b *wire.ExtendedBlock, existing []*wire.DatanodeInfo, _ []string, exclude []*wire.DatanodeInfo, n uint32,
) (*wire.LocatedBlock, error) {
	f.say("getAdditionalDatanode %d beside %d, without %d", n, len(existing), len(exclude))
	if f.spare == nil {
		return nil, io.ErrNoProgress
	}
	located := f.located(append(append([]*wire.DatanodeInfo(nil), existing...), f.spare))
	located.B = b
	return located, nil
}

func (f *fakes) UpdateBlockForPipeline(_ context.Context, b *wire.ExtendedBlock) (*wire.LocatedBlock, error) {
	f.say("updateBlockForPipeline")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stamp++
	located := f.located(nil)
	located.B = &wire.ExtendedBlock{PoolId: b.PoolId, BlockId: b.BlockId, GenerationStamp: proto.Uint64(f.stamp)}
	return located, nil
}

func (f *fakes) UpdatePipeline(_ context.Context, before, after *wire.ExtendedBlock, nodes []*wire.DatanodeID, _ []string) error {
	f.say("updatePipeline to %d nodes with %d bytes, %v", len(nodes), after.GetNumBytes(), after.GetGenerationStamp() > before.GetGenerationStamp())
	return nil
}

func (f *fakes) Fsync(_ context.Context, _ namenode.File, length int64) error {
	f.say("fsync %d", length)
	return nil
}

func (f *fakes) Complete(_ context.Context, _ namenode.File, last *wire.ExtendedBlock) (bool, error) {
	f.say("complete %d", last.GetNumBytes())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.incomplete--
	return f.incomplete < 0, nil
}

func (f *fakes) writer(o Options) *Writer {
	f.t.Helper()
	o.NameNode, o.Replication, o.BlockSize, o.PacketSize = f, f.perBlock, 4096, 1024
	if o.Dialer == nil {
		o.Dialer = datanode.NewDialer(datanode.Options{Timeout: 30 * time.Second})
	}
	w, err := New(f.t.Context(), namenode.File{Path: "/file", ID: 1}, o)
	require.NoError(f.t, err)
	f.t.Cleanup(w.Abort)
	return w
}

// bytes are those of all blocks that were not abandoned before they held anything.
func (f *fakes) bytes() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []byte
	for id := range f.nextBlock + 1 {
		all = append(all, f.data[id]...)
	}
	return all
}
