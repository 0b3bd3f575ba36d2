package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Frames, both directions; what is "delimited" has its length before it, as a varint:
//
//	call     ┌────────────┬─────────────────────────────┬──────────────────────────┬─────────────────────┐
//	         │ int32 BE:  │ delimited RpcRequestHeader: │ delimited RequestHeader: │ delimited request   │
//	         │ rest's size│ call id, client, repetition │ method, protocol         │                     │
//	         └────────────┴─────────────────────────────┴──────────────────────────┴─────────────────────┘
//	answer   ┌────────────┬───────────────────────────────────┬─────────────────────┐
//	         │ int32 BE:  │ delimited RpcResponseHeader:      │ delimited response, │
//	         │ rest's size│ call id, status, exception        │ with SUCCESS only   │
//	         └────────────┴───────────────────────────────────┴─────────────────────┘
//
// In the context of a connection and in a negotiation a delimited message stands in place of method and request; a ping has
// nothing.

const (
	readBuffer = 64 << 10
	// maxWrapped bounds a wrapped piece. A server wraps each answer as one token.
	maxWrapped = 129 << 20
	// readStep is what is allocated ahead of the bytes that have come.
	readStep = 1 << 20
	// protocolVersion is that of all protocols of HDFS.
	protocolVersion = 1
)

func badAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", wire.ErrMalformed, fmt.Sprintf(format, args...))
}

// appendFrame appends a frame whose body, if any, is already delimited.
func appendFrame(b []byte, callID, retryCount int32, clientID, body []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = wire.AppendRequestHeader(b, callID, clientID, retryCount)
	b = append(b, body...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4)) //nolint:gosec // requests are bounded
	return b
}

// appendMessages appends a frame that belongs to no call of a method.
func appendMessages(b []byte, callID int32, clientID []byte, m proto.Message) ([]byte, error) {
	body, err := wire.AppendDelimited(nil, m)
	if err != nil {
		return nil, err
	}
	return appendFrame(b, callID, -1, clientID, body), nil
}

// callBody is what all attempts of a call have in common: RequestHeader and request.
func callBody(protocol, method string, request proto.Message) ([]byte, error) {
	size := proto.Size(request)
	b := make([]byte, 0, len(protocol)+len(method)+size+24)
	header := 1 + protowire.SizeBytes(len(method)) + 1 + protowire.SizeBytes(len(protocol)) + 2
	b = protowire.AppendVarint(b, uint64(header))
	b = protowire.AppendString(append(b, 0x0a), method)
	b = protowire.AppendString(append(b, 0x12), protocol)
	b = append(b, 0x18, protocolVersion)
	return wire.AppendDelimited(b, request)
}

// readFrame reads one frame of at most limit bytes, into buf where it suffices. What a frame claims to have is allocated as it
// comes.
func readFrame(r *bufio.Reader, limit int64, buf []byte) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := be32(length[:])
	if n <= 0 || n > limit {
		return nil, badAnswer("a frame of %d bytes where at most %d are allowed; does the port serve Hadoop RPC?", n, limit)
	}
	buf = buf[:0]
	for int64(len(buf)) < n {
		step := int(min(n-int64(len(buf)), max(readStep, int64(len(buf)))))
		if cap(buf)-len(buf) < step {
			buf = append(make([]byte, 0, len(buf)+step), buf...)
		}
		have := len(buf)
		buf = buf[:have+step]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}

// cutAnswer splits a frame into its header and the bytes of the response message, which are part of the frame.
func cutAnswer(frame []byte) (wire.ResponseHeader, []byte, error) {
	header, rest, err := wire.CutDelimited(frame)
	if err != nil {
		return wire.ResponseHeader{}, nil, err
	}
	h, err := wire.ParseResponseHeader(header)
	if err != nil || h.Status != wire.RpcResponseHeader_SUCCESS {
		return h, nil, err
	}
	payload, rest, err := wire.CutDelimited(rest)
	if err == nil && len(rest) > 0 {
		err = badAnswer("%d bytes after an answer", len(rest))
	}
	return h, payload, err
}
