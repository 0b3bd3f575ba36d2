package metadata

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// kindOfStream names the type of a stream handle; the names are those of the JSON form.
func kindOfStream(h core.StreamHandle) string {
	switch h.(type) {
	case *core.BytesHandle:
		return kindBytes
	case *core.FileHandle:
		return kindFile
	case *core.RelativeFileHandle:
		return kindRelativeFile
	case *SegmentHandle:
		return kindSegment
	case EmptySegment:
		return kindEmptySegment
	case *KeyGroupsHandle:
		return kindKeyGroups
	}
	return fmt.Sprintf("%T", h)
}

func (e *encoder) enter() bool {
	if e.depth == maxDepth {
		e.fail(invalid("more than %d handles inside each other", maxDepth))
		return false
	}
	e.depth++
	return true
}

func (e *encoder) leave() { e.depth-- }

func (e *encoder) stream(h core.StreamHandle) {
	switch h := h.(type) {
	case nil:
		e.u8(tagNone)
	case *core.BytesHandle:
		e.u8(tagBytes)
		e.text(h.Name)
		e.blob(h.Data)
	case *core.FileHandle:
		e.u8(tagFile)
		e.size(h.Size)
		e.path(h.Path)
		e.annotate(h.Checksums, h.Size)
	case *core.RelativeFileHandle:
		e.u8(tagRelativeFile)
		e.text(h.Name)
		e.size(h.Size)
		if e.private {
			e.annex.dir(h.Dir)
		}
		e.annotate(h.Checksums, h.Size)
	case *KeyGroupsHandle:
		if e.enter() {
			e.u8(tagKeyGroupsV1)
			e.keyGroupsBody(h)
			e.leave()
		}
	case *SegmentHandle:
		e.segment(h)
	case EmptySegment:
		e.u8(tagEmptySegment)
	default:
		e.fail(invalid("%T is not a stream handle that the format has", h))
	}
}

func (e *encoder) path(path string) {
	if path == "" {
		e.fail(invalid("the path is empty"))
	}
	e.text(path)
}

func (e *encoder) size(n int64) {
	if n < unknownSize {
		e.fail(invalid("a file of %d bytes", n))
	}
	e.i64(n)
}

func (e *encoder) someStream(name string, h core.StreamHandle) {
	if e.err != nil {
		return
	}
	if h == nil {
		e.fail(invalid("a handle is needed, there is none"))
	} else {
		e.stream(h)
	}
	e.failedIn(name)
}

// annotate counts a file handle and takes note of its checksums.
func (e *encoder) annotate(sums *core.Checksums, size int64) {
	if sums != nil && !fitChecksums(sums, size) {
		e.fail(invalid("there are %d checksums of chunks of %d bytes for %d bytes", len(sums.Sums), sums.ChunkSize, size))
	}
	e.annex.file(sums)
}

func (e *encoder) segment(h *SegmentHandle) {
	if h.Offset < 0 || h.Scope > ScopeShared {
		e.fail(invalid("a segment at %d with scope %d", h.Offset, h.Scope))
	}
	e.u8(tagSegment)
	e.i64(h.Offset)
	e.i64(h.Size)
	e.u32(uint32(h.Scope))
	e.path(h.Path)
	e.text(h.LogicalID)
	e.annotate(h.Checksums, h.Size)
}

func (e *encoder) maybeOperatorHandle(h *OperatorHandle) {
	if h == nil {
		e.u32(0)
		return
	}
	e.u32(1)
	tag := byte(tagOperator)
	if h.Merging != nil {
		tag = tagMergedOperator
	}
	e.u8(tag)
	e.i32(len(h.States))
	for i := range h.States {
		s := &h.States[i]
		e.text(s.Name)
		if s.Mode > Broadcast {
			e.fail(invalid("there is no mode %d", s.Mode))
		}
		e.u8(byte(s.Mode))
		e.i32(len(s.Offsets))
		e.longs(s.Offsets)
		if e.failedAt("states", i) {
			return
		}
	}
	if h.Merging != nil {
		e.path(h.Merging.TaskOwnedDir)
		e.path(h.Merging.SharedDir)
		e.boolean(h.Merging.Empty)
		if e.failedIn("merging") {
			return
		}
		if h.Delegate != nil && !isSegment(h.Delegate) {
			e.fail(invalid("file merging needs a segment, this is a %s", kindOfStream(h.Delegate)))
			e.failedIn("delegate")
			return
		}
	}
	e.someStream("delegate", h.Delegate)
}

// channels writes a list of channel handles; below version 6 merged ones are taken apart.
func (e *encoder) channels(name string, list []ChannelHandle, single, merged byte) {
	n := len(list)
	if e.version < firstWithMergedChannels {
		n = 0
		for i := range list {
			n += len(list[i].Channels)
		}
	}
	e.i32(n)
	for i := range list {
		h := &list[i]
		switch {
		case !h.Merged && len(h.Channels) != 1:
			e.fail(invalid("a handle that is not merged has %d channels", len(h.Channels)))
		case !h.Merged && h.Size != h.Channels[0].Size:
			e.fail(invalid("the sizes %d and %d of a handle and its only channel differ", h.Size, h.Channels[0].Size))
		case h.Merged && e.version >= firstWithMergedChannels:
			e.u8(merged)
			e.mergedChannel(h)
		default:
			for k := range h.Channels {
				if e.version >= firstWithMergedChannels {
					e.u8(single)
				}
				e.channel(h, &h.Channels[k])
			}
		}
		if e.failedAt(name, i) {
			return
		}
	}
}

func (e *encoder) channel(h *ChannelHandle, c *Channel) {
	e.u32(uint32(h.Subtask))
	e.u32(uint32(c.Group))
	e.u32(uint32(c.Index))
	e.i32(len(c.Offsets))
	e.longs(c.Offsets)
	e.i64(c.Size)
	e.someStream("delegate", h.Delegate)
}

func (e *encoder) mergedChannel(h *ChannelHandle) {
	e.u32(uint32(h.Subtask))
	e.i64(h.Size)
	e.someStream("delegate", h.Delegate)
	length := 4
	for i := range h.Channels {
		length += minMergedChannel + minOffset*len(h.Channels[i].Offsets)
	}
	e.i32(length)
	e.channelOffsets(h.Channels)
}

func (e *encoder) channelOffsets(list []Channel) {
	e.i32(len(list))
	for i := range list {
		c := &list[i]
		e.u32(uint32(c.Group))
		e.u32(uint32(c.Index))
		e.i64(c.Size)
		e.i32(len(c.Offsets))
		e.longs(c.Offsets)
	}
}
