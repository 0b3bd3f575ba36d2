package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// finish commits a checkpoint that all tasks have acknowledged. Commits are made one after the other; an older checkpoint
// that waits here is subsumed by the newer one that is before it. ctx is the caller's, without the time limit.
func (c *Coordinator) finish(ctx context.Context, p *pending) (*Committed, error) {
	if err := c.commit.take(p.ctx); err != nil {
		return nil, c.abort(p, err, unpublished)
	}
	defer c.commit.give()
	if err := c.clarifyInTurn(p.ctx); err != nil {
		return nil, c.abort(p, p.reason(err), unpublished)
	}
	content := p.content(c.opts.Operators)
	objects, err := metadata.Objects(content)
	if err != nil {
		return nil, c.abort(p, err, unpublished)
	}
	completed, progress, err := c.publish(p, content)
	if err != nil {
		return nil, c.abort(p, p.reason(err), progress)
	}
	committed := c.committed(p, completed, objects)
	c.notify(ctx, p.trigger, NewsCommitted)
	if !p.trigger.countsForRecovery() {
		return committed, nil
	}
	err = c.report(ctx, *committed)
	c.subsume(ctx, p.trigger.Stop)
	return committed, err
}

// progress is how far the publication of an aborted checkpoint has come.
type progress uint8

const (
	unpublished progress = iota
	// maybePublished: its metadata may be visible.
	maybePublished
	// occupied: another metadata file is in its place.
	occupied
)

// publish makes a checkpoint complete.
func (c *Coordinator) publish(p *pending, content *metadata.Checkpoint) (*core.Completed, progress, error) {
	stream, err := p.location.CreateMetadataStream(p.ctx)
	if err != nil {
		return nil, progressOf(err, unpublished), err
	}
	opts := metadata.WriteOptions{Version: c.opts.MetadataVersion, Footer: p.footer(c.opts.Storage.Durability())}
	if err := metadata.Write(stream, content, opts); err != nil {
		return nil, unpublished, errors.Join(err, stream.Close())
	}
	completed, err := stream.CloseAndFinalize()
	if err != nil {
		err = errors.Join(err, stream.Close())
		return nil, progressOf(err, maybePublished), err
	}
	return completed, maybePublished, nil
}

// progressOf refines how far a publication has come that failed with err.
func progressOf(err error, otherwise progress) progress {
	if errors.Is(err, fs.ErrExist) && !errors.Is(err, core.ErrFenced) && !errors.Is(err, core.ErrOutcomeUnknown) {
		return occupied
	}
	return otherwise
}

// committed records a commit: what is older and still under way is subsumed.
func (c *Coordinator) committed(p *pending, completed *core.Completed, objects []core.Object) *Committed {
	t := p.trigger
	now := c.opts.Now()
	c.mu.Lock()
	delete(c.pending, t.CheckpointID)
	c.lastEnd = now
	if t.Kind == Checkpoint {
		c.complete = append(c.complete, complete{id: t.CheckpointID, objects: objects})
		c.base = t.CheckpointID
	} else {
		c.savepoint = complete{id: t.CheckpointID, objects: objects}
		c.registry.release(t.CheckpointID) // it owns its files, which nobody else needs or deletes
	}
	for id, older := range c.pending {
		if t.countsForRecovery() && id < t.CheckpointID && older.trigger.Kind == Checkpoint {
			older.cancel(fmt.Errorf("%w: %d", ErrSubsumed, t.CheckpointID))
		}
	}
	c.mu.Unlock()
	c.observe(Event{
		Type: EventCommitted, CheckpointID: t.CheckpointID, Kind: t.Kind, Duration: now.Sub(p.begun),
		StateSize: p.stateSize, InlineSize: p.inlineSize, MetadataSize: completed.Metadata.Size, Files: len(objects),
	})
	return &Committed{
		ID: t.CheckpointID, Epoch: t.Epoch, Kind: t.Kind, Stop: t.Stop, Pointer: completed.Pointer,
		Metadata: completed.Metadata, Timestamp: t.Timestamp, StateSize: p.stateSize,
	}
}

// report calls OnCommitted.
func (c *Coordinator) report(ctx context.Context, committed Committed) error {
	if c.opts.OnCommitted == nil {
		return nil
	}
	if err := c.opts.OnCommitted(ctx, committed); err != nil {
		return fmt.Errorf("checkpoint %d is committed, but OnCommitted failed: %w", committed.ID, err)
	}
	return nil
}

// subsume deletes the checkpoints that are not retained any more, and what earlier deletions have left. It runs in the turn
// of the commit. Failures do not concern the commit: the next one tries again.
func (c *Coordinator) subsume(ctx context.Context, stop bool) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	c.removeRemains(ctx)
	surplus, opts := c.planSubsume(stop)
	for _, id := range surplus {
		c.notify(ctx, Trigger{CheckpointID: id, Epoch: c.owner.Epoch()}, NewsSubsumed)
		report, err := c.owner.Dispose(ctx, id, opts)
		if err != nil {
			if errors.Is(c.noteFence(err), core.ErrFenced) {
				return
			}
			c.leftBehind(id, "a subsumed checkpoint could not be deleted; the next commit tries again", err)
			continue
		}
		c.dropComplete(id)
		c.observe(Event{Type: EventSubsumed, CheckpointID: id, Files: len(report.Removed)})
		for _, kept := range report.Kept {
			c.opts.Logger.Info("kept while deleting a subsumed checkpoint", slog.Int64("checkpoint", id),
				slog.String("path", kept.Path), slog.String("reason", kept.Reason))
		}
	}
	c.deleteClaimed(ctx)
}

func (c *Coordinator) planSubsume(stop bool) ([]int64, core.DisposeOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]int64, len(c.complete))
	for i := range c.complete {
		ids[i] = c.complete[i].id
	}
	surplus := planSubsumption(ids, retainBeside(c.opts.Retain, stop), c.inUse())
	gone := map[int64]bool{}
	for _, id := range surplus {
		gone[id] = true
	}
	opts := core.DisposeOptions{Read: metadata.ReadObjects, ProtectedIsAll: c.opts.NoBorrowers && !c.blind && c.registry.odd == nil}
	if len(surplus) == 0 {
		return nil, opts
	}
	opts.Protected = c.registry.protected(c.opts.Storage.FileSystem().URI(), gone)
	return surplus, opts
}

func (c *Coordinator) dropComplete(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registry.release(id)
	for i := range c.complete {
		if c.complete[i].id == id {
			c.complete = append(c.complete[:i:i], c.complete[i+1:]...)
			return
		}
	}
}

// leftBehind says what could not be deleted.
func (c *Coordinator) leftBehind(id int64, what string, err error) {
	c.observe(Event{Type: EventLeftBehind, CheckpointID: id, Err: err})
	c.opts.Logger.Warn(what, slog.Int64("checkpoint", id), slog.Any("error", err))
}
