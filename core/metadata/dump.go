package metadata

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// DumpFlink writes what Flink 2.3 reads in a file as canonical JSON ("flink-oracle-dump/1"): c is the value that [Parse]
// made of file. Lists are in the order of the file; subtasks are sorted by index and names of operator states by bytes, as Flink
// keeps both in hash maps. The error is that of w.
func DumpFlink(w io.Writer, c *Checkpoint, file []byte) error {
	d := &flinkDump{dumpWriter: newDumpWriter(w), version: c.Version}
	d.checkpoint(c, file)
	d.out.WriteByte('\n')
	return d.out.Flush()
}

type flinkDump struct {
	*dumpWriter
	version int
}

func (d *flinkDump) checkpoint(c *Checkpoint, file []byte) {
	trailing := int64(0)
	if c.Footer != nil && len(file) >= 4 {
		trailing = int64(binary.BigEndian.Uint32(file[len(file)-4:]))
	}
	d.object("", func() {
		d.text("format", "flink-oracle-dump/1")
		d.number("version", int64(c.Version))
		d.number("fileSize", int64(len(file)))
		d.text("fileSha256", sha256Text(file))
		d.number("trailingBytes", trailing)
		d.number("checkpointId", c.ID)
		d.number("stateSize", c.StateSize())
		d.number("checkpointedSize", c.CheckpointedSize())
		d.list("masterStates", func() {
			for i := range c.MasterStates {
				m := &c.MasterStates[i]
				d.object("", func() {
					d.text("name", m.Name)
					d.number("version", int64(m.Version))
					d.bytes("bytes", m.Data)
				})
			}
		})
		d.list("operators", func() {
			for i := range c.Operators {
				d.operator(&c.Operators[i])
			}
		})
		d.properties(c.Properties)
	})
}

func (d *flinkDump) operator(o *OperatorState) {
	name, uid := o.Name, o.UID
	if d.version < firstWithNames {
		name, uid = "", "" // they are from the footer, which Flink does not read
	}
	d.object("", func() {
		d.text("id", o.ID.String())
		d.textOrNull("name", name)
		d.textOrNull("uid", uid)
		d.number("parallelism", int64(o.Parallelism))
		d.number("maxParallelism", int64(o.MaxParallelism))
		d.boolean("fullyFinished", o.FullyFinished)
		d.number("stateSize", o.StateSize())
		d.number("checkpointedSize", o.CheckpointedSize())
		if o.Coordinator == nil {
			d.null("coordinatorState")
		} else {
			d.stream("coordinatorState", o.Coordinator)
		}
		d.list("subtasks", func() {
			for _, s := range sortedSubtasks(o.Subtasks) {
				d.subtask(s)
			}
		})
	})
}

// sortedSubtasks sorts by index; of several with one index the last one holds.
func sortedSubtasks(list []Subtask) []Subtask {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Subtask) int { return a.Index - b.Index })
	kept := sorted[:0]
	for i := range sorted {
		if i+1 == len(sorted) || sorted[i+1].Index != sorted[i].Index {
			kept = append(kept, sorted[i])
		}
	}
	return kept
}

func (d *flinkDump) subtask(t Subtask) {
	d.object("", func() {
		d.number("index", int64(t.Index))
		d.boolean("finished", t.Finished())
		if t.Finished() {
			return
		}
		s := t.State
		d.number("stateSize", s.StateSize())
		d.number("checkpointedSize", s.CheckpointedSize())
		d.operatorHandle("managedOperatorState", s.ManagedOperator)
		d.operatorHandle("rawOperatorState", s.RawOperator)
		d.keyed("managedKeyedState", s.ManagedKeyed)
		d.keyed("rawKeyedState", s.RawKeyed)
		d.channels("inputChannelState", s.InputChannels, "gate", "channel", "inputChannel", "mergedInputChannel")
		d.channels("resultSubpartitionState", s.ResultSubpartitions, "partition", "subpartition",
			"resultSubpartition", "mergedResultSubpartition")
	})
}

func (d *flinkDump) operatorHandle(key string, h *OperatorHandle) {
	if h == nil {
		d.null(key)
		return
	}
	d.object(key, func() {
		if m := h.Merging; m != nil {
			d.text("type", "fileMergingPartitionable")
			d.text("taskOwnedDir", splitFlinkPath(m.TaskOwnedDir).String())
			d.text("sharedDir", splitFlinkPath(m.SharedDir).String())
			d.boolean("empty", m.Empty)
		} else {
			d.text("type", "partitionable")
		}
		d.list("states", func() {
			for _, s := range sortedStates(h.States) {
				d.object("", func() {
					d.text("name", s.Name)
					d.text("mode", s.Mode.String())
					d.numbers("offsets", s.Offsets)
				})
			}
		})
		d.stream("delegate", h.Delegate)
	})
}

// sortedStates sorts by name; of several with one name the last one holds.
func sortedStates(list []NamedState) []NamedState {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b NamedState) int { return strings.Compare(javaUTF8(a.Name), javaUTF8(b.Name)) })
	kept := sorted[:0]
	for i := range sorted {
		if i+1 == len(sorted) || sorted[i+1].Name != sorted[i].Name {
			kept = append(kept, sorted[i])
		}
	}
	return kept
}

