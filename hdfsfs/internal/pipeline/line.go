package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// line is a pipeline that is set up: a connection to the first of its nodes.
type line struct {
	members
	conn     *datanode.Conn
	unwatch  func() bool
	block    *wire.ExtendedBlock // with its present generation stamp
	acks     chan struct{}       // closed when the reader of acknowledgements has ended
	sentAt   time.Time           // of the streamer
	heard    bool                // somebody reads the acknowledgements; of the streamer
	slow     []int               // how often in a row a node has said that it is slow; of the reader
	stage    wire.OpWriteBlock_Stage
	token    *wire.Token
	finished bool // all nodes have acknowledged the last packet; guarded by Writer.mu
	// confirmed: the nodes have answered that the pipeline stands. A new block's packets are sent before. Guarded by Writer.mu.
	confirmed bool
}

// fault is why the present pipeline cannot go on.
type fault struct {
	verdict
	err error
}

// setUp asks the first node to set up a pipeline for a block, and does not wait for the answer.
func (w *Writer) setUp(m members, block *wire.ExtendedBlock, token *wire.Token, stage wire.OpWriteBlock_Stage, latest uint64) (*line, error) {
	conn, err := w.o.Dialer.Connect(w.ctx, m.nodes[0], token)
	if err != nil {
		return nil, err
	}
	l := &line{
		members: m, conn: conn, block: block, acks: make(chan struct{}), stage: stage, token: token, slow: make([]int, len(m.nodes)),
		unwatch: context.AfterFunc(w.ctx, func() { _ = conn.Close() }), sentAt: time.Now(),
	}
	w.mu.Lock()
	acked, reached := w.acked, w.reached
	w.mu.Unlock()
	if stage == wire.OpWriteBlock_PIPELINE_SETUP_CREATE {
		acked, reached = 0, 0
	}
	request := &wire.OpWriteBlock{
		Header: w.header(block, token), Targets: m.nodes[1:], Stage: stage.Enum(), PipelineSize: proto.Uint32(uint32(len(m.nodes))),
		MinBytesRcvd: proto.Uint64(uint64(acked)), MaxBytesRcvd: proto.Uint64(uint64(reached)), LatestGenerationStamp: &latest,
		RequestedChecksum: &wire.Checksum{Type: w.o.Checksum.Enum(), BytesPerChecksum: proto.Uint32(uint32(w.g.chunk))},
		StorageType:       m.types[0].Enum(), TargetStorageTypes: m.types[1:],
	}
	if m.storageIDs != nil {
		request.StorageId, request.TargetStorageIds = &m.storageIDs[0], m.storageIDs[1:]
	}
	err = conn.SetWriteDeadline(time.Now().Add(w.o.Dialer.WriteTimeout()))
	if err == nil {
		err = conn.Request(wire.OpCodeWriteBlock, request)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (w *Writer) header(block *wire.ExtendedBlock, token *wire.Token) *wire.ClientOperationHeader {
	return &wire.ClientOperationHeader{
		BaseHeader: &wire.BaseHeader{Block: block, Token: token}, ClientName: proto.String(w.o.NameNode.Name()),
	}
}

func (l *line) close() {
	l.unwatch()
	_ = l.conn.Close()
}

// extension is how much longer each node waits than the one behind it, and the client than all of them: so whoever is in front
// of a node that hangs says so before anybody blames the wrong one. It is HdfsConstants.READ_TIMEOUT_EXTENSION of Hadoop.
const extension = 5 * time.Second

// patience is how long the nodes may take to answer.
func (w *Writer) patience(nodes int) time.Duration {
	return w.o.Dialer.Timeout() + time.Duration(nodes)*w.extension
}

// writePatience is how long they may take to accept what is sent.
func (w *Writer) writePatience(nodes int) time.Duration {
	return w.o.Dialer.WriteTimeout() + time.Duration(nodes)*w.extension
}

// response waits for the answer to the set-up of a pipeline. A failure comes with the node to blame.
func (w *Writer) response(l *line) (verdict, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(w.patience(len(l.nodes)))); err != nil {
		return verdict{bad: 0}, err
	}
	answer, err := l.conn.Response()
	if err == nil {
		return verdict{ok: true}, nil
	}
	addresses := make([]string, len(l.nodes))
	for i, node := range l.nodes {
		addresses[i] = fmt.Sprintf("%s:%d", node.GetId().GetIpAddr(), node.GetId().GetXferPort())
	}
	return verdict{bad: blamed(answer.GetFirstBadLink(), addresses), restart: answer.GetStatus() == wire.Status_OOB_RESTART}, err
}

// slowAcks is after how many acknowledgements in a row with the mark "slow" a node counts as bad
// (dfs.client.mark.slownode.as.badnode.threshold).
const slowAcks = 10

// acknowledge reads what the nodes of a pipeline say, until it is finished or one of them fails.
func (w *Writer) acknowledge(l *line) {
	defer close(l.acks)
	if l.stage == wire.OpWriteBlock_PIPELINE_SETUP_CREATE {
		if v, err := w.response(l); err != nil {
			w.blame(l, v, err)
			return
		}
		w.mu.Lock()
		l.confirmed = true
		w.mu.Unlock()
	}
	var a wire.PipelineAck
	for {
		err := w.hear(l)
		if err == nil {
			err = a.Read(l.conn.Reader)
		}
		if err != nil {
			w.blame(l, verdict{bad: 0}, fmt.Errorf("no acknowledgement from DataNode %s: %w", l.conn.Node, err))
			return
		}
		if v := judge(&a, len(l.nodes)); !v.ok {
			w.blame(l, v, fmt.Errorf("DataNode %s: %v", w.o.Dialer.Address(l.nodes[v.bad]), &a))
			return
		}
		if slow := l.slowNode(&a); slow >= 0 && len(l.nodes) > 1 {
			w.blame(l, verdict{bad: slow}, fmt.Errorf("DataNode %s is slow", w.o.Dialer.Address(l.nodes[slow])))
			return
		}
		if a.Seqno == wire.HeartbeatSeqno {
			continue
		}
		finished, err := w.pop(l, a.Seqno)
		if err != nil {
			w.blame(l, verdict{bad: 0}, err)
			return
		}
		if finished {
			return
		}
	}
}

// slowNode counts the marks of an acknowledgement.
func (l *line) slowNode(a *wire.PipelineAck) int {
	for i := range min(a.Len(), len(l.slow)) {
		if !a.Slow(i) {
			l.slow[i] = 0
			continue
		}
		if l.slow[i]++; l.slow[i] >= slowAcks {
			return i
		}
	}
	return -1
}

var errOutOfOrder = errors.New("acknowledgement of a packet that was not waited for")

// pop takes the first packet off, which all nodes have acknowledged.
func (w *Writer) pop(l *line, seqno int64) (finished bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != l || w.sent == 0 || w.packets[0].seqno != seqno {
		return false, fmt.Errorf("DataNode %s: %w", l.conn.Node, errOutOfOrder)
	}
	k := w.packets[0]
	w.packets[0] = nil
	w.packets = w.packets[1:]
	w.sent--
	w.acked = max(w.acked, k.end())
	w.progressed()
	finished = k.last
	if finished {
		w.finish(l)
	}
	w.recycle(k)
	w.popped()
	if w.sent == 0 {
		signal(w.toStreamer) // a last packet may be waiting for this
	}
	return finished, nil
}

// progressed forgets the faults before an acknowledgement. It needs the lock.
func (w *Writer) progressed() {
	w.recoveries, w.setups, w.trouble, w.pardoned, w.last = 0, 0, time.Time{}, false, nil
}

// finish notes that a block is complete. It needs the lock.
func (w *Writer) finish(l *line) {
	l.finished = true
	w.previous = namenode.WithLength(l.block, w.acked)
	w.replicas = min(w.replicas, len(l.nodes))
	w.acked, w.reached, w.flushed, w.persist = 0, 0, false, false
	w.line, w.fault = nil, nil
	l.close()
}

// blame notes that a pipeline cannot go on, unless that is known already.
func (w *Writer) blame(l *line, v verdict, err error) {
	w.mu.Lock()
	if w.line == l && w.fault == nil && !l.finished && w.ctx.Err() == nil {
		w.fault, w.last = &fault{v, err}, err
	}
	w.mu.Unlock()
	_ = l.conn.Close() // a Write that hangs has to end
	signal(w.toStreamer)
}
