package core

import "math"

// Object is a file that a checkpoint needs in order to be restored, as its `_metadata` names it.
type Object struct {
	// Path is qualified, such as "file:/ckpt/…/chk-7/4d1c…"; that of a relative handle is resolved against the checkpoint's
	// directory.
	Path string
	// Size is the recorded length in bytes, -1 if unknown, as that of a file of merged states is.
	Size int64
	// AtLeast is the length in bytes that the file must have where Size is -1: the end of the last segment that is needed.
	// The file may be longer, by the segments of other checkpoints. 0 where Size is recorded.
	AtLeast int64
	// Relative: the handle was relative, so that the file moves with the checkpoint's directory.
	Relative bool
	// Directory: Path is a directory of which everything is needed (Flink's file merging).
	Directory bool
	// FlagByte: the file is one byte longer than Size (Flink's changelog files begin with a byte that is not counted).
	FlagByte bool
	// Checksums of the bytes, nil where none are recorded. Those of merged states are in Segments.
	Checksums *Checksums
	// Segments are the parts of a file of merged states that the checkpoint needs, by ascending offset, each once; nil for a
	// file that is needed as a whole. Only their bytes are the checkpoint's business. A reader of single handles yields them
	// one by one, so that an object may come several times there, each time with other segments.
	Segments []Segment
}

// Segment is a run of bytes of a file of merged states that a checkpoint needs.
type Segment struct {
	// Offset of the first byte in the file.
	Offset int64
	// Size in bytes, -1 if unknown.
	Size int64
	// Scope says who may refer to the segment.
	Scope Scope
	// Checksums of the segment's bytes, nil where none are recorded. Their chunks begin at Offset.
	Checksums *Checksums
}

// End is the offset behind the segment; that of one whose size is unknown is its Offset.
func (s Segment) End() int64 {
	if s.Size > math.MaxInt64-s.Offset {
		return math.MaxInt64
	}
	return s.Offset + max(s.Size, 0)
}

// ReadObjects parses the bytes of a `_metadata` file that lies in the qualified directory dir and returns the objects it
// needs, each path once. It must fail rather than leave one out: what is deleted depends on it. Package metadata has the
// implementation; it is a value here because that package imports this one.
type ReadObjects func(data []byte, dir string) ([]Object, error)
