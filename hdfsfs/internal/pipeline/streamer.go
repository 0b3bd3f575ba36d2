package pipeline

import (
	"fmt"
	"time"

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

// maxBatch is how many packets are written at once.
const maxBatch = 16

// batch is how many packets are waited for while others are under way.
func (o *Options) batch() int { return max(1, min(maxBatch, o.Window/4)) }

// due reports whether there is something to send now. While packets are under way, whose acknowledgements will bring the streamer
// back, it waits for more of them: to be woken for each, and to write each alone, costs more than the writing. It needs the lock.
func (w *Writer) due() bool {
	waiting := len(w.packets) - w.sent
	return waiting > 0 && (w.sent == 0 || w.urgent || waiting >= w.o.batch())
}

// stream is the streamer. It ends with the file or with its first error.
func (w *Writer) stream() {
	defer w.drop()
	idle := time.NewTimer(w.heartbeat())
	defer idle.Stop()
	var buffers [maxBatch][]byte
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
			if l := w.unread(); l != nil {
				w.acknowledge(l)
				continue
			}
			idle.Reset(w.untilBeat())
			select {
			case <-w.toStreamer:
			case <-idle.C:
				w.beat()
			case <-w.ctx.Done():
				err = w.contextError()
			}
		}
		if err != nil {
			_ = w.fail(err)
		}
	}
}

// heartbeat is how long a pipeline may be without traffic: DataNodes give up after the timeout.
func (w *Writer) heartbeat() time.Duration { return w.o.Dialer.Timeout() / 2 }

// untilBeat is how long the streamer may still be idle.
func (w *Writer) untilBeat() time.Duration {
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l == nil {
		return w.heartbeat()
	}
	return max(0, w.heartbeat()-time.Since(l.sentAt))
}

// next decides, and takes packets that can be sent now.
func (w *Writer) next(buffers *[maxBatch][]byte) (step, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return stepStop, 0
	case w.fault != nil:
		return stepRepair, 0
	case w.ended && len(w.packets) == 0:
		return stepStop, 0
	case !w.due():
		return stepIdle, 0
	}
	n := 0
	for n < maxBatch && w.sent < len(w.packets) {
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
	w.urgent = w.urgent && w.sent < len(w.packets)
	w.writing = true
	return stepSend, n
}

// send writes packets to the pipeline, which it sets up if there is none.
func (w *Writer) send(packets [][]byte) error {
	defer w.written()
	l, err := w.standing()
	if err != nil || l == nil {
		return err
	}
	w.write(l, packets)
	return nil
}

// write writes to a pipeline, and does not wait for it longer than its nodes may take.
func (w *Writer) write(l *line, packets [][]byte) {
	l.sentAt = time.Now()
	err := l.conn.SetWriteDeadline(l.sentAt.Add(w.writePatience(len(l.nodes))))
	if err == nil {
		_, err = l.conn.WriteAll(packets)
	}
	if err != nil {
		w.broken(l, err)
	}
}

// recycle gives a packet back that is acknowledged, at once or when it has been written: a node that acknowledges what it cannot have
// got yet must not make bytes change that are on their way. It needs the lock.
func (w *Writer) recycle(k *packet) {
	if w.writing {
		w.retired = append(w.retired, k)
		return
	}
	w.o.Pool.put(k)
}

// written gives the packets back that were acknowledged in the meantime.
func (w *Writer) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	for i, k := range w.retired {
		w.o.Pool.put(k)
		w.retired[i] = nil
	}
	w.retired = w.retired[:0]
}

// broken handles a failed write. The reader of acknowledgements may know better which node it was: if one behind the first has
// failed, the first says so before it closes the connection.
func (w *Writer) broken(l *line, err error) {
	if !l.heard {
		w.listen(l)
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-l.acks:
	case <-timer.C:
	case <-w.ctx.Done():
	}
	w.blame(l, verdict{bad: 0}, fmt.Errorf("DataNode %s: %w", l.conn.Node, err))
}

// beat keeps a pipeline alive that has nothing to do.
func (w *Writer) beat() {
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l == nil || time.Since(l.sentAt) < w.heartbeat() {
		return
	}
	w.write(l, [][]byte{wire.PacketHeader{Seqno: wire.HeartbeatSeqno}.Append(nil, 0)})
}

// begun makes a line the present one.
func (w *Writer) begun(l *line) {
	w.mu.Lock()
	w.line, w.fault, w.persist = l, nil, true
	w.mu.Unlock()
	if !w.alone {
		w.listen(l)
	}
}

// listen reads the acknowledgements of a pipeline in the background.
func (w *Writer) listen(l *line) {
	l.heard = true
	w.streamer.Go(func() { w.acknowledge(l) })
}

// unread is the present pipeline if nobody reads its acknowledgements, and there is nothing else to do: who asks does it.
func (w *Writer) unread() *line {
	w.mu.Lock()
	l, rest := w.line, len(w.packets)-w.sent
	w.mu.Unlock()
	switch {
	case l == nil || l.heard:
		return nil
	case rest > 0:
		w.listen(l)
		return nil
	}
	l.heard = true
	return l
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
