package datanode

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

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
	return NewConn(c, address), nil
}

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
