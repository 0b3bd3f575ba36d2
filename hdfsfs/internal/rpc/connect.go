package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// redialPause is how long the failure to connect holds for all callers, so that a thousand that wait for a server knock at its
// door as often as one does.
const redialPause = 50 * time.Millisecond

// link is the way to one server: a connection, or the attempt to make one, for all callers together.
type link struct {
	conn    *conn
	dialing *dialing
	failed  time.Time // when the last attempt did
	err     error     // of it
}

type dialing struct {
	done chan struct{}
	conn *conn
	err  error
}

// connection returns a connection to the server. If none is there one is made, in the background: it serves all who wait for it,
// whether or not the first of them stays.
func (c *Client) connection(ctx context.Context, server string) (*conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	l := c.links[server]
	if l == nil {
		l = &link{}
		c.links[server] = l
	}
	if l.conn != nil && !l.conn.ended() {
		defer c.mu.Unlock()
		return l.conn, nil
	}
	d := l.dialing
	if d == nil && l.err != nil && time.Since(l.failed) < redialPause {
		defer c.mu.Unlock()
		return nil, l.err
	}
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		l.dialing = d
		c.wg.Go(func() { c.dial(server, l, d) })
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial makes the connection of a link, and tells all who wait for it.
func (c *Client) dial(server string, l *link, d *dialing) {
	ctx, cancel := context.WithTimeout(c.base, c.opts.ConnectTimeout)
	defer cancel()
	nc, s, err := c.open(ctx, server)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		d.err = err
	case c.closed:
		_ = nc.Close() // nothing was sent over it
		d.err = ErrClosed
	default:
		d.conn = newConn(&c.opts, server, c.id, nc, s, &c.wg)
		l.conn = d.conn
	}
	l.dialing, l.err, l.failed = nil, d.err, time.Now()
	close(d.done)
}

func (c *Client) open(ctx context.Context, server string) (net.Conn, stream, error) {
	dialed, err := c.opts.Dial(ctx, "tcp", server)
	if err != nil {
		return nil, stream{}, &TransportError{Server: server, Err: withoutContext(err)}
	}
	nc := socket.Wrap(dialed)
	// The end of the context ends a read or write of the negotiation.
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	s, err := handshake(ctx, nc, &c.opts, server, c.id)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err == nil {
		return nc, s, nil
	}
	_ = nc.Close() // the connection is of no use
	return nil, stream{}, handshakeError(server, err)
}

// handshakeError tells a lost connection, after which another attempt makes sense, from a refusal.
func handshakeError(server string, err error) error {
	var refused *ServerError
	if errors.As(err, &refused) || errors.Is(err, wire.ErrMalformed) {
		return err
	}
	if isConnectionError(err) {
		return &TransportError{Server: server, Err: withoutContext(err)}
	}
	return fmt.Errorf("%s: authentication: %w", server, err)
}

// isConnectionError: what else a negotiation returns is its own.
func isConnectionError(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded)
}

func isNoSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// withoutContext keeps the time limit of a connection from being taken for the end of the caller's context.
func withoutContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}
