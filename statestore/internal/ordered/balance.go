package ordered

import (
	"slices"
	"unsafe"
)

// parts is what a node holds, as lists that may be longer than a node.
type parts struct {
	keys  [][]byte
	refs  []unsafe.Pointer
	fresh uint64
}

// cut divides parts at a child or entry. Between the children of inner nodes a separator is left over.
func (p parts) cut(at, level int) (left, right parts, between []byte) {
	left = parts{keys: p.keys[:at], refs: p.refs[:at], fresh: p.fresh & (1<<at - 1)}
	right = parts{keys: p.keys[at:], refs: p.refs[at:], fresh: p.fresh >> at}
	if level > 0 {
		left.keys = p.keys[:at-1]
		return left, right, p.keys[at-1]
	}
	return left, right, separator(p.keys[at-1], p.keys[at])
}

// setParts makes a changeable node, without a packed block, hold parts.
func (e *Editor) setParts(n *node, p parts) {
	e.drop(n.shellBytes(), true)
	n.refs = make([]unsafe.Pointer, len(p.refs), roomFor(len(p.refs)))
	copy(n.refs, p.refs)
	n.fresh = uint32(p.fresh)
	e.grow(n.shellBytes())
	e.setKeys(n, p.keys)
}

// split divides the path's node of a level, which is too full, in two. atEnd: it grew at its end, as it does when keys
// come in order; then the left part stays nearly full.
func (e *Editor) split(level int, atEnd bool) {
	n := e.path.path[level].node
	if level == 0 {
		e.unpack(n)
	}
	all := parts{keys: n.keys().appendTo(nil), refs: n.refs, fresh: uint64(n.fresh)}
	at := len(all.refs) / 2
	if atEnd {
		at = max(1, len(all.refs)*7/8)
	}
	left, right, between := all.cut(at, level)
	r := &node{birth: e.stamp}
	e.grow(classOf(nodeBytes))
	e.setParts(r, right)
	e.setParts(n, left)
	if level == e.level {
		e.root = newInner([][]byte{between}, []*node{n, r}, e.stamp)
		e.level++
		e.grow(e.root.ownBytes(e.level))
		return
	}
	up := e.path.path[level+1]
	size := refsBytes(cap(up.node.refs))
	up.node.refs = insertRef(up.node.refs, up.at+1, unsafe.Pointer(r))
	e.grow(refsBytes(cap(up.node.refs)) - size)
	e.setKeys(up.node, slices.Insert(up.node.keys().appendTo(nil), up.at, between))
	if count := len(up.node.refs); count > maxChildren {
		e.split(level+1, up.at == count-2)
	}
}

// sparse reports whether a node has so little that it should be joined with a neighbour.
func (n *node) sparse(level int) bool {
	if level > 0 {
		return len(n.refs) < minChildren
	}
	return len(n.refs) < minEntries && n.keys().bytes() < minKeyBytes
}

// fill joins the path's node of a level with a neighbour if it is sparse, or levels the two out.
func (e *Editor) fill(level int) {
	n := e.path.path[level].node
	if level == e.level {
		e.lower()
		return
	}
	if !n.sparse(level) {
		return
	}
	up := e.path.path[level+1]
	at := up.at
	if at+1 == len(up.node.refs) {
		at--
	}
	l, r := e.ownChild(up.node, at), e.ownChild(up.node, at+1)
	if level == 0 {
		e.unpack(l)
		e.unpack(r)
	}
	all := parts{keys: l.keys().appendTo(nil)}
	if level > 0 {
		all.keys = append(all.keys, up.node.keys().at(at))
	}
	all.keys = r.keys().appendTo(all.keys)
	all.refs = slices.Concat(l.refs, r.refs)
	all.fresh = uint64(l.fresh) | uint64(r.fresh)<<len(l.refs)
	separators := up.node.keys().appendTo(nil)
	if joinable(all, level, min(len(l.refs), len(r.refs))) {
		e.setParts(l, all)
		e.drop(r.shellBytes(), true)
		e.drop(classOf(len(r.keys())), r.hasNewKeys())
		up.node.refs = slices.Delete(up.node.refs, at+1, at+2)
		e.setKeys(up.node, slices.Delete(separators, at, at+1))
		e.fill(level + 1)
		return
	}
	left, right, between := all.cut(len(all.refs)/2, level)
	separators[at] = between
	e.setKeys(up.node, separators)
	e.setParts(l, left)
	e.setParts(r, right)
}

func joinable(all parts, level, smaller int) bool {
	if level > 0 {
		return len(all.refs) <= fillChildren
	}
	total := 0
	for _, k := range all.keys {
		total += len(k)
	}
	return smaller == 0 || len(all.refs) <= fillEntries && total <= maxKeyBytes*3/4
}

// ownChild makes a child of a changeable node changeable.
func (e *Editor) ownChild(n *node, i int) *node {
	c := n.child(i)
	if c.birth != e.stamp {
		c = e.copyNode(c, 0)
		n.setChild(i, c)
	}
	return c
}

// lower takes away a root that is an empty leaf or has one child.
func (e *Editor) lower() {
	for e.root != nil && (e.level > 0 && len(e.root.refs) == 1 || e.level == 0 && e.root.keys().len() == 0) {
		n := e.root
		e.drop(n.shellBytes(), true)
		e.drop(classOf(len(n.keys())), n.hasNewKeys())
		if e.level == 0 {
			if n.packed != nil {
				e.drop(classOf(packedLen(n.packed)), false)
			}
			e.root = nil
			return
		}
		e.root = n.child(0)
		e.level--
	}
}
