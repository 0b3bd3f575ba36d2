package rpc

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// errIdle is why a connection ends that nobody uses.
var errIdle = errors.New("idle")

// conn is one connection to a server. It lives from newConn to fail, which any of its three loops or the client may call.
type conn struct {
	server   string
	clientID []byte
	opts     *Options
	nc       net.Conn
	stream   stream

	wake chan struct{} // holds one; there is something to write
	done chan struct{} // closed when err is set

	mu       sync.Mutex
	calls    map[int32]*pending
	large    int           // of them, those that may have a large answer
	unread   int           // bytes of them, which the server may not have read yet
	deserted int           // of them, those whose callers have left
	out      []byte        // frames to be written
	writing  bool          // somebody writes to the stream
	spare    []byte        // the space of frames that were written
	room     chan struct{} // closed when out has been taken; nil if nobody waits
	err      error         // why it ended
	lastIO   time.Time     // when something was written or came
	lastUse  time.Time     // when the last call began or ended
	silent   time.Time     // since when a call is without any answer; zero if none is
}

// pending is a call in flight. One whose caller has left stays until its answer comes: that may be a large one.
type pending struct {
	method   string
	large    bool
	size     int // of the frame
	deserted bool
	sent     time.Time
	answer   chan answer // holds one
}

type answer struct {
	payload []byte
	err     error
}

// newConn takes over nc and starts the loops, which wg counts.
func newConn(o *Options, server string, clientID []byte, nc net.Conn, s stream, wg *sync.WaitGroup) *conn {
	now := time.Now()
	c := &conn{
		server: server, clientID: clientID, opts: o, nc: nc, stream: s,
		wake: make(chan struct{}, 1), done: make(chan struct{}), calls: map[int32]*pending{},
		lastIO: now, lastUse: now,
	}
	for _, loop := range []func(){c.writeLoop, c.readLoop, c.watchLoop} {
		wg.Go(loop)
	}
	return c
}

// call sends one attempt of a call and waits for the bytes of its answer, at most until the context ends.
func (c *conn) call(ctx context.Context, call Call, id, attempt int32, body []byte) ([]byte, error) {
	p := &pending{method: call.Method, large: call.LargeAnswer, size: maxHead + len(body), answer: make(chan answer, 1)}
	if err := c.enqueue(ctx, p, id, attempt, body); err != nil {
		return nil, err
	}
	select {
	case a := <-p.answer:
		return a.payload, a.err
	case <-ctx.Done():
		c.desert(p)
		return nil, ctx.Err()
	}
}

// maxDirect is how much may be in flight when a caller writes itself. A socket takes as much at once, even if none of it has been
// read.
const maxDirect = 8 << 10

// maxHead is more than a frame has before its body.
const maxHead = 64

