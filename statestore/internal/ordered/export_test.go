package ordered

import (
	"bytes"
	"fmt"
	"unsafe"
)

// SizeClasses are the sizes that accounting believes in.
func SizeClasses() []int { return sizeClasses[:] }

// ClassOf is the accounted size of an object.
func ClassOf(n int) int { return classOf(n) }

// Check verifies everything that must be true of a version's tree.
func (m *Map) Check() error { return m.tree.check() }

// Check verifies everything that must be true of an editor's tree.
func (e *Editor) Check() error { return e.check() }

type tally struct {
	count   int
	data    int64
	objects map[unsafe.Pointer]int
	twice   int
}

func (t *tally) add(p unsafe.Pointer, size int) {
	if p == nil || p == unsafe.Pointer(&emptyValue) {
		return
	}
	if _, ok := t.objects[p]; ok {
		t.twice++
	}
	t.objects[p] = size
}

func (t *tree) check() error {
	c := tally{objects: map[unsafe.Pointer]int{}}
	if t.root != nil {
		if err := c.node(t.root, t.level, t.level, nil, nil); err != nil {
			return err
		}
	}
	var memory int64
	for _, size := range c.objects {
		memory += int64(size)
	}
	if c.count != t.count || c.data != t.data || memory != t.memory || c.twice > 0 {
		return fmt.Errorf("counted %d entries, %d bytes, %d in memory; kept %d, %d, %d; %d objects twice",
			c.count, c.data, memory, t.count, t.data, t.memory, c.twice)
	}
	return nil
}

func (t *tally) node(n *node, level, top int, from, to []byte) error {
	t.add(unsafe.Pointer(n), classOf(nodeBytes))
	t.add(unsafe.Pointer(unsafe.SliceData(n.refs)), refsBytes(cap(n.refs)))
	t.add(unsafe.Pointer(unsafe.SliceData(n.keys())), classOf(len(n.keys())))
	for i := range n.keys().len() {
		key := n.keys().at(i)
		if i > 0 && bytes.Compare(n.keys().at(i-1), key) >= 0 || from != nil && bytes.Compare(key, from) < 0 || to != nil && bytes.Compare(key, to) >= 0 {
			return fmt.Errorf("key %x out of place on level %d", key, level)
		}
		if at, found := n.keys().search(key); at != i || !found {
			return fmt.Errorf("key %x is number %d but found as %d", key, i, at)
		}
	}
	if level == 0 {
		return t.leaf(n)
	}
	if len(n.refs) != n.keys().len()+1 || len(n.refs) < 2 || len(n.refs) > maxChildren {
		return fmt.Errorf("%d children, %d separators on level %d", len(n.refs), n.keys().len(), level)
	}
	for i := range n.refs {
		low, high := from, to
		if i > 0 {
			low = n.keys().at(i - 1)
		}
		if i < n.keys().len() {
			high = n.keys().at(i)
		}
		if err := t.node(n.child(i), level-1, top, low, high); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) leaf(n *node) error {
	count := n.keys().len()
	if count == 0 || count >= maxEntries {
		return fmt.Errorf("a leaf with %d entries", count)
	}
	live := 0
	for i := range count {
		size, head := valueLen(n.value(i))
		t.count++
		t.data += int64(len(n.keys().at(i)) + size)
		if n.isInside(i) {
			live += head + size
		} else {
			t.add(n.value(i), valueBytes(size))
		}
	}
	if n.packed == nil {
		if len(n.refs) != count {
			return fmt.Errorf("%d values for %d keys", len(n.refs), count)
		}
		return nil
	}
	t.add(n.packed, classOf(packedLen(n.packed)))
	if int(n.garbage)*garbageShare > packedLen(n.packed) || live+int(n.garbage) > packedLen(n.packed) {
		return fmt.Errorf("%d bytes of garbage and %d live in a block of %d", n.garbage, live, packedLen(n.packed))
	}
	return nil
}

// TogetherBytes counts what versions hold together, object by object.
func TogetherBytes(maps ...*Map) int64 {
	c := tally{objects: map[unsafe.Pointer]int{}}
	for _, m := range maps {
		if m.root != nil {
			if err := c.node(m.root, m.level, m.level, nil, nil); err != nil {
				panic(err)
			}
		}
	}
	var memory int64
	for _, size := range c.objects {
		memory += int64(size)
	}
	return memory
}
