package datanode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Conn is a connection to a DataNode. Reads must go through Reader.
type Conn struct {
	net.Conn
	Reader *bufio.Reader
	Node   string          // its address
	Raw    syscall.RawConn // the way to its socket, nil if there is none

	lowWater int // what SetLowWater has set; 0 is 1
	in       inlet
	out      outlet
}

// readBuffer holds the answers of a pipeline. Who reads blocks has a buffer of its own.
const readBuffer = 4 << 10

func newConn(c net.Conn, node string) *Conn {
	conn := &Conn{Conn: c, Node: node, Raw: socket.Raw(c)}
	conn.Reader = bufio.NewReaderSize(conn, readBuffer)
	return conn
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
		return 0, c.operation("read", err)
	case c.in.err != nil:
		return 0, c.operation("read", os.NewSyscallError("readv", c.in.err))
	case c.in.got == 0:
		return 0, io.EOF
	}
	return c.in.got, nil
}

// operation is what the connection itself would say of a failure.
func (c *Conn) operation(name string, err error) error {
	var raw *net.OpError
	if errors.As(err, &raw) {
		err = raw.Err
	}
	return &net.OpError{Op: name, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// read reads what is there, and reports whether that was anything, or never will be.
func (i *inlet) read(fd uintptr) bool {
	i.got, i.err = socket.Read(fd, i.one[:])
	return !errors.Is(i.err, syscall.EAGAIN)
}

// Watch makes what waits for the connection fail when ctx ends, until stop is called.
func (c *Conn) Watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// Request asks for an operation.
func (c *Conn) Request(op wire.Op, m proto.Message) error {
	b, err := wire.AppendOp(make([]byte, 0, 1<<10), op, m)
	if err != nil {
		return c.failed("request", err)
	}
	if _, err := c.Write(b); err != nil {
		return c.failed("request", err)
	}
	return nil
}

// maxResponse bounds the answer to a request.
const maxResponse = 1 << 20

// Response reads the answer to a request. One that is not a success is a *NodeError with its status, and is returned too.
func (c *Conn) Response() (*wire.BlockOpResponse, error) {
	var r wire.BlockOpResponse
	if err := wire.ReadDelimited(c.Reader, maxResponse, &r); err != nil {
		return nil, c.failed("answer", err)
	}
	if r.GetStatus() != wire.Status_SUCCESS {
		e := &NodeError{Node: c.Node, Op: "answer", Status: r.GetStatus(), FirstBadLink: r.GetFirstBadLink(), Err: errors.New(r.GetMessage())}
		if r.GetMessage() == "" {
			e.Err = errRefused
		}
		return &r, e
	}
	return &r, nil
}

var errRefused = errors.New("refused without a reason")

func (c *Conn) failed(op string, err error) error { return &NodeError{Node: c.Node, Op: op, Err: err} }
