package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Authenticator says who the client is at the start of each connection.
type Authenticator interface {
	// SASL reports whether the connection begins with a negotiation.
	SASL() bool
	// Authenticate runs the negotiation, if SASL, and returns what the connection goes on with. It is called for each
	// connection, from any goroutine, and must return when the context ends; the reads and writes of n do. A refusal by the
	// server is a *ServerError from n.
	Authenticate(ctx context.Context, n *Negotiation) (Session, error)
}

// Session is the outcome of an authentication.
type Session struct {
	// EffectiveUser and RealUser are told to the server. Empty ones are left out, as they must be with a token.
	EffectiveUser, RealUser string
	// Wrapper protects all that follows; nil is none.
	Wrapper Wrapper
}

// Wrapper protects the bytes of a connection after its negotiation, by integrity or privacy. Wrap and Unwrap are each called by
// one goroutine at a time, in the order of the bytes.
type Wrapper interface {
	// MaxPlain is the most that Wrap takes at once.
	MaxPlain() int
	Wrap(plain []byte) (token []byte, err error)
	Unwrap(token []byte) (plain []byte, err error)
}

// Simple is the Authenticator of clusters without security: the server believes the name.
type Simple struct {
	// User is who acts.
	User string
	// RealUser, if not empty, is who asks to act for User.
	RealUser string
}

// SASL is false.
func (Simple) SASL() bool { return false }

// Authenticate exchanges nothing.
func (s Simple) Authenticate(context.Context, *Negotiation) (Session, error) {
	return Session{EffectiveUser: s.User, RealUser: s.RealUser}, nil
}

// Negotiation exchanges SASL messages with a server.
type Negotiation struct {
	// Server is its host:port.
	Server string

	w io.Writer
	r *bufio.Reader
}

// Send sends one message.
func (n *Negotiation) Send(m *wire.RpcSasl) error {
	// The client's id is empty in a negotiation.
	frame, err := appendMessages(nil, wire.CallIDSASL, nil, m)
	if err != nil {
		return err
	}
	_, err = n.w.Write(frame)
	return err
}

// Receive waits for the next message. An answer that is an exception is a *ServerError.
func (n *Negotiation) Receive() (*wire.RpcSasl, error) {
	frame, err := readFrame(n.r, smallAnswer, nil)
	if err != nil {
		return nil, err
	}
	return saslOf(n.Server, frame)
}

// saslOf is the message in a frame of the negotiation, or of a wrapped connection.
func saslOf(server string, frame []byte) (*wire.RpcSasl, error) {
	h, payload, err := cutAnswer(frame)
	if err != nil {
		return nil, err
	}
	if h.Status != wire.RpcResponseHeader_SUCCESS {
		return nil, serverError(server, "negotiation", h)
	}
	if h.CallID != wire.CallIDSASL {
		return nil, badAnswer("an answer to call %d instead of a message of the negotiation", h.CallID)
	}
	m := &wire.RpcSasl{}
	return m, wire.Unmarshal(payload, m)
}

// The head of a connection:
//
//	┌────────────┬────────────┬─────────────┬───────────────────────┐
//	│ "hrpc"     │ version: 9 │ class: 0    │ 0, or 0xDF for SASL   │   then the negotiation, then the context, then calls
//	└────────────┴────────────┴─────────────┴───────────────────────┘
func connectionHead(sasl bool) []byte {
	head := []byte{'h', 'r', 'p', 'c', 9, 0, 0}
	if sasl {
		head[6] = 0xDF
	}
	return head
}

// stream carries calls and their answers.
type stream struct {
	r *bufio.Reader
	w io.Writer
}

// handshake runs everything before the first call.
func handshake(ctx context.Context, nc net.Conn, o *Options, server string, clientID []byte) (stream, error) {
	w, r := bufio.NewWriter(nc), bufio.NewReaderSize(nc, readBuffer)
	if _, err := w.Write(connectionHead(o.Authenticator.SASL())); err != nil {
		return stream{}, err
	}
	session, err := o.Authenticator.Authenticate(ctx, &Negotiation{Server: server, w: flushing{w}, r: r})
	if err != nil {
		return stream{}, err
	}
	plain := stream{r, nc}
	var first io.Writer = w
	if session.Wrapper != nil {
		wrapped := &wrappedStream{server: server, r: r, w: nc, wrapper: session.Wrapper}
		plain, first = stream{bufio.NewReaderSize(wrapped, readBuffer), wrapped}, wrapped
	}
	about := &wire.IpcConnectionContext{Protocol: &o.Protocol, UserInfo: userInfo(session)}
	frame, err := appendMessages(nil, wire.CallIDContext, clientID, about)
	if err != nil {
		return stream{}, err
	}
	if _, err := first.Write(frame); err != nil {
		return stream{}, err
	}
	return plain, w.Flush()
}

func userInfo(s Session) *wire.UserInformation {
	if s.EffectiveUser == "" && s.RealUser == "" {
		return nil
	}
	u := &wire.UserInformation{}
	if s.EffectiveUser != "" {
		u.EffectiveUser = proto.String(s.EffectiveUser)
	}
	if s.RealUser != "" {
		u.RealUser = proto.String(s.RealUser)
	}
	return u
}

// flushing lets the messages of a negotiation out at once; a head that is not followed by any goes out with the context.
type flushing struct{ w *bufio.Writer }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, f.w.Flush()
}

// wrappedStream is a connection whose bytes are protected:
//
//	frame of call -33: RpcSasl{WRAP, token}      token = wrapped piece of the stream of frames
//
// A piece may hold several frames or a part of one.
type wrappedStream struct {
	server  string
	r       *bufio.Reader
	w       io.Writer
	wrapper Wrapper
	plain   []byte // received, not yet read
}

func (s *wrappedStream) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		piece := b[:min(len(b), s.wrapper.MaxPlain())]
		token, err := s.wrapper.Wrap(piece)
		if err != nil {
			return written, err
		}
		frame, err := appendMessages(nil, wire.CallIDSASL, nil, &wire.RpcSasl{State: wire.RpcSasl_WRAP.Enum(), Token: token})
		if err != nil {
			return written, err
		}
		if _, err := s.w.Write(frame); err != nil {
			return written, err
		}
		written += len(piece)
		b = b[len(piece):]
	}
	return written, nil
}

func (s *wrappedStream) Read(b []byte) (int, error) {
	for len(s.plain) == 0 {
		frame, err := readFrame(s.r, maxWrapped, nil)
		if err != nil {
			return 0, err
		}
		m, err := saslOf(s.server, frame)
		if err != nil {
			return 0, err
		}
		if m.GetState() != wire.RpcSasl_WRAP {
			return 0, badAnswer("a message %v on a protected connection", m.GetState())
		}
		if s.plain, err = s.wrapper.Unwrap(m.GetToken()); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.plain)
	s.plain = s.plain[n:]
	return n, nil
}

// be32 is the length before a frame.
func be32(b []byte) int64 { return int64(int32(binary.BigEndian.Uint32(b))) } //nolint:gosec // a sign is refused by the caller
