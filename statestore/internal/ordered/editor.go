package ordered

import (
	"bytes"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

// stamps numbers sessions of editors and versions in the order of their begin, across all maps of the process.
var stamps atomic.Uint64

// Editor makes a new version. It is for one goroutine. The zero value edits the empty map.
//
// Slices from Get and from iterators alias memory as those of Map do; they stay valid and unchanged whatever follows.
type Editor struct {
	tree
	base  uint64 // id of the version that the session began with
	first uint64 // nodes with this birth or a later one are not in the base
	stamp uint64 // nodes with this birth are nobody else's
	added int64
	path  cursor
}

func newEditor(m *Map) *Editor {
	stamp := stamps.Add(1)
	return &Editor{tree: m.tree, base: m.id, first: stamp, stamp: stamp}
}

// AddedBytes returns the real bytes that the editor holds beyond the version it began with, or beyond the last Freeze.
func (e *Editor) AddedBytes() int64 { return e.added }

// Freeze returns the state as a version, at no cost. The editor may go on, from that version.
func (e *Editor) Freeze() *Map {
	m := &Map{tree: e.tree, id: stamps.Add(1), parent: e.base, added: e.added}
	e.base, e.added = m.id, 0
	e.first = stamps.Add(1)
	e.stamp = e.first
	return m
}

// All iterates over the entries as they are at this call; changes may go on meanwhile.
func (e *Editor) All() iter.Seq2[[]byte, []byte] { return e.Range(nil, nil) }

// Range iterates over the entries with from <= key < to as they are at this call; changes may go on meanwhile. nil is no
// border. A node that is changed afterwards is copied once more.
func (e *Editor) Range(from, to []byte) iter.Seq2[[]byte, []byte] {
	e.stamp = stamps.Add(1)
	return e.between(from, to)
}

// Put sets the value of key. It copies both; nil is an empty value.
func (e *Editor) Put(key, value []byte) {
	if e.stamp == 0 {
		*e = *newEditor(&Map{})
	}
	if e.root == nil {
		e.plant(key, value)
		return
	}
	if i, found := e.locate(key); found {
		e.overwrite(i, value)
	} else {
		e.insert(i, key, value)
	}
}

// Remove removes key and reports whether it was there.
func (e *Editor) Remove(key []byte) (existed bool) {
	if e.root == nil {
		return false
	}
	i, found := e.locate(key)
	if found {
		e.remove(i)
	}
	return found
}

// locate sets the path to the leaf of key, and returns the place of key there.
func (e *Editor) locate(key []byte) (int, bool) {
	c := &e.path
	c.level = e.level
	n := e.root
	for level := e.level; level > 0; level-- {
		i := n.keys().child(key)
		c.path[level].node, c.path[level].at = n, i
		n = n.child(i)
	}
	c.path[0].node = n
	return n.keys().search(key)
}

// plant makes the first leaf.
func (e *Editor) plant(key, value []byte) {
	n := &node{refs: []unsafe.Pointer{newValue(value)}, fresh: 1, birth: e.stamp}
	n.keep(makeKeyBlock([][]byte{key}))
	e.root, e.level, e.count, e.data = n, 0, 1, int64(len(key)+len(value))
	e.grow(n.ownBytes(0))
}

// grow accounts for n bytes of memory that the base does not have.
func (e *Editor) grow(n int) {
	e.memory += int64(n)
	e.added += int64(n)
}

// drop accounts for n bytes that the state has no more; own says that the base never had them.
func (e *Editor) drop(n int, own bool) {
	e.memory -= int64(n)
	if own {
		e.added -= int64(n)
	}
}

// isOwn reports whether the base does not have a node.
func (e *Editor) isOwn(n *node) bool { return n.birth >= e.first }

// own makes the path down to a level changeable and returns the node there. room is how many refs it gets more.
func (e *Editor) own(level, room int) *node {
	for l := e.level; l > level; l-- {
		e.ownOne(l, 0)
	}
	return e.ownOne(level, room)
}

func (e *Editor) ownOne(level, room int) *node {
	n := e.path.path[level].node
	if n.birth == e.stamp {
		return n
	}
	c := e.copyNode(n, room)
	e.replace(level, c)
	return c
}

// copyNode returns a copy of a node that may be changed, in the place of the node.
func (e *Editor) copyNode(n *node, room int) *node {
	e.drop(n.shellBytes(), e.isOwn(n))
	c := *n
	c.birth = e.stamp
	if !e.isOwn(n) {
		c.fresh, c.bits = 0, c.bits&strideBits
	}
	if len(n.refs)+room > 0 {
		c.refs = make([]unsafe.Pointer, len(n.refs), roomFor(len(n.refs)+room))
		copy(c.refs, n.refs)
	}
	e.grow(c.shellBytes())
	return &c
}

// replace puts n in the place of the path's node on a level.
func (e *Editor) replace(level int, n *node) {
	e.path.path[level].node = n
	if level == e.level {
		e.root = n
	} else {
		up := &e.path.path[level+1]
		up.node.setChild(up.at, n)
	}
}

// overwrite sets the value of entry i of the path's leaf. The value that is there already changes nothing.
func (e *Editor) overwrite(i int, value []byte) {
	if bytes.Equal(valueAt(e.path.path[0].node.value(i)), value) {
		return
	}
	bit := uint32(1) << i
	room := 0
	if old := e.path.path[0].node; old.packed != nil && old.over&bit == 0 {
		room = 1
	}
	n := e.own(0, room)
	e.forget(n, i)
	p := newValue(value)
	if n.packed != nil && n.over&bit == 0 {
		size := refsBytes(cap(n.refs))
		n.refs = insertRef(n.refs, n.slot(i), p)
		n.over |= bit
		e.grow(refsBytes(cap(n.refs)) - size)
	} else if n.packed == nil {
		n.refs[i] = p
	} else {
		n.refs[n.slot(i)] = p
	}
	if n.fresh&bit != 0 {
		n.bits |= putAgain
	}
	n.fresh |= bit
	n.inside &^= bit
	e.data += int64(len(value))
	e.grow(valueBytes(len(value)))
	e.unpackIfWorn(n)
}

// forget accounts for the value of entry i of a leaf going away.
func (e *Editor) forget(n *node, i int) {
	size, head := valueLen(n.value(i))
	e.data -= int64(size)
	if n.isInside(i) {
		n.garbage += uint16(head + size)
	} else {
		e.drop(valueBytes(size), n.fresh&(1<<i) != 0)
	}
}

// unpackIfWorn moves a leaf's values out of its packed block when too much of that is garbage.
func (e *Editor) unpackIfWorn(n *node) {
	if n.packed != nil && int(n.garbage)*garbageShare > packedLen(n.packed) {
		e.unpack(n)
	}
}

// unpack moves the values of a leaf out of its packed block and lets that go.
func (e *Editor) unpack(n *node) {
	if n.packed == nil {
		return
	}
	e.spreadOut(n)
	for set := n.inside; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		value := valueAt(n.refs[i])
		n.refs[i] = newValue(value)
		n.fresh |= 1 << i
		e.grow(valueBytes(len(value)))
	}
	e.drop(classOf(packedLen(n.packed)), false)
	n.packed, n.inside, n.garbage, n.over = nil, 0, 0, 0
}

