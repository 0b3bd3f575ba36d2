package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/counts"
)

// PositionState is the name of the operator state that holds the position in the input. Every worker has the same one.
const PositionState = "position"

// snapshot writes the counts as keyed state and the position as operator state.
func (w *Worker) snapshot(ctx context.Context, trigger coordinator.Trigger) (*metadata.SubtaskState, error) {
	location, err := trigger.Location(ctx, w.storage)
	if err != nil {
		return nil, err
	}
	keyed := location.CreateStateStream(ctx, core.Exclusive)
	defer func() { _ = keyed.Close() }()
	offsets, err := w.counts.Save(keyed)
	if err != nil {
		return nil, err
	}
	keyedHandle, err := keyed.CloseAndGetHandle()
	if err != nil {
		return nil, err
	}
	position := location.CreateStateStream(ctx, core.Exclusive)
	defer func() { _ = position.Close() }()
	if _, err := position.Write(binary.BigEndian.AppendUint64(nil, uint64(w.position))); err != nil { //nolint:gosec // not negative
		return nil, err
	}
	positionHandle, err := position.CloseAndGetHandle()
	if err != nil {
		return nil, err
	}
	groups, err := metadata.KeyGroupsOfSubtask(w.assign.Index, w.assign.Parallelism, counts.MaxParallelism)
	if err != nil {
		return nil, err
	}
	return &metadata.SubtaskState{
		ManagedKeyed: &metadata.KeyGroupsHandle{Range: groups, Offsets: offsets, Delegate: keyedHandle},
		ManagedOperator: metadata.NewOperatorHandle(
			[]metadata.NamedState{{Name: PositionState, Mode: metadata.Union, Offsets: []int64{0}}}, positionHandle),
	}, nil
}

// restore reads the key groups of one former worker that belong to groups.
func restore(
	ctx context.Context, open core.Opener, state metadata.SubtaskState, groups metadata.KeyGroupRange, into *counts.Counts,
) error {
	handle, ok := state.ManagedKeyed.(*metadata.KeyGroupsHandle)
	if !ok {
		return fmt.Errorf("the counts are a %T", state.ManagedKeyed)
	}
	wanted := handle.Range.Intersect(groups)
	if wanted.Count == 0 {
		return nil
	}
	r, err := core.OpenState(ctx, open, handle.Delegate)
	if err != nil {
		return err
	}
	for group := int(wanted.Start); group < wanted.End(); group++ {
		offset := handle.Offsets[group-int(handle.Range.Start)]
		if err := into.ReadGroup(io.NewSectionReader(r, offset, r.Size()-offset), group); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	return r.Close()
}

// ReadCounts reads all counts of a checkpoint of the job into one map.
func ReadCounts(ctx context.Context, open core.Opener, operator *metadata.OperatorState) (map[string]uint64, error) {
	all := metadata.KeyGroupRange{Start: 0, Count: counts.MaxParallelism}
	merged := counts.New(all)
	for _, subtask := range operator.Subtasks {
		if subtask.Finished() {
			continue
		}
		if err := restore(ctx, open, *subtask.State, all, merged); err != nil {
			return nil, err
		}
	}
	result := map[string]uint64{}
	merged.All(func(word string, count uint64) { result[word] = count })
	return result, nil
}

// ReadPosition reads the position of a checkpoint of the job. All workers must have the same.
func ReadPosition(ctx context.Context, open core.Opener, operator *metadata.OperatorState) (int64, error) {
	position := int64(-1)
	for _, subtask := range operator.Subtasks {
		if subtask.Finished() {
			continue
		}
		r, err := core.OpenState(ctx, open, subtask.State.ManagedOperator.Delegate)
		if err != nil {
			return 0, err
		}
		var raw [8]byte
		_, err = io.ReadFull(r, raw[:])
		if err := errors.Join(err, r.Close()); err != nil {
			return 0, fmt.Errorf("read the position: %w", err)
		}
		found := int64(binary.BigEndian.Uint64(raw[:])) //nolint:gosec // written from an int64
		if position >= 0 && found != position {
			return 0, fmt.Errorf("worker %d was at chunk %d, another at %d", subtask.Index, found, position)
		}
		position = found
	}
	return position, nil
}
