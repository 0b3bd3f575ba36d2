package ordered

import (
	"bytes"
	"iter"
	"math/bits"
	"unsafe"
)

// ChangeKind says what happened to a key.
type ChangeKind uint8

// The kinds of changes.
const (
	Added ChangeKind = iota + 1
	Updated
	Removed
)

// Change is a difference between two versions.
type Change struct {
	Kind ChangeKind
	Key  []byte
	Old  []byte // unless it was added; see Delta
	New  []byte // unless it was removed
}

// Diff iterates over what is different in b from a, in the order of the keys. What the two share is passed over in whole
// subtrees, so that versions of one history are compared at the cost of the changes between them.
func Diff(a, b *Map) iter.Seq[Change] {
	return func(yield func(Change) bool) { diff(a, b, diffValues, yield) }
}

// Delta is as Diff, without Old where an entry was updated. It is faster where b was edited from a: values of a are then
// looked at only if it cannot be told otherwise that they are others.
func Delta(a, b *Map) iter.Seq[Change] {
	if a.id == 0 || b.parent != a.id {
		return Diff(a, b)
	}
	return func(yield func(Change) bool) { diff(a, b, freshValues, yield) }
}

// diff yields changes until yield is false. updated does it for two leaves that share their keys.
func diff(a, b *Map, updated func(p, q *node, yield func(Change) bool) bool, yield func(Change) bool) {
	var x, y cursor
	x.seek(&a.tree, nil)
	y.seek(&b.tree, nil)
	var ahead [2]*node // nodes on level 2 below which memory was touched
	for !x.done() || !y.done() {
		if !x.done() && !y.done() {
			if now := [2]*node{x.path[2].node, y.path[2].node}; now != ahead && x.level >= 2 && y.level >= 2 {
				touchChanged(now[0], now[1])
				ahead = now
			}
			if x.skipShared(&y) {
				continue
			}
			if p, q := x.leaf(), y.leaf(); p != nil && q != nil && p.block == q.block {
				if !updated(p, q, yield) {
					return
				}
				x.nextAfter(0)
				y.nextAfter(0)
				continue
			}
		}
		change, differ := pass(&x, &y)
		if differ && !yield(change) {
			return
		}
	}
}

// freshValues yields what differs in leaves that share their keys, where q was edited from p in one session.
func freshValues(p, q *node, yield func(Change) bool) bool {
	if p.packed != q.packed || q.bits&putAgain != 0 {
		return diffValues(p, q, yield) // values were moved, or may be what they were
	}
	for set := q.fresh; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		if !yield(Change{Kind: Updated, Key: q.keys().at(i), New: valueAt(q.value(i))}) {
			return false
		}
	}
	return true
}

// leaf returns the leaf that the cursor is at the begin of, or nil if it is inside of one.
func (c *cursor) leaf() *node {
	if c.path[0].at != 0 {
		return nil
	}
	return c.path[0].node
}

// diffValues yields what differs in leaves that share their keys, and reports whether to go on.
func diffValues(p, q *node, yield func(Change) bool) bool {
	set := allOnes(p.keys().len())
	if p.packed != nil && p.packed == q.packed {
		set = p.over | q.over
	}
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		x, y := p.value(i), q.value(i)
		if x == y {
			continue
		}
		c := Change{Kind: Updated, Key: q.keys().at(i), Old: valueAt(x), New: valueAt(y)}
		if !bytes.Equal(c.Old, c.New) && !yield(c) {
			return false
		}
	}
	return true
}

// skipShared goes behind the largest subtree that both cursors are at the begin of, if there is one.
func (c *cursor) skipShared(d *cursor) bool {
	if c.path[0].node != d.path[0].node || c.path[0].at != 0 || d.path[0].at != 0 {
		return false
	}
	level := 0
	for level < c.level && level < d.level {
		p, q := &c.path[level+1], &d.path[level+1]
		if p.node != q.node || p.at != 0 || q.at != 0 {
			break
		}
		level++
	}
	if level < min(c.level, d.level) {
		passShared(&c.path[level+1], &d.path[level+1])
	}
	c.nextAfter(level)
	d.nextAfter(level)
	return true
}

// passShared goes to the last of the children that two nodes share from here on.
func passShared(p, q *step) {
	i, j := p.at+1, q.at+1
	for i < len(p.node.refs) && j < len(q.node.refs) && p.node.refs[i] == q.node.refs[j] {
		i, j = i+1, j+1
	}
	p.at, q.at = i-1, j-1
}

// pass goes behind the lower one of the next keys of two cursors, of which one may be done, or behind both if they are equal.
func pass(x, y *cursor) (c Change, differ bool) {
	order := -1
	switch {
	case x.done():
		order = 1
	case !y.done():
		order = compareKeys(x, y)
	}
	switch {
	case order < 0:
		c = Change{Kind: Removed, Key: x.key(), Old: valueAt(x.ref())}
		x.next()
		return c, true
	case order > 0:
		c = Change{Kind: Added, Key: y.key(), New: valueAt(y.ref())}
		y.next()
		return c, true
	}
	if p, q := x.ref(), y.ref(); p != q {
		c = Change{Kind: Updated, Key: y.key(), Old: valueAt(p), New: valueAt(q)}
		differ = !bytes.Equal(c.Old, c.New)
	}
	x.next()
	y.next()
	return c, differ
}

func compareKeys(x, y *cursor) int {
	p, q := &x.path[0], &y.path[0]
	if p.at == q.at && sameBlock(p.node.keys(), q.node.keys()) {
		return 0
	}
	return bytes.Compare(x.key(), y.key())
}

// sameBlock reports whether two blocks of keys are one object.
func sameBlock(a, b keyBlock) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }
