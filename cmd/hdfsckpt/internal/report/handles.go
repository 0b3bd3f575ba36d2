package report

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Role says which part of a subtask's state a handle is. The values are part of the JSON interface.
type Role string

// The roles.
const (
	ManagedOperator     Role = "managed_operator"
	RawOperator         Role = "raw_operator"
	ManagedKeyed        Role = "managed_keyed"
	RawKeyed            Role = "raw_keyed"
	InputChannels       Role = "input_channels"
	ResultSubpartitions Role = "result_subpartitions"
	Coordinator         Role = "coordinator"
)

// Storage says where the bytes of a stream are. The values are part of the JSON interface.
type Storage string

// The storages.
const (
	Inline       Storage = "inline"        // in the metadata
	RelativeFile Storage = "relative_file" // in the checkpoint's directory, found wherever that is moved
	AbsoluteFile Storage = "file"
	Segment      Storage = "segment" // of a file that holds the states of several subtasks
)

// Stream is one run of bytes.
type Stream struct {
	Storage Storage `json:"storage"`
	// Path is the qualified path, "" for inline state.
	Path   string `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	// Bytes are -1 if unknown.
	Bytes int64 `json:"bytes"`
	// Checksummed: checksums of the bytes are recorded.
	Checksummed bool `json:"checksummed,omitempty"`
}

// handle is one handle of a subtask with the streams below it.
type handle struct {
	role     Role
	kind     string
	bytes    int64
	newBytes int64
	streams  []Stream
}

// place puts the streams where their files are.
func (h *handle) place(where func(string) string) {
	if where == nil {
		return
	}
	for i := range h.streams {
		if s := &h.streams[i]; s.Path != "" && s.Storage != RelativeFile {
			s.Path = where(s.Path)
		}
	}
}

// handlesOf lists the handles of a subtask.
func handlesOf(s *metadata.SubtaskState) []handle {
	var handles []handle
	for _, part := range []struct {
		role Role
		h    *metadata.OperatorHandle
	}{{ManagedOperator, s.ManagedOperator}, {RawOperator, s.RawOperator}} {
		if part.h != nil {
			handles = append(handles, operatorHandle(part.role, part.h))
		}
	}
	for _, part := range []struct {
		role Role
		h    metadata.KeyedHandle
	}{{ManagedKeyed, s.ManagedKeyed}, {RawKeyed, s.RawKeyed}} {
		if part.h != nil {
			handles = append(handles, keyedHandle(part.role, part.h))
		}
	}
	for _, part := range []struct {
		role Role
		list []metadata.ChannelHandle
	}{{InputChannels, s.InputChannels}, {ResultSubpartitions, s.ResultSubpartitions}} {
		for i := range part.list {
			handles = append(handles, channelHandle(part.role, &part.list[i]))
		}
	}
	return handles
}

func coordinatorHandle(h *core.BytesHandle) handle {
	size := h.StateSize()
	return handle{role: Coordinator, kind: "coordinator", bytes: size, newBytes: size, streams: appendStream(nil, h)}
}

func operatorHandle(role Role, h *metadata.OperatorHandle) handle {
	kind := "operator_state"
	if h.Merging != nil {
		kind = "merged_operator_state"
	}
	return handle{role: role, kind: kind, bytes: h.StateSize(), newBytes: h.StateSize(), streams: appendStream(nil, h.Delegate)}
}

func keyedHandle(role Role, h metadata.KeyedHandle) handle {
	return handle{
		role: role, kind: keyedKind(h), bytes: h.StateSize(), newBytes: h.CheckpointedSize(), streams: appendKeyed(nil, h),
	}
}

func keyedKind(h metadata.KeyedHandle) string {
	switch h := h.(type) {
	case *metadata.KeyGroupsHandle:
		if h.Savepoint {
			return "canonical_key_groups"
		}
		return "key_groups"
	case *metadata.IncrementalHandle:
		return "incremental"
	case *metadata.ChangelogHandle:
		return "changelog"
	case *metadata.ChangelogBytesHandle:
		return "changelog_bytes"
	case *metadata.ChangelogFileHandle:
		return "changelog_files"
	}
	return fmt.Sprintf("%T", h)
}

func channelHandle(role Role, h *metadata.ChannelHandle) handle {
	kind := "channel"
	if h.Merged {
		kind = "merged_channels"
	}
	return handle{role: role, kind: kind, bytes: h.Size, newBytes: h.Size, streams: appendStream(nil, h.Delegate)}
}

// appendKeyed appends the streams of keyed state.
func appendKeyed(streams []Stream, h metadata.KeyedHandle) []Stream {
	switch h := h.(type) {
	case *metadata.KeyGroupsHandle:
		return appendStream(streams, h.Delegate)
	case *metadata.IncrementalHandle:
		streams = appendStream(streams, h.Meta)
		for _, files := range [...][]metadata.NamedFile{h.Shared, h.Private} {
			for i := range files {
				streams = appendStream(streams, files[i].Handle)
			}
		}
	case *metadata.ChangelogHandle:
		for _, parts := range [...][]metadata.KeyedHandle{h.Materialized, h.Changes} {
			for _, part := range parts {
				streams = appendKeyed(streams, part)
			}
		}
	case *metadata.ChangelogBytesHandle:
		streams = append(streams, Stream{Storage: Inline, Bytes: h.StateSize()})
	case *metadata.ChangelogFileHandle:
		for i := range h.Parts {
			streams = appendStream(streams, h.Parts[i].Handle)
		}
	}
	return streams
}

// appendStream appends a stream handle; an empty segment has no bytes anywhere.
func appendStream(streams []Stream, h core.StreamHandle) []Stream {
	stream := Stream{Storage: Inline, Path: pathOf(h), Bytes: -1}
	switch h := h.(type) {
	case *core.BytesHandle:
		stream.Bytes = h.StateSize()
	case *core.FileHandle:
		stream.Storage, stream.Bytes, stream.Checksummed = AbsoluteFile, h.Size, h.Checksums != nil
	case *core.RelativeFileHandle:
		stream.Storage, stream.Bytes, stream.Checksummed = RelativeFile, h.Size, h.Checksums != nil
	case *metadata.SegmentHandle:
		stream.Storage, stream.Bytes, stream.Checksummed = Segment, h.Size, h.Checksums != nil
		stream.Offset = h.Offset
	case *metadata.KeyGroupsHandle:
		return appendStream(streams, h.Delegate)
	default:
		return streams
	}
	return append(streams, stream)
}

// pathOf is the qualified path of a file handle in the form of [metadata.Objects], "" for other handles and those that have
// none.
func pathOf(h core.StreamHandle) string {
	path, err := metadata.Resolve(h)
	if err != nil {
		return ""
	}
	return path
}
