package metadata

import (
	"encoding/hex"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Checkpoint is the content of a `_metadata` file. Lists keep the order of the file.
type Checkpoint struct {
	// Version is the format version that the file was read from; 0 for a checkpoint that was not parsed. It does not choose
	// the version that is written: [WriteOptions] does.
	Version int
	// ID of the checkpoint, not negative.
	ID int64
	// MasterStates are the states of hooks that Flink's job master runs; most jobs have none.
	MasterStates []MasterState
	Operators    []OperatorState
	// Properties as a whole are nil when the file has none, as those of the versions 2 and 3. That the file has a null in
	// their place is told by [Properties.Null].
	Properties *Properties
	// Footer is the project's own addition, nil when the file has none. Append does not write it by itself: see [WriteOptions].
	Footer *Footer
}

// MasterState is the state of one hook of the job master.
type MasterState struct {
	Name    string
	Version int32
	Data    []byte
}

// OperatorID is the 128-bit id that ties state to an operator across restarts.
type OperatorID [16]byte

// String returns the 32 lower-case hex digits that Flink prints.
func (id OperatorID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements [encoding.TextMarshaler] with the text of String.
func (id OperatorID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *OperatorID) UnmarshalText(text []byte) error {
	parsed, err := ParseOperatorID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseOperatorID is the inverse of [OperatorID.String].
func ParseOperatorID(text string) (OperatorID, error) {
	var id OperatorID
	if len(text) != hex.EncodedLen(len(id)) {
		return OperatorID{}, fmt.Errorf("operator id %q: need %d hex digits", text, hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return OperatorID{}, fmt.Errorf("operator id %q: %w", text, err)
	}
	return id, nil
}

// OperatorState is the state of all subtasks of one operator.
type OperatorState struct {
	// Name and UID are "" when unknown. Files below version 5 hold them in the footer, if there is one.
	Name string
	UID  string
	ID   OperatorID

	Parallelism    int
	MaxParallelism int

	// Coordinator is the state of the operator's coordinator, such as the split enumerator of a source; nil for none.
	Coordinator *core.BytesHandle
	// FullyFinished: every subtask has ended. Such an operator has neither coordinator state nor subtasks.
	FullyFinished bool
	// Subtasks ascend by index in every file that Flink wrote; a subtask without state may be left out. Should an index
	// occur twice, the last one holds: see Subtask.
	Subtasks []Subtask
}

// Subtask returns the subtask with the given index, and false if it is not there.
func (o *OperatorState) Subtask(index int) (Subtask, bool) {
	for i := len(o.Subtasks) - 1; i >= 0; i-- {
		if o.Subtasks[i].Index == index {
			return o.Subtasks[i], true
		}
	}
	return Subtask{}, false
}

// Subtask is one parallel instance of an operator.
type Subtask struct {
	// Index is at least 0 and below the operator's parallelism.
	Index int
	// State is nil for a subtask that has finished. One that runs and has no state has a pointer to an empty SubtaskState.
	State *SubtaskState
}

// Finished reports whether the subtask had ended when the checkpoint was taken.
func (s Subtask) Finished() bool { return s.State == nil }

// SubtaskState is the state of one running subtask. The zero value is a subtask without state. It can be sent to another
// process with [AppendSubtask] and [ParseSubtask], or as JSON.
type SubtaskState struct {
	ManagedOperator *OperatorHandle
	RawOperator     *OperatorHandle
	ManagedKeyed    KeyedHandle
	RawKeyed        KeyedHandle
	// InputChannels and ResultSubpartitions hold the data in flight of an unaligned checkpoint.
	InputChannels       []ChannelHandle
	ResultSubpartitions []ChannelHandle
}

// Empty reports whether there is no state at all.
func (s *SubtaskState) Empty() bool {
	return s.ManagedOperator == nil && s.RawOperator == nil && s.ManagedKeyed == nil && s.RawKeyed == nil &&
		len(s.InputChannels) == 0 && len(s.ResultSubpartitions) == 0
}
