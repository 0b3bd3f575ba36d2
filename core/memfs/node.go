package memfs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

var (
	errNotDir = fmt.Errorf("%w: not a directory", fs.ErrInvalid)
	errIsDir  = fmt.Errorf("%w: is a directory", fs.ErrInvalid)
)

// node is an inode. Files are only ever appended to, by the one Writer that made them, so the durable content is a prefix.
type node struct {
	mode    fs.FileMode
	modTime time.Time

	// parent and name say where the node is in the present state; parent is nil for the root and for removed nodes.
	parent *node
	name   string

	data   []byte // of a file: what was written
	synced int    // of a file: how much of data is durable

	entries dirents // of a directory: the present state
	durable dirents // of a directory: what is on disk
}

func newDir(now time.Time) *node  { return &node{mode: dirMode, modTime: now} }
func newFile(now time.Time) *node { return &node{mode: fileMode, modTime: now} }

func (n *node) isDir() bool { return n.mode.IsDir() }

func (n *node) info(name string) core.FileInfo {
	return core.FileInfo{Name: name, Size: int64(len(n.data)), Mode: n.mode, ModTime: n.modTime}
}

// link enters child in the present state of the directory n and removes what was there.
func (n *node) link(name string, child *node) {
	n.unlink(name)
	child.parent, child.name = n, name
	n.entries.set(name, child)
}

func (n *node) unlink(name string) {
	if old := n.entries.get(name); old != nil {
		old.parent = nil
		n.entries.set(name, nil)
	}
}

// below reports whether n is dir or lies below it in the present state.
func (n *node) below(dir *node) bool {
	for ; n != nil; n = n.parent {
		if n == dir {
			return true
		}
	}
	return false
}

// dirents are the entries of a directory in byte order of their names.
type dirents []dirent

type dirent struct {
	name string
	node *node
}

func (d dirents) find(name string) (int, bool) {
	return slices.BinarySearchFunc(d, name, func(e dirent, name string) int { return strings.Compare(e.name, name) })
}

func (d dirents) get(name string) *node {
	if i, ok := d.find(name); ok {
		return d[i].node
	}
	return nil
}

// set enters n under name, in place of what was there; a nil n removes the name.
func (d *dirents) set(name string, n *node) {
	i, ok := d.find(name)
	switch {
	case ok && n == nil:
		*d = slices.Delete(*d, i, i+1)
	case ok:
		(*d)[i].node = n
	case n != nil:
		*d = slices.Insert(*d, i, dirent{name, n})
	}
}

// after returns up to limit entries whose names follow last.
func (d dirents) after(last string, limit int) []dirent {
	i, ok := d.find(last)
	if ok {
		i++
	}
	return d[i:min(i+limit, len(d))]
}
