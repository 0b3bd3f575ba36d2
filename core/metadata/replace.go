package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Relocation says how [Checkpoint.Relocate] changes where the bytes of a checkpoint are looked for; nil functions change nothing.
type Relocation struct {
	// Stream returns the handle to take the place of h, which may be h itself: it is called for every handle of a file, a relative
	// file or a segment. It must not change h.
	Stream func(h core.StreamHandle) core.StreamHandle
	// Directory returns the path to take the place of that of a directory of Flink's file merging.
	Directory func(path string) string
}

// Relocate replaces handles of c in place. Checksums stay with the handles that have them.
func (c *Checkpoint) Relocate(r Relocation) {
	for i := range c.Operators {
		for k := range c.Operators[i].Subtasks {
			if s := c.Operators[i].Subtasks[k].State; s != nil {
				r.state(s)
			}
		}
	}
}

func (r *Relocation) state(s *SubtaskState) {
	for _, h := range [...]*OperatorHandle{s.ManagedOperator, s.RawOperator} {
		if h == nil {
			continue
		}
		r.stream(&h.Delegate)
		if h.Merging != nil && r.Directory != nil {
			h.Merging.TaskOwnedDir, h.Merging.SharedDir = r.Directory(h.Merging.TaskOwnedDir), r.Directory(h.Merging.SharedDir)
		}
	}
	r.keyed(s.ManagedKeyed)
	r.keyed(s.RawKeyed)
	for _, list := range [...][]ChannelHandle{s.InputChannels, s.ResultSubpartitions} {
		for i := range list {
			r.stream(&list[i].Delegate)
		}
	}
}

func (r *Relocation) keyed(h KeyedHandle) {
	switch h := h.(type) {
	case *KeyGroupsHandle:
		r.stream(&h.Delegate)
	case *IncrementalHandle:
		r.stream(&h.Meta)
		for _, files := range [...][]NamedFile{h.Shared, h.Private} {
			for i := range files {
				r.stream(&files[i].Handle)
			}
		}
	case *ChangelogFileHandle:
		for i := range h.Parts {
			r.stream(&h.Parts[i].Handle)
		}
	case *ChangelogHandle:
		for _, parts := range [...][]KeyedHandle{h.Materialized, h.Changes} {
			for _, part := range parts {
				r.keyed(part)
			}
		}
	}
}

func (r *Relocation) stream(h *core.StreamHandle) {
	switch known := (*h).(type) {
	case *KeyGroupsHandle:
		r.stream(&known.Delegate)
	case *core.FileHandle, *core.RelativeFileHandle, *SegmentHandle:
		if r.Stream != nil {
			*h = r.Stream(known)
		}
	}
}
