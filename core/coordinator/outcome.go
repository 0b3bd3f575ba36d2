package coordinator

import (
	"errors"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The reasons for which a checkpoint has no good outcome, beside those of core, io/fs and context. Use errors.Is.
var (
	// ErrDeclined: a task declined, or acknowledged with state that cannot be part of the checkpoint.
	ErrDeclined = errors.New("a task declined")

	// ErrSubsumed: a newer checkpoint was committed first. This is no failure.
	ErrSubsumed = errors.New("subsumed by a newer checkpoint")

	// ErrNotPending: the checkpoint that is acknowledged or declined is not known, or already has its outcome. The state was
	// not taken; its files are deleted as far as they are known to be needed by nobody, the rest is left to the next sweep.
	ErrNotPending = errors.New("the checkpoint is not pending")

	// ErrUnsettled: the storage failed in such a way that it is not known if the checkpoint is committed. Nothing of it is
	// deleted and no callback is made. Before anything else is triggered or committed the coordinator finds it out and takes the
	// checkpoint back; after a restart Start finds out.
	ErrUnsettled = errors.New("the outcome of the checkpoint is not known")
)

// Committed is a checkpoint or savepoint that is durable.
type Committed struct {
	ID int64
	// Epoch of the coordinator that reports it.
	Epoch uint64
	Kind  Kind
	// Stop: the job stops with this savepoint.
	Stop bool
	// Pointer is the qualified directory, what a user gives to restore from.
	Pointer string
	// Metadata is the handle of the metadata file.
	Metadata core.FileHandle
	// Timestamp is the time of the trigger; zero if it was restored and its metadata does not tell.
	Timestamp time.Time
	// StateSize is the number of bytes of all states, those inline and in files of earlier checkpoints included.
	StateSize int64
	// Repeated: the checkpoint was committed before and is reported once more, because it was restored.
	Repeated bool
}

// Aborted is a checkpoint or savepoint that does not exist and never will.
type Aborted struct {
	ID int64
	// Epoch of the coordinator that reports it.
	Epoch uint64
	Kind  Kind
	// Stop: the job was to stop with this savepoint.
	Stop bool
	// Reason is why.
	Reason error
	// Repeated: it was begun by an earlier coordinator, which may have reported it already.
	Repeated bool
}
