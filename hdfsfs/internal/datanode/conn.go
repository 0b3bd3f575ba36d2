package datanode

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Conn is a connection to a DataNode. Reads must go through Reader, or past it once it is empty.
type Conn struct {
	*socket.Conn
	Reader *bufio.Reader
	Node   string // its address

	lowWater int // what SetLowWater has set; 0 is 1
}

// NewConn takes over a connection to a node at an address.
func NewConn(c net.Conn, node string) *Conn {
	conn := socket.Wrap(c)
	return &Conn{Conn: conn, Reader: bufio.NewReaderSize(conn, readBuffer), Node: node}
}

// readBuffer holds the answers of a pipeline. Who reads blocks has a buffer of its own.
const readBuffer = 4 << 10

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
