package localfs

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk is a model of the least that a power cut leaves: the bytes that a file had at its last fsync, and the entries that a
// directory had at its last fsync.
type disk struct {
	mu    sync.Mutex
	nodes map[fileID]*diskNode
	after func(e event) // called with mu held when an event has had its effect
}

type diskNode struct {
	dir           bool
	now, durable  map[string]*diskNode
	data, durably []byte
}

// newDisk returns a model in which the directory top is there and empty.
func newDisk(t testing.TB, top string) (d *disk, root *diskNode) {
	t.Helper()
	d = &disk{nodes: map[fileID]*diskNode{}}
	f, err := os.Open(top)
	require.NoError(t, err)
	e, err := kernel{}.stat(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	root = &diskNode{dir: true, now: map[string]*diskNode{}, durable: map[string]*diskNode{}}
	d.nodes[e.id] = root
	return d, root
}

// node is nil for what lies outside of the model.
func (d *disk) node(f *os.File) *diskNode {
	e, err := kernel{}.stat(f)
	if err != nil {
		return nil
	}
	return d.nodes[e.id]
}

func (d *disk) add(parent *os.File, leaf string, dir bool) {
	e, err := kernel{}.lstat(parent, leaf)
	p := d.node(parent)
	if err != nil || p == nil {
		return
	}
	n := &diskNode{dir: dir, now: map[string]*diskNode{}, durable: map[string]*diskNode{}}
	d.nodes[e.id] = n // an inode number may be used again
	p.now[leaf] = n
}

func (d *disk) get(parent *os.File, leaf string) *diskNode {
	if p := d.node(parent); p != nil {
		return p.now[leaf]
	}
	return nil
}

func (d *disk) set(parent *os.File, leaf string, n *diskNode) {
	p := d.node(parent)
	switch {
	case p == nil:
	case n == nil:
		delete(p.now, leaf)
	default:
		p.now[leaf] = n
	}
}

func (d *disk) move(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) {
	n := d.get(olddir, oldleaf)
	d.set(olddir, oldleaf, nil)
	d.set(newdir, newleaf, n)
}

func (d *disk) write(f *os.File, p []byte) {
	if n := d.node(f); n != nil {
		n.data = append(n.data, p...)
	}
}

func (d *disk) sync(f *os.File) {
	n := d.node(f)
	if n == nil {
		return
	}
	n.durably = bytes.Clone(n.data)
	n.durable = maps.Clone(n.now)
}

// find returns what a power cut would leave under a path below n.
func (n *diskNode) find(name string) *diskNode {
	for component := range strings.SplitSeq(name, "/") {
		if n == nil {
			return nil
		}
		n = n.durable[component]
	}
	return n
}

// restore makes dir what a power cut would leave of it.
func (n *diskNode) restore(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	n.restoreInto(t, dir)
}

func (n *diskNode) restoreInto(t testing.TB, dir string) {
	t.Helper()
	for leaf, child := range n.durable {
		name := filepath.Join(dir, leaf)
		if !child.dir {
			require.NoError(t, os.WriteFile(name, child.durably, 0o600))
			continue
		}
		require.NoError(t, os.Mkdir(name, 0o700))
		child.restoreInto(t, name)
	}
}
