package core

import (
	"fmt"
	"io/fs"
)

// Scope says who may refer to a state: one checkpoint, or several. The numbers are those of Flink's file format.
type Scope uint8

const (
	// Exclusive state belongs to one checkpoint and is deleted with it.
	Exclusive Scope = 0
	// Shared state may be referred to by later checkpoints.
	Shared Scope = 1
)

// String returns the name that Flink prints.
func (s Scope) String() string {
	switch s {
	case Exclusive:
		return "EXCLUSIVE"
	case Shared:
		return "SHARED"
	}
	return "invalid"
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (s Scope) MarshalText() ([]byte, error) {
	if s > Shared {
		return nil, fmt.Errorf("%w: there is no scope %d", fs.ErrInvalid, s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error is ErrCorrupt.
func (s *Scope) UnmarshalText(text []byte) error {
	for _, known := range []Scope{Exclusive, Shared} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("%w: there is no scope %.100q", ErrCorrupt, text)
}

// SegmentHandle is a run of bytes in a file that holds several states (Flink's file merging). It is a [StreamHandle].
type SegmentHandle struct {
	// Path of the whole file, qualified.
	Path string
	// Offset of the first byte in the file.
	Offset int64
	Size   int64
	Scope  Scope
	// LogicalID names the segment across checkpoints.
	LogicalID string
	// Checksums of the bytes of the segment; nil where the writer recorded none, as Flink's never do. Their chunks begin at
	// Offset.
	Checksums *Checksums
}

// EmptySegment stands where file merging had nothing to write. It is a [StreamHandle] of an empty state.
type EmptySegment struct{}

var (
	_ StreamHandle = (*SegmentHandle)(nil)
	_ StreamHandle = EmptySegment{}
)

// StateSize implements [StreamHandle].
func (h *SegmentHandle) StateSize() int64 { return h.Size }

// StateSize implements [StreamHandle].
func (EmptySegment) StateSize() int64 { return 0 }

// IsStreamHandle implements [StreamHandle].
func (*SegmentHandle) IsStreamHandle() {}

// IsStreamHandle implements [StreamHandle].
func (EmptySegment) IsStreamHandle() {}
