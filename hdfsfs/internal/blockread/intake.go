package blockread

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
)

// intake takes in what a connection brings, and puts it where its caller wants it.
type intake struct {
	conn    *datanode.Conn
	raw     syscall.RawConn // nil if bytes can only be read by the connection's Read
	timeout time.Duration   // how long the node may be silent
	armed   time.Time       // when the deadline was set
	span    time.Duration   // for how long; 0 if it has to be set

	owed  int64 // bytes that are certain to come yet, at least
	level int   // how many bytes wake a wait
	slow  bool  // so few bytes come in a while that each is worth a wake-up

	early []byte // what has come and nobody has taken
	space []byte // for it

	// Of a receive that is under way.
	parts [][]byte
	got   int
	err   error
	step  func(fd uintptr) bool // once
	// waited: there was nothing to read at first.
	waited bool
	one    [1][]byte
}

// armings is into how many parts a wait is cut: the deadline is not set again before such a part is over.
const armings = 16

// begin starts on a connection that waits for an answer.
func (in *intake) begin(conn *datanode.Conn, timeout time.Duration) {
	*in = intake{conn: conn, raw: conn.Raw, timeout: timeout, level: 1, space: in.space, step: in.step}
	if in.step == nil {
		in.step = in.once
	}
}

// end gives the connection up, and keeps memory for another.
func (in *intake) end(most int) {
	kept := intake{step: in.step}
	if cap(in.space) <= most {
		kept.space = in.space
	}
	*in = kept
}

// collect takes over what the reader of the connection has read beyond the answer.
func (in *intake) collect() {
	n := in.conn.Reader.Buffered()
	in.grow(n)
	in.early = in.space[:n]
	_, _ = io.ReadFull(in.conn.Reader, in.early) // it is there
}

// grow makes room for n early bytes, of which some may be there.
func (in *intake) grow(n int) {
	space := in.space[:cap(in.space)]
	if len(space) < n {
		space = make([]byte, max(n, 4<<10))
	}
	in.early = space[:copy(space, in.early)]
	in.space = space
}

// unread puts bytes before those that nobody has taken.
func (in *intake) unread(b []byte) {
	in.early = append(b, in.early...)
}

// togetherFor is how long more than one byte is waited for. After that any will do: what has come is not held back for long.
const togetherFor = 250 * time.Millisecond

// arm moves the deadline on.
func (in *intake) arm() error {
	span := in.timeout
	if in.level > 1 {
		span = min(span, togetherFor)
	}
	now := time.Now()
	if span == in.span && now.Sub(in.armed) < span/armings {
		return nil
	}
	in.armed, in.span = now, span
	return in.conn.SetReadDeadline(now.Add(span))
}

// limit changes how long the node may be silent, from now on.
func (in *intake) limit(timeout time.Duration) { in.timeout, in.span = timeout, 0 }

// fill fills parts, one behind the other, and uses the slice up. It waits until must bytes have come, and returns how many are
// there; fewer than must come with an error.
func (in *intake) fill(parts [][]byte, must int) (int, error) {
	n := 0
	for n < must {
		var k int
		var err error
		if len(in.early) > 0 {
			k = copy(parts[0], in.early)
			in.early = in.early[k:]
		} else {
			k, err = in.receive(parts)
		}
		n += k
		for k > 0 && k >= len(parts[0]) {
			k -= len(parts[0])
			parts = parts[1:]
		}
		if k > 0 {
			parts[0] = parts[0][k:]
		}
		if err != nil && n < must {
			return n, err
		}
	}
	return n, nil
}

// fillOne fills p.
func (in *intake) fillOne(p []byte) error {
	in.one[0] = p
	_, err := in.fill(in.one[:], len(p))
	in.one[0] = nil
	return err
}

// peek returns n bytes, which are not taken by that. If it must wait, up to more bytes may come.
func (in *intake) peek(n, more int) ([]byte, error) {
	if len(in.early) < n {
		in.grow(max(n, more))
	}
	for len(in.early) < n {
		in.one[0] = in.space[len(in.early):max(n, more)]
		k, err := in.receive(in.one[:])
		in.early = in.space[:len(in.early)+k]
		if err != nil && len(in.early) < n {
			return nil, err
		}
	}
	return in.early[:n], nil
}

// skip takes n bytes that peek has returned.
func (in *intake) skip(n int) { in.early = in.early[n:] }

// expect says that size bytes are to come, of which the early ones are a part.
func (in *intake) expect(size int64) { in.owed = size - int64(len(in.early)) }

// receive waits for bytes and puts them into parts. The deadline must be armed.
func (in *intake) receive(parts [][]byte) (int, error) {
	if in.raw == nil {
		return in.conn.Read(parts[0])
	}
	in.parts, in.got, in.err = parts, 0, nil
	err := in.raw.Read(in.step)
	if errors.Is(err, os.ErrDeadlineExceeded) && in.level > 1 {
		err = in.late(err)
	}
	in.parts = nil
	if err == nil {
		err = in.err
	}
	in.owed -= int64(in.got)
	if err != nil && !errors.Is(err, io.EOF) {
		err = in.conn.Failed("read", err)
	}
	return in.got, err
}

// once reads what is there, and reports whether that was anything. If not, it prepares the wait.
func (in *intake) once(fd uintptr) bool {
	for {
		n, err := socket.Read(fd, in.parts)
		switch {
		case err == nil && n > 0:
			in.got = n
			return true
		case err == nil:
			in.err = io.EOF
			return true
		case !errors.Is(err, syscall.EAGAIN):
			in.err = os.NewSyscallError("readv", err)
			return true
		}
		in.waited = true
		lower := in.adjust(fd)
		if in.err = in.arm(); in.err != nil {
			return true
		}
		if !lower {
			return false
		}
	}
}

// late is after a wait in which not enough bytes for a wake-up have come: any byte will do now. If some are there already the node
// is slow. Silence is an error only after the node's timeout.
func (in *intake) late(silence error) error {
	if !in.rest() {
		return silence
	}
	slow := in.slow
	in.slow, in.waited = true, false
	in.span = 0
	err := in.arm()
	if err == nil {
		err = in.raw.Read(in.step)
	}
	in.slow = slow || err == nil && !in.waited
	return err
}

// adjust sets how many bytes wake a wait, and reports whether these are fewer than before: they may be there already.
func (in *intake) adjust(fd uintptr) (lower bool) {
	if in.slow || in.level == lowWater && in.owed >= lowWater || in.level == 1 && in.owed < lowWaterFirst {
		return false
	}
	level := levelFor(in.owed, socket.ReceiveBuffer(fd))
	if level == in.level || socket.SetLowWater(fd, level) != nil {
		return false
	}
	lower = level < in.level
	in.level = level
	return lower
}

// rest makes any byte wake a wait, and reports whether it does.
func (in *intake) rest() bool {
	if in.level > 1 {
		err := in.raw.Control(func(fd uintptr) {
			if socket.SetLowWater(fd, 1) == nil {
				in.level = 1
			}
		})
		if err != nil {
			return false
		}
	}
	return in.level == 1
}
