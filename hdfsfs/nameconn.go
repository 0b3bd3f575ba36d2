package hdfsfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxAnswer bounds what a NameNode may send in one piece: ipc.maximum.response.length of Hadoop.
const maxAnswer = 128 << 20

// nameConn is a connection to a NameNode. It makes up for what the library does not do:
//
//   - every request and every answer has a deadline;
//   - a connection that the NameNode has closed is found out before a request is sent, and the library makes another;
//   - after any error it is closed, so that no later call can read an answer that is not its own;
//   - an answer that is lost is replaced by one that says that the NameNode is not active. The library then sends the request
//     again under the same number, to whichever NameNode is there, whose retry cache knows whether it has been executed;
//   - the client id is made of 128 random bits; the library's has 31, and the retry cache relies on it;
//   - a rename that must not replace is made one;
//   - exceptions and results that the library drops are noted.
type nameConn struct {
	net.Conn
	lane *lane

	pending []byte // an answer on its way to the library
	call    int32  // the request that has no answer yet
	method  string
	waiting bool

	closing sync.Once
}

var errStale = errors.New("the NameNode has closed the connection")

func (c *nameConn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.lane.forget(c)
		err = c.Conn.Close()
	})
	return err
}

// Write is given whole packets.
func (c *nameConn) Write(packet []byte) (int, error) {
	n, err := c.write(packet)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

func (c *nameConn) write(packet []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.lane.owner.callTimeout)); err != nil {
		return 0, err
	}
	if len(packet) >= 4 && string(packet[:4]) == "hrpc" {
		return c.Conn.Write(packet)
	}
	r, err := parseRequest(packet)
	if err != nil {
		return 0, err
	}
	if r.call >= 0 {
		if err := c.check(); err != nil {
			return 0, err
		}
		if len(r.clientID) == len(c.lane.clientID) {
			copy(r.clientID, c.lane.clientID[:])
		}
		if r.method == methodRename && c.lane.mustNotReplace() && !forbidOverwrite(r.body) {
			return 0, fmt.Errorf("%w: no overwriteDest in a rename", errFrame)
		}
		c.call, c.method, c.waiting = r.call, r.method, true
		c.lane.sent(r.call, r.method)
	}
	return c.Conn.Write(packet)
}

// check returns an error if the other side has closed the connection, or has sent what nobody has asked for: why it does not
// want it, as a NameNode with Kerberos does to whoever comes without.
func (c *nameConn) check() error {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	n, quiet := 0, false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		var err error
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT) //nolint:gosec // a descriptor
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	if err != nil || quiet {
		return err
	}
	if n > 0 {
		if packet, err := c.receive(); err == nil {
			_ = c.note(packet) // what it cannot read is not needed
		}
	}
	return errStale
}

// Read serves the library from whole answers.
func (c *nameConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		answer, err := c.answer()
		if err != nil {
			return 0, err
		}
		c.pending = answer
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// answer reads a whole answer, or makes one up.
func (c *nameConn) answer() ([]byte, error) {
	packet, err := c.receive()
	if err == nil {
		err = c.note(packet)
	}
	if err == nil {
		return packet, nil
	}
	_ = c.Close()
	if !c.waiting {
		return nil, err
	}
	c.waiting = false
	if !c.lane.lost(c.call, c.method, err) {
		return nil, err
	}
	call := c.call
	if c.lane.wrapped.Load() {
		call = callSASL
	}
	return standbyAnswer(call), nil
}

func (c *nameConn) receive() ([]byte, error) {
	packet := make([]byte, 4, 512)
	if _, err := io.ReadFull(c.Conn, packet); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(packet)
	if length > maxAnswer {
		return nil, fmt.Errorf("%w: an answer of %d bytes", errFrame, length)
	}
	if need := 4 + int(length); need <= cap(packet) {
		packet = packet[:need]
	} else {
		packet = append(packet, make([]byte, length)...)
	}
	if _, err := io.ReadFull(c.Conn, packet[4:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return packet, nil
}

// note keeps what the library would drop. An answer to another question is an error.
func (c *nameConn) note(packet []byte) error {
	a, err := parseAnswer(packet[4:])
	switch {
	case err != nil:
		return err
	case !c.waiting:
		if a.status != 0 {
			c.lane.refused(a)
		}
	case a.call == callSASL:
		c.lane.wrapped.Store(true)
		c.waiting = false
		c.lane.answered(c.method, nil)
	case a.call != c.call:
		if a.status != 0 { // such as that of a server that wants another kind of login
			c.lane.refused(a)
			c.waiting = false
		}
		return fmt.Errorf("%w: an answer to another call", errFrame)
	default:
		c.waiting = false
		c.lane.answered(c.method, &a)
	}
	return nil
}
