package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// qualify turns an argument into a qualified path: a URL stays what it is, a plain path is one of the file system defaultFS. cwd
// is where relative paths begin on the local one.
func qualify(arg, defaultFS, cwd string) (string, error) {
	if hasScheme(arg) {
		uri, name, err := core.SplitQualified(arg)
		if err != nil {
			return "", report.UsageProblem(fmt.Sprintf("%q is no URL of a path: %v", arg, err), "a URL looks like hdfs://ns1/a/b or file:///a/b; a local name with a colon needs ./ before it")
		}
		return core.Qualify(uri, name), nil
	}
	uri, _, err := core.SplitQualified(withSlash(defaultFS))
	if err != nil {
		return "", err
	}
	switch {
	case path.IsAbs(arg):
	case isLocal(uri):
		arg = path.Join(cwd, arg)
	default:
		return "", report.UsageProblem(fmt.Sprintf("%q is relative, which only local paths may be", arg), "give the whole path from the root of "+defaultFS)
	}
	return core.Qualify(uri, path.Clean(arg)), nil
}

// hasScheme: a colon before the first slash ends a scheme.
func hasScheme(arg string) bool {
	before, _, found := strings.Cut(arg, ":")
	return found && !strings.Contains(before, "/")
}

func isLocal(uri string) bool { return uri == "file://" }

// locate qualifies an argument.
func (v *verbContext) locate(arg string) (string, error) {
	cwd, err := v.Getwd()
	if err != nil {
		return "", err
	}
	return qualify(arg, v.flags.fs, cwd)
}

// locateAll qualifies all arguments.
func (v *verbContext) locateAll() ([]string, error) {
	var located []string
	for _, arg := range v.args {
		qualified, err := v.locate(arg)
		if err != nil {
			return nil, err
		}
		located = append(located, qualified)
	}
	return located, nil
}

// follow resolves a local path that is a symbolic link, such as the "current" of an operator. File systems themselves do not
// follow what they are asked about.
func follow(qualified string) string {
	uri, name, err := core.SplitQualified(qualified)
	if err != nil || !isLocal(uri) {
		return qualified
	}
	info, err := os.Lstat(filepath.FromSlash(name))
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return qualified
	}
	target, err := filepath.EvalSymlinks(filepath.FromSlash(name))
	if err != nil {
		return qualified
	}
	return core.Qualify(uri, filepath.ToSlash(target))
}
