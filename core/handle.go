package core

import "strings"

// StreamHandle says where the bytes of a state are: [*BytesHandle], [*FileHandle], [*RelativeFileHandle], [*SegmentHandle] or
// [EmptySegment]. A nil StreamHandle means that there is no state. Handles are values: they stay valid when the process that
// made them has died, and they are serialised into `_metadata` files.
type StreamHandle interface {
	// StateSize is the number of bytes, or -1 if the file's writer did not know it.
	StateSize() int64
	// IsStreamHandle marks the type; it does nothing.
	IsStreamHandle()
}

// BytesHandle holds state inline. Its name has the form of a path because Flink names it so; there is never such a file.
type BytesHandle struct {
	Name string
	Data []byte
}

// FileHandle refers to a file by its qualified path, such as "hdfs://ns1/ckpt/…/shared/0b7c…".
type FileHandle struct {
	Path string
	Size int64
	// Checksums of the file's bytes; nil where the writer recorded none, as Flink's never do.
	Checksums *Checksums
}

// RelativeFileHandle refers to a file in the directory of the `_metadata` file that holds the handle, so that the directory
// can be moved as a whole.
type RelativeFileHandle struct {
	// Dir is the qualified directory the handle is resolved against. It is not stored in `_metadata`.
	Dir string
	// Name is the file's name below Dir.
	Name string
	Size int64
	// Checksums as in FileHandle.
	Checksums *Checksums
}

// StateSize implements StreamHandle.
func (h *BytesHandle) StateSize() int64 { return int64(len(h.Data)) }

// StateSize implements StreamHandle.
func (h *FileHandle) StateSize() int64 { return h.Size }

// StateSize implements StreamHandle.
func (h *RelativeFileHandle) StateSize() int64 { return h.Size }

// Path is the qualified path of the file.
func (h *RelativeFileHandle) Path() string { return strings.TrimSuffix(h.Dir, "/") + "/" + h.Name }

// IsStreamHandle implements StreamHandle.
func (*BytesHandle) IsStreamHandle() {}

// IsStreamHandle implements StreamHandle.
func (*FileHandle) IsStreamHandle() {}

// IsStreamHandle implements StreamHandle.
func (*RelativeFileHandle) IsStreamHandle() {}

// Checksums are CRC32C (Castagnoli) sums over consecutive chunks of a file; the last chunk may be shorter.
type Checksums struct {
	ChunkSize int
	Sums      []uint32
}
