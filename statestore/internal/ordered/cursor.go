package ordered

import (
	"bytes"
	"iter"
)

// maxLevels is enough: inner nodes below the root have 16 children or more.
const maxLevels = 16

// cursor is a place between two entries of a tree. The path to its leaf stands by level.
type cursor struct {
	level int // of the root; -1 if there is no entry any more
	path  [maxLevels]step
}

// step is a node of a path, and which of its children or entries comes next.
type step struct {
	node *node
	at   int
}

// seek goes before the first entry whose key is not below from.
func (c *cursor) seek(t *tree, from []byte) {
	c.level = -1
	if t.root == nil {
		return
	}
	c.level = t.level
	n := t.root
	for level := t.level; level > 0; level-- {
		i := n.keys().child(from)
		c.path[level].node, c.path[level].at = n, i
		n = n.child(i)
	}
	i, _ := n.keys().search(from)
	c.path[0].node, c.path[0].at = n, i
	if i == n.keys().len() {
		c.nextAfter(0)
	}
}

// nextAfter goes behind the node of the path on a level, to the begin of the next one.
func (c *cursor) nextAfter(level int) {
	for up := level + 1; up <= c.level; up++ {
		p := &c.path[up]
		if p.at++; p.at < len(p.node.refs) {
			c.descend(up)
			return
		}
	}
	c.level = -1
}

// descend goes to the first entry below the child that the path has on a level.
func (c *cursor) descend(level int) {
	for ; level > 0; level-- {
		c.path[level-1].node, c.path[level-1].at = c.path[level].node.child(c.path[level].at), 0
	}
}

// done reports whether there is no entry any more.
func (c *cursor) done() bool { return c.level < 0 }

// key returns the key of the next entry.
func (c *cursor) key() []byte { return c.path[0].node.keys().at(c.path[0].at) }

// ref returns the value of the next entry.
func (c *cursor) ref() valueRef { return c.path[0].node.value(c.path[0].at) }

// next goes behind the next entry.
func (c *cursor) next() {
	if c.path[0].at++; c.path[0].at == c.path[0].node.keys().len() {
		c.nextAfter(0)
	}
}

// between iterates over a part of a tree that does not change.
func (t *tree) between(from, to []byte) iter.Seq2[[]byte, []byte] {
	frozen := *t
	return func(yield func([]byte, []byte) bool) {
		var c cursor
		for c.seek(&frozen, from); !c.done(); c.nextAfter(0) {
			leaf := c.path[0].node
			end, last := leaf.keys().len(), false
			if to != nil && bytes.Compare(leaf.keys().at(end-1), to) >= 0 {
				end, _ = leaf.keys().search(to)
				last = true
			}
			leaf.touchValues(c.path[0].at, end)
			for i := c.path[0].at; i < end; i++ {
				if !yield(leaf.keys().at(i), valueAt(leaf.value(i))) {
					return
				}
			}
			if last {
				return
			}
		}
	}
}
