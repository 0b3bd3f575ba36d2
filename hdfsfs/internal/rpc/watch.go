package rpc

import (
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// watchLoop looks at the connection from time to time.
func (c *conn) watchLoop() {
	o := c.opts
	period := min(o.CallTimeout, o.PingInterval, o.IdleTimeout) / 4
	ticker := time.NewTicker(max(min(period, time.Second), time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case now := <-ticker.C:
			c.look(now)
		}
	}
}

// look ends a connection that is silent or idle, and calls that have waited too long; it probes a connection that is quiet.
func (c *conn) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.opts
	switch {
	case !c.silent.IsZero() && now.Sub(c.silent) >= o.CallTimeout:
		c.end(errNoAnswer)
		return
	case len(c.calls) > c.deserted:
	case now.Sub(c.lastUse) >= o.IdleTimeout:
		c.end(errIdle)
		return
	default:
		return
	}
	for id, p := range c.calls {
		switch age := now.Sub(p.sent); {
		case age >= 2*o.CallTimeout:
			c.take(id) // nobody believes in its answer any more
		case age >= o.CallTimeout && !p.deserted:
			p.reply(answer{err: &TransportError{Server: c.server, Sent: true, Err: errNoAnswer}})
			p.deserted = true
			c.deserted++
		}
	}
	if now.Sub(c.lastIO) >= o.PingInterval {
		c.out = appendFrame(c.out, wire.CallIDPing, -1, c.clientID, nil)
		c.lastIO = now
		c.signal()
	}
}
