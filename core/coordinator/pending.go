package coordinator

import (
	"context"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// pending is a checkpoint without an outcome. The goroutine that drives it decides the outcome; others only record
// acknowledgements and cancel its context, whose cause is then the reason of the abort.
type pending struct {
	trigger Trigger
	begun   time.Time
	ctx     context.Context //nolint:containedctx // it lives as long as the checkpoint and governs everything done for it
	cancel  context.CancelCauseFunc
	// acked is closed when all tasks have acknowledged.
	acked chan struct{}
	// inherited are the objects of the base.
	inherited []core.Object

	// The rest is guarded by Coordinator.mu.

	location   *core.PendingLocation // nil until it is begun
	acks       [][]*Ack              // by operator and subtask
	missing    int
	stateSize  int64
	inlineSize int64
	objects    []core.Object // of all acknowledgements
	refused    []core.Object // of the acknowledgement that was refused
	failure    error         // why it is aborted, once that is decided
}

func newPending(ctx context.Context, trigger Trigger, operators []Operator, begun time.Time) *pending {
	p := &pending{trigger: trigger, begun: begun, acked: make(chan struct{}), acks: make([][]*Ack, len(operators))}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	for i, op := range operators {
		p.acks[i] = make([]*Ack, op.Parallelism)
		p.missing += op.Parallelism
	}
	return p
}

// add records the acknowledgement of a task that has not answered yet.
func (p *pending) add(operator int, ack *Ack, m measure) {
	p.acks[operator][ack.Task.Subtask] = ack
	p.stateSize += m.stateSize
	p.inlineSize += m.inlineSize
	p.objects = append(p.objects, m.objects...)
	if p.missing--; p.missing == 0 {
		close(p.acked)
	}
}

// countsForRecovery reports whether restores go back to it, so that it subsumes older ones and is reported to sinks.
func (t Trigger) countsForRecovery() bool { return t.Kind == Checkpoint || t.Stop }

// content is the checkpoint as its metadata file holds it.
func (p *pending) content(operators []Operator) *metadata.Checkpoint {
	c := &metadata.Checkpoint{ID: p.trigger.CheckpointID, Operators: make([]metadata.OperatorState, len(operators))}
	c.Properties = p.trigger.properties()
	for i, op := range operators {
		c.Operators[i] = p.operatorState(op, p.acks[i])
	}
	return c
}

// properties are those that Flink would record.
func (t Trigger) properties() *metadata.Properties {
	if t.Kind == Checkpoint {
		return metadata.CheckpointProperties(metadata.RetainOnCancellation)
	}
	p := metadata.SavepointProperties(false)
	if t.Stop {
		p.Type.Name, p.Type.Action = "Suspend Savepoint", "SUSPEND"
	}
	return p
}

func (p *pending) operatorState(op Operator, acks []*Ack) metadata.OperatorState {
	state := metadata.OperatorState{
		Name: op.Name, UID: op.UID, ID: op.ID, Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
		FullyFinished: true,
	}
	for _, ack := range acks {
		state.FullyFinished = state.FullyFinished && ack.Finished
	}
	if state.FullyFinished {
		return state
	}
	state.Subtasks = make([]metadata.Subtask, len(acks))
	for i, ack := range acks {
		state.Subtasks[i] = metadata.Subtask{Index: i, State: ack.State}
		if ack.State == nil && !ack.Finished {
			state.Subtasks[i].State = &metadata.SubtaskState{}
		}
	}
	return state
}

// footer is the project's own part of the metadata file.
func (p *pending) footer(durability core.Durability) *metadata.Footer {
	kind := metadata.KindCheckpoint
	if p.trigger.Kind == Savepoint {
		kind = metadata.KindSavepoint
	}
	return &metadata.Footer{Created: p.trigger.Timestamp, Kind: kind, Durability: durability}
}
