package ordered

import "iter"

// Map is one version: immutable, and safe for concurrent readers. The zero value is empty. Slices that its methods return
// alias its memory and must not be changed; they stay valid, and keep a part of that memory alive.
type Map struct {
	tree
	id     uint64 // unique; 0 for the zero value
	parent uint64 // id of the version that it was edited from
	added  int64  // real bytes that the parent does not have
}

// tree is what a version and an editor have in common.
type tree struct {
	root   *node
	level  int // of the root; leaves are on level 0
	count  int
	data   int64
	memory int64
}

// Len returns the number of entries.
func (t *tree) Len() int { return t.count }

// DataBytes returns the sum of the lengths of keys and values.
func (t *tree) DataBytes() int64 { return t.data }

// MemoryBytes returns what the version holds on its own, in bytes of the heap: rounded to the allocator's sizes. What it
// shares with other versions is in there; see Set.
func (t *tree) MemoryBytes() int64 { return t.memory }

// Get returns the value of key.
func (t *tree) Get(key []byte) (value []byte, ok bool) {
	n := t.root
	if n == nil {
		return nil, false
	}
	for level := t.level; level > 0; level-- {
		n = n.child(n.keys().child(key))
	}
	i := n.keys().find(key)
	if i < 0 {
		return nil, false
	}
	return valueAt(n.value(i)), true
}

// All iterates over the entries in the order of their keys.
func (m *Map) All() iter.Seq2[[]byte, []byte] { return m.Range(nil, nil) }

// Range iterates over the entries with from <= key < to in the order of their keys. nil is no border.
func (m *Map) Range(from, to []byte) iter.Seq2[[]byte, []byte] { return m.between(from, to) }

// Edit begins changes, at no cost. Any number of editors may begin with one version.
func (m *Map) Edit() *Editor { return newEditor(m) }
