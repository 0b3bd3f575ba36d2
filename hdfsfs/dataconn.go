package hdfsfs

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The library gives no way to know for which of its streams a connection to a DataNode is made, or to break one that hangs.
// But it passes the deadline of a stream on to each of its connections. So every stream gets a deadline of its own, centuries
// away, which is not used as a deadline but as the stream's number.
var firstMark = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// stream is the connections of one file that is written or read.
type stream struct {
	owner *library
	mark  time.Time

	mu       sync.Mutex
	closed   bool
	done     chan struct{} // closed with it
	conns    map[*dataConn]struct{}
	last     *dataConn
	pipeline int // the shortest so far; 0 if there was none
}

// newStream returns a stream that is known until it is closed.
func (l *library) newStream() *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastMark++
	s := &stream{owner: l, mark: firstMark.Add(time.Duration(l.lastMark)), conns: map[*dataConn]struct{}{}, done: make(chan struct{})}
	l.streams[s.mark] = s
	return s
}

// close breaks the connections, and those that are made later.
func (s *stream) close() {
	s.owner.mu.Lock()
	delete(s.owner.streams, s.mark)
	s.owner.mu.Unlock()
	s.interrupt()
}

func (s *stream) interrupt() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
}

// adopt takes a connection in.
func (s *stream) adopt(c *dataConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.conns[c], s.last = struct{}{}, c
	return nil
}

func (s *stream) forget(c *dataConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// sendsTo notes the length of a pipeline.
func (s *stream) sendsTo(nodes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipeline == 0 || nodes < s.pipeline {
		s.pipeline = nodes
	}
}

// shortest is the length of the shortest pipeline; 0 if no block was written.
func (s *stream) shortest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pipeline
}

// started reports whether bytes of the last block were sent, for which the library then has goroutines.
func (s *stream) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil && s.last.packets.Load()
}

// heartbeat is how often the library sends one to the DataNodes that it writes to, which they acknowledge.
const heartbeat = 30 * time.Second

// dataConn is a connection to a DataNode: every wait has a deadline, and it belongs to a stream as soon as the library says
// to which.
type dataConn struct {
	net.Conn
	owner   *library
	made    time.Time
	stream  atomic.Pointer[stream]
	op      atomic.Int32
	packets atomic.Bool   // something was written after the operation
	reader  *bufio.Reader // the library asks for pieces of 512 bytes
	closing sync.Once
}

// SetDeadline gets the number of a stream.
func (c *dataConn) SetDeadline(mark time.Time) error {
	if mark.Before(firstMark) {
		return nil
	}
	s := c.owner.streamOf(mark)
	if s == nil {
		_ = c.Close()
		return net.ErrClosed
	}
	c.stream.Store(s)
	c.owner.claimed(c)
	if err := s.adopt(c); err != nil {
		_ = c.Close()
		return err
	}
	return c.Conn.SetDeadline(time.Now().Add(c.owner.dataTimeout))
}

func (c *dataConn) Write(p []byte) (int, error) {
	if c.op.Load() == 0 {
		if op := dataOperation(p); op != 0 {
			c.op.Store(int32(op))
			if s := c.stream.Load(); s != nil && op == opWriteBlock {
				s.sendsTo(pipelineLength(p))
			}
		}
	} else {
		c.packets.Store(true)
	}
	if c.stream.Load() != nil {
		// An acknowledgement is due from now on, too.
		if err := c.Conn.SetDeadline(time.Now().Add(c.owner.dataTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	c.judge(err)
	return n, err
}

func (c *dataConn) Read(p []byte) (int, error) {
	writing := c.op.Load() == opWriteBlock
	if c.stream.Load() != nil && !writing {
		if err := c.SetReadDeadline(time.Now().Add(c.owner.dataTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := c.reader.Read(p)
	if err == nil && writing {
		err = c.SetReadDeadline(time.Now().Add(c.owner.dataTimeout + heartbeat))
	}
	c.judge(err)
	return n, err
}

// judge closes the connection after any error.
func (c *dataConn) judge(err error) {
	if err != nil {
		_ = c.Close()
	}
}

func (c *dataConn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		if s := c.stream.Load(); s != nil {
			s.forget(c)
		}
		c.owner.claimed(c)
		err = c.Conn.Close()
	})
	return err
}
