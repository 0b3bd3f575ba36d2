package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Mode says how the parts of an operator state are given to subtasks after a restore.
type Mode uint8

// The modes, with the numbers that the file format gives them.
const (
	// SplitDistribute: the parts of all subtasks are dealt out anew.
	SplitDistribute Mode = 0
	// Union: every subtask gets the parts of all.
	Union Mode = 1
	// Broadcast: every subtask has the same state.
	Broadcast Mode = 2
)

// String returns the name that Flink prints.
func (m Mode) String() string {
	switch m {
	case SplitDistribute:
		return "SPLIT_DISTRIBUTE"
	case Union:
		return "UNION"
	case Broadcast:
		return "BROADCAST"
	}
	return "invalid"
}

// RawStateName is the name under which Flink keeps raw operator state, and state registered without a name.
const RawStateName = "_default_"

// NamedState is one named state of an operator and where its parts begin in the bytes of the handle.
type NamedState struct {
	Name    string
	Mode    Mode
	Offsets []int64
}

// OperatorHandle is the operator state of one subtask.
type OperatorHandle struct {
	// States in the order in which they are written. [NewOperatorHandle] makes the order that Flink would make.
	States []NamedState
	// Delegate holds the bytes. It is not nil; with Merging it is a *[SegmentHandle] or an [EmptySegment].
	Delegate core.StreamHandle
	// Merging is not nil for state written by Flink's file merging.
	Merging *Merging
}

// Merging names the directories whose life depends on a handle of Flink's file merging.
type Merging struct {
	TaskOwnedDir string
	SharedDir    string
	// Empty: the subtask has no operator state; the handle is there for the directories only.
	Empty bool
}

// NewOperatorHandle returns a handle with the states in the order in which Flink's HashMap would write them, so that a
// rewrite by Flink gives the same bytes. It sorts states in place.
func NewOperatorHandle(states []NamedState, delegate core.StreamHandle) *OperatorHandle {
	sortLikeHashMap(states)
	return &OperatorHandle{States: states, Delegate: delegate}
}

// StateSize is the size of the delegate.
func (h *OperatorHandle) StateSize() int64 { return streamSize(h.Delegate) }

func streamSize(h core.StreamHandle) int64 {
	if h == nil {
		return 0
	}
	return h.StateSize()
}
