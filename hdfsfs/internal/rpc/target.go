package rpc

import (
	"context"
	"errors"
)

// target is the server to call now.
type target struct {
	server  string
	servers int
	epoch   int
}

func (c *Client) target(ctx context.Context) (target, error) {
	c.mu.Lock()
	known := c.servers
	if len(known) > 0 {
		defer c.mu.Unlock()
		return target{known[c.current], len(known), c.epoch}, nil
	}
	epoch := c.epoch
	c.mu.Unlock()
	servers, err := c.opts.Resolver.Servers(ctx)
	if err == nil && len(servers) == 0 {
		err = errors.New("no servers are known")
	}
	if err != nil {
		return target{epoch: epoch}, &TransportError{Server: "address resolution", Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.servers) == 0 {
		c.servers, c.current = servers, 0
	}
	return target{c.servers[c.current], len(c.servers), c.epoch}, nil
}

// failOver goes on to the next server, unless somebody else has since the target of that epoch was chosen. After the last
// server the resolver is asked again.
func (c *Client) failOver(epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return
	}
	c.epoch++
	if c.current++; c.current >= len(c.servers) {
		c.servers, c.current = nil, 0
	}
}