// spreadOut is spread, accounted for.
func (e *Editor) spreadOut(n *node) {
	size := refsBytes(cap(n.refs))
	n.spread()
	e.grow(refsBytes(cap(n.refs)) - size)
}

// setKeys gives a node other keys.
func (e *Editor) setKeys(n *node, keys [][]byte) {
	e.drop(classOf(len(n.keys())), n.hasNewKeys())
	n.keep(makeKeyBlock(keys))
	e.grow(classOf(len(n.keys())))
}

// insert adds an entry as number i of the path's leaf.
func (e *Editor) insert(i int, key, value []byte) {
	var list [maxEntries][]byte
	n := e.own(0, 1)
	e.spreadOut(n)
	size := refsBytes(cap(n.refs))
	e.setKeys(n, slices.Insert(n.keys().appendTo(list[:0]), i, key))
	n.refs = insertRef(n.refs, i, newValue(value))
	n.inside, n.fresh = insertBit(n.inside, i, false), insertBit(n.fresh, i, true)
	if n.packed != nil {
		n.over = allOnes(len(n.refs))
	}
	e.count++
	e.data += int64(len(key) + len(value))
	e.grow(refsBytes(cap(n.refs)) - size + valueBytes(len(value)))
	if count := len(n.refs); count == maxEntries || count > 1 && n.keys().bytes() > maxKeyBytes {
		e.split(0, i == count-1)
	}
}

// remove takes entry i out of the path's leaf.
func (e *Editor) remove(i int) {
	var list [maxEntries][]byte
	n := e.own(0, 0)
	e.count--
	e.data -= int64(len(n.keys().at(i)))
	e.forget(n, i)
	e.spreadOut(n)
	e.setKeys(n, slices.Delete(n.keys().appendTo(list[:0]), i, i+1))
	n.refs = slices.Delete(n.refs, i, i+1)
	n.inside, n.fresh = removeBit(n.inside, i), removeBit(n.fresh, i)
	if n.packed != nil {
		n.over = allOnes(len(n.refs))
	}
	e.unpackIfWorn(n)
	e.fill(0)
}
