package metadata

import (
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

var _ core.ReadObjects = ReadObjects

// ReadObjects parses the bytes of a `_metadata` file that lies in the qualified directory dir and returns the objects that it
// needs: see [Parse] and [Objects]. It is a [core.ReadObjects].
func ReadObjects(data []byte, dir string) ([]core.Object, error) {
	c, err := Parse(data, dir)
	if err != nil {
		return nil, err
	}
	return Objects(c)
}

// Objects returns every file that the checkpoint needs, and every directory whose life Flink's file merging ties to it, each
// once and in the order in which they are met. Paths have the form that Flink gives them ("file:/x" for "file:///x", no double
// slashes). Inline state is no object.
//
// It fails rather than leave something out, with an *[Error]: core.ErrCorrupt for a path that cannot be one, a relative name
// that leads out of the directory, and for two handles that give one file different lengths; fs.ErrInvalid for a relative handle
// that was parsed without a directory.
func Objects(c *Checkpoint) ([]core.Object, error) {
	l := objectList{index: make(map[string]int)}
	for i := range c.Operators {
		o := &c.Operators[i]
		for k := range o.Subtasks {
			if o.Subtasks[k].State == nil {
				continue
			}
			if err := l.state(o.Subtasks[k].State); err != nil {
				err.inIndex("subtasks", k)
				err.inIndex("operators", i)
				return nil, err
			}
		}
	}
	return l.objects, nil
}

// ObjectsOfSubtask is [Objects] for the state of one subtask: what has to be deleted if no checkpoint comes of it.
func ObjectsOfSubtask(s *SubtaskState) ([]core.Object, error) {
	l := objectList{index: make(map[string]int)}
	if err := l.state(s); err != nil {
		return nil, err
	}
	return l.objects, nil
}

// Resolve returns the qualified path of the file that a handle of type *core.FileHandle, *core.RelativeFileHandle or
// *[SegmentHandle] refers to, in the form of [Objects]. The error is an *[Error], as there; a handle that refers to no file is
// fs.ErrInvalid.
func Resolve(h core.StreamHandle) (string, error) {
	path, err := resolve(h)
	if err != nil {
		return "", err
	}
	return path, nil
}

func resolve(h core.StreamHandle) (string, *Error) {
	switch h := h.(type) {
	case *core.FileHandle:
		return resolvePath(h.Path)
	case *SegmentHandle:
		return resolvePath(h.Path)
	case *core.RelativeFileHandle:
		if problem := relativeProblem(h.Name); problem != "" {
			return "", &Error{Offset: -1, Reason: fmt.Sprintf("the relative name %.200q %s", h.Name, problem), Err: core.ErrCorrupt}
		}
		if h.Dir == "" {
			return "", invalid("the relative name %.200q has no directory to be resolved against", h.Name)
		}
		return resolvePath(h.Path())
	}
	return "", invalid("a handle of type %s refers to no file", kindOfStream(h))
}

// resolvePath brings a qualified path into the one form by which files are told apart.
func resolvePath(path string) (string, *Error) {
	p := splitFlinkPath(path)
	p.path = strings.TrimSuffix(p.path, "/")
	switch {
	case strings.Trim(p.path, "/") == "":
		return "", &Error{Offset: -1, Reason: fmt.Sprintf("the path %.200q names no file", path), Err: core.ErrCorrupt}
	case strings.IndexByte(path, 0) >= 0:
		return "", &Error{Offset: -1, Reason: fmt.Sprintf("the path %.200q has a NUL", path), Err: core.ErrCorrupt}
	case p.path == ".." || strings.HasPrefix(p.path, "../") || strings.HasPrefix(p.path, "/../") || p.path == "/..":
		return "", &Error{Offset: -1, Reason: fmt.Sprintf("the path %.200q leads above its root", path), Err: core.ErrCorrupt}
	}
	return p.String(), nil
}

// relativeProblem says why a name may not be resolved against a directory, "" if it may.
func relativeProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case name[0] == '/':
		return "is absolute"
	case strings.IndexByte(name, 0) >= 0:
		return "has a NUL"
	case strings.IndexByte(name, '\\') >= 0:
		return "has a backslash"
	}
	for component := range strings.SplitSeq(name, "/") {
		switch component {
		case "", ".", "..":
			return fmt.Sprintf("has the component %q", component)
		}
	}
	return ""
}

// objectList gathers objects by path.
type objectList struct {
	objects []core.Object
	index   map[string]int
}

