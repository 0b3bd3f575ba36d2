package ordered

import (
	"math/bits"
	"runtime"
	"unsafe"
)

// Walking down a large tree waits for memory at each node, since the place of the next is known only then. The functions of
// this file read a byte of what will be needed, for many ways or values side by side: the processor then waits for all of
// them once. They change nothing, and what they find out is thrown away.

// Ahead is how many keys are worth a Touch.
const Ahead = 32

const cacheLine = 64

// Touch brings what Put, Remove and Get of keys need into the processor's caches. It looks at the first Ahead keys. With
// keys that come one by one it is of no use.
func (t *tree) Touch(keys [][]byte) {
	if t.root == nil {
		return
	}
	var (
		nodes [Ahead]*node
		sum   byte
	)
	keys = keys[:min(len(keys), Ahead)]
	for i := range keys {
		nodes[i] = t.root
	}
	for level := t.level; level > 0; level-- {
		sum += touchNodes(nodes[:len(keys)])
		for i, key := range keys {
			nodes[i] = nodes[i].child(nodes[i].keys().child(key))
		}
	}
	sum += touchNodes(nodes[:len(keys)])
	for i, key := range keys {
		sum += nodes[i].touchEntry(key)
	}
	runtime.KeepAlive(sum)
}

// touchNodes reads the keys of nodes up to the end of the heads, and the refs: a change copies them.
func touchNodes(nodes []*node) (sum byte) {
	for _, n := range nodes {
		sum += byte(uintptr(n.block) >> 8)
	}
	for _, n := range nodes {
		if n.block != nil {
			sum += *(*byte)(n.block)
		}
	}
	for _, n := range nodes {
		b := n.keys()
		for at := cacheLine; at < keyHeader+4*b.len(); at += cacheLine {
			sum += b[at]
		}
		for at := 0; at < len(n.refs); at += cacheLine / 8 {
			sum += byte(uintptr(n.refs[at]))
		}
	}
	return sum
}

// touchEntry reads where the key and the value begin that are probably those of key.
func (n *node) touchEntry(key []byte) byte {
	b := n.keys()
	if b.len() == 0 || len(key) < b.prefix() {
		return 0
	}
	i := b.lowerHead(b.count(), headOf(key[b.prefix():]))
	if i == b.count() {
		return 0
	}
	var sum byte
	if k := b.at(i); len(k) > 0 {
		sum = k[0]
	}
	return sum + *(*byte)(n.value(i))
}

// touchValues reads the first and the last byte of values that lie anywhere, of entries from to below to.
func (n *node) touchValues(from, to int) {
	if len(n.refs) == 0 {
		return // they lie one behind the other
	}
	var sum byte
	for i := from; i < to; i++ {
		sum += *(*byte)(n.value(i))
	}
	for i := from; i < to; i++ {
		p := n.value(i)
		size, head := valueLen(p)
		for at := cacheLine; at < head+size; at += cacheLine {
			sum += *(*byte)(unsafe.Add(p, at))
		}
	}
	runtime.KeepAlive(sum)
}

// leavesAhead bounds how many leaves touchChanged looks at, so that what it brings is still there when it is needed.
const leavesAhead = 128

// touchChanged brings what a comparison of two nodes on level 2 needs: their children that differ, the leaves of these that differ,
// and of those keys and fresh values.
func touchChanged(p, q *node) {
	var (
		inner  [maxChildren][2]*node
		leaves [leavesAhead][2]*node
		sum    byte
	)
	pairs := differing(p, q, inner[:0])
	for _, pair := range pairs {
		sum += byte(len(pair[0].refs)) + byte(len(pair[1].refs))
	}
	for _, pair := range pairs {
		for _, n := range pair {
			for at := 0; at < len(n.refs); at += cacheLine / 8 {
				sum += byte(uintptr(n.refs[at]))
			}
		}
	}
	changed := leaves[:0]
	for _, pair := range pairs {
		changed = differing(pair[0], pair[1], changed)
	}
	for _, pair := range changed {
		sum += byte(uintptr(pair[0].block)) + byte(uintptr(pair[1].block))
	}
	for _, pair := range changed {
		if n := pair[1]; n.block != nil && len(n.refs) > 0 {
			sum += *(*byte)(n.block) + byte(uintptr(n.refs[0]))
		}
	}
	for _, pair := range changed {
		sum += pair[1].touchFresh()
	}
	runtime.KeepAlive(sum)
}

// differing appends pairs of children that stand in the same place of two nodes and are not the same, as far as there is room.
func differing(p, q *node, pairs [][2]*node) [][2]*node {
	for i := range min(len(p.refs), len(q.refs)) {
		if p.refs[i] != q.refs[i] && len(pairs) < cap(pairs) {
			pairs = append(pairs, [2]*node{p.child(i), q.child(i)})
		}
	}
	return pairs
}

// touchFresh reads the begin of the keys, and of the first value that was put.
func (n *node) touchFresh() (sum byte) {
	if n.block == nil || n.fresh == 0 {
		return 0
	}
	i := bits.TrailingZeros32(n.fresh)
	if i < n.keys().len() {
		sum = *(*byte)(n.value(i))
	}
	return sum
}
