package metadata

import (
	"cmp"
	"fmt"
	"slices"
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
// slashes). Inline state is no object. A file of merged states has the segments that are needed, see core.Object.Segments.
//
// It fails rather than leave something out, with an *[Error]: core.ErrCorrupt for a path that cannot be one, a relative name
// that leads out of the directory, and for two handles that give one file different lengths, or a segment beyond its end; fs.ErrInvalid for a relative handle
// that was parsed without a directory.
func Objects(c *Checkpoint) ([]core.Object, error) {
	l := newObjectList()
	for i := range c.Operators {
		o := &c.Operators[i]
		for k := range o.Subtasks {
			if o.Subtasks[k].State == nil {
				continue
			}
			if err := l.walk.state(o.Subtasks[k].State); err != nil {
				err.inIndex("subtasks", k)
				err.inIndex("operators", i)
				return nil, err
			}
		}
	}
	return l.finish(), nil
}

// ObjectsOfSubtask is [Objects] for the state of one subtask: what has to be deleted if no checkpoint comes of it.
func ObjectsOfSubtask(s *SubtaskState) ([]core.Object, error) {
	l := newObjectList()
	if err := l.walk.state(s); err != nil {
		return nil, err
	}
	return l.finish(), nil
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
	walk    fileWalk
	objects []core.Object
	index   map[string]int
}

func newObjectList() *objectList {
	l := &objectList{index: make(map[string]int)}
	l.walk.found = func(f *foundFile) *Error { return l.add(f.Object) }
	return l
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
	have.AtLeast = max(have.AtLeast, o.AtLeast)
	if have.Size != unknownSize && have.AtLeast > have.Size {
		return &Error{
			Offset: -1, Err: core.ErrCorrupt,
			Reason: fmt.Sprintf("%s has %d bytes, and a segment of it ends at %d", o.Path, have.Size, have.AtLeast),
		}
	}
	if have.Segments == nil || o.Segments == nil {
		have.Segments = nil // all of it is needed
	} else {
		have.Segments = append(have.Segments, o.Segments...)
	}
	have.Relative = have.Relative || o.Relative
	have.FlagByte = have.FlagByte || o.FlagByte
	if have.Checksums == nil {
		have.Checksums = o.Checksums
	}
	return nil
}

// finish returns the objects, with their segments in order and each once.
func (l *objectList) finish() []core.Object {
	for i := range l.objects {
		o := &l.objects[i]
		if o.Size != unknownSize {
			o.AtLeast = 0
		}
		if len(o.Segments) > 1 {
			o.Segments = joinSegments(o.Segments)
		}
	}
	return l.objects
}

// joinSegments sorts segments in place and joins those that are the same run of bytes.
func joinSegments(segments []core.Segment) []core.Segment {
	slices.SortStableFunc(segments, func(a, b core.Segment) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
	joined := segments[:1]
	for _, s := range segments[1:] {
		last := &joined[len(joined)-1]
		if s.Offset != last.Offset || s.Size != last.Size {
			joined = append(joined, s)
			continue
		}
		last.Scope = max(last.Scope, s.Scope)
		if last.Checksums == nil {
			last.Checksums = s.Checksums
		}
	}
	return slices.Clip(joined)
}
