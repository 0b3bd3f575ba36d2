package core

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxComponent is the longest path component that both HDFS (by default) and the common local file systems take, in bytes.
const maxComponent = 255

// CheckName is the rule for names of a [FileSystem] with the given base: absolute, slash-separated, clean, at or below
// base, no NUL, no ':' (Hadoop paths cannot hold one), no component above 255 bytes. It returns an *fs.PathError with
// operation op that is fs.ErrInvalid. A base of "/" or "" allows every absolute name.
func CheckName(op, base, name string) error {
	if problem := nameProblem(base, name); problem != "" {
		return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: %s", fs.ErrInvalid, problem)}
	}
	return nil
}

func nameProblem(base, name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case name[0] != '/':
		return "the name must be absolute"
	case strings.ContainsRune(name, 0):
		return "the name contains NUL"
	case strings.ContainsRune(name, ':'):
		return "the name contains ':'"
	case path.Clean(name) != name:
		return "the name must be clean: no '.', '..', empty component or trailing slash"
	case !Within(base, name):
		return "the name is outside the base " + base
	}
	for component := range strings.SplitSeq(name, "/") {
		if len(component) > maxComponent {
			return fmt.Sprintf("a component has more than %d bytes", maxComponent)
		}
	}
	return ""
}

// Within reports whether the clean absolute name is dir or lies below it.
func Within(dir, name string) bool {
	if dir == "" || dir == "/" {
		return true
	}
	return strings.HasPrefix(name, dir) && (len(name) == len(dir) || name[len(dir)] == '/')
}

// CheckComponent is the rule for a single path component that users choose, such as a store or target name: not empty, not
// "." or "..", no '/', '\', ':' or control character, at most 255 bytes. The error is fs.ErrInvalid.
func CheckComponent(component string) error {
	problem := ""
	switch {
	case component == "":
		problem = "is empty"
	case component == "." || component == "..":
		problem = "is a relative directory"
	case strings.ContainsAny(component, `/\:`):
		problem = `contains '/', '\' or ':'`
	case strings.ContainsFunc(component, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		problem = "contains a control character"
	case len(component) > maxComponent:
		problem = fmt.Sprintf("has more than %d bytes", maxComponent)
	default:
		return nil
	}
	return fmt.Errorf("%w: path component %q %s", fs.ErrInvalid, component, problem)
}
