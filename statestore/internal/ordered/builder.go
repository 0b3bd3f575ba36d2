package ordered

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/bits"
	"unsafe"
)

const (
	// packMax is the longest value that is packed with others.
	packMax = 1 << 10
	// leafBytes is how many bytes of keys, or of packed values, a leaf of a builder has at most.
	leafBytes = 6 << 10
)

// item is an entry on its way into a leaf.
type item struct {
	key, value []byte
	ref        valueRef // of a value that is not packed
}

// sizes are what items take in a leaf.
type sizes struct {
	count, keys, values  int  // keys and values in bytes; values that are packed, with their lengths
	likeKeys, likeValues bool // all are as long as the first; a value that is not packed is not
}

// packed returns the length of the packed block.
func (s sizes) packed() int {
	if s.likeValues {
		return packedHeader + s.values
	}
	return packedHeader + 2*s.count + s.values
}

// leaf returns the real size of a leaf, without the values that are not packed.
func (s sizes) leaf() int {
	return classOf(nodeBytes) + classOf(keyBlockLen(s.count, s.keys, s.likeKeys)) + classOf(s.packed())
}

// fitting returns what the first items that make the next leaf take, and how many these are: as many as fit, or a few less
// if that wastes less memory. all: no more items will follow.
func fitting(items []item, all bool) sizes {
	var (
		first  [fillEntries]sizes // of items up to the one with the index
		s      = sizes{likeKeys: true, likeValues: true}
		limit  = min(len(items), fillEntries)
		keyLen = len(items[0].key)
	)
	for i := range limit {
		it := &items[i]
		s.count++
		s.keys += len(it.key)
		s.likeKeys = s.likeKeys && len(it.key) == keyLen
		if it.ref == nil {
			s.values += storedLen(len(it.value))
		}
		s.likeValues = s.likeValues && it.ref == nil && len(it.value) == len(items[0].value)
		if i > 0 && (s.keys > leafBytes || s.values > leafBytes) {
			limit = i
			break
		}
		first[i] = s
	}
	best := &first[limit-1]
	if all && limit == len(items) {
		return *best
	}
	cost := best.leaf()
	for n := limit - 1; n >= max(1, limit*3/4); n-- {
		if c := first[n-1].leaf(); c*best.count < cost*n {
			best, cost = &first[n-1], c
		}
	}
	return *best
}

// newLeaf makes a leaf of items that take s, and returns it with its real size.
func newLeaf(items []item, s sizes, birth uint64) (*node, int) {
	var keys [maxEntries][]byte
	n := &node{birth: birth}
	for i := range items {
		keys[i] = items[i].key
		if items[i].ref != nil {
			n.over |= 1 << i
		}
	}
	n.keep(makeKeyBlock(keys[:len(items)]))
	total := classOf(nodeBytes) + classOf(len(n.keys()))
	if own := bits.OnesCount32(n.over); own > 0 {
		n.refs = make([]unsafe.Pointer, 0, roomFor(own))
		total += refsBytes(cap(n.refs))
	}
	for _, it := range items {
		if it.ref != nil {
			n.refs = append(n.refs, it.ref)
			total += valueRefBytes(it.ref)
		}
	}
	if len(n.refs) < len(items) {
		size := s.packed()
		n.packed = packValues(items, size, s.likeValues)
		total += classOf(size)
		if s.likeValues {
			n.bits |= uint16(storedLen(len(items[0].value)))
		}
	}
	return n, total
}

