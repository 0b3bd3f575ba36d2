package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// FileKind says what the bytes of a file are for.
type FileKind uint8

// The kinds of files.
const (
	OperatorFile    FileKind = iota // operator state
	KeyGroupsFile                   // keyed state as a full snapshot
	IncrementalFile                 // keyed state as files of a log-structured merge tree, with their list
	ChangelogFile                   // changes of keyed state
	ChannelFile                     // data in flight
	MergedDirectory                 // a directory of Flink's file merging
)

var fileKinds = [...]string{"operator", "key_groups", "incremental", "changelog", "channel", "merged_directory"}

// String returns the kind in lower case.
func (k FileKind) String() string {
	if int(k) < len(fileKinds) {
		return fileKinds[k]
	}
	return "invalid"
}

// foundFile is a file as one handle refers to it.
type foundFile struct {
	core.Object
	kind   FileKind
	shared bool
}

// fileWalk finds the files that handles refer to.
type fileWalk struct {
	// found is called for each of them; what it points to may be changed.
	found func(*foundFile) *Error
	file  foundFile
}

// use says what the handles below are for. Shared ones are those that Flink enters into its registry of shared state.
type use struct {
	kind   FileKind
	shared bool
}

func (w *fileWalk) state(s *SubtaskState) *Error {
	operators := [...]*OperatorHandle{s.ManagedOperator, s.RawOperator}
	for i, name := range [...]string{"managedOperator", "rawOperator"} {
		if h := operators[i]; h != nil {
			if err := w.operator(h); err != nil {
				err.in(name)
				return err
			}
		}
	}
	keyed := [...]KeyedHandle{s.ManagedKeyed, s.RawKeyed}
	for i, name := range [...]string{"managedKeyed", "rawKeyed"} {
		if err := w.keyed(keyed[i], false, 0); err != nil {
			err.in(name)
			return err
		}
	}
	channels := [...][]ChannelHandle{s.InputChannels, s.ResultSubpartitions}
	for i, name := range [...]string{"inputChannels", "resultSubpartitions"} {
		for k := range channels[i] {
			if err := w.stream("delegate", channels[i][k].Delegate, use{kind: ChannelFile}, 0); err != nil {
				err.inIndex(name, k)
				return err
			}
		}
	}
	return nil
}

func (w *fileWalk) operator(h *OperatorHandle) *Error {
	if h.Merging != nil {
		dirs := [...]string{h.Merging.TaskOwnedDir, h.Merging.SharedDir}
		for i, name := range [...]string{"merging.taskOwnedDir", "merging.sharedDir"} {
			path, err := resolvePath(dirs[i])
			if err == nil {
				w.file = foundFile{
					Object: core.Object{Path: path, Size: unknownSize, Directory: true}, kind: MergedDirectory, shared: true,
				}
				err = w.found(&w.file)
			}
			if err != nil {
				err.in(name)
				return err
			}
		}
	}
	return w.stream("delegate", h.Delegate, use{kind: OperatorFile}, 0)
}

func (w *fileWalk) keyed(h KeyedHandle, shared bool, depth int) *Error {
	if depth > maxDepth {
		return invalid("more than %d handles inside each other", maxDepth)
	}
	switch h := h.(type) {
	case *KeyGroupsHandle:
		return w.stream("delegate", h.Delegate, use{KeyGroupsFile, shared}, depth)
	case *IncrementalHandle:
		return w.incremental(h, shared, depth)
	case *ChangelogFileHandle:
		for i := range h.Parts {
			if err := w.stream("handle", h.Parts[i].Handle, use{ChangelogFile, true}, depth); err != nil {
				err.inIndex("parts", i)
				return err
			}
		}
	case *ChangelogHandle:
		parts := [...][]KeyedHandle{h.Materialized, h.Changes}
		for i, name := range [...]string{"materialized", "changes"} {
			for k, part := range parts[i] {
				if err := w.keyed(part, true, depth+1); err != nil {
					err.inIndex(name, k)
					return err
				}
			}
		}
	}
	return nil
}

func (w *fileWalk) incremental(h *IncrementalHandle, shared bool, depth int) *Error {
	if err := w.stream("meta", h.Meta, use{IncrementalFile, shared}, depth); err != nil {
		return err
	}
	files := [...][]NamedFile{h.Shared, h.Private}
	for i, name := range [...]string{"shared", "private"} {
		for k := range files[i] {
			if err := w.stream("handle", files[i][k].Handle, use{IncrementalFile, shared || i == 0}, depth); err != nil {
				err.inIndex(name, k)
				return err
			}
		}
	}
	return nil
}

// stream adds the file of a handle, if there is one. Files of changes begin with a byte that is not counted.
func (w *fileWalk) stream(name string, h core.StreamHandle, u use, depth int) (err *Error) {
	defer func() {
		if err != nil {
			err.in(name)
		}
	}()
	object := core.Object{FlagByte: u.kind == ChangelogFile}
	switch h := h.(type) {
	case nil, *core.BytesHandle, EmptySegment:
		return nil
	case *KeyGroupsHandle:
		if depth > maxDepth {
			return invalid("more than %d handles inside each other", maxDepth)
		}
		return w.stream("delegate", h.Delegate, u, depth+1)
	case *core.FileHandle:
		object.Size, object.Checksums = h.Size, h.Checksums
	case *core.RelativeFileHandle:
		object.Size, object.Checksums, object.Relative = h.Size, h.Checksums, true
	case *SegmentHandle:
		object.Size = unknownSize // that of the file; the segment says only where it ends
		object.Segments = []core.Segment{{Offset: h.Offset, Size: h.Size, Scope: h.Scope, Checksums: h.Checksums}}
		object.AtLeast = object.Segments[0].End()
		u.shared = u.shared || h.Scope == ScopeShared
	default:
		return invalid("%T is not a stream handle that is known here", h)
	}
	if object.Path, err = resolve(h); err != nil {
		return err
	}
	w.file = foundFile{Object: object, kind: u.kind, shared: u.shared}
	return w.found(&w.file)
}
