package datanode

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
)

// sendMost is how many bytes one system call writes, besides its last slice: the scheduler of Go waits for that as for any code.
const sendMost = 256 << 10

// outlet is what is being sent.
type outlet struct {
	step  func(fd uintptr) bool
	parts [][]byte
	err   error
}

// Send writes slices, none of them empty, one behind the other, and uses the outer slice up. It waits until all of them are with
// the system, at most until the deadline for writing. It is for one goroutine at a time.
func (c *Conn) Send(parts [][]byte) error {
	if c.Raw == nil {
		buffers := net.Buffers(parts)
		_, err := buffers.WriteTo(c.Conn)
		return err
	}
	if c.out.step == nil {
		c.out.step = c.out.write
	}
	c.out.parts, c.out.err = parts, nil
	err := c.Raw.Write(c.out.step)
	c.out.parts = nil
	switch {
	case err != nil:
		return c.operation("write", err)
	case c.out.err != nil:
		return c.operation("write", os.NewSyscallError("writev", c.out.err))
	}
	return nil
}

// write writes what the socket takes, and reports whether that was all, or will never be.
func (o *outlet) write(fd uintptr) bool {
	for len(o.parts) > 0 {
		n, err := socket.Write(fd, some(o.parts))
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if err != nil {
			o.err = err
			return true
		}
		o.parts = behind(o.parts, n)
	}
	return true
}

// some is what one system call writes of parts.
func some(parts [][]byte) [][]byte {
	size := 0
	for i, p := range parts {
		if i == socket.MaxSlices || size >= sendMost {
			return parts[:i]
		}
		size += len(p)
	}
	return parts
}

// behind is what is left of parts behind n bytes.
func behind(parts [][]byte, n int) [][]byte {
	for len(parts) > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts[0] = nil
		parts = parts[1:]
	}
	if n > 0 {
		parts[0] = parts[0][n:]
	}
	return parts
}
