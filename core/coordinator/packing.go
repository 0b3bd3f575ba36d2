package coordinator

import (
	"context"
	"errors"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// BeginPack starts the pack of a worker's states for the trigger. It does no I/O. ctx governs the pack. The worker commits it
// when its tasks have written their states, and only then acknowledges them.
func (t Trigger) BeginPack(ctx context.Context, packer *core.Packer) (*core.Pack, error) {
	location, err := t.Location(ctx, packer.Storage())
	if err != nil {
		return nil, err
	}
	return packer.Begin(ctx, t.CheckpointID, location), nil
}

// WritePacked writes one state into a pack as Trigger.WriteState writes one to its location. The handle must not be used before
// the pack is committed.
func WritePacked(ctx context.Context, pack *core.Pack, scope core.Scope, write func(w io.Writer) error) (core.StreamHandle, error) {
	return writeState(pack.CreateStateStream(ctx, scope), write)
}

// writeState writes one state to a stream and ends it.
func writeState(stream *core.StateStream, write func(w io.Writer) error) (core.StreamHandle, error) {
	if err := write(stream); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	handle, err := stream.CloseAndGetHandle()
	return handle, errors.Join(err, stream.Close())
}

// PackedOperator returns the handle of a subtask's operator state that was written into a pack: it names the directories of the
// packed states, as the handles of Flink's file merging do. State that is inline, or in a savepoint, has an ordinary handle. A nil
// delegate means that there is no state: the handle then holds the directories only, and is nil for a savepoint.
func PackedOperator(pack *core.Pack, states []metadata.NamedState, delegate core.StreamHandle) *metadata.OperatorHandle {
	_, isSegment := delegate.(*core.SegmentHandle)
	switch {
	case delegate == nil && !pack.Packs():
		return nil
	case delegate == nil:
		delegate = core.EmptySegment{}
	case !isSegment:
		return metadata.NewOperatorHandle(states, delegate)
	}
	h := metadata.NewOperatorHandle(states, delegate)
	h.Merging = &metadata.Merging{
		TaskOwnedDir: pack.Packer().TaskOwnedDir(), SharedDir: pack.Packer().SharedDir(), Empty: !isSegment,
	}
	return h
}
