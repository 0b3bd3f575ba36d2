// Package transport carries messages between the job and its workers over TCP.
//
// Each message is one frame:
//
//	+--------+----------------+-----------------+
//	| u8     | u32 big-endian | length bytes    |
//	| type   | length         | payload         |
//	+--------+----------------+-----------------+
//
// The first frame of a worker is Hello with the job's token. Then the job sends Assign once, and any number of Advance and
// Trigger; the worker sends Progress, Ack and Decline. The end of the connection is the end of the worker's life: there is
// no reconnection, the job restores all workers from the last checkpoint instead. Payloads are those of package messages
// and, for Trigger, Ack and Decline, the binary forms of package coordinator.
package transport

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// maxFrame bounds a payload in bytes; larger state travels as files, not in messages.
const maxFrame = 64 << 20

// writeTimeout bounds how long a peer that does not read can hold up a sender.
const writeTimeout = 10 * time.Second

// Type of a message.
type Type uint8

// The types of messages.
const (
	Hello Type = iota + 1
	Assign
	Advance
	Trigger
	Progress
	Ack
	Decline
)

// Conn sends and receives messages. Send is safe for concurrent use; Receive is for one goroutine.
type Conn struct {
	conn net.Conn
	mu   sync.Mutex
}

// New wraps a connection.
func New(conn net.Conn) *Conn { return &Conn{conn: conn} }

// Send writes one message.
func (c *Conn) Send(t Type, payload []byte) error {
	if len(payload) > maxFrame {
		return fmt.Errorf("message of %d bytes: at most %d", len(payload), maxFrame)
	}
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = byte(t)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload))) //nolint:gosec // bounded above
	frame = append(frame, payload...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(frame)
	return err
}

// Receive reads one message. io.EOF means that the peer has closed the connection between two messages.
func (c *Conn) Receive() (Type, []byte, error) {
	var header [5]byte
	if _, err := io.ReadFull(c.conn, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if length > maxFrame {
		return 0, nil, fmt.Errorf("message of %d bytes: at most %d", length, maxFrame)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(c.conn, payload); err != nil {
		return 0, nil, fmt.Errorf("message cut off: %w", err)
	}
	return Type(header[0]), payload, nil
}

// Close closes the connection and breaks a pending Receive.
func (c *Conn) Close() error { return c.conn.Close() }
