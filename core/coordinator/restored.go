package coordinator

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Restored is what Start has found for the tasks to go on from. Its methods only read; they are safe for concurrent use.
type Restored struct {
	// Checkpoint is the content of the metadata file, nil if nothing was restored: the job begins without state.
	Checkpoint *metadata.Checkpoint
	ID         int64
	Kind       Kind
	// Pointer is the qualified directory.
	Pointer string

	open core.Opener
}

// Empty reports whether nothing was restored.
func (r *Restored) Empty() bool { return r.Checkpoint == nil }

// Operator returns the state of an operator, and false if there is none.
func (r *Restored) Operator(id metadata.OperatorID) (*metadata.OperatorState, bool) {
	if r.Empty() {
		return nil, false
	}
	for i := range r.Checkpoint.Operators {
		if r.Checkpoint.Operators[i].ID == id {
			return &r.Checkpoint.Operators[i], true
		}
	}
	return nil, false
}

// Open opens a state of the checkpoint, see [core.OpenState].
func (r *Restored) Open(ctx context.Context, handle core.StreamHandle) (*core.StateReader, error) {
	return core.OpenState(ctx, r.open, handle)
}

// Files returns what opens the states of the checkpoint that are segments of a few files, each file once; see core.StateFiles. The
// caller closes it.
func (r *Restored) Files(ctx context.Context) *core.StateFiles {
	return core.NewStateFiles(ctx, r.open)
}

// KeyedPart is keyed state that a subtask takes over from one subtask of before.
type KeyedPart struct {
	Handle metadata.KeyedHandle
	// Groups are the key groups in Handle that the subtask takes over; others in it are for other subtasks.
	Groups metadata.KeyGroupRange
	// Offsets are those of Groups, in order, in the bytes of a *metadata.KeyGroupsHandle; nil for other handles.
	Offsets []int64
	// Raw state was not written by a state backend.
	Raw bool
}

// KeyedParts returns the keyed state that a subtask takes over when the operator has the given parallelism now: every
// handle that holds any of its key groups. Without state there are none. The error is fs.ErrInvalid for a subtask or
// parallelism that cannot be, and core.ErrCorrupt if a handle does not fit its key groups.
func (r *Restored) KeyedParts(operator metadata.OperatorID, parallelism, subtask int) ([]KeyedPart, error) {
	state, ok := r.Operator(operator)
	if !ok {
		return nil, nil
	}
	wanted, err := metadata.KeyGroupsOfSubtask(subtask, parallelism, state.MaxParallelism)
	if err != nil {
		return nil, err
	}
	var parts []KeyedPart
	for _, old := range state.Subtasks {
		if old.State == nil {
			continue
		}
		for i, handle := range []metadata.KeyedHandle{old.State.ManagedKeyed, old.State.RawKeyed} {
			if handle == nil {
				continue
			}
			part, err := keyedPart(handle, wanted)
			if err != nil {
				return nil, fmt.Errorf("keyed state of subtask %d of operator %s: %w", old.Index, operator, err)
			}
			if part.Groups.Count > 0 {
				part.Raw = i == 1
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
}

func keyedPart(handle metadata.KeyedHandle, wanted metadata.KeyGroupRange) (KeyedPart, error) {
	held := handle.KeyGroups()
	part := KeyedPart{Handle: handle, Groups: held.Intersect(wanted)}
	full, ok := handle.(*metadata.KeyGroupsHandle)
	if !ok || part.Groups.Count == 0 {
		return part, nil
	}
	if len(full.Offsets) != int(held.Count) {
		return part, fmt.Errorf("%w: %d offsets for the key groups %v", core.ErrCorrupt, len(full.Offsets), held)
	}
	first := int(part.Groups.Start - held.Start)
	part.Offsets = full.Offsets[first : first+int(part.Groups.Count)]
	return part, nil
}

func checkSubtask(parallelism, subtask int) error {
	if parallelism < 1 || subtask < 0 || subtask >= parallelism {
		return fmt.Errorf("%w: subtask %d of %d", fs.ErrInvalid, subtask, parallelism)
	}
	return nil
}
