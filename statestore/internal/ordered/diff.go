package ordered

import (
	"bytes"
	"iter"
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
	Old  []byte // unless it was added
	New  []byte // unless it was removed
}

// Diff iterates over what is different in b from a, in the order of the keys. What the two share is passed over in whole
// subtrees, so that versions of one history are compared at the cost of the changes between them.
func Diff(a, b *Map) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		var x, y cursor
		x.seek(&a.tree, nil)
		y.seek(&b.tree, nil)
		for !x.done() || !y.done() {
			if !x.done() && !y.done() && x.skipShared(&y) {
				continue
			}
			change, differ := step(&x, &y)
			if differ && !yield(change) {
				return
			}
		}
	}
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
	c.nextAfter(level)
	d.nextAfter(level)
	return true
}

// step goes behind the lower one of the next keys of two cursors, of which one may be done, or behind both if they are equal.
func step(x, y *cursor) (c Change, differ bool) {
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
