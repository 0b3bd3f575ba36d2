package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Acknowledge records the state of a task. It is quick, and safe to repeat after an answer that was lost: the same
// acknowledgement once more is success.
//
// The files of the state belong to the coordinator from then on, also if it returns an error: it deletes what is not needed.
// The errors are core.ErrFenced for another epoch than the coordinator's, and after the loss of its claim; ErrNotPending for a checkpoint that is not known or
// has its outcome, fs.ErrExist for a task that has acknowledged with other state, and fs.ErrInvalid for a task that does
// not exist. State that cannot be part of the checkpoint is ErrDeclined, and aborts it:
//
//   - a checkpoint refers to files in its own directory, in the job's shared and in its taskowned directory only, and those in
//     its own directory must be named by handles that say so;
//   - a savepoint refers to files in its own directory only;
//   - keyed state belongs to the key groups of the subtask;
//   - nothing refers to files of a checkpoint that was restored and not claimed;
//   - a placeholder (core.PlaceholderOf) stands for a state of the trigger's base, and a file that is known has the size and the
//     checksums it is known with;
//   - the inline state of all tasks stays below Options.MaxInlineBytes.
func (c *Coordinator) Acknowledge(ctx context.Context, ack Ack) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	operator, err := c.checkAnswer(ack.Epoch, ack.Task)
	if err != nil {
		return err
	}
	p, location := c.find(ack.CheckpointID)
	if p == nil {
		return c.late(ctx, ack)
	}
	ack, problem := c.resolve(p, ack)
	m, misfit := measureAck(location, p.trigger.Kind, c.opts.Operators[operator], ack)
	if problem == nil {
		problem = misfit
	}
	switch first, err := c.record(p, operator, ack, m, problem); {
	case err != nil:
		return err
	case first == nil:
		return nil
	case first == notPending:
		return c.late(ctx, ack)
	case sameAck(first, &ack):
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	c.discard(ctx, discarding{id: ack.CheckpointID, objects: m.objects, inherited: p.inherited, places: writtenIn})
	if err := c.fence(); err != nil {
		return err
	}
	return fmt.Errorf("task %v: %w: it has acknowledged checkpoint %d with other state", ack.Task, fs.ErrExist, ack.CheckpointID)
}

// resolve puts the registered handles into the place of those that the state of a task refers to once more.
func (c *Coordinator) resolve(p *pending, ack Ack) (Ack, error) {
	if ack.State == nil {
		return ack, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := mapState(ack.State, func(h core.StreamHandle) (core.StreamHandle, error) {
		return c.registry.admit(p.trigger.CheckpointID, p.trigger.Base, h)
	})
	if err != nil {
		return ack, err
	}
	ack.State = state
	return ack, nil
}

// Decline records that a task cannot give its state, and aborts the checkpoint. The errors are those of Acknowledge; a task
// that has acknowledged cannot decline (fs.ErrExist).
func (c *Coordinator) Decline(_ context.Context, decline Decline) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	operator, err := c.checkAnswer(decline.Epoch, decline.Task)
	if err != nil {
		return err
	}
	if err := c.recordDecline(operator, decline); err != nil {
		if errors.Is(err, ErrNotPending) {
			c.observe(Event{Type: EventLate, CheckpointID: decline.CheckpointID})
		}
		return err
	}
	return nil
}

func (c *Coordinator) recordDecline(operator int, decline Decline) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[decline.CheckpointID]
	switch {
	case p == nil || p.ctx.Err() != nil:
		return fmt.Errorf("decline of checkpoint %d: %w", decline.CheckpointID, ErrNotPending)
	case p.acks[operator][decline.Task.Subtask] != nil:
		return fmt.Errorf("task %v: %w: it has acknowledged checkpoint %d", decline.Task, fs.ErrExist, decline.CheckpointID)
	}
	p.cancel(fmt.Errorf("%w: task %v: %s", ErrDeclined, decline.Task, decline.Reason))
	return nil
}

// checkAnswer returns the position of the operator of a task that answers.
func (c *Coordinator) checkAnswer(epoch uint64, task Task) (int, error) {
	c.mu.Lock()
	own := c.owner.Epoch()
	c.mu.Unlock()
	operator, known := c.index[task.Operator]
	switch {
	case epoch != own:
		return 0, fmt.Errorf("%w: the answer of task %v is for epoch %d, and this coordinator has %d", core.ErrFenced, task, epoch, own)
	case !known:
		return 0, fmt.Errorf("%w: task %v: there is no such operator", fs.ErrInvalid, task)
	case task.Subtask < 0 || task.Subtask >= c.opts.Operators[operator].Parallelism:
		return 0, fmt.Errorf("%w: task %v: the operator has %d subtasks", fs.ErrInvalid, task, c.opts.Operators[operator].Parallelism)
	}
	return operator, nil
}

