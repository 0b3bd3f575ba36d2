package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Scope says who may refer to the bytes of a segment.
type Scope uint8

// The scopes, with the numbers that the file format gives them.
const (
	// ScopeExclusive bytes belong to one checkpoint.
	ScopeExclusive Scope = 0
	// ScopeShared bytes may be referred to by several checkpoints.
	ScopeShared Scope = 1
)

// String returns the name that Flink prints.
func (s Scope) String() string {
	switch s {
	case ScopeExclusive:
		return "EXCLUSIVE"
	case ScopeShared:
		return "SHARED"
	}
	return "invalid"
}

// SegmentHandle is a run of bytes in a file that holds the states of several subtasks (Flink's file merging). It is a
// [core.StreamHandle].
type SegmentHandle struct {
	// Path of the whole file, qualified.
	Path string
	// Offset of the first byte in the file.
	Offset int64
	Size   int64
	Scope  Scope
	// LogicalID names the segment across checkpoints.
	LogicalID string
	// Checksums of the bytes of the segment; nil where the writer recorded none, as Flink's never do.
	Checksums *core.Checksums
}

// EmptySegment stands where file merging had nothing to write. It cannot be opened. It is a [core.StreamHandle].
type EmptySegment struct{}

var (
	_ core.StreamHandle = (*SegmentHandle)(nil)
	_ core.StreamHandle = EmptySegment{}
	_ core.StreamHandle = (*KeyGroupsHandle)(nil)
)

// StateSize implements [core.StreamHandle].
func (h *SegmentHandle) StateSize() int64 { return h.Size }

// StateSize implements [core.StreamHandle].
func (EmptySegment) StateSize() int64 { return 0 }

// IsStreamHandle implements [core.StreamHandle].
func (*SegmentHandle) IsStreamHandle() {}

// IsStreamHandle implements [core.StreamHandle].
func (EmptySegment) IsStreamHandle() {}
