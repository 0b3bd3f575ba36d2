package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Call is a method, and what is to be known of it.
type Call struct {
	Method    string
	Semantics Semantics
	// LargeAnswer allows an answer up to Options.MaxAnswer.
	LargeAnswer bool
}

// Client calls the servers of one service. It is safe for concurrent use.
type Client struct {
	opts      Options
	id        []byte
	lastID    atomic.Uint32
	connected atomic.Bool

	base context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // every goroutine of the client

	mu      sync.Mutex
	closed  bool
	servers []string
	current int
	epoch   int // counts changes of current
	links   map[string]*link
}

// New checks the options and returns a Client. Nothing is connected before the first call.
func New(o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{opts: o, id: make([]byte, wire.ClientIDSize), links: map[string]*link{}}
	_, _ = rand.Read(c.id) // never fails
	c.base, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// ID is the id by which servers know the client.
func (c *Client) ID() [wire.ClientIDSize]byte { return [wire.ClientIDSize]byte(c.id) }

// Close ends all connections and calls, and returns when nothing of the client runs any more. It may be called again.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.stop()
	for _, l := range c.links {
		if l.conn != nil {
			l.conn.fail(ErrClosed)
		}
	}
	c.mu.Unlock()
	c.wg.Wait()
	return nil
}

// Call calls a method and decodes the answer into response. It repeats the call as the Plan says, with the same ids.
//
// The error is a [*ServerError] or [*TransportError] for the last failure, [wire.ErrMalformed] for an answer that cannot be
// decoded, [ErrClosed], or that of the context, joined with the last failure if there was one. After a context's end, or a
// TransportError with Sent, it is not known whether the call was executed.
func (c *Client) Call(ctx context.Context, call Call, request, response proto.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	body, err := callBody(c.opts.Protocol, call.Method, request)
	if err != nil {
		return fmt.Errorf("%s: %w", call.Method, err)
	}
	if len(body) > c.opts.MaxRequest {
		return fmt.Errorf("%s: a request of %d bytes, more than %d", call.Method, len(body), c.opts.MaxRequest)
	}
	payload, err := c.repeat(ctx, call, body)
	if err != nil {
		return err
	}
	if err := wire.UnmarshalLarge(payload, response); err != nil {
		return fmt.Errorf("%s: %w", call.Method, err)
	}
	return nil
}

// nextID counts up in the 31 bits that an id has. A NameNode remembers ids for ten minutes.
func (c *Client) nextID() int32 { return int32(c.lastID.Add(1) & (1<<31 - 1)) }

// repeat makes attempts until one is answered or the plan gives up.
func (c *Client) repeat(ctx context.Context, call Call, body []byte) ([]byte, error) {
	id := c.nextID()
	f := Failure{Semantics: call.Semantics}
	var (
		last  error     // failure
		since time.Time // of the first failure
	)
	for {
		target, err := c.target(ctx)
		var payload []byte
		if err == nil {
			if payload, err = c.attempt(ctx, target.server, call, id, int32(f.Attempts), body); err == nil {
				c.connected.Store(true)
				return payload, nil
			}
		}
		// An answer that came just before the end is still one.
		if ended := ctx.Err(); ended == nil || !errors.Is(err, ended) {
			last = err
		} else {
			return nil, c.stopped(ctx, last)
		}
		if c.base.Err() != nil {
			return nil, ErrClosed
		}
		now := time.Now()
		if f.Attempts == 0 {
			since = now
		}
		f.Attempts++
		f.Elapsed = now.Sub(since)
		f.Servers, f.Connected = target.servers, c.connected.Load()
		f.Cause, f.Class = causeOf(err)
		f.NoSuchHost, f.Silent = isNoSuchHost(err), errors.Is(err, errNoAnswer)
		if f.Cause == Answered {
			c.connected.Store(true)
		}
		d := c.opts.Plan(f)
		if d.Action == GiveUp {
			return nil, err
		}
		wait := time.Duration(float64(d.Wait) * (0.5 + c.opts.Jitter()))
		c.opts.Observe(Retry{Method: call.Method, Failure: f, Err: err, Action: d.Action, Wait: wait})
		if d.Action == FailOver {
			f.Failovers++
			c.failOver(target.epoch)
		}
		if !c.sleep(ctx, wait) {
			return nil, c.stopped(ctx, last)
		}
	}
}

// stopped is the error of a call that ends before it is answered, with its context or with the client.
func (c *Client) stopped(ctx context.Context, last error) error {
	ended := ctx.Err()
	if ended == nil {
		return ErrClosed
	}
	if last == nil || errors.Is(last, ended) {
		return ended
	}
	return fmt.Errorf("%w; the last failure was: %w", ended, last)
}

// causeOf tells what a plan wants to know of an error.
func causeOf(err error) (Cause, string) {
	var (
		server    *ServerError
		transport *TransportError
	)
	switch {
	case errors.As(err, &server):
		return Answered, server.Class
	case errors.Is(err, wire.ErrMalformed):
		return Refused, ""
	case !errors.As(err, &transport):
		return Refused, ""
	case transport.Sent:
		return Lost, ""
	}
	return NoConnection, ""
}

// sleep waits and reports whether the time has passed; else the context has ended or the client was closed.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.base.Done():
	}
	return false
}

// attempt makes one attempt, over the connection that there is or over a new one.
func (c *Client) attempt(ctx context.Context, server string, call Call, id, attempt int32, body []byte) ([]byte, error) {
	conn, err := c.connection(ctx, server)
	if err != nil {
		return nil, err
	}
	return conn.call(ctx, call, id, attempt, body)
}
