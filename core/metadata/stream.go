package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Scope says who may refer to the bytes of a segment.
type Scope = core.Scope

// The scopes, with the numbers that the file format gives them.
const (
	// ScopeExclusive bytes belong to one checkpoint.
	ScopeExclusive = core.Exclusive
	// ScopeShared bytes may be referred to by several checkpoints.
	ScopeShared = core.Shared
)

// SegmentHandle is a run of bytes in a file that holds several states (Flink's file merging).
type SegmentHandle = core.SegmentHandle

// EmptySegment stands where file merging had nothing to write.
type EmptySegment = core.EmptySegment

var _ core.StreamHandle = (*KeyGroupsHandle)(nil)
