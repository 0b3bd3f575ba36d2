package rpctest

import (
	"bufio"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Wrapper protects a connection, on the side of the server.
type Wrapper interface {
	Wrap(plain []byte) ([]byte, error)
	Unwrap(token []byte) ([]byte, error)
}

// SASL is the server's side of a negotiation.
type SASL struct{ conn *conn }

// StartSASL starts a server whose connections begin with a negotiation. A nil Wrapper leaves the connection plain.
func StartSASL(tb testing.TB, negotiate func(*SASL) (Wrapper, error), h Handler) *Server {
	tb.Helper()
	s := &Server{tb: tb, Address: "127.0.0.1:0", conns: map[*conn]bool{}, sasl: negotiate}
	s.Handle(h)
	s.Up()
	tb.Cleanup(s.Down)
	return s
}

// Receive reads the client's next message.
func (s *SASL) Receive() (*wire.RpcSasl, error) {
	h, rest, err := s.conn.frame()
	if err != nil {
		return nil, err
	}
	if h.GetCallId() != wire.CallIDSASL || len(h.GetClientId()) != 0 {
		return nil, fmt.Errorf("message of the negotiation has header %v", h)
	}
	m := &wire.RpcSasl{}
	return m, decode(rest, m)
}

// Send answers with a message.
func (s *SASL) Send(m *wire.RpcSasl) { s.conn.sasl(m) }

// Throw answers with an exception.
func (s *SASL) Throw(class, message string) {
	h := saslHeader(wire.RpcResponseHeader_ERROR)
	h.ExceptionClassName, h.ErrorMsg = &class, &message
	s.conn.answer(h, nil)
}

func saslHeader(status wire.RpcResponseHeader_Status) *wire.RpcResponseHeader {
	id := int32(wire.CallIDSASL)
	return &wire.RpcResponseHeader{CallId: proto.Uint32(uint32(id)), Status: status.Enum()} //nolint:gosec // as servers do
}

func (c *conn) sasl(m *wire.RpcSasl) {
	body, err := wire.AppendDelimited(nil, m)
	if err != nil {
		panic(fmt.Sprintf("the test's answer: %v", err))
	}
	c.answer(saslHeader(wire.RpcResponseHeader_SUCCESS), body)
}

// wrappedConn is a protected connection on the side of the server. It cuts what it sends into short pieces.
type wrappedConn struct {
	conn    *conn
	wrapper Wrapper
	raw     *bufio.Reader
	plain   []byte
}

func (w *wrappedConn) Read(b []byte) (int, error) {
	for len(w.plain) == 0 {
		m, err := (&SASL{conn: &conn{r: w.raw}}).Receive()
		if err != nil {
			return 0, err
		}
		if m.GetState() != wire.RpcSasl_WRAP {
			return 0, fmt.Errorf("%v on a protected connection", m.GetState())
		}
		if w.plain, err = w.wrapper.Unwrap(m.GetToken()); err != nil {
			return 0, err
		}
	}
	n := copy(b, w.plain)
	w.plain = w.plain[n:]
	return n, nil
}

func (w *wrappedConn) Write(b []byte) (int, error) {
	const piece = 7
	for rest := b; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		token, err := w.wrapper.Wrap(rest[:min(piece, len(rest))])
		if err != nil {
			return 0, err
		}
		(&conn{w: w.conn.nc, nc: w.conn.nc}).sasl(&wire.RpcSasl{State: wire.RpcSasl_WRAP.Enum(), Token: token})
	}
	return len(b), nil
}