// javaUTF8 is what Java's String.getBytes makes of a text: a lone surrogate becomes a question mark.
func javaUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := decodeRune(s)
		if r >= surrogateMin && r <= surrogateMax {
			r = '?'
		}
		b.WriteRune(r)
		s = s[size:]
	}
	return b.String()
}

func (d *flinkDump) channels(key string, list []ChannelHandle, group, index, single, merged string) {
	channel := func(c *Channel) {
		d.number(group, int64(c.Group))
		d.number(index, int64(c.Index))
	}
	d.list(key, func() {
		for i := range list {
			h := &list[i]
			if h.Merged {
				d.mergedChannel(h, merged, channel)
				continue
			}
			d.object("", func() {
				c := &h.Channels[0]
				d.text("type", single)
				d.number("subtaskIndex", int64(h.Subtask))
				channel(c)
				d.numbers("offsets", c.Offsets)
				d.number("size", h.Size)
				d.stream("delegate", h.Delegate)
			})
		}
	})
}

func (d *flinkDump) mergedChannel(h *ChannelHandle, kind string, channel func(*Channel)) {
	e := &encoder{}
	e.channelOffsets(h.Channels)
	d.object("", func() {
		d.text("type", kind)
		d.number("subtaskIndex", int64(h.Subtask))
		d.number("size", h.Size)
		d.stream("delegate", h.Delegate)
		d.bytes("serializedOffsets", e.buf)
		d.list("channels", func() {
			for i := range h.Channels {
				d.object("", func() {
					channel(&h.Channels[i])
					d.number("size", h.Channels[i].Size)
					d.numbers("offsets", h.Channels[i].Offsets)
				})
			}
		})
	})
}

func (d *flinkDump) stream(key string, h core.StreamHandle) {
	if h == nil {
		d.null(key)
		return
	}
	d.object(key, func() {
		switch h := h.(type) {
		case *core.BytesHandle:
			d.text("type", "bytes")
			d.text("name", h.Name)
			d.bytes("data", h.Data)
		case *core.FileHandle:
			p := splitFlinkPath(h.Path)
			d.text("type", "file")
			d.text("path", p.String())
			d.number("size", h.Size)
			d.text("physicalId", p.uri())
		case *core.RelativeFileHandle:
			d.text("type", "relativeFile")
			d.text("relativePath", h.Name)
			d.number("size", h.Size)
		case *SegmentHandle:
			d.text("type", "segment")
			d.text("path", splitFlinkPath(h.Path).String())
			d.number("startPos", h.Offset)
			d.number("size", h.Size)
			d.text("scope", h.Scope.String())
			d.text("logicalFileId", h.LogicalID)
			d.text("physicalId", h.LogicalID)
		case EmptySegment:
			d.text("type", "emptySegment")
		case *KeyGroupsHandle:
			d.keyGroups(h)
		}
	})
}

func (d *flinkDump) keyGroups(h *KeyGroupsHandle) {
	kind := "keyGroups"
	if h.Savepoint {
		kind = "savepointKeyGroups"
	}
	d.text("type", kind)
	d.keyGroupRange(h.Range)
	d.numbers("offsets", h.Offsets)
	d.stream("delegate", h.Delegate)
}

// keyGroupRange: Flink has one empty range only.
func (d *flinkDump) keyGroupRange(r KeyGroupRange) {
	if r.Count == 0 {
		r.Start = 0
	}
	d.number("keyGroupStart", int64(r.Start))
	d.number("keyGroupCount", int64(r.Count))
}

// id writes null where the file has no id: Flink makes a random one up.
func (d *flinkDump) id(layout, without Layout, id string) {
	if layout >= without {
		d.null("stateHandleId")
		return
	}
	d.text("stateHandleId", id)
}

func (d *flinkDump) properties(p *Properties) {
	if p == nil || p.Null {
		d.null("properties")
		return
	}
	e := &encoder{}
	typed := *p
	typed.read = nil
	e.properties(&typed)
	d.object("properties", func() {
		d.text("class", propertiesClass)
		d.snapshotType(p.Type)
		d.boolean("discardCancelled", p.DiscardCancelled)
		d.boolean("discardFailed", p.DiscardFailed)
		d.boolean("discardFinished", p.DiscardFinished)
		d.boolean("discardSubsumed", p.DiscardSubsumed)
		d.boolean("discardSuspended", p.DiscardSuspended)
		d.boolean("forced", p.Forced)
		d.boolean("unclaimed", p.Unclaimed)
		d.number("serializedLength", int64(len(e.buf)))
		d.text("serializedSha256", sha256Text(e.buf))
	})
}

func (d *flinkDump) snapshotType(t SnapshotType) {
	if t.Class == "" {
		d.null("checkpointType")
		return
	}
	d.object("checkpointType", func() {
		d.text("class", t.Class)
		if t.Class == SavepointClass {
			d.textOrNull("formatType", t.Format)
		}
		d.textOrNull("name", t.Name)
		if t.Class == SavepointClass {
			d.textOrNull("postCheckpointAction", t.Action)
		} else {
			d.textOrNull("sharingFilesStrategy", t.Sharing)
		}
	})
}
