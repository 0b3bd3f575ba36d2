package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// KeyedHandle is the keyed state of one subtask: *[KeyGroupsHandle], *[IncrementalHandle], *[ChangelogHandle], or inside the
// latter *[ChangelogBytesHandle] or *[ChangelogFileHandle]. A nil KeyedHandle means that there is no state.
type KeyedHandle interface {
	// KeyGroups is the range of key groups that the state belongs to.
	KeyGroups() KeyGroupRange
	// StateSize is the number of bytes that the state takes as a whole. Unknown sizes count as -1, as Flink counts them.
	StateSize() int64
	// CheckpointedSize is the number of bytes that were written for this checkpoint; less than StateSize if parts were
	// written for an earlier one.
	CheckpointedSize() int64

	isKeyedHandle()
}

// Layout says which of the historic layouts a keyed handle has in the file. New handles leave it zero.
type Layout uint8

const (
	// LayoutCurrent is what Flink writes today.
	LayoutCurrent Layout = iota
	// LayoutV1 is the form before a field was added: key groups and incremental handles without id (up to Flink 1.14),
	// changelogs without checkpoint id or storage identifier (1.15). Every Flink reads it.
	LayoutV1
	// Layout114 is the form of changelog handles that only Flink 1.14 wrote and reads. It is kept in version 3; in later
	// versions the handle is written in the current layout with what is missing filled in.
	Layout114
)

// KeyGroupsHandle is keyed state with one offset for each key group: a full snapshot. It is a [KeyedHandle], and also a
// [core.StreamHandle], as old versions of Flink nested it so.
type KeyGroupsHandle struct {
	Range KeyGroupRange
	// Offsets has one entry for each key group of Range, in order.
	Offsets []int64
	// Delegate holds the bytes. It is not nil.
	Delegate core.StreamHandle
	// ID of the handle. Those of savepoints, of LayoutV1 and those used as stream handles have none in the file.
	ID string
	// Savepoint: the bytes are in the canonical format of savepoints, which every state backend reads.
	Savepoint bool
	Layout    Layout
}

// NamedFile is a file of an incremental snapshot under the name that it has in the working directory of the state backend.
type NamedFile struct {
	// LocalPath such as "000010.sst" or "CURRENT".
	LocalPath string
	// Handle is not nil.
	Handle core.StreamHandle
}

// IncrementalHandle is keyed state as the files of a log-structured merge tree.
type IncrementalHandle struct {
	CheckpointID int64
	// BackendID is a UUID; old versions of Flink wrote other texts.
	BackendID string
	Range     KeyGroupRange
	// PersistedSize is the number of bytes written for this checkpoint, or -1 if the writer did not know.
	PersistedSize int64
	// Meta is not nil.
	Meta core.StreamHandle
	// Shared files may be referred to by later checkpoints, Private ones are not.
	Shared  []NamedFile
	Private []NamedFile
	// ID of the handle; LayoutV1 has none.
	ID     string
	Layout Layout
}

// ChangelogHandle is keyed state as a materialised snapshot and the changes since then.
type ChangelogHandle struct {
	Range         KeyGroupRange
	PersistedSize int64
	Materialized  []KeyedHandle
	// Changes are of type *[ChangelogBytesHandle] or *[ChangelogFileHandle].
	Changes           []KeyedHandle
	MaterializationID int64
	// CheckpointID equals MaterializationID in LayoutV1.
	CheckpointID int64
	ID           string
	Layout       Layout
}

// MetadataKeyGroup is the key group of a [StateChange] that describes state instead of changing it.
const MetadataKeyGroup = -1

// StateChange is one change of the state of a key group.
type StateChange struct {
	KeyGroup int32
	Data     []byte
}

// ChangelogBytesHandle holds changes inline.
type ChangelogBytesHandle struct {
	Range KeyGroupRange
	// From and To are the sequence numbers that the changes cover.
	From    int64
	To      int64
	Changes []StateChange
	ID      string
	Layout  Layout
}

