package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// abort ends a checkpoint that is not committed: its directory and the files that were written for it elsewhere are
// removed, also after the context has ended. It returns the error for the caller. Only the goroutine that drives the checkpoint
// calls it, in the turn of the commit if something may have been published.
func (c *Coordinator) abort(p *pending, reason error, published progress) error {
	p.cancel(reason)
	if errors.Is(c.noteFence(reason), core.ErrFenced) {
		c.forget(p)
		return reason
	}
	id := p.trigger.CheckpointID
	c.mu.Lock()
	p.failure = reason
	c.mu.Unlock()
	err := c.takeBack(p.ctx, p, published)
	switch afterDisposal(published, err) {
	case fencedOff:
		c.forget(p)
		return errors.Join(c.noteFence(err), reason)
	case outcomeUnclear:
		c.setUnclear(p)
		return fmt.Errorf("%v %d: %w: %w", p.trigger.Kind, id, ErrUnsettled, errors.Join(reason, err))
	case directoryLeft:
		c.addRemains(p)
		c.leftBehind(id, "the directory of an aborted checkpoint could not be removed; the next commit tries again", err)
	case nothingLeft:
	}
	c.aborted(p, published)
	return fmt.Errorf("%v %d was aborted: %w", p.trigger.Kind, id, reason)
}

// takeBack removes the directory of a checkpoint, unless there is none of it. It finds out in any case if the coordinator was
// fenced meanwhile: then the successor may use the same id, and nothing must be said of it.
func (c *Coordinator) takeBack(ctx context.Context, p *pending, published progress) error {
	if p.location != nil && published != occupied {
		err := p.location.DisposeOnFailure(ctx)
		if err != nil || p.trigger.Kind == Checkpoint {
			return err
		}
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := c.owner.Check(ctx); errors.Is(err, core.ErrFenced) {
		return err
	}
	return nil
}

// leftByAbort returns where files of a checkpoint remain when its directory is gone.
func leftByAbort(location *core.PendingLocation) []core.Place {
	if location != nil && location.Scattered() {
		return writtenIn
	}
	return []core.Place{core.InSharedDir, core.InPackDir}
}

// aborted is the outcome of a checkpoint that certainly does not exist. Where another metadata file is in its place, that may
// refer to the files of its tasks, and so nothing of them is deleted, now or when they are late.
func (c *Coordinator) aborted(p *pending, published progress) {
	ctx, cancel := detached(p.ctx)
	defer cancel()
	t := p.trigger
	c.mu.Lock()
	c.registry.release(t.CheckpointID)
	c.mu.Unlock()
	if published != occupied {
		c.discard(ctx, discarding{
			id: t.CheckpointID, objects: slices.Concat(p.objects, p.refused), inherited: p.inherited, places: leftByAbort(p.location),
		})
	}
	c.forget(p)
	if published != occupied {
		c.rememberFailed(p)
	}
	c.observe(Event{
		Type: EventAborted, CheckpointID: t.CheckpointID, Kind: t.Kind, Duration: c.opts.Now().Sub(p.begun), Err: p.failure,
	})
	c.notify(ctx, t, NewsAborted)
	if c.opts.OnAborted != nil {
		c.opts.OnAborted(ctx, Aborted{ID: t.CheckpointID, Epoch: t.Epoch, Kind: t.Kind, Stop: t.Stop, Reason: p.failure})
	}
}

func (c *Coordinator) setUnclear(p *pending) {
	c.mu.Lock()
	delete(c.pending, p.trigger.CheckpointID)
	c.unclear = append(c.unclear, p)
	c.lastEnd = c.opts.Now()
	c.mu.Unlock()
	c.observe(Event{Type: EventUnsettled, CheckpointID: p.trigger.CheckpointID, Kind: p.trigger.Kind, Err: p.failure})
}

// clarify finds out about checkpoints whose outcome is not known, by taking them back: none of them was reported.
func (c *Coordinator) clarify(ctx context.Context) error {
	c.mu.Lock()
	none := len(c.unclear) == 0
	c.mu.Unlock()
	if none {
		return nil
	}
	if err := c.commit.take(ctx); err != nil {
		return err
	}
	defer c.commit.give()
	return c.clarifyInTurn(ctx)
}

func (c *Coordinator) clarifyInTurn(ctx context.Context) error {
	c.mu.Lock()
	unclear := slices.Clone(c.unclear)
	c.mu.Unlock()
	for _, p := range unclear {
		if err := c.takeBack(ctx, p, maybePublished); err != nil {
			if errors.Is(err, core.ErrFenced) {
				return err
			}
			return fmt.Errorf("%v %d: %w: %w", p.trigger.Kind, p.trigger.CheckpointID, ErrUnsettled, err)
		}
		c.mu.Lock()
		c.unclear = slices.DeleteFunc(c.unclear, func(q *pending) bool { return q == p })
		c.mu.Unlock()
		c.aborted(p, maybePublished)
	}
	return nil
}

func (c *Coordinator) addRemains(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remains = append(c.remains, p)
}

// removeRemains tries again to remove the directories of aborted checkpoints.
func (c *Coordinator) removeRemains(ctx context.Context) {
	c.mu.Lock()
	remains := c.remains
	c.remains = nil
	c.mu.Unlock()
	for _, p := range remains {
		if err := p.location.DisposeOnFailure(ctx); err != nil {
			if errors.Is(c.noteFence(err), core.ErrFenced) {
				return
			}
			c.addRemains(p)
			c.leftBehind(p.trigger.CheckpointID, "the directory of an aborted checkpoint could not be removed; the next commit tries again", err)
		}
	}
}
