package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Conn is a connection. Reads are for one goroutine at a time, and so are writes; the rest is as with net.Conn.
type Conn struct {
	net.Conn
	// Raw is the way to its socket, nil if there is none.
	Raw syscall.RawConn

	in  inlet
	out outlet
}

// Wrap takes over a connection.
func Wrap(c net.Conn) *Conn { return &Conn{Conn: c, Raw: rawOf(c)} }

// rawOf returns the way to the socket of a plain TCP connection, where this system has the calls for it.
func rawOf(c net.Conn) syscall.RawConn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !available {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// inlet is what is being read.
type inlet struct {
	step func(fd uintptr) bool
	one  [1][]byte
	got  int
	err  error
}

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (int, error) {
	if c.Raw == nil || len(p) == 0 {
		return c.Conn.Read(p)
	}
	if c.in.step == nil {
		c.in.step = c.in.read
	}
	c.in.one[0], c.in.got, c.in.err = p, 0, nil
	err := c.Raw.Read(c.in.step)
	c.in.one[0] = nil
	switch {
	case err != nil:
		return 0, c.Failed("read", err)
	case c.in.err != nil:
		return 0, c.Failed("read", os.NewSyscallError("readv", c.in.err))
	case c.in.got == 0:
		return 0, io.EOF
	}
	return c.in.got, nil
}

// read reads what is there, and reports whether that was anything, or never will be.
func (i *inlet) read(fd uintptr) bool {
	i.got, i.err = Read(fd, i.one[:])
	return !errors.Is(i.err, syscall.EAGAIN)
}

// Failed is what the connection itself would say of an operation that has failed at its socket.
func (c *Conn) Failed(name string, err error) error {
	var raw *net.OpError
	if errors.As(err, &raw) {
		err = raw.Err
	}
	return &net.OpError{Op: name, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// writeMost is how many bytes one system call writes, besides its last slice: the scheduler of Go waits for that as for any code.
const writeMost = 256 << 10

// outlet is what is being written.
type outlet struct {
	step  func(fd uintptr) bool
	one   [1][]byte
	parts [][]byte
	done  int
	err   error
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (int, error) {
	if c.Raw == nil || len(p) == 0 {
		return c.Conn.Write(p)
	}
	c.out.one[0] = p
	return c.WriteAll(c.out.one[:])
}

// WriteAll writes slices one behind the other, and uses the outer slice up. It waits until all of them are with the system, and returns
// how many bytes are. It looks at the deadline for writing only where there is no room for more.
func (c *Conn) WriteAll(parts [][]byte) (int, error) {
	if c.Raw == nil {
		buffers := net.Buffers(parts)
		n, err := buffers.WriteTo(c.Conn)
		return int(n), err
	}
	if c.out.step == nil {
		c.out.step = c.out.write
	}
	c.out.parts, c.out.done, c.out.err = parts, 0, nil
	err := c.Raw.Write(c.out.step)
	c.out.parts = nil
	switch {
	case err != nil:
		return c.out.done, c.Failed("write", err)
	case c.out.err != nil:
		return c.out.done, c.Failed("write", os.NewSyscallError("writev", c.out.err))
	}
	return c.out.done, nil
}

// write writes what the socket takes, and reports whether that was all, or will never be.
func (o *outlet) write(fd uintptr) bool {
	for len(o.parts) > 0 {
		n, err := Write(fd, some(o.parts))
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if err != nil {
			o.err = err
			return true
		}
		o.parts = behind(o.parts, n)
		o.done += n
	}
	return true
}

// some is what one system call writes of parts.
func some(parts [][]byte) [][]byte {
	size := 0
	for i, p := range parts {
		if i == MaxSlices || size >= writeMost {
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