// ChangelogPart says where in a file of changes those of a handle begin.
type ChangelogPart struct {
	Offset int64
	// Handle is not nil. The file that it refers to begins with one byte that is counted neither in its size nor in Offset.
	Handle core.StreamHandle
}

// ChangelogFileHandle holds changes in files.
type ChangelogFileHandle struct {
	Range KeyGroupRange
	Parts []ChangelogPart
	// Size in bytes of all changes, PersistedSize of those written for this checkpoint.
	Size          int64
	PersistedSize int64
	ID            string
	// Storage names the kind of storage; "filesystem" in LayoutV1.
	Storage string
	Layout  Layout
}

// FilesystemStorage is the [ChangelogFileHandle.Storage] of changes in files of a file system.
const FilesystemStorage = "filesystem"

var (
	_ KeyedHandle = (*KeyGroupsHandle)(nil)
	_ KeyedHandle = (*IncrementalHandle)(nil)
	_ KeyedHandle = (*ChangelogHandle)(nil)
	_ KeyedHandle = (*ChangelogBytesHandle)(nil)
	_ KeyedHandle = (*ChangelogFileHandle)(nil)
)

// KeyGroups implements [KeyedHandle].
func (h *KeyGroupsHandle) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *IncrementalHandle) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *ChangelogHandle) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *ChangelogBytesHandle) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *ChangelogFileHandle) KeyGroups() KeyGroupRange { return h.Range }

// StateSize implements [KeyedHandle] and [core.StreamHandle].
func (h *KeyGroupsHandle) StateSize() int64 { return streamSize(h.Delegate) }

// StateSize implements [KeyedHandle].
func (h *IncrementalHandle) StateSize() int64 {
	sum := streamSize(h.Meta)
	for _, files := range [...][]NamedFile{h.Shared, h.Private} {
		for i := range files {
			sum += streamSize(files[i].Handle)
		}
	}
	return sum
}

// StateSize implements [KeyedHandle].
func (h *ChangelogHandle) StateSize() int64 {
	var sum int64
	for _, part := range h.Materialized {
		sum += part.StateSize()
	}
	for _, part := range h.Changes {
		sum += part.StateSize()
	}
	return sum
}

// StateSize implements [KeyedHandle].
func (h *ChangelogBytesHandle) StateSize() int64 {
	var sum int64
	for i := range h.Changes {
		sum += int64(len(h.Changes[i].Data))
	}
	return sum
}

// StateSize implements [KeyedHandle].
func (h *ChangelogFileHandle) StateSize() int64 { return h.Size }

// CheckpointedSize implements [KeyedHandle].
func (h *KeyGroupsHandle) CheckpointedSize() int64 { return h.StateSize() }

// CheckpointedSize implements [KeyedHandle]. For a writer that did not know, it is the size of the whole state.
func (h *IncrementalHandle) CheckpointedSize() int64 {
	if h.PersistedSize == unknownSize {
		return h.StateSize()
	}
	return h.PersistedSize
}

// CheckpointedSize implements [KeyedHandle].
func (h *ChangelogHandle) CheckpointedSize() int64 { return h.PersistedSize }

// CheckpointedSize implements [KeyedHandle].
func (h *ChangelogBytesHandle) CheckpointedSize() int64 { return h.StateSize() }

// CheckpointedSize implements [KeyedHandle].
func (h *ChangelogFileHandle) CheckpointedSize() int64 { return h.PersistedSize }

// IsStreamHandle implements [core.StreamHandle].
func (*KeyGroupsHandle) IsStreamHandle() {}

func (*KeyGroupsHandle) isKeyedHandle()      {}
func (*IncrementalHandle) isKeyedHandle()    {}
func (*ChangelogHandle) isKeyedHandle()      {}
func (*ChangelogBytesHandle) isKeyedHandle() {}
func (*ChangelogFileHandle) isKeyedHandle()  {}

// unknownSize is what a writer stores for a size that it does not know.
const unknownSize = -1
