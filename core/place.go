package core

import (
	"path"
	"strings"
)

// Place says in which directory of a location a file lies.
type Place uint8

const (
	// Elsewhere is none of them; also a directory below CheckpointDir, since nothing of ours is there.
	Elsewhere Place = iota
	// InCheckpointDir files belong to the one checkpoint. Everything of a savepoint is there.
	InCheckpointDir
	// InSharedDir files may belong to several checkpoints.
	InSharedDir
	// InTaskOwnedDir files belong to tasks.
	InTaskOwnedDir
	// InPackDir files hold exclusive states of one checkpoint that a worker has packed, see [Packer].
	InPackDir
)

// Place tells where the file or directory with a qualified path lies. An entropy marker in the location's own names stands
// for any random characters.
func (l *Location) Place(qualified string) Place {
	uri, name, err := SplitQualified(qualified)
	if err != nil || uri != "" && uri != l.fsys.URI() {
		return Elsewhere
	}
	switch {
	case l.matches(l.dir, path.Dir(name)):
		return InCheckpointDir
	case l.within(l.dir, name):
		return Elsewhere
	case l.within(l.sharedDir, name):
		return InSharedDir
	case isPackedFile(l.taskOwnedDir, name):
		return InPackDir
	case l.within(l.taskOwnedDir, name):
		return InTaskOwnedDir
	}
	return Elsewhere
}

// Scattered reports whether the location's files lie in directories with random characters instead of its own.
func (l *Location) Scattered() bool { return hasEntropy(l.fsys, l.dir) }

// within reports whether name lies below dir, which may hold an entropy marker.
func (l *Location) within(dir, name string) bool {
	for parent := path.Dir(name); len(parent) > 1; parent = path.Dir(parent) {
		if l.matches(dir, parent) {
			return true
		}
	}
	return false
}

// matches reports whether name is dir, or dir with random characters in the place of its entropy marker.
func (l *Location) matches(dir, name string) bool {
	e := entropyOf(l.fsys)
	if e == nil || !e.HasEntropy(dir) {
		return name == dir
	}
	before, after, _ := strings.Cut(dir, e.marker)
	return len(name) == len(before)+e.length+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) &&
		isLowerHex(name[len(before):len(before)+e.length])
}