// enqueue hands a call to the write loop, or writes it itself if little is in flight: then that cannot block, and saves the change
// to another goroutine. If too many bytes wait already it waits too.
func (c *conn) enqueue(ctx context.Context, p *pending, id, attempt int32, body []byte) error {
	for {
		c.mu.Lock()
		if c.err != nil {
			defer c.mu.Unlock()
			return &TransportError{Server: c.server, Err: c.err}
		}
		if len(c.out) == 0 || len(c.out)+len(body) <= maxQueued {
			direct := len(c.out) == 0 && !c.writing && c.unread+p.size <= maxDirect
			c.add(p, id)
			c.out = appendFrame(c.out, id, attempt, c.clientID, body)
			if !direct {
				c.mu.Unlock()
				c.signal()
				return nil
			}
			c.write() // unlocks; an error comes as the answer
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *conn) add(p *pending, id int32) {
	p.sent = time.Now()
	c.lastUse = p.sent
	if c.silent.IsZero() {
		c.silent = p.sent
	}
	c.take(id) // an earlier attempt, which has timed out; its answer is as good
	c.calls[id] = p
	c.unread += p.size
	if p.large {
		c.large++
	}
}

// take removes a call; the lock is held.
func (c *conn) take(id int32) *pending {
	p := c.calls[id]
	if p == nil {
		return nil
	}
	delete(c.calls, id)
	c.unread -= p.size
	if p.large {
		c.large--
	}
	if p.deserted {
		c.deserted--
	}
	return p
}

// desert notes that the caller has left. The call is in flight, or has just been answered and does not matter any more.
func (c *conn) desert(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.deserted && len(p.answer) == 0 {
		p.deserted = true
		c.deserted++
		c.lastUse = time.Now()
	}
}

// reply hands over the first answer; later ones are of no interest.
func (p *pending) reply(a answer) {
	select {
	case p.answer <- a:
	default:
	}
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// ended reports whether the connection takes no more calls.
func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// fail ends the connection, once, and with it all calls in flight.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(err)
}

// end is fail where the lock is held.
func (c *conn) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	_ = c.nc.Close() // nothing is lost by it: what was not answered has failed
	for id, p := range c.calls {
		c.take(id)
		p.reply(answer{err: c.lost(err)})
	}
	c.out = nil
}

// lost is the error of a call in flight.
func (c *conn) lost(err error) error {
	var fatal *ServerError
	if errors.As(err, &fatal) {
		return fatal
	}
	return &TransportError{Server: c.server, Sent: true, Err: err}
}

// writeLoop writes what has been queued, in batches: what comes during one write goes out with the next.
func (c *conn) writeLoop() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.mu.Lock()
		if c.writing || len(c.out) == 0 {
			c.mu.Unlock() // who writes will wake this loop if there is more
			continue
		}
		c.write()
	}
}

// write writes all that is queued. The lock is held by the caller, and is released. Nobody else must be writing.
func (c *conn) write() {
	const keep = 1 << 20
	batch := c.out
	c.out, c.spare = c.spare[:0], nil
	c.writing = true
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	c.mu.Unlock()

	_ = c.nc.SetWriteDeadline(time.Now().Add(c.opts.CallTimeout)) // an error is that of Write
	_, err := c.stream.w.Write(batch)

	c.mu.Lock()
	c.writing = false
	if cap(batch) <= keep {
		c.spare = batch
	}
	more := len(c.out) > 0
	c.mu.Unlock()
	if err != nil {
		c.fail(timeout(err))
	} else if more {
		c.signal()
	}
}

// readLoop hands answers to their calls.
func (c *conn) readLoop() {
	for {
		if err := c.readAnswer(c.stream.r); err != nil {
			c.fail(err)
			return
		}
	}
}

// readAnswer waits for the next answer and hands it over. How long it may be depends on the calls in flight when it comes.
func (c *conn) readAnswer(r *bufio.Reader) error {
	if _, err := r.Peek(1); err != nil {
		return err
	}
	limit := int64(smallAnswer)
	c.mu.Lock()
	if c.large > 0 {
		limit = int64(c.opts.MaxAnswer)
	}
	c.mu.Unlock()
	frame, err := readFrame(r, limit, nil)
	if err != nil {
		return err
	}
	return c.deliver(frame)
}

// deliver hands one answer over. The error ends the connection.
func (c *conn) deliver(frame []byte) error {
	h, payload, err := cutAnswer(frame)
	if err != nil {
		return err
	}
	if len(h.ClientID) > 0 && string(h.ClientID) != string(c.clientID) {
		return badAnswer("an answer for another client")
	}
	c.mu.Lock()
	p := c.take(h.CallID)
	now := time.Now()
	c.lastIO, c.lastUse, c.silent = now, now, time.Time{}
	if len(c.calls) > 0 {
		c.silent = now
	}
	c.mu.Unlock()
	method := "connection"
	if p != nil {
		method = p.method
	}
	a := answer{payload: payload}
	if h.Status != wire.RpcResponseHeader_SUCCESS {
		a = answer{err: serverError(c.server, method, h)}
	}
	if p != nil {
		p.reply(a)
	}
	if h.Status == wire.RpcResponseHeader_FATAL {
		return a.err
	}
	return nil
}

// timeout names the error of a deadline of a connection.
func timeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errNoAnswer
	}
	return err
}
