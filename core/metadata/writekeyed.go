package metadata

import (
	"encoding/binary"
	"math"
)

func (e *encoder) keyed(h KeyedHandle) {
	if h == nil {
		e.u8(tagNone)
		return
	}
	if !e.enter() {
		return
	}
	defer e.leave()
	switch h := h.(type) {
	case *KeyGroupsHandle:
		e.keyGroups(h)
	case *IncrementalHandle:
		e.incremental(h)
	case *ChangelogHandle:
		e.changelog(h)
	case *ChangelogBytesHandle:
		e.changelogBytes(h)
	case *ChangelogFileHandle:
		e.changelogFile(h)
	}
}

// layout returns the layout in which a handle is written, and the number to add to its tag.
func (e *encoder) layout(l Layout) (Layout, byte) {
	switch {
	case l > Layout114:
		e.fail(invalid("there is no layout %d", l))
	case l == Layout114 && e.private:
		return l, tag114
	case l == Layout114 && !e.keep114:
		return LayoutCurrent, 0
	}
	return l, 0
}

func (e *encoder) keyGroupRange(r KeyGroupRange) {
	if r.Start < 0 || r.Count < 0 || r.End() > math.MaxInt32 {
		e.fail(invalid("there are no key groups %d…%d", r.Start, r.End()-1))
	}
	e.u32(uint32(r.Start))
	e.u32(uint32(r.Count))
}

func (e *encoder) keyGroups(h *KeyGroupsHandle) {
	layout, _ := e.layout(h.Layout)
	switch {
	case h.Savepoint:
		e.u8(tagSavepointKeyGroups)
	case layout == LayoutV1:
		e.u8(tagKeyGroupsV1)
	default:
		e.u8(tagKeyGroups)
	}
	e.keyGroupsBody(h)
	if !h.Savepoint && layout != LayoutV1 {
		e.text(h.ID)
	}
}

func (e *encoder) keyGroupsBody(h *KeyGroupsHandle) {
	e.keyGroupRange(h.Range)
	if len(h.Offsets) != int(h.Range.Count) {
		e.fail(invalid("%d offsets for %d key groups", len(h.Offsets), h.Range.Count))
	}
	e.longs(h.Offsets)
	e.someStream("delegate", h.Delegate)
}

func (e *encoder) incremental(h *IncrementalHandle) {
	layout, _ := e.layout(h.Layout)
	tag := byte(tagIncremental)
	if layout == LayoutV1 {
		tag = tagIncrementalV1
	}
	e.u8(tag)
	e.i64(h.CheckpointID)
	e.text(h.BackendID)
	e.keyGroupRange(h.Range)
	if layout != LayoutV1 {
		e.i64(h.PersistedSize)
	}
	e.someStream("meta", h.Meta)
	e.namedFiles("shared", h.Shared)
	e.namedFiles("private", h.Private)
	if layout != LayoutV1 {
		e.text(h.ID)
	}
}

func (e *encoder) namedFiles(name string, files []NamedFile) {
	if e.err != nil {
		return
	}
	e.i32(len(files))
	for i := range files {
		e.text(files[i].LocalPath)
		e.someStream("handle", files[i].Handle)
		if e.failedAt(name, i) {
			return
		}
	}
}

func (e *encoder) changelog(h *ChangelogHandle) {
	layout, mark := e.layout(h.Layout)
	tag := byte(tagChangelog)
	if layout != LayoutCurrent {
		tag = tagChangelogV1 + mark
	}
	e.u8(tag)
	if h.Range.Count == 0 {
		e.fail(invalid("a changelog of no key groups"))
	}
	e.keyGroupRange(h.Range)
	if layout != Layout114 {
		e.i64(e.known(h.Layout, h.PersistedSize, h.StateSize))
	}
	e.i32(len(h.Materialized))
	for i, part := range h.Materialized {
		if part == nil {
			e.fail(invalid("a handle is needed, there is none"))
		}
		e.keyed(part)
		if e.failedAt("materialized", i) {
			return
		}
	}
	e.i32(len(h.Changes))
	for i, part := range h.Changes {
		if !isChange(part) {
			e.fail(invalid("a list of changes holds %T", part))
		}
		e.keyed(part)
		if e.failedAt("changes", i) {
			return
		}
	}
	if layout == Layout114 {
		return
	}
	e.i64(h.MaterializationID)
	if layout == LayoutCurrent {
		e.i64(h.CheckpointID)
	}
	e.id(h.Layout, h.ID)
}

