package ordered

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

const (
	// Of a leaf. Builders leave room, so that the first insertion does not split it: keys and values are objects of the right
	// size anyway.
	maxEntries  = 32
	fillEntries = 28
	minEntries  = 8
	// maxKeyBytes bounds what an insertion copies where keys are long.
	maxKeyBytes = 8 << 10
	minKeyBytes = maxKeyBytes / 8

	// Of an inner node; maxChildren pointers are an object without a header.
	maxChildren  = 64
	fillChildren = 56
	minChildren  = 16

	// garbageShare: a leaf moves out of a packed block when 1/garbageShare of it is overwritten.
	garbageShare = 4
)

// node is a leaf or an inner node; its level in the tree says which. Once its version is frozen it does not change.
//
// The entries of a leaf that have their bit in over have their values in refs, in order; without a packed block all have.
// Values elsewhere lie in the packed block, under the index of the entry. After an insertion or a removal indices do not
// fit any more: then all values are in refs, those with their bit in inside point into the block.
type node struct {
	block   unsafe.Pointer // of keys
	refs    []unsafe.Pointer
	packed  unsafe.Pointer
	birth   uint64 // stamp of the editor that may change the node
	over    uint32
	inside  uint32
	fresh   uint32 // values that were put since birth's session began
	garbage uint16 // bytes of the packed block that are overwritten
	bits    uint16 // newKeys, putAgain, and the distance of values in the packed block, or 0 if they differ
}

const (
	newKeys    = 1 << 15 // in bits: keys were made since birth's session began
	putAgain   = 1 << 14 // in bits: a value that is fresh was put once more, perhaps as it was before
	strideBits = putAgain - 1
)

const nodeBytes = int(unsafe.Sizeof(node{}))

// newInner makes an inner node: separators lie between children.
func newInner(separators [][]byte, children []*node, birth uint64) *node {
	n := &node{refs: make([]unsafe.Pointer, len(children)), birth: birth}
	n.keep(makeKeyBlock(separators))
	for i, c := range children {
		n.refs[i] = unsafe.Pointer(c)
	}
	return n
}

// keys returns the keys of a leaf or the separators of an inner node.
func (n *node) keys() keyBlock {
	if n.block == nil {
		return nil
	}
	return unsafe.Slice((*byte)(n.block), binary.LittleEndian.Uint32((*[4]byte)(n.block)[:]))
}

// keep makes b the keys, which were made since birth's session began.
func (n *node) keep(b keyBlock) {
	n.block = unsafe.Pointer(unsafe.SliceData(b))
	n.bits |= newKeys
}

// hasNewKeys reports whether keys were made since birth's session began.
func (n *node) hasNewKeys() bool { return n.bits&newKeys != 0 }

// packedValue returns value i of the packed block.
func (n *node) packedValue(i int) valueRef {
	if stride := int(n.bits & strideBits); stride > 0 {
		return unsafe.Add(n.packed, packedHeader+i*stride)
	}
	return packedAt(n.packed, i)
}

func (n *node) child(i int) *node { return (*node)(n.refs[i]) }

func (n *node) setChild(i int, c *node) { n.refs[i] = unsafe.Pointer(c) }

// value returns the value of entry i of a leaf.
func (n *node) value(i int) valueRef {
	if n.packed == nil {
		return n.refs[i]
	}
	if bit := uint32(1) << i; n.over&bit == 0 {
		return n.packedValue(i)
	}
	return n.refs[n.slot(i)]
}

// slot returns the place in refs of an entry whose bit in over is set.
func (n *node) slot(i int) int { return bits.OnesCount32(n.over & (1<<i - 1)) }

// isInside reports whether the value of entry i lies in the packed block.
func (n *node) isInside(i int) bool {
	bit := uint32(1) << i
	return n.packed != nil && (n.over&bit == 0 || n.inside&bit != 0)
}

func allOnes(n int) uint32 { return uint32(1<<n - 1) }

// spread gives each entry its place in refs, so that entries can be inserted and removed.
func (n *node) spread() {
	count := n.keys().len()
	if n.packed == nil || n.over == allOnes(count) {
		return
	}
	refs := make([]unsafe.Pointer, count, roomFor(count+1))
	for i := range refs {
		refs[i] = n.value(i)
	}
	n.inside |= allOnes(count) &^ n.over
	n.refs, n.over = refs, allOnes(count)
}

// roomFor returns the capacity that an array of n pointers has anyway.
func roomFor(n int) int {
	size := refsBytes(n)
	if 8*n > headerFrom {
		size -= 8
	}
	return size / 8
}

// insertBit makes room for bit i, which is set to on.
func insertBit(set uint32, i int, on bool) uint32 {
	low := set & (1<<i - 1)
	set = low | (set&^low)<<1
	if on {
		set |= 1 << i
	}
	return set
}

// removeBit takes bit i out.
func removeBit(set uint32, i int) uint32 {
	low := set & (1<<i - 1)
	return low | (set>>1)&^(1<<i-1)
}

// insertRef is slices.Insert for an array that grows to the next size of an object.
func insertRef(refs []unsafe.Pointer, i int, p unsafe.Pointer) []unsafe.Pointer {
	if len(refs) < cap(refs) {
		return slices.Insert(refs, i, p)
	}
	grown := make([]unsafe.Pointer, len(refs)+1, roomFor(len(refs)+1))
	copy(grown, refs[:i])
	grown[i] = p
	copy(grown[i+1:], refs[i:])
	return grown
}

// shellBytes returns the real size of a node without keys, packed block and values.
func (n *node) shellBytes() int { return classOf(nodeBytes) + refsBytes(cap(n.refs)) }

// ownBytes returns the real size of a node and of everything that belongs to it, except its children.
func (n *node) ownBytes(level int) int {
	size := n.shellBytes() + classOf(len(n.keys()))
	if level > 0 {
		return size
	}
	if n.packed != nil {
		size += classOf(packedLen(n.packed))
	}
	for i := range n.keys().len() {
		if !n.isInside(i) {
			size += valueRefBytes(n.value(i))
		}
	}
	return size
}

// valueRefBytes returns the real size of the object of a value.
func valueRefBytes(p valueRef) int {
	n, _ := valueLen(p)
	return valueBytes(n)
}
