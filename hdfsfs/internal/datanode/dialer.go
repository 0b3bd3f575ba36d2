package datanode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Options of a Dialer. The zero value of a field is its documented default.
type Options struct {
	// Dial makes a connection; nil is net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wrap makes a fresh connection secure, by the token of the block that it is for. nil leaves it as it is.
	Wrap func(ctx context.Context, c net.Conn, node *wire.DatanodeInfo, token *wire.Token) (net.Conn, error)
	// UseHostname dials host names, not addresses (dfs.client.use.datanode.hostname).
	UseHostname bool
	// Timeout is how long a DataNode may be silent; 0 is 60 s (dfs.client.socket-timeout).
	Timeout time.Duration
	// WriteTimeout is how long it may take to accept what is sent; 0 is Timeout (dfs.datanode.socket.write.timeout).
	WriteTimeout time.Duration
}

// Dialer connects to DataNodes. It may be used concurrently.
type Dialer struct{ o Options }

// NewDialer returns a Dialer.
func NewDialer(o Options) *Dialer {
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = o.Timeout
	}
	return &Dialer{o}
}

// Timeout is how long a DataNode may be silent.
func (d *Dialer) Timeout() time.Duration { return d.o.Timeout }

// WriteTimeout is how long a DataNode may take to accept what is sent.
func (d *Dialer) WriteTimeout() time.Duration { return d.o.WriteTimeout }

// Address is where the data port of a node is.
func (d *Dialer) Address(node *wire.DatanodeInfo) string {
	host := node.GetId().GetIpAddr()
	if d.o.UseHostname || host == "" {
		host = node.GetId().GetHostName()
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(node.GetId().GetXferPort()), 10))
}

// Connect connects to the data port of a node. The error is a *NodeError.
func (d *Dialer) Connect(ctx context.Context, node *wire.DatanodeInfo, token *wire.Token) (*Conn, error) {
	address := d.Address(node)
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	c, err := d.o.Dial(ctx, "tcp", address)
	if err == nil && d.o.Wrap != nil {
		secure, wrapErr := d.o.Wrap(ctx, c, node, token)
		if wrapErr != nil {
			_ = c.Close()
		}
		c, err = secure, wrapErr
	}
	if err != nil {
		return nil, &NodeError{Node: address, Op: "connect", Err: err}
	}
	return &Conn{Conn: c, Reader: bufio.NewReaderSize(c, readBuffer), Node: address}, nil
}

// readBuffer holds the answers of a pipeline. Who reads blocks has a buffer of its own.
const readBuffer = 4 << 10

// Conn is a connection to a DataNode. Reads must go through Reader.
type Conn struct {
	net.Conn
	Reader *bufio.Reader
	Node   string // its address

	lowWater int // what SetLowWater has set; 0 is 1
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

// NodeError says what went wrong with one DataNode.
type NodeError struct {
	Node         string // host:port of its data port
	Op           string
	Status       wire.Status // of its answer; SUCCESS if there was none
	FirstBadLink string      // the node of a pipeline that its answer blames, "" if none
	Err          error
}

func (e *NodeError) Error() string {
	s := fmt.Sprintf("DataNode %s: %s: ", e.Node, e.Op)
	if e.Status != wire.Status_SUCCESS {
		s += e.Status.String() + ": "
	}
	if e.FirstBadLink != "" {
		s += "it blames " + e.FirstBadLink + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }
