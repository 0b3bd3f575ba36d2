package pipeline

import (
	"context"
	"net"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// step is what the streamer does next.
type step uint8

const (
	stepIdle step = iota
	stepStop
	stepSend
	stepRepair
)

// batch is how many packets are written at once.
const batch = 8

// stream is the streamer. It ends with the file or with its first error.
func (w *Writer) stream() {
	defer w.drop()
	idle := time.NewTimer(w.heartbeat())
	defer idle.Stop()
	var buffers [batch][]byte
	for {
		next, count := w.next(&buffers)
		var err error
		switch next {
		case stepStop:
			return
		case stepRepair:
			err = w.repair()
		case stepSend:
			err = w.send(buffers[:count])
		case stepIdle:
			idle.Reset(w.heartbeat())
			select {
			case <-w.toStreamer:
			case <-idle.C:
				w.beat()
			case <-w.ctx.Done():
				err = context.Cause(w.ctx)
			}
		}
		if err != nil {
			_ = w.fail(err)
		}
	}
}

// heartbeat is how long a pipeline may be without traffic: DataNodes give up after the timeout.
func (w *Writer) heartbeat() time.Duration { return w.o.Dialer.Timeout() / 2 }

// next decides, and takes packets that can be sent now.
func (w *Writer) next(buffers *[batch][]byte) (step, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return stepStop, 0
	case w.fault != nil:
		return stepRepair, 0
	case w.ended && len(w.packets) == 0:
		return stepStop, 0
	}
	n := 0
	for n < batch && w.sent < len(w.packets) {
		k := w.packets[w.sent]
		if w.sent > 0 && (k.last || w.packets[0].last) {
			break // the last packet of a block waits for those before it, the next block for that one
		}
		buffers[n] = k.bytes(w.g)
		n++
		w.sent++
		w.reached = max(w.reached, k.end())
	}
	if n == 0 {
		return stepIdle, 0
	}
	return stepSend, n
}

// send writes packets to the pipeline, which it sets up if there is none.
func (w *Writer) send(packets [][]byte) error {
	l, err := w.standing()
	if err != nil || l == nil {
		return err
	}
	l.sentAt = time.Now()
	buffers := net.Buffers(packets)
	err = l.conn.SetWriteDeadline(l.sentAt.Add(w.patience(len(l.nodes))))
	if err == nil {
		_, err = buffers.WriteTo(l.conn.Conn)
	}
	if err != nil {
		w.broken(l, err)
	}
	return nil
}

// broken handles a failed write. The reader of acknowledgements may know better which node it was: if one behind the first has
// failed, the first says so before it closes the connection.
func (w *Writer) broken(l *line, err error) {
	select {
	case <-l.acks:
	case <-time.After(time.Second):
	}
	w.blame(l, verdict{bad: 0}, err)
}

// beat keeps a pipeline alive that has nothing to do.
func (w *Writer) beat() {
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l == nil || time.Since(l.sentAt) < w.heartbeat() {
		return
	}
	l.sentAt = time.Now()
	head := wire.PacketHeader{Seqno: wire.HeartbeatSeqno}.Append(nil, 0)
	if _, err := l.conn.Write(head); err != nil {
		w.broken(l, err)
	}
}

// standing returns the present pipeline, or one for a new block. It returns nil if there is something to repair first.
func (w *Writer) standing() (*line, error) {
	w.mu.Lock()
	l, broken := w.line, w.fault != nil
	w.mu.Unlock()
	if l != nil || broken {
		return l, nil
	}
	for {
		located, err := w.addBlock()
		if err != nil {
			return nil, err
		}
		m, block := membersOf(located), located.GetB()
		block.NumBytes = uint64p(w.o.BlockSize) // nodes reserve this much
		l, err := w.setUp(m, block, located.GetBlockToken(), wire.OpWriteBlock_PIPELINE_SETUP_CREATE, 0)
		if err == nil {
			w.begun(l)
			return l, nil
		}
		if err := w.abandon(block, m.nodes[0], err); err != nil {
			return nil, err
		}
	}
}

// begun makes a line the present one.
func (w *Writer) begun(l *line) {
	w.mu.Lock()
	w.line, w.fault, w.persist = l, nil, true
	w.mu.Unlock()
	w.streamer.Go(func() { w.acknowledge(l) })
}

// addBlock asks for a new block; if no node is left, the excluded ones get another chance.
func (w *Writer) addBlock() (*wire.LocatedBlock, error) {
	located, err := w.o.NameNode.AddBlock(w.ctx, w.file, w.previous, namenode.Placement{Exclude: w.excluded})
	if err != nil && len(w.excluded) > 0 && w.ctx.Err() == nil {
		w.excluded = nil
		located, err = w.o.NameNode.AddBlock(w.ctx, w.file, w.previous, namenode.Placement{})
	}
	if err != nil {
		return nil, err
	}
	return located, checkLocated(located)
}

// abandon gives up a block of which nothing is acknowledged, and leaves the node out from now on. It fails with cause if that
// has happened too often.
func (w *Writer) abandon(block *wire.ExtendedBlock, bad *wire.DatanodeInfo, cause error) error {
	w.mu.Lock()
	w.setups++
	tooOften := w.setups > max(w.o.BlockRetries, 0)
	w.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if tooOften {
		return cause
	}
	if err := w.o.NameNode.AbandonBlock(w.ctx, w.file, block); err != nil {
		return err
	}
	w.excluded = append(w.excluded, bad)
	return nil
}

// drop closes the pipeline at the end of the streamer.
func (w *Writer) drop() {
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l != nil {
		l.close()
	}
}
