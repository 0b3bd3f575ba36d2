package job

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/messages"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/transport"
)

// window is how many chunks the workers may be ahead of the slowest one.
const window = 4

// crew are the connected workers. What is sent to all of them is sent under one lock, so that every worker sees triggers and
// limits in the same order: that makes the limit a barrier.
type crew struct {
	mu       sync.Mutex
	members  []atomic.Pointer[transport.Conn] // set once each
	position []int64
	limit    int64
	end      int64
}

func newCrew(workers int) *crew {
	return &crew{members: make([]atomic.Pointer[transport.Conn], workers), position: make([]int64, workers)}
}

// begin sends the assignments and the first limit.
func (c *crew) begin(assign func(index int) messages.Assign, position, end int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.end = position, end
	for i := range c.members {
		c.position[i] = position
		if err := messages.Send(c.members[i].Load(), transport.Assign, assign(i)); err != nil {
			return fmt.Errorf("assign to worker %d: %w", i, err)
		}
	}
	return c.advance()
}

// progress notes how far a worker is and lets the crew go on. It reports whether all are at the end.
func (c *crew) progress(worker int, position int64) (finished bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position[worker] = position
	return c.slowest() == c.end, c.advance()
}

// advance raises the limit if the slowest worker is half a window from it.
func (c *crew) advance() error {
	target := min(c.slowest()+window, c.end)
	if target <= c.limit || c.limit-c.slowest() > window/2 {
		return nil
	}
	c.limit = target
	for i := range c.members {
		if err := messages.Send(c.members[i].Load(), transport.Advance, messages.Advance{Limit: target}); err != nil {
			return fmt.Errorf("advance worker %d: %w", i, err)
		}
	}
	return nil
}

func (c *crew) slowest() int64 {
	slowest := c.position[0]
	for _, position := range c.position {
		slowest = min(slowest, position)
	}
	return slowest
}

// trigger asks every worker for its state at the limit that it knows.
func (c *crew) trigger(_ context.Context, trigger coordinator.Trigger) error {
	payload, err := trigger.MarshalBinary()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.members {
		if err := c.members[i].Load().Send(transport.Trigger, payload); err != nil {
			return fmt.Errorf("trigger worker %d: %w", i, err)
		}
	}
	return nil
}

// close breaks every send and receive. It takes no lock, since a send may be hanging under it.
func (c *crew) close() {
	for i := range c.members {
		if member := c.members[i].Load(); member != nil {
			_ = member.Close()
		}
	}
}
