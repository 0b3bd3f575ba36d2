package pipeline

import (
	"bufio"
	"errors"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// together is for how many acknowledgements the reader waits at once in the middle of a stream: half of those that must come, and no
// more than are sent at once.
func together(underWay int) int {
	n := 1
	for 2*n <= min(underWay/2, maxBatch) {
		n *= 2
	}
	return n
}

// ackSize is the least that an acknowledgement by that many nodes takes: its length, the number of the packet, and a reply of each.
func ackSize(nodes int) int { return 3 + 2*nodes }

// togetherFor is how long several acknowledgements are waited for. After that the first one will do: a node that is slow, or that
// says something else than was expected, is heard so soon.
const togetherFor = 250 * time.Millisecond

// hear waits until there is something to read of a pipeline's acknowledgements. To be woken for each of them costs more than all the
// rest of sending a packet.
func (w *Writer) hear(l *line) error {
	if l.conn.Reader.Buffered() == 0 {
		if err := w.hearMore(l); err != nil {
			return err
		}
	}
	if !complete(l.conn.Reader) {
		l.conn.SetLowWater(1) // for the rest of it, behind which nothing may come
	}
	return nil
}

// complete reports whether all of an acknowledgement is there.
func complete(r *bufio.Reader) bool {
	have := r.Buffered()
	head, _ := r.Peek(min(have, 5))
	length, n := protowire.ConsumeVarint(head)
	return n > 0 && uint64(have-n) >= length
}

func (w *Writer) hearMore(l *line) error {
	w.mu.Lock()
	n := together(w.sent)
	w.mu.Unlock()
	if n > 1 && l.conn.SetLowWater(n*ackSize(len(l.nodes))) {
		err := l.conn.SetReadDeadline(time.Now().Add(togetherFor))
		if err == nil {
			_, err = l.conn.Reader.Peek(1)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.Join(err, l.conn.SetReadDeadline(time.Now().Add(w.patience(len(l.nodes)))))
		}
	}
	l.conn.SetLowWater(1)
	if err := l.conn.SetReadDeadline(time.Now().Add(w.patience(len(l.nodes)))); err != nil {
		return err
	}
	_, err := l.conn.Reader.Peek(1)
	return err
}
