package fsurl

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	schemeFile = "file"
	schemeHDFS = "hdfs"
)

// schemes are those that a URL may have.
var schemes = []string{schemeFile, schemeHDFS}

// target is a parsed URL.
type target struct {
	scheme    string
	authority string
	name      string
}

// fileSystem is the target without its name: one file system.
func (t target) fileSystem() target { return target{scheme: t.scheme, authority: t.authority} }

// parse splits a URL. The error is bare.
func (p plan) parse(url string) (target, error) {
	plain := isPlain(url)
	if plain && !strings.HasPrefix(url, "/") && url != "" {
		if p.defaultFS.scheme != schemeFile {
			return target{}, fmt.Errorf("%w: a relative path has a meaning on the local file system only", fs.ErrInvalid)
		}
		absolute, err := filepath.Abs(url)
		if err != nil {
			return target{}, err
		}
		url = filepath.ToSlash(absolute)
	}
	if err := checkComponents(url); err != nil {
		return target{}, err
	}
	t, err := split(url)
	if err != nil {
		return target{}, err
	}
	if plain {
		t.scheme, t.authority = p.defaultFS.scheme, p.defaultFS.authority
	}
	if t.scheme == schemeFile {
		var pathErr *fs.PathError
		if err := core.CheckName("open", p.localBase, t.name); errors.As(err, &pathErr) {
			return target{}, pathErr.Err // operation and path are put on again
		}
	}
	return t, nil
}

// isPlain reports whether a URL has no scheme.
func isPlain(url string) bool {
	before, _, found := strings.Cut(url, ":")
	return !found || strings.Contains(before, "/")
}

// checkComponents refuses what a path could lead elsewhere with than it seems to.
func checkComponents(url string) error {
	for component := range strings.SplitSeq(url, "/") {
		if component == "." || component == ".." {
			return fmt.Errorf("%w: a path must not contain %q", fs.ErrInvalid, component)
		}
	}
	return nil
}

// split checks scheme and authority; those of a plain path are empty.
func split(url string) (target, error) {
	uri, name, err := core.SplitQualified(url)
	if err != nil || uri == "" {
		return target{name: name}, err
	}
	scheme, authority, _ := strings.Cut(uri, "://")
	t := target{scheme: strings.ToLower(scheme), authority: authority, name: name}
	switch {
	case !slices.Contains(schemes, t.scheme):
		return target{}, fmt.Errorf("%w: unknown scheme %q, known are %s", fs.ErrInvalid, scheme, strings.Join(schemes, ", "))
	case t.scheme != schemeFile:
	case t.authority == "localhost":
		t.authority = ""
	case t.authority != "":
		return target{}, fmt.Errorf("%w: a file URL cannot name another host, %q", fs.ErrInvalid, t.authority)
	}
	return t, nil
}

// parseDefaultFS parses a URL that names a file system and no more.
func parseDefaultFS(url string) (target, error) {
	if isPlain(url) {
		return target{}, fmt.Errorf("%w: %q has no scheme", fs.ErrInvalid, url)
	}
	if _, after, found := strings.Cut(url, "://"); found && !strings.Contains(after, "/") {
		url += "/"
	}
	t, err := split(url)
	switch {
	case err != nil:
		return target{}, err
	case t.name != "/":
		return target{}, fmt.Errorf("%w: %q has a path", fs.ErrInvalid, url)
	case t.scheme != schemeFile && t.authority == "":
		return target{}, fmt.Errorf("%w: %q names no cluster", fs.ErrInvalid, url)
	}
	return t.fileSystem(), nil
}
