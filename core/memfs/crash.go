package memfs

import (
	"math/rand/v2"
	"slices"
)

// CrashConfig says how much of what is not durable a crash leaves. The zero value leaves nothing of it: the result is then
// determined, and names whose removal was not durable are back.
type CrashConfig struct {
	// UnsyncedPercent is the chance, in percent, of each change to a directory (a name made, a name removed, a rename as a
	// whole) and of each file's unsynced bytes to survive. At 100 everything does. Of the bytes of a file that were chosen a
	// beginning survives, whose end may be zeros: the length reached the disk, the data did not.
	UnsyncedPercent int
	// Rand decides. Nil is a generator with a fixed seed.
	Rand *rand.Rand
}

// CrashClone returns a new, independent file system as this one could be found after a power cut now. It has no open files,
// no hook, and everything in it is durable.
func (f *FS) CrashClone(cfg CrashConfig) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := crash{percent: cfg.UnsyncedPercent, rand: cfg.Rand, overlay: map[*node]dirents{}}
	if c.rand == nil {
		c.rand = rand.New(rand.NewPCG(1, 1))
	}
	for _, change := range f.journal.survivors(c.lot) {
		for _, e := range change.edits {
			entries, ok := c.overlay[e.dir]
			if !ok {
				entries = slices.Clone(e.dir.durable)
			}
			entries.set(e.name, e.to)
			c.overlay[e.dir] = entries
		}
	}
	return &FS{
		uri:  f.uri,
		base: f.base,
		caps: f.Capabilities(),
		now:  f.now,
		root: c.clone(f.root),
		open: map[openFile]struct{}{},
	}
}

type crash struct {
	percent int
	rand    *rand.Rand
	// overlay holds the entries of those directories in which a change survives.
	overlay map[*node]dirents
}

func (c *crash) lot() bool {
	switch {
	case c.percent <= 0:
		return false
	case c.percent >= 100:
		return true
	}
	return c.rand.IntN(100) < c.percent
}

func (c *crash) clone(n *node) *node {
	if !n.isDir() {
		data := c.content(n)
		return &node{mode: n.mode, modTime: n.modTime, data: data, synced: len(data)}
	}
	twin := newDir(n.modTime)
	entries, ok := c.overlay[n]
	if !ok {
		entries = n.durable
	}
	for _, e := range entries {
		child := c.clone(e.node)
		child.parent, child.name = twin, e.name
		twin.entries = append(twin.entries, dirent{e.name, child})
	}
	twin.durable = slices.Clone(twin.entries)
	return twin
}

// content shares the bytes with the original where it can: they are never changed, and the capacity keeps appends apart.
func (c *crash) content(n *node) []byte {
	kept := n.synced
	if unsynced := len(n.data) - n.synced; unsynced > 0 && c.lot() {
		if c.percent >= 100 {
			kept = len(n.data)
		} else {
			kept += 1 + c.rand.IntN(unsynced)
		}
	}
	data := n.data[:kept:kept]
	if fresh := kept - n.synced; fresh > 0 && c.percent < 100 && c.rand.IntN(4) == 0 {
		data = slices.Clone(data)
		clear(data[kept-1-c.rand.IntN(fresh):])
	}
	return data
}