// find returns a checkpoint that can be acknowledged, else nil.
func (c *Coordinator) find(id int64) (*pending, *core.Location) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	if p == nil || p.location == nil || p.ctx.Err() != nil {
		return nil, nil
	}
	return p, p.location.Location
}

// notPending is what record returns for a checkpoint that has ended in the meantime.
var notPending = &Ack{}

// record takes an acknowledgement, or aborts the checkpoint because of its problem. It returns the first acknowledgement of
// a task that has sent one before.
func (c *Coordinator) record(p *pending, operator int, ack Ack, m measure, problem error) (first *Ack, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[ack.CheckpointID] != p || p.ctx.Err() != nil {
		return notPending, nil
	}
	if first := p.acks[operator][ack.Task.Subtask]; first != nil {
		return first, nil
	}
	if lent := c.registry.lent(m.objects); problem == nil && lent != "" {
		problem = fmt.Errorf("%s belongs to the checkpoint that the job was restored from without claiming it; write it again", lent)
	}
	if problem == nil && p.inlineSize+m.inlineSize > c.opts.MaxInlineBytes {
		problem = fmt.Errorf("with its %d bytes the inline state exceeds Options.MaxInlineBytes, which is %d; lower the storage's InlineThreshold",
			m.inlineSize, c.opts.MaxInlineBytes)
	}
	if problem != nil {
		problem = fmt.Errorf("%w: the acknowledgement of task %v: %w", ErrDeclined, ack.Task, problem)
		p.refused = append(p.refused, m.objects...)
		p.cancel(problem)
		return nil, problem
	}
	p.add(operator, &ack, m)
	if ack.State != nil {
		c.registry.hold(ack.CheckpointID, m.objects, statesOf(ack.State))
	}
	return nil, nil
}

// writtenIn are the places where tasks write state that the coordinator deletes if it is not needed.
var writtenIn = []core.Place{core.InCheckpointDir, core.InSharedDir, core.InPackDir}

// late deletes the files of an acknowledgement that came too late. For one that repeats what was committed nothing is
// deleted, and nothing either if it is not known any more what became of the checkpoint.
func (c *Coordinator) late(ctx context.Context, ack Ack) error {
	c.observe(Event{Type: EventLate, CheckpointID: ack.CheckpointID})
	var objects []core.Object
	if ack.State != nil {
		var err error
		if objects, err = metadata.ObjectsOfSubtask(ack.State); err != nil {
			return fmt.Errorf("acknowledgement of checkpoint %d: %w: %w", ack.CheckpointID, ErrNotPending, err)
		}
	}
	if c.repeatsCommitted(ack.CheckpointID, objects) {
		return nil
	}
	if f, known := c.failedBefore(ack.CheckpointID); known {
		ctx, cancel := detached(ctx)
		defer cancel()
		c.discard(ctx, discarding{id: f.id, objects: objects, inherited: f.inherited, places: writtenIn})
	}
	if err := c.fence(); err != nil {
		return err
	}
	return fmt.Errorf("acknowledgement of checkpoint %d: %w", ack.CheckpointID, ErrNotPending)
}

// repeatsCommitted reports whether the objects are all part of a checkpoint that is known to be complete.
func (c *Coordinator) repeatsCommitted(id int64, objects []core.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.complete
	if c.savepoint.id == id {
		known = []complete{c.savepoint}
	}
	for i := range known {
		if known[i].id == id {
			part := map[string]bool{}
			for k := range known[i].objects {
				part[known[i].objects[k].Path] = true
			}
			return !slices.ContainsFunc(objects, func(o core.Object) bool { return !part[o.Path] })
		}
	}
	return false
}

// sameAck reports whether two acknowledgements of one task say the same.
func sameAck(a, b *Ack) bool {
	if a.Finished != b.Finished || (a.State == nil) != (b.State == nil) {
		return false
	}
	if a.State == nil || a.State == b.State {
		return true
	}
	first, err := metadata.AppendSubtask(nil, a.State)
	if err != nil {
		return false
	}
	second, err := metadata.AppendSubtask(nil, b.State)
	return err == nil && bytes.Equal(first, second)
}
