package ordered

import (
	"bytes"
	"encoding/binary"
	"math"
)

// keyBlock is an immutable list of ascending keys in one object. Integers are little-endian.
//
//	offset  size        content
//	0       4           bytes of the block
//	4       4           p, the length of the beginning that all keys have in common
//	8       4           length of each key, if they are all as long
//	12      2           n
//	14      2           bytes of one end: 0 if all keys are as long; 2, or 4 if they have 64 KiB or more together
//	16      4 × n       heads: the four bytes of each key from p on as a big-endian number, zeros behind a short key
//	…       … × n       where each key ends, relative to the first one's begin
//	…       …           keys, whole, so that they can be given out
//
// Heads decide nearly every comparison without a look at a key.
type keyBlock []byte

const keyHeader = 16

// keyBlockLen returns the size of a block of n keys with total bytes, all as long or not.
func keyBlockLen(n, total int, uniform bool) int {
	return keyHeader + n*(4+endWidth(total, uniform)) + total
}

func endWidth(total int, uniform bool) int {
	switch {
	case uniform:
		return 0
	case total > math.MaxUint16:
		return 4
	}
	return 2
}

func makeKeyBlock(keys [][]byte) keyBlock {
	if len(keys) == 0 {
		return nil
	}
	total, uniform := 0, true
	for _, k := range keys {
		total += len(k)
		uniform = uniform && len(k) == len(keys[0])
	}
	prefix := commonPrefix(keys[0], keys[len(keys)-1])
	n, width := len(keys), endWidth(total, uniform)
	b := make(keyBlock, keyBlockLen(n, total, uniform))
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], uint32(prefix))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(keys[0])))
	binary.LittleEndian.PutUint16(b[12:], uint16(n))
	binary.LittleEndian.PutUint16(b[14:], uint16(width))
	heads, ends, data := b[keyHeader:], b[keyHeader+4*n:], b[keyHeader+(4+width)*n:]
	end := 0
	for i, k := range keys {
		binary.LittleEndian.PutUint32(heads[4*i:], headOf(k[prefix:]))
		end += copy(data[end:], k)
		switch width {
		case 2:
			binary.LittleEndian.PutUint16(ends[2*i:], uint16(end))
		case 4:
			binary.LittleEndian.PutUint32(ends[4*i:], uint32(end))
		}
	}
	return b
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.NativeEndian.Uint64(a[i:]) == binary.NativeEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// headOf returns the first four bytes of b as a number that sorts as they do.
func headOf(b []byte) uint32 {
	if len(b) >= 4 {
		return binary.BigEndian.Uint32(b)
	}
	var h uint32
	for i, c := range b {
		h |= uint32(c) << (24 - 8*i)
	}
	return h
}

func (b keyBlock) len() int {
	if len(b) == 0 {
		return 0
	}
	return b.count()
}

// count is len of a block that is not nil.
func (b keyBlock) count() int { return int(binary.LittleEndian.Uint16(b[12:])) }

func (b keyBlock) width() int  { return int(binary.LittleEndian.Uint16(b[14:])) }
func (b keyBlock) prefix() int { return int(binary.LittleEndian.Uint32(b[4:])) }

// bytes returns how many bytes all keys have together.
func (b keyBlock) bytes() int {
	if len(b) == 0 {
		return 0
	}
	return len(b) - keyHeader - b.count()*(4+b.width())
}

// at returns key i, which must exist.
func (b keyBlock) at(i int) []byte {
	n, width := b.count(), b.width()
	data := keyHeader + (4+width)*n
	if width == 0 {
		size := int(binary.LittleEndian.Uint32(b[8:]))
		data += i * size
		return b[data : data+size : data+size]
	}
	ends := b[keyHeader+4*n : data]
	from, to := 0, 0
	if width == 2 {
		to = int(binary.LittleEndian.Uint16(ends[2*i:]))
		if i > 0 {
			from = int(binary.LittleEndian.Uint16(ends[2*i-2:]))
		}
	} else {
		to = int(binary.LittleEndian.Uint32(ends[4*i:]))
		if i > 0 {
			from = int(binary.LittleEndian.Uint32(ends[4*i-4:]))
		}
	}
	return b[data+from : data+to : data+to]
}

// appendTo appends all keys to list.
func (b keyBlock) appendTo(list [][]byte) [][]byte {
	for i := range b.len() {
		list = append(list, b.at(i))
	}
	return list
}

// search returns the first index whose key is not below key, and whether it is equal.
func (b keyBlock) search(key []byte) (int, bool) {
	if len(b) == 0 {
		return 0, false
	}
	n := b.count()
	if prefix := b.prefix(); prefix > 0 {
		first := b.at(0)
		if len(key) < prefix || !bytes.Equal(key[:prefix], first[:prefix]) {
			if bytes.Compare(key, first[:prefix]) < 0 {
				return 0, false
			}
			return n, false
		}
		key = key[prefix:]
		i := b.lowerHead(n, headOf(key))
		return b.settle(i, n, prefix, key)
	}
	return b.settle(b.lowerHead(n, headOf(key)), n, 0, key)
}

// find returns the index of key, or -1. It is search without a look at the first key.
func (b keyBlock) find(key []byte) int {
	if len(b) == 0 {
		return -1
	}
	n, prefix := b.count(), b.prefix()
	if len(key) < prefix {
		return -1
	}
	head := headOf(key[prefix:])
	for i := b.lowerHead(n, head); i < n && binary.LittleEndian.Uint32(b[keyHeader+4*i:]) == head; i++ {
		if bytes.Equal(b.at(i), key) {
			return i
		}
	}
	return -1
}

// lowerHead returns the first index whose head is not below head.
func (b keyBlock) lowerHead(n int, head uint32) int {
	heads := b[keyHeader : keyHeader+4*n]
	base := 0
	for n > 1 {
		half := n / 2
		if binary.LittleEndian.Uint32(heads[4*(base+half-1):]) < head {
			base += half
		}
		n -= half
	}
	if n == 1 && binary.LittleEndian.Uint32(heads[4*base:]) < head {
		base++
	}
	return base
}

// settle continues from the first key with the same head as rest, the key behind the prefix.
func (b keyBlock) settle(i, n, prefix int, rest []byte) (int, bool) {
	head := headOf(rest)
	for ; i < n && binary.LittleEndian.Uint32(b[keyHeader+4*i:]) == head; i++ {
		if c := bytes.Compare(rest, b.at(i)[prefix:]); c <= 0 {
			return i, c == 0
		}
	}
	return i, false
}

// child returns which child of an inner node with these separators holds key: the number of separators not above it.
func (b keyBlock) child(key []byte) int {
	i, equal := b.search(key)
	if equal {
		i++
	}
	return i
}

// separator returns the shortest key that is above a and not above b.
func separator(a, b []byte) []byte { return b[:commonPrefix(a, b)+1] }
