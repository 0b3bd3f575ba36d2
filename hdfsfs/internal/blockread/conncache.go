package blockread

import (
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
)

// connCache keeps connections whose node waits for the next request. Each closes itself when its time is over.
type connCache struct {
	limit int
	keep  time.Duration

	mu     sync.Mutex
	closed bool
	idle   []*idleConn // the oldest first
}

type idleConn struct {
	*datanode.Conn
	timer *time.Timer
}

// get takes the youngest connection to a node out, or returns nil.
func (c *connCache) get(node string) *datanode.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.idle) - 1; i >= 0; i-- {
		if found := c.idle[i]; found.Node == node {
			c.remove(i)
			return found.Conn
		}
	}
	return nil
}

// put takes over a connection. If there are too many, the oldest is closed.
func (c *connCache) put(conn *datanode.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.limit <= 0 {
		_ = conn.Close()
		return
	}
	if len(c.idle) >= c.limit {
		_ = c.idle[0].Close()
		c.remove(0)
	}
	kept := &idleConn{Conn: conn}
	kept.timer = time.AfterFunc(c.keep, func() { c.expire(kept) })
	c.idle = append(c.idle, kept)
}

// remove needs the lock.
func (c *connCache) remove(i int) {
	c.idle[i].timer.Stop()
	c.idle = append(c.idle[:i], c.idle[i+1:]...)
}

func (c *connCache) expire(old *idleConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, kept := range c.idle {
		if kept == old {
			_ = old.Close()
			c.remove(i)
			return
		}
	}
}

func (c *connCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, kept := range c.idle {
		kept.timer.Stop()
		_ = kept.Close()
	}
	c.idle = nil
}

// deadNodes remembers nodes that could not be reached.
type deadNodes struct {
	keep time.Duration

	mu    sync.Mutex
	until map[string]time.Time
}

func (d *deadNodes) mark(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil {
		d.until = map[string]time.Time{}
	}
	d.until[node] = time.Now().Add(d.keep)
}

// clear forgets a node that has answered.
func (d *deadNodes) clear(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.until, node)
}

func (d *deadNodes) has(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.until[node]
	if ok && time.Now().After(until) {
		delete(d.until, node)
		ok = false
	}
	return ok
}
