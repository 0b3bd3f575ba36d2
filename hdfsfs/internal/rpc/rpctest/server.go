// Package rpctest is a Hadoop RPC server in the test's own process, which answers what the test wants, or breaks the protocol.
package rpctest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Call is one that has come, each attempt of it.
type Call struct {
	ID       int32
	Retry    int32
	ClientID [wire.ClientIDSize]byte
	Method   string
	Protocol string
	User     string // of the connection
	Request  []byte

	conn *conn
}

// Decode decodes the request.
func (c *Call) Decode(m proto.Message) error { return wire.Unmarshal(c.Request, m) }

// Reply answers with success.
func (c *Call) Reply(m proto.Message) {
	body, err := wire.AppendDelimited(nil, m)
	if err != nil {
		panic(fmt.Sprintf("the test's answer: %v", err))
	}
	c.conn.answer(c.header(wire.RpcResponseHeader_SUCCESS), body)
}

// Throw answers with an exception.
func (c *Call) Throw(class, message string) { c.throw(wire.RpcResponseHeader_ERROR, class, message) }

// ThrowFatal answers with an exception that ends the connection.
func (c *Call) ThrowFatal(class, message string) {
	c.throw(wire.RpcResponseHeader_FATAL, class, message)
	c.Drop()
}

func (c *Call) throw(status wire.RpcResponseHeader_Status, class, message string) {
	h := c.header(status)
	h.ExceptionClassName, h.ErrorMsg = &class, &message
	c.conn.answer(h, nil)
}

// Drop ends the connection.
func (c *Call) Drop() { _ = c.conn.nc.Close() }

// Reset ends the connection so that the client sees it reset.
func (c *Call) Reset() {
	_ = c.conn.nc.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // a test's listener is of TCP
	c.Drop()
}

// Raw writes bytes as they are.
func (c *Call) Raw(b []byte) { c.conn.write(b) }

func (c *Call) header(status wire.RpcResponseHeader_Status) *wire.RpcResponseHeader {
	return &wire.RpcResponseHeader{
		CallId: proto.Uint32(uint32(c.ID)), Status: status.Enum(), ClientId: c.ClientID[:], RetryCount: proto.Int32(c.Retry), //nolint:gosec // as servers do
	}
}

// Handler gets each call, in a goroutine of its own.
type Handler func(*Call)

// Server is one server on a port of the loopback interface.
type Server struct {
	Address string
	// Pings counts those that have come, Connections those that were accepted.
	Pings, Connections atomic.Int64

	tb      testing.TB
	handler atomic.Pointer[Handler]
	sasl    func(*SASL) (Wrapper, error)

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]bool
	wg       sync.WaitGroup
}

// Start starts a server that ends with the test.
func Start(tb testing.TB, h Handler) *Server {
	tb.Helper()
	s := &Server{tb: tb, Address: "127.0.0.1:0", conns: map[*conn]bool{}}
	s.Handle(h)
	s.Up()
	tb.Cleanup(s.Down)
	return s
}

// Handle changes the handler.
func (s *Server) Handle(h Handler) { s.handler.Store(&h) }

// Up makes a server that is down listen again, on the same port.
func (s *Server) Up() {
	s.tb.Helper()
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.Address = l, l.Addr().String()
	s.wg.Go(func() { s.accept(l) })
}

// Down ends the listener and all connections.
func (s *Server) Down() {
	s.mu.Lock()
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
	s.mu.Unlock()
	s.DropAll()
	s.wg.Wait()
}

// DropAll ends all connections.
func (s *Server) DropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
}

func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		c := &conn{nc: nc, w: nc, r: bufio.NewReader(nc)}
		s.mu.Lock()
		if s.listener != l {
			_ = nc.Close()
		}
		s.conns[c] = true
		s.mu.Unlock()
		s.Connections.Add(1)
		s.wg.Go(func() {
			err := s.serve(c)
			if !isEnd(err) {
				s.tb.Errorf("the client broke the protocol: %v", err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, c)
			_ = nc.Close()
		})
	}
}

type conn struct {
	nc net.Conn
	w  io.Writer
	r  *bufio.Reader
	mu sync.Mutex
}

func (c *conn) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.w.Write(b) // the client may have gone
}

func (c *conn) answer(h *wire.RpcResponseHeader, body []byte) {
	header, err := wire.AppendDelimited(nil, h)
	if err != nil {
		panic(fmt.Sprintf("the test's answer: %v", err))
	}
	c.write(Frame(append(header, body...)))
}

// Frame puts the length before the rest of a frame.
func Frame(rest []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(rest))), rest...) //nolint:gosec // a test's frame is short
}
