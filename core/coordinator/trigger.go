package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// request is what a caller wants to be taken.
type request struct {
	kind   Kind
	stop   bool
	target string // of a savepoint
}

// TriggerCheckpoint takes a checkpoint and returns when it has its outcome: the calling goroutine drives it. It waits for a
// free slot first, see Options.MaxConcurrent.
//
// With a nil Committed the checkpoint does not exist: the error says why, see the sentinels of this package; for the time
// that was up and for the end of ctx it is that of context. With a Committed and an error the checkpoint stands, but
// OnCommitted returned that error.
func (c *Coordinator) TriggerCheckpoint(ctx context.Context) (*Committed, error) {
	return c.take(ctx, request{kind: Checkpoint})
}

// TriggerSavepoint takes a savepoint as TriggerCheckpoint takes a checkpoint, in a fresh directory below the qualified directory
// target; "" is the SavepointDir of the storage. The savepoint owns all its files. It is not reported to OnCommitted, does
// not count for retention, and is never deleted by the coordinator.
func (c *Coordinator) TriggerSavepoint(ctx context.Context, target string) (*Committed, error) {
	return c.take(ctx, request{kind: Savepoint, target: target})
}

// StopWithSavepoint takes a savepoint as TriggerSavepoint does, with Trigger.Stop set. While it is under way nothing else is
// triggered. If it is committed, it is reported to OnCommitted, and the coordinator ends: nothing more is triggered, and Run
// returns nil. If not, everything goes on as before.
//
// The job goes on from the savepoint only if the next coordinator is given its pointer (Options.Restore): by itself Start
// knows the job directory only, and would restore the newest checkpoint there. One is kept in any case; otherwise the
// savepoint counts as one of the retained.
func (c *Coordinator) StopWithSavepoint(ctx context.Context, target string) (*Committed, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	if err := c.beginStop(); err != nil {
		return nil, err
	}
	committed, err := c.takeSlot(ctx, request{kind: Savepoint, stop: true, target: target})
	if committed != nil {
		c.end(errStopped)
	}
	c.endStop()
	return committed, err
}

func (c *Coordinator) beginStop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping != nil {
		return errStopping
	}
	c.stopping = make(chan struct{})
	return nil
}

func (c *Coordinator) endStop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.stopping)
	c.stopping = nil
}

var errStopping = fmt.Errorf("the job is being stopped with a savepoint: %w", fs.ErrClosed)

func (c *Coordinator) take(ctx context.Context, r request) (*Committed, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	return c.takeSlot(ctx, r)
}

// takeSlot waits for a slot and drives a checkpoint in it.
func (c *Coordinator) takeSlot(ctx context.Context, r request) (*Committed, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.over:
		return nil, c.endedWith()
	case <-ctx.Done():
		return nil, fmt.Errorf("no slot for another checkpoint: %w", context.Cause(ctx))
	}
	defer func() { <-c.slots }()
	return c.drive(ctx, r)
}

func (c *Coordinator) endedWith() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// drive takes a checkpoint from its beginning to its outcome.
func (c *Coordinator) drive(ctx context.Context, r request) (*Committed, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout,
		fmt.Errorf("%w: it was not complete within %v", context.DeadlineExceeded, c.opts.Timeout))
	defer cancel()
	p, err := c.begin(limited, r)
	if p == nil {
		return nil, c.noteFence(err)
	}
	defer p.cancel(nil)
	if err == nil {
		select {
		case <-p.acked:
			return c.finish(ctx, p)
		case <-p.ctx.Done():
			err = context.Cause(p.ctx)
		}
	}
	return nil, c.abort(p, err, unpublished)
}

// begin makes the location of a new checkpoint and sends its trigger. Triggers are sent one after the other, in the order of
// their ids. A nil pending means that no id was used.
func (c *Coordinator) begin(ctx context.Context, r request) (*pending, error) {
	if err := c.trigger.take(ctx); err != nil {
		return nil, err
	}
	defer c.trigger.give()
	if err := c.clarify(ctx); err != nil {
		return nil, err
	}
	if r.kind == Savepoint { // for a checkpoint Begin looks at the claim
		if err := c.owner.Check(ctx); err != nil {
			return nil, err
		}
	}
	p, err := c.admit(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := c.locate(p, r.target); err != nil {
		return p, p.reason(err)
	}
	c.observe(Event{Type: EventTriggered, CheckpointID: p.trigger.CheckpointID, Kind: p.trigger.Kind})
	if err := c.opts.Send(p.ctx, p.trigger); err != nil {
		return p, p.reason(fmt.Errorf("the trigger could not be sent: %w", err))
	}
	return p, nil
}

// admit gives the checkpoint its id, unless the coordinator has ended or is about to.
func (c *Coordinator) admit(ctx context.Context, r request) (*pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return nil, c.ended
	case c.stopping != nil && !r.stop:
		return nil, errStopping
	case c.nextID < 0:
		return nil, fmt.Errorf("%w: the checkpoint ids are used up", fs.ErrInvalid)
	}
	t := Trigger{CheckpointID: c.nextID, Epoch: c.owner.Epoch(), Kind: r.kind, Stop: r.stop, Timestamp: c.timestamp()}
	if r.kind == Checkpoint {
		t.Base = c.base
	}
	c.nextID++ // after the last one negative
	p := newPending(ctx, t, c.opts.Operators, c.opts.Now())
	if i := slices.IndexFunc(c.complete, func(e complete) bool { return e.id == t.Base }); i >= 0 {
		p.inherited = c.complete[i].objects
	}
	c.pending[t.CheckpointID] = p
	return p, nil
}

// locate makes the directory of the checkpoint.
func (c *Coordinator) locate(p *pending, target string) error {
	var location *core.PendingLocation
	var err error
	if p.trigger.Kind == Savepoint {
		location, err = c.owner.BeginSavepoint(p.ctx, target)
	} else {
		location, err = c.owner.Begin(p.ctx, p.trigger.CheckpointID)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.location = location
	p.trigger.Reference = location.Reference()
	return nil
}

// reason is why a step for the checkpoint failed with err: first of all the reason for which its context was ended, if it
// was.
func (p *pending) reason(err error) error {
	cause := context.Cause(p.ctx)
	switch {
	case cause == nil || errors.Is(err, cause) || errors.Is(err, core.ErrFenced):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return cause
	}
	return fmt.Errorf("%w; then %w", cause, err)
}

// forget removes a checkpoint that has its outcome.
func (c *Coordinator) forget(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, p.trigger.CheckpointID)
	c.lastEnd = c.opts.Now()
}

// inUse returns the checkpoints whose shared files may be referred to by ones under way. It is called with mu held.
func (c *Coordinator) inUse() map[int64]bool {
	used := map[int64]bool{}
	for p := range c.undecided() {
		used[p.trigger.Base] = true
	}
	return used
}

// undecided yields all checkpoints that may still be committed, or have been. It is called with mu held.
func (c *Coordinator) undecided() func(yield func(*pending) bool) {
	all := slices.Concat(slices.Collect(maps.Values(c.pending)), c.unclear)
	return slices.Values(all)
}
