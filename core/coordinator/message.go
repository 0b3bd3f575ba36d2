package coordinator

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Kind says what is taken.
type Kind uint8

const (
	// Checkpoint is for recovery: the coordinator takes, retains and deletes it.
	Checkpoint Kind = iota
	// Savepoint belongs to the user: it is in a directory of its own, owns all its files and is never deleted by the
	// coordinator.
	Savepoint
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Checkpoint:
		return "checkpoint"
	case Savepoint:
		return "savepoint"
	}
	return "invalid"
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (k Kind) MarshalText() ([]byte, error) {
	if k > Savepoint {
		return nil, fmt.Errorf("%w: kind %d", fs.ErrInvalid, k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	for known := range Savepoint + 1 {
		if string(text) == known.String() {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("%w: kind %q", fs.ErrInvalid, text)
}

// Trigger asks a task for its state. It is the same for all tasks of a checkpoint. Its binary form is that of
// [Trigger.MarshalBinary]; it also has a JSON form.
type Trigger struct {
	CheckpointID int64 `json:"checkpointId"`
	// Epoch of the coordinator; the answers must repeat it.
	Epoch uint64 `json:"epoch"`
	Kind  Kind   `json:"kind"`
	// Stop: the job stops with this savepoint. After its state is written a task takes no more input.
	Stop bool `json:"stop,omitempty"`
	// Base is the checkpoint whose shared files the task may refer to once more, 0 for none. They are kept until this
	// checkpoint has its outcome. Savepoints have none: they own their files.
	Base int64 `json:"base,omitempty"`
	// Reference says where the state goes, see Location.
	Reference core.LocationReference `json:"reference,omitempty"`
	// Timestamp is the time of the trigger.
	Timestamp time.Time `json:"timestamp"`
}

// Location returns where the task's state goes. It does no I/O. storage must have the same settings as the coordinator's.
func (t Trigger) Location(ctx context.Context, storage *core.Storage) (*core.Location, error) {
	return storage.ResolveLocation(ctx, t.CheckpointID, t.Reference)
}

// WriteState writes one state to the location of the trigger: what write writes, inline or in a file as the storage decides.
// The handle is nil if that is nothing. After an error nothing is left behind.
func (t Trigger) WriteState(
	ctx context.Context, storage *core.Storage, scope core.Scope, write func(w io.Writer) error,
) (core.StreamHandle, error) {
	location, err := t.Location(ctx, storage)
	if err != nil {
		return nil, err
	}
	return writeState(location.CreateStateStream(ctx, scope), write)
}

// Ack is the answer of a task whose state is state; nil is none. The state must not be changed afterwards.
func (t Trigger) Ack(task Task, state *metadata.SubtaskState) Ack {
	return Ack{CheckpointID: t.CheckpointID, Epoch: t.Epoch, Task: task, State: state}
}

// AckFinished is the answer of a task that has ended for good and has no state any more.
func (t Trigger) AckFinished(task Task) Ack {
	return Ack{CheckpointID: t.CheckpointID, Epoch: t.Epoch, Task: task, Finished: true}
}

// Decline is the answer of a task that cannot give its state.
func (t Trigger) Decline(task Task, reason string) Decline {
	return Decline{CheckpointID: t.CheckpointID, Epoch: t.Epoch, Task: task, Reason: reason}
}

// Ack says that a task's state is written and durable.
type Ack struct {
	CheckpointID int64  `json:"checkpointId"`
	Epoch        uint64 `json:"epoch"`
	Task         Task   `json:"task"`
	// State is nil for a task without state.
	State *metadata.SubtaskState `json:"state,omitempty"`
	// Finished: the task has ended for good. It has no state.
	Finished bool `json:"finished,omitempty"`
}

// Decline says that a task cannot give its state; the checkpoint is aborted.
type Decline struct {
	CheckpointID int64  `json:"checkpointId"`
	Epoch        uint64 `json:"epoch"`
	Task         Task   `json:"task"`
	// Reason is for people. At most MaxReason bytes of it are transmitted.
	Reason string `json:"reason,omitempty"`
}

// MaxReason is the largest length of Decline.Reason in bytes in the binary form; more is cut off.
const MaxReason = 4096