// packValues makes a packed block of size bytes of the values that are packed, without offsets if all are as long.
func packValues(items []item, size int, alike bool) unsafe.Pointer {
	b := make([]byte, size)
	binary.LittleEndian.PutUint32(b, uint32(size))
	at := packedHeader
	if !alike {
		at += 2 * len(items)
	}
	for i, it := range items {
		if !alike {
			binary.LittleEndian.PutUint16(b[packedHeader+2*i:], uint16(at))
		}
		if it.ref != nil {
			continue
		}
		if len(it.value) < 0x80 {
			b[at] = byte(len(it.value))
			at++
		} else {
			at += binary.PutUvarint(b[at:], uint64(len(it.value)))
		}
		at += copy(b[at:], it.value)
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// assemble makes the tree above leaves, which it consumes, and returns its root, the level of that, and the real size of
// the inner nodes.
func assemble(leaves []*node, birth uint64) (root *node, level, size int) {
	if len(leaves) == 0 {
		return nil, 0, 0
	}
	separators := make([][]byte, len(leaves)) // before each node; the first is not used
	for i := 1; i < len(leaves); i++ {
		last := leaves[i-1].keys()
		separators[i] = separator(last.at(last.len()-1), leaves[i].keys().at(0))
	}
	nodes := leaves
	for len(nodes) > 1 {
		level++
		groups := (len(nodes) + fillChildren - 1) / fillChildren
		for g := range groups {
			from, to := g*len(nodes)/groups, (g+1)*len(nodes)/groups
			n := newInner(separators[from+1:to], nodes[from:to], birth)
			size += n.ownBytes(level)
			nodes[g], separators[g] = n, separators[from] // g <= from: what is overwritten was used
		}
		nodes, separators = nodes[:groups], separators[:groups]
	}
	return nodes[0], level, size
}

// Builder makes a version out of entries in ascending order of their keys, with full leaves. The zero value is ready. It is
// for one goroutine.
type Builder struct {
	birth   uint64
	leaves  []*node
	pending []item
	scratch []byte // of pending
	last    []byte
	tree
}

// Append adds an entry; it copies both. A key that is not above the last one is fs.ErrInvalid and changes nothing.
func (b *Builder) Append(key, value []byte) error {
	if b.count > 0 && bytes.Compare(b.last, key) >= 0 {
		return fmt.Errorf("%w: key %x comes after key %x", fs.ErrInvalid, key, b.last)
	}
	if b.birth == 0 {
		b.birth = stamps.Add(1)
	}
	if need := len(key) + min(len(value), packMax); need > cap(b.scratch)-len(b.scratch) {
		b.moveScratch(need)
	}
	it := item{key: b.hold(key)}
	if len(value) > packMax {
		it.ref = newValue(value)
	} else {
		it.value = b.hold(value)
	}
	b.last = append(b.last[:0], key...)
	b.pending = append(b.pending, it)
	b.count++
	b.data += int64(len(key) + len(value))
	if len(b.pending) == fillEntries {
		b.emit(false)
	}
	return nil
}

// hold copies p into the scratch, which has room.
func (b *Builder) hold(p []byte) []byte {
	at := len(b.scratch)
	b.scratch = append(b.scratch, p...)
	return b.scratch[at:len(b.scratch):len(b.scratch)]
}

// moveScratch makes room by moving what is pending to the front.
func (b *Builder) moveScratch(need int) {
	for _, it := range b.pending {
		need += len(it.key) + len(it.value)
	}
	if b.scratch = b.scratch[:0]; need > cap(b.scratch) {
		b.scratch = make([]byte, 0, max(4*need, 64<<10))
	}
	for i, it := range b.pending { // forward: where the memory is the same, nothing is overwritten that is still needed
		b.pending[i].key, b.pending[i].value = b.hold(it.key), b.hold(it.value)
	}
}

func (b *Builder) emit(all bool) {
	s := fitting(b.pending, all)
	n := s.count
	leaf, size := newLeaf(b.pending[:n], s, b.birth)
	b.leaves = append(b.leaves, leaf)
	b.memory += int64(size)
	rest := copy(b.pending, b.pending[n:])
	clear(b.pending[rest:])
	b.pending = b.pending[:rest]
}

// Map returns the version and empties the builder.
func (b *Builder) Map() *Map {
	for len(b.pending) > 0 {
		b.emit(true)
	}
	m := finish(b.leaves, b.tree, b.birth)
	*b = Builder{}
	return m
}

// finish makes a version of leaves; t has its counts.
func finish(leaves []*node, t tree, birth uint64) *Map {
	root, level, size := assemble(leaves, birth)
	t.root, t.level = root, level
	t.memory += int64(size)
	return &Map{tree: t, id: stamps.Add(1), added: t.memory}
}