func (e *encoder) changelogBytes(h *ChangelogBytesHandle) {
	layout, mark := e.layout(h.Layout)
	e.u8(tagChangelogBytes + mark)
	e.keyGroupRange(h.Range)
	if h.From < 0 || h.To < 0 {
		e.fail(invalid("there are no sequence numbers %d to %d", h.From, h.To))
	}
	e.i64(h.From)
	e.i64(h.To)
	e.i32(len(h.Changes))
	for i := range h.Changes {
		if h.Changes[i].KeyGroup < MetadataKeyGroup {
			e.fail(invalid("there is no key group %d", h.Changes[i].KeyGroup))
		}
		e.u32(uint32(h.Changes[i].KeyGroup))
		e.blob(h.Changes[i].Data)
		if e.failedAt("changes", i) {
			return
		}
	}
	if layout != Layout114 {
		e.id(h.Layout, h.ID)
	}
}

func (e *encoder) changelogFile(h *ChangelogFileHandle) {
	layout, mark := e.layout(h.Layout)
	tag := byte(tagChangelogFile)
	if layout != LayoutCurrent {
		tag = tagChangelogFileV1 + mark
	}
	e.u8(tag)
	e.keyGroupRange(h.Range)
	e.i32(len(h.Parts))
	for i := range h.Parts {
		e.i64(h.Parts[i].Offset)
		e.someStream("handle", h.Parts[i].Handle)
		if e.failedAt("parts", i) {
			return
		}
	}
	e.i64(h.Size)
	if layout != Layout114 {
		e.i64(e.known(h.Layout, h.PersistedSize, h.StateSize))
		e.id(h.Layout, h.ID)
	}
	if layout == LayoutCurrent {
		e.text(h.Storage)
	}
}

// known replaces the size that Flink 1.14 did not record by that of the whole state: Flink does so elsewhere, and would
// otherwise add up negative sizes.
func (e *encoder) known(was Layout, size int64, whole func() int64) int64 {
	if was == Layout114 && size == unknownSize {
		return whole()
	}
	return size
}

// id writes the id of a handle. Flink 1.14 recorded none, and later ones tell handles apart by it: such a handle gets one
// that depends on its place only, so that writing twice gives the same bytes.
func (e *encoder) id(was Layout, id string) {
	if was == Layout114 && id == "" {
		var place [16]byte
		binary.BigEndian.PutUint64(place[:], uint64(e.checkpointID))
		binary.BigEndian.PutUint64(place[8:], uint64(e.filled))
		id = nameUUID(place[:])
		e.filled++
	}
	e.text(id)
}

// fits114 reports whether the checkpoint can be written so that Flink 1.14 reads it: it has changelog handles in that layout, and no
// keyed handle in one that came later.
func fits114(c *Checkpoint) bool {
	found := false
	for i := range c.Operators {
		for _, s := range c.Operators[i].Subtasks {
			if s.State == nil {
				continue
			}
			for _, h := range [...]KeyedHandle{s.State.ManagedKeyed, s.State.RawKeyed} {
				if h != nil && !knownTo114(h, &found, 0) {
					return false
				}
			}
		}
	}
	return found
}

func knownTo114(h KeyedHandle, found *bool, depth int) bool {
	layout := LayoutCurrent
	switch h := h.(type) {
	case *KeyGroupsHandle:
		return h.Savepoint || h.Layout == LayoutV1
	case *IncrementalHandle:
		return h.Layout == LayoutV1
	case *ChangelogBytesHandle:
		layout = h.Layout
	case *ChangelogFileHandle:
		layout = h.Layout
	case *ChangelogHandle:
		layout = h.Layout
		for _, parts := range [...][]KeyedHandle{h.Materialized, h.Changes} {
			for _, part := range parts {
				if part == nil || depth > maxDepth || !knownTo114(part, found, depth+1) {
					return false
				}
			}
		}
	}
	if layout == Layout114 {
		*found = true
	}
	return layout == Layout114
}
