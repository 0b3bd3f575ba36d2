package pipeline

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// fakes are a NameNode and DataNodes for answers that real ones cannot be made to give. The first DataNode of a pipeline answers
// for all of them.
type fakes struct {
	t    testing.TB
	mu   sync.Mutex
	log  []string // calls of the NameNode, and stages of pipelines
	data map[uint64][]byte
	// acked is how much of a block is acknowledged; finished are those whose replicas are final.
	acked    map[uint64]int
	finished map[uint64]bool
	dropped  map[uint64]bool
	// hang are calls that are answered only by the end of their context.
	hang  map[string]bool
	beats int
	// nobody is how often there are no nodes for a block.
	nobody int
	// serve are the scripts of pipelines, in order of their set-up; after the last one they are good.
	serve []func(*session)

	listeners []*net.TCPListener
	running   sync.WaitGroup

	nodes      []*wire.DatanodeInfo
	perBlock   int
	nextBlock  uint64
	stamp      uint64
	incomplete int // how often complete says no
	spare      *wire.DatanodeInfo
}

func newFakes(t testing.TB, nodes, perBlock int) *fakes {
	f := &fakes{t: t, data: make(map[uint64][]byte), acked: make(map[uint64]int), finished: make(map[uint64]bool), dropped: make(map[uint64]bool), hang: make(map[string]bool), perBlock: perBlock, nextBlock: 100, stamp: 1000}
	for i := range nodes {
		f.nodes = append(f.nodes, f.listen(i))
	}
	t.Cleanup(f.close)
	return f
}

// close ends all nodes and waits for them. The writer must have ended.
func (f *fakes) close() {
	for _, l := range f.listeners {
		require.NoError(f.t, l.Close())
	}
	f.listeners = nil
	f.running.Wait()
}

func (f *fakes) listen(i int) *wire.DatanodeInfo {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(f.t, err)
	f.listeners = append(f.listeners, l)
	f.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.running.Go(func() { f.handle(c) })
		}
	})
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
			f.mu.Lock()
			hang, refuse := f.hang["transfer"], f.hang["no transfer"]
			f.mu.Unlock()
			if hang {
				silent(s)
			}
			if refuse {
				s.answer(wire.Status_ERROR, "")
				return
			}
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
	if h.Seqno >= 0 {
		s.store(h, rest[head:])
	} else {
		s.f.mu.Lock()
		s.f.beats++
		s.f.mu.Unlock()
	}
	return h, true
}

// store keeps what a packet holds, as a DataNode would that is strict.
func (s *session) store(h wire.PacketHeader, payload []byte) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	sums, data := payload[:len(payload)-h.DataLen], payload[len(payload)-h.DataLen:]
	have := s.f.data[s.block]
	switch {
	case h.Offset > int64(len(have)):
		s.f.t.Errorf("a packet at %d of a block of %d bytes", h.Offset, len(have))
		return
	case h.DataLen > 0 && h.Offset%512 != 0:
		s.f.t.Errorf("a packet of %d bytes at %d, in the middle of a chunk", h.DataLen, h.Offset)
	case h.Last && (h.DataLen > 0 || h.Offset != int64(len(have)) || s.f.acked[s.block] != len(have)):
		s.f.t.Errorf("the last packet at %d, of %d bytes, %d are acknowledged", h.Offset, len(have), s.f.acked[s.block])
	}
	for i := 0; i*512 < len(data); i++ {
		if binary.BigEndian.Uint32(sums[4*i:]) != crc32.Checksum(data[i*512:min(len(data), (i+1)*512)], chunksum.Castagnoli) {
			s.f.t.Errorf("a wrong checksum of chunk %d at %d", i, h.Offset)
		}
	}
	if h.DataLen > 0 {
		s.f.data[s.block] = append(have[:h.Offset:h.Offset], data...)
	}
}

func (s *session) ack(seqno int64, replies ...wire.Status) {
	if replies == nil {
		for range s.request.GetPipelineSize() {
			replies = append(replies, wire.Status_SUCCESS)
		}
	}
	_, _ = s.Write(wire.AppendPipelineAck(nil, seqno, replies...))
}

// confirm acknowledges a packet, and what is before it.
func (s *session) confirm(h wire.PacketHeader) {
	s.f.mu.Lock()
	s.f.acked[s.block] = max(s.f.acked[s.block], int(h.Offset)+h.DataLen)
	s.f.finished[s.block] = s.f.finished[s.block] || h.Last
	s.f.mu.Unlock()
	s.ack(h.Seqno)
}

// recover checks what a client says of a block whose pipeline it sets up again.
func (s *session) recover() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	have, least, most := uint64(len(s.f.data[s.block])), s.request.GetMinBytesRcvd(), s.request.GetMaxBytesRcvd()
	closing := s.request.GetStage() == wire.OpWriteBlock_PIPELINE_CLOSE_RECOVERY
	if have < least || have > most || closing && have != least || int(least) < s.f.acked[s.block] && !closing {
		s.f.t.Errorf("%v of %d to %d bytes, of %d, acknowledged %d", s.request.GetStage(), least, most, have, s.f.acked[s.block])
	}
	s.f.finished[s.block] = s.f.finished[s.block] || closing
}

// good acknowledges everything.
func (s *session) good() {
	if s.stands() {
		s.acknowledge(1 << 30)
	}
}

// stands answers to the set-up, and reports whether packets follow.
func (s *session) stands() bool {
	if s.request.GetStage() != wire.OpWriteBlock_PIPELINE_SETUP_CREATE {
		s.recover()
	}
	s.answer(wire.Status_SUCCESS, "")
	return s.request.GetStage() != wire.OpWriteBlock_PIPELINE_CLOSE_RECOVERY
}

