package rpctest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// serve reads one connection to its end, which is its error. It is stricter than Hadoop: what is not as it should be is an error too.
func (s *Server) serve(c *conn) error {
	var head [7]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return err
	}
	want := "hrpc\x09\x00\x00"
	if s.sasl != nil {
		want = "hrpc\x09\x00\xdf"
	}
	if string(head[:]) != want {
		return fmt.Errorf("head %x", head)
	}
	if s.sasl != nil {
		w, err := s.sasl(&SASL{conn: c})
		if err != nil {
			return err
		}
		if w != nil {
			wrapped := &wrappedConn{conn: c, wrapper: w, raw: c.r}
			c.r, c.w = bufio.NewReader(wrapped), wrapped
		}
	}
	about, err := s.context(c)
	if err != nil {
		return err
	}
	for {
		h, rest, err := c.frame()
		if err != nil {
			return err
		}
		if h.GetCallId() == wire.CallIDPing {
			s.Pings.Add(1)
			continue
		}
		call, err := newCall(c, h, rest)
		if err != nil {
			return err
		}
		call.User = about.GetUserInfo().GetEffectiveUser()
		s.wg.Go(func() { (*s.handler.Load())(call) })
	}
}

func (s *Server) context(c *conn) (*wire.IpcConnectionContext, error) {
	h, rest, err := c.frame()
	if err != nil {
		return nil, err
	}
	if h.GetCallId() != wire.CallIDContext || h.GetRetryCount() != -1 || len(h.GetClientId()) != wire.ClientIDSize {
		return nil, fmt.Errorf("context has header %v", h)
	}
	about := &wire.IpcConnectionContext{}
	return about, decode(rest, about)
}

// frame reads one frame and returns its header and what follows.
func (c *conn) frame() (*wire.RpcRequestHeader, []byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.r, length[:]); err != nil {
		return nil, nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c.r, frame); err != nil {
		return nil, nil, err
	}
	header, rest, err := wire.CutDelimited(frame)
	if err != nil {
		return nil, nil, err
	}
	h := &wire.RpcRequestHeader{}
	if err := wire.Unmarshal(header, h); err != nil {
		return nil, nil, err
	}
	if h.RpcKind == nil || h.RpcOp == nil || h.GetRpcKind() != wire.RpcRequestHeader_PROTOCOL_BUFFER {
		return nil, nil, fmt.Errorf("header %v", h)
	}
	return h, rest, nil
}

func decode(delimited []byte, m proto.Message) error {
	b, rest, err := wire.CutDelimited(delimited)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("%w, %d bytes left", err, len(rest))
	}
	return wire.Unmarshal(b, m)
}

func newCall(c *conn, h *wire.RpcRequestHeader, rest []byte) (*Call, error) {
	if h.GetCallId() < 0 || len(h.GetClientId()) != wire.ClientIDSize || h.GetRetryCount() < 0 {
		return nil, fmt.Errorf("call has header %v", h)
	}
	b, rest, err := wire.CutDelimited(rest)
	if err != nil {
		return nil, err
	}
	method := &wire.RequestHeader{}
	if err := wire.Unmarshal(b, method); err != nil {
		return nil, err
	}
	if method.GetClientProtocolVersion() != 1 {
		return nil, fmt.Errorf("method has header %v", method)
	}
	request, rest, err := wire.CutDelimited(rest)
	if err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%w, %d bytes left", err, len(rest))
	}
	return &Call{
		ID: h.GetCallId(), Retry: h.GetRetryCount(), ClientID: [wire.ClientIDSize]byte(h.GetClientId()),
		Method: method.GetMethodName(), Protocol: method.GetDeclaringClassProtocolName(), Request: request, conn: c,
	}, nil
}