func (l *objectList) state(s *SubtaskState) *Error {
	operators := [...]*OperatorHandle{s.ManagedOperator, s.RawOperator}
	for i, name := range [...]string{"managedOperator", "rawOperator"} {
		if h := operators[i]; h != nil {
			if err := l.operator(h); err != nil {
				err.in(name)
				return err
			}
		}
	}
	keyed := [...]KeyedHandle{s.ManagedKeyed, s.RawKeyed}
	for i, name := range [...]string{"managedKeyed", "rawKeyed"} {
		if err := l.keyed(keyed[i], 0); err != nil {
			err.in(name)
			return err
		}
	}
	channels := [...][]ChannelHandle{s.InputChannels, s.ResultSubpartitions}
	for i, name := range [...]string{"inputChannels", "resultSubpartitions"} {
		for k := range channels[i] {
			if err := l.stream("delegate", channels[i][k].Delegate, false, 0); err != nil {
				err.inIndex(name, k)
				return err
			}
		}
	}
	return nil
}

func (l *objectList) operator(h *OperatorHandle) *Error {
	if h.Merging != nil {
		dirs := [...]string{h.Merging.TaskOwnedDir, h.Merging.SharedDir}
		for i, name := range [...]string{"merging.taskOwnedDir", "merging.sharedDir"} {
			path, err := resolvePath(dirs[i])
			if err == nil {
				err = l.add(core.Object{Path: path, Size: unknownSize, Directory: true})
			}
			if err != nil {
				err.in(name)
				return err
			}
		}
	}
	return l.stream("delegate", h.Delegate, false, 0)
}

func (l *objectList) keyed(h KeyedHandle, depth int) *Error {
	if depth > maxDepth {
		return invalid("more than %d handles inside each other", maxDepth)
	}
	switch h := h.(type) {
	case *KeyGroupsHandle:
		return l.stream("delegate", h.Delegate, false, depth)
	case *IncrementalHandle:
		return l.incremental(h, depth)
	case *ChangelogFileHandle:
		for i := range h.Parts {
			if err := l.stream("handle", h.Parts[i].Handle, true, depth); err != nil {
				err.inIndex("parts", i)
				return err
			}
		}
	case *ChangelogHandle:
		parts := [...][]KeyedHandle{h.Materialized, h.Changes}
		for i, name := range [...]string{"materialized", "changes"} {
			for k, part := range parts[i] {
				if err := l.keyed(part, depth+1); err != nil {
					err.inIndex(name, k)
					return err
				}
			}
		}
	}
	return nil
}

func (l *objectList) incremental(h *IncrementalHandle, depth int) *Error {
	if err := l.stream("meta", h.Meta, false, depth); err != nil {
		return err
	}
	files := [...][]NamedFile{h.Shared, h.Private}
	for i, name := range [...]string{"shared", "private"} {
		for k := range files[i] {
			if err := l.stream("handle", files[i][k].Handle, false, depth); err != nil {
				err.inIndex(name, k)
				return err
			}
		}
	}
	return nil
}

// stream adds the file of a handle, if there is one. Files of changes begin with a byte that is not counted.
func (l *objectList) stream(name string, h core.StreamHandle, changes bool, depth int) (err *Error) {
	defer func() {
		if err != nil {
			err.in(name)
		}
	}()
	object := core.Object{FlagByte: changes}
	switch h := h.(type) {
	case nil, *core.BytesHandle, EmptySegment:
		return nil
	case *KeyGroupsHandle:
		if depth > maxDepth {
			return invalid("more than %d handles inside each other", maxDepth)
		}
		return l.stream("delegate", h.Delegate, changes, depth+1)
	case *core.FileHandle:
		object.Size, object.Checksums = h.Size, h.Checksums
	case *core.RelativeFileHandle:
		object.Size, object.Checksums, object.Relative = h.Size, h.Checksums, true
	case *SegmentHandle:
		object.Size = unknownSize // that of the file; the segment says only where it ends
	default:
		return invalid("%T is not a stream handle that is known here", h)
	}
	if object.Path, err = resolve(h); err != nil {
		return err
	}
	return l.add(object)
}

// add joins what several handles say of one file.
func (l *objectList) add(o core.Object) *Error {
	i, known := l.index[o.Path]
	if !known {
		l.index[o.Path] = len(l.objects)
		l.objects = append(l.objects, o)
		return nil
	}
	have := &l.objects[i]
	switch {
	case have.Directory != o.Directory:
		return &Error{Offset: -1, Reason: fmt.Sprintf("%s is a file and a directory", o.Path), Err: core.ErrCorrupt}
	case have.Size == unknownSize:
		have.Size = o.Size
	case o.Size != unknownSize && o.Size != have.Size:
		return &Error{
			Offset: -1, Err: core.ErrCorrupt,
			Reason: fmt.Sprintf("%s has %d and also %d bytes", o.Path, have.Size, o.Size),
		}
	}
	have.Relative = have.Relative || o.Relative
	have.FlagByte = have.FlagByte || o.FlagByte
	if have.Checksums == nil {
		have.Checksums = o.Checksums
	}
	return nil
}