// acknowledge does so for that many packets, or until the last of the block.
func (s *session) acknowledge(packets int) {
	for range packets {
		h, ok := s.packet()
		if !ok {
			return
		}
		s.confirm(h)
		if h.Last {
			return
		}
	}
}

func (f *fakes) Name() string { return "client" }

// call notes a call of the NameNode, and may make it hang.
func (f *fakes) call(ctx context.Context, method, format string, args ...any) error {
	f.say(method+format, args...)
	f.mu.Lock()
	hang := f.hang[method]
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
	}
	return ctx.Err()
}

// requireFinished checks a block that the client says is at its end. The lock is held.
func (f *fakes) requireFinished(b *wire.ExtendedBlock) {
	if b == nil {
		return
	}
	if id := b.GetBlockId(); !f.finished[id] || int(b.GetNumBytes()) != len(f.data[id]) {
		f.t.Errorf("the end of block %d of %d bytes, which has %d, finished %v", id, b.GetNumBytes(), len(f.data[id]), f.finished[id])
	}
}

func (f *fakes) located(nodes []*wire.DatanodeInfo) *wire.LocatedBlock {
	return &wire.LocatedBlock{
		B:      &wire.ExtendedBlock{PoolId: proto.String("pool"), BlockId: &f.nextBlock, GenerationStamp: proto.Uint64(f.stamp)},
		Offset: proto.Uint64(0), Corrupt: proto.Bool(false), Locs: nodes, BlockToken: &wire.Token{Identifier: []byte{}, Password: []byte{}, Kind: proto.String(""), Service: proto.String("")},
	}
}

func (f *fakes) AddBlock(ctx context.Context, _ namenode.File, previous *wire.ExtendedBlock, p namenode.Placement) (*wire.LocatedBlock, error) {
	if err := f.call(ctx, "addBlock", " after %d bytes, without %d", previous.GetNumBytes(), len(p.Exclude)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requireFinished(previous)
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
	if f.nobody--; len(nodes) == 0 || f.nobody >= 0 {
		return nil, &rpc.ServerError{Class: "java.io.IOException", Message: "File /file could only be written to 0 of the 1 minReplication nodes."}
	}
	located := f.located(nodes)
	id := f.nextBlock
	located.B.BlockId = &id
	return located, nil
}

func (f *fakes) AbandonBlock(ctx context.Context, _ namenode.File, b *wire.ExtendedBlock) error {
	if err := f.call(ctx, "abandonBlock", ""); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.acked[b.GetBlockId()]; n > 0 {
		f.t.Logf("a block of which %d bytes are acknowledged is abandoned", n)
	}
	f.dropped[b.GetBlockId()] = true
	return nil
}

func (f *fakes) GetAdditionalDatanode(
	ctx context.Context, _ namenode.File, b *wire.ExtendedBlock, existing []*wire.DatanodeInfo, _ []string, exclude []*wire.DatanodeInfo, n uint32,
) (*wire.LocatedBlock, error) {
	if err := f.call(ctx, "getAdditionalDatanode", " %d beside %d, without %d", n, len(existing), len(exclude)); err != nil {
		return nil, err
	}
	if f.spare == nil {
		return nil, io.ErrNoProgress
	}
	located := f.located(append(append([]*wire.DatanodeInfo(nil), existing...), f.spare))
	located.B = b
	return located, nil
}

func (f *fakes) UpdateBlockForPipeline(ctx context.Context, b *wire.ExtendedBlock) (*wire.LocatedBlock, error) {
	if err := f.call(ctx, "updateBlockForPipeline", ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stamp++
	located := f.located(nil)
	located.B = &wire.ExtendedBlock{PoolId: b.PoolId, BlockId: b.BlockId, GenerationStamp: proto.Uint64(f.stamp)}
	return located, nil
}

func (f *fakes) UpdatePipeline(ctx context.Context, before, after *wire.ExtendedBlock, nodes []*wire.DatanodeID, _ []string) error {
	return f.call(ctx, "updatePipeline", " to %d nodes with %d bytes, %v", len(nodes), after.GetNumBytes(), after.GetGenerationStamp() > before.GetGenerationStamp())
}

func (f *fakes) Fsync(ctx context.Context, _ namenode.File, length int64) error {
	return f.call(ctx, "fsync", " %d", length)
}

func (f *fakes) Complete(ctx context.Context, _ namenode.File, last *wire.ExtendedBlock) (bool, error) {
	if err := f.call(ctx, "complete", " %d", last.GetNumBytes()); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requireFinished(last)
	f.incomplete--
	return f.incomplete < 0, nil
}

func (f *fakes) writer(o Options) *Writer { return f.writerIn(f.t.Context(), o) }

func (f *fakes) writerIn(ctx context.Context, o Options) *Writer {
	f.t.Helper()
	o.NameNode, o.Replication, o.BlockSize, o.PacketSize = f, f.perBlock, 4096, 1024
	if o.Dialer == nil {
		o.Dialer = datanode.NewDialer(datanode.Options{Timeout: 30 * time.Second})
	}
	w, err := New(ctx, namenode.File{Path: "/file", ID: 1}, o)
	require.NoError(f.t, err)
	f.t.Cleanup(w.Abort)
	return w
}

// bytes are those of all blocks that were not abandoned.
func (f *fakes) bytes() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []byte
	for id := range f.nextBlock + 1 {
		if !f.dropped[id] {
			all = append(all, f.data[id]...)
		}
	}
	return all
}
