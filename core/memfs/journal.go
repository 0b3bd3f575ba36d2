package memfs

// slot is a place for a directory entry.
type slot struct {
	dir  *node
	name string
}

// edit puts a node into a slot; a nil node empties it.
type edit struct {
	slot
	to *node
}

// change is what one call does to directory entries. It becomes durable as a whole or not at all.
type change struct {
	edits []edit
	// movesDir: the change moves a directory. Two such changes may depend on each other without sharing a slot, and taking
	// one without the other could tie directories into a ring that the root no longer reaches.
	movesDir bool
}

// journal holds the changes that were made to the present state and are not durable, oldest first.
//
// A change depends on earlier ones that touch one of its slots, that made a directory it works in, or that move a directory
// if it does so itself. Making it durable, or letting it survive a crash, without them would lose a file that no call
// removed.
type journal struct {
	pending []change
	// compactAt is the length at which changes that nothing can reach any more are looked for.
	compactAt int
}

const minCompact = 1024

// wants is a set of what makes a change necessary, or impossible, for a later one.
type wants struct {
	slots map[slot]bool
	nodes map[*node]bool
	moves bool
}

func newWants() *wants { return &wants{slots: map[slot]bool{}, nodes: map[*node]bool{}} }

// syncEntries makes durable the pending changes in the given directories, and what these depend on.
func (j *journal) syncEntries(dirs ...*node) {
	synced := make(map[*node]bool, len(dirs))
	for _, dir := range dirs {
		synced[dir] = true
	}
	j.sync(func(e edit) bool { return synced[e.dir] }, dirs)
}

// syncLinks makes durable the pending changes without which a crash would lose the path to the given nodes.
func (j *journal) syncLinks(nodes ...*node) {
	j.sync(func(edit) bool { return false }, nodes)
}

// sync walks back from the newest change, because a change can only depend on older ones.
func (j *journal) sync(chosen func(edit) bool, nodes []*node) {
	if len(j.pending) == 0 {
		return
	}
	need := newWants()
	for _, n := range nodes {
		// The directories above count as well: one of them may be where it is by a change that is not durable.
		for ; n != nil; n = n.parent {
			need.nodes[n] = true
		}
	}
	due := make([]bool, len(j.pending))
	for i := len(j.pending) - 1; i >= 0; i-- {
		c := j.pending[i]
		due[i] = c.movesDir && need.moves
		for _, e := range c.edits {
			due[i] = due[i] || chosen(e) || need.slots[e.slot] || (e.to != nil && need.nodes[e.to])
		}
		if !due[i] {
			continue
		}
		need.moves = need.moves || c.movesDir
		for _, e := range c.edits {
			need.slots[e.slot] = true
			need.nodes[e.dir] = true
		}
	}
	rest := j.pending[:0]
	for i, c := range j.pending {
		if !due[i] {
			rest = append(rest, c)
			continue
		}
		for _, e := range c.edits {
			e.dir.durable.set(e.name, e.to)
		}
	}
	clear(j.pending[len(rest):])
	j.pending = rest
}

// survivors picks the changes that a crash leaves: each by the lot, except that none outlives one it depends on.
func (j *journal) survivors(lot func() bool) []change {
	var kept []change
	lost := newWants()
	for _, c := range j.pending {
		survives := !(c.movesDir && lost.moves)
		for _, e := range c.edits {
			survives = survives && !lost.slots[e.slot] && !lost.nodes[e.dir]
		}
		if survives && lot() {
			kept = append(kept, c)
			continue
		}
		lost.moves = lost.moves || c.movesDir
		for _, e := range c.edits {
			lost.slots[e.slot] = true
			if e.to != nil {
				lost.nodes[e.to] = true
			}
		}
	}
	return kept
}

// add appends a change and now and then drops those in directories that are gone for good: removed, durably so, and
// therefore never synced again.
func (j *journal) add(root *node, c change) {
	j.pending = append(j.pending, c)
	if len(j.pending) < max(j.compactAt, minCompact) {
		return
	}
	reached := map[*node]bool{}
	reach(root, reached)
	for _, c := range j.pending { // in order: a directory is linked before it is worked in
		for _, e := range c.edits {
			if reached[e.dir] && e.to != nil {
				reach(e.to, reached)
			}
		}
	}
	rest := j.pending[:0]
	for _, c := range j.pending {
		live := false
		for _, e := range c.edits {
			live = live || reached[e.dir]
		}
		if live {
			rest = append(rest, c)
		}
	}
	clear(j.pending[len(rest):])
	j.pending = rest
	j.compactAt = 2 * len(rest)
}

// reach marks everything that can be reached from n, in the present state or on disk.
func reach(n *node, reached map[*node]bool) {
	if reached[n] {
		return
	}
	reached[n] = true
	for _, e := range n.entries {
		reach(e.node, reached)
	}
	for _, e := range n.durable {
		reach(e.node, reached)
	}
}
