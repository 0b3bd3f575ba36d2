package ordered

import (
	"slices"
	"unsafe"
)

// Set is a set of versions that are kept, and what they hold together. The zero value is empty. It is for one goroutine.
//
// Adding a version to its parent, or removing an end of a history, takes no time; anything else takes the time of comparing
// the version with the others. The result is exact either way.
type Set struct {
	members map[uint64]*Map
	memory  int64
}

// Len returns the number of versions.
func (s *Set) Len() int { return len(s.members) }

// MemoryBytes returns what all versions hold together, in bytes of the heap rounded to the allocator's sizes. What they
// share counts once.
func (s *Set) MemoryBytes() int64 { return s.memory }

// Add adds a version; one that is there already changes nothing.
func (s *Set) Add(m *Map) {
	if m.root == nil || s.members[m.id] != nil {
		return
	}
	s.memory += s.beyond(m)
	if s.members == nil {
		s.members = map[uint64]*Map{}
	}
	s.members[m.id] = m
}

// Remove takes a version out and returns how many bytes nobody in the set holds any more.
func (s *Set) Remove(m *Map) (freed int64) {
	if m.root == nil || s.members[m.id] == nil {
		return 0
	}
	delete(s.members, m.id)
	freed = s.beyond(m)
	s.memory -= freed
	return freed
}

// beyond returns what a version holds that no member does.
//
// A node is in the version that made it and in versions edited from that, so those that have it are connected in the tree
// of versions. Where members and m are connected and m has one neighbour, only the neighbour matters.
func (s *Set) beyond(m *Map) int64 {
	links, newest := 0, true
	var neighbour *Map
	neighbours := 0
	for id, other := range s.members {
		if s.members[other.parent] != nil {
			links++
		}
		if other.parent == m.id || id == m.parent {
			neighbour = other
			neighbours++
		}
		newest = newest && id < m.id
	}
	switch {
	case len(s.members) == 0, newest && m.parent == 0:
		return m.memory
	case newest && neighbours == 1, links == len(s.members)-1 && neighbours == 1 && neighbour.id == m.parent:
		return m.added
	case links == len(s.members)-1 && neighbours == 1:
		return m.memory - (neighbour.memory - neighbour.added)
	}
	var others []place
	for _, other := range s.members {
		others = append(others, place{other.root, other.level})
	}
	return int64(beyond(m.root, m.level, nil, nil, others))
}

// place is a node and its level.
type place struct {
	node  *node
	level int
}

// beyond returns what a node and all below it hold that none of the others does, which are the nodes of other trees that
// overlap its range of keys from … to; nil is no border.
func beyond(n *node, level int, from, to []byte, others []place) int {
	others = lowered(others, level, from, to)
	for _, o := range others {
		if o.node == n {
			return 0
		}
	}
	if level == 0 {
		return leafBeyond(n, others)
	}
	size := n.shellBytes() + classOf(len(n.keys()))
	for _, o := range others {
		if sameBlock(o.node.keys(), n.keys()) {
			size = n.shellBytes()
		}
	}
	for i := range n.refs {
		low, high := from, to
		if i > 0 {
			low = n.keys().at(i - 1)
		}
		if i < len(n.refs)-1 {
			high = n.keys().at(i)
		}
		size += beyond(n.child(i), level-1, low, high, others)
	}
	return size
}

// lowered replaces nodes above a level by their descendants there that overlap a range.
func lowered(places []place, level int, from, to []byte) []place {
	if !slices.ContainsFunc(places, func(p place) bool { return p.level > level }) {
		return places // those below the level get their turn further down
	}
	var next []place
	for _, p := range places {
		if p.level <= level {
			next = append(next, p)
			continue
		}
		first, last := 0, len(p.node.refs)-1
		if from != nil {
			first = p.node.keys().child(from)
		}
		if to != nil {
			last, _ = p.node.keys().search(to)
		}
		for i := first; i <= last; i++ {
			next = append(next, place{p.node.child(i), p.level - 1})
		}
	}
	return lowered(next, level, from, to)
}

// leafBeyond returns what a leaf holds that none of the others does.
func leafBeyond(n *node, others []place) int {
	size := n.shellBytes()
	keysShared, packedShared := false, false
	for _, o := range others {
		keysShared = keysShared || sameBlock(o.node.keys(), n.keys())
		packedShared = packedShared || o.node.packed == n.packed
	}
	if !keysShared {
		size += classOf(len(n.keys()))
	}
	if n.packed != nil && !packedShared {
		size += classOf(packedLen(n.packed))
	}
	for i := range n.keys().len() {
		if n.isInside(i) {
			continue
		}
		ref := n.value(i)
		if !slices.ContainsFunc(others, func(o place) bool { return o.node.hasRef(i, ref) }) {
			size += valueRefBytes(ref)
		}
	}
	return size
}

// hasRef reports whether a leaf has a value, probably that of entry i.
func (n *node) hasRef(i int, ref unsafe.Pointer) bool {
	if i < len(n.refs) && n.refs[i] == ref {
		return true
	}
	return slices.Contains(n.refs, ref)
}
