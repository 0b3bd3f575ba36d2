package ordered

import (
	"encoding/binary"
	"unsafe"
)

// A value stands in memory behind its length, a uvarint, and is known by the address of the length: 8 bytes in a node
// instead of the 24 of a slice. It is an object of its own, or lies in a packed block:
//
//	offset  size   packed block
//	0       4      bytes of the block
//	4       2 × n  offset of each value, unless all are as long
//	…       …      values, each behind its length
//
// Unsafe code of the package is in this file, in node.go and in touch.go; elsewhere addresses are only compared.
type valueRef = unsafe.Pointer

// emptyValue is every value without bytes.
var emptyValue = [1]byte{0}

// valueHeader returns how many bytes the length n takes.
func valueHeader(n int) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}

// storedLen returns how many bytes a value of n bytes takes with its length.
func storedLen(n int) int { return valueHeader(n) + n }

// valueBytes returns the real size of the object of a value of n bytes.
func valueBytes(n int) int {
	if n == 0 {
		return 0
	}
	return classOf(storedLen(n))
}

// newValue copies a value.
func newValue(value []byte) valueRef {
	if len(value) == 0 {
		return valueRef(&emptyValue)
	}
	b := make([]byte, storedLen(len(value)))
	copy(b[binary.PutUvarint(b, uint64(len(value))):], value)
	return valueRef(unsafe.SliceData(b))
}

// valueAt returns the bytes of a value.
func valueAt(p valueRef) []byte {
	n, head := valueLen(p)
	if n == 0 {
		return []byte{} // behind the length another object may begin
	}
	return unsafe.Slice((*byte)(unsafe.Add(p, head)), n)
}

// valueLen returns the length of a value and how many bytes that takes.
func valueLen(p valueRef) (n, head int) {
	b := *(*byte)(p)
	if b < 0x80 {
		return int(b), 1
	}
	n = int(b & 0x7f)
	for shift := 7; ; shift += 7 {
		head++
		b = *(*byte)(unsafe.Add(p, head))
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n, head + 1
		}
	}
}

// packedLen returns how many bytes a packed block has.
func packedLen(block unsafe.Pointer) int {
	return int(binary.LittleEndian.Uint32(unsafe.Slice((*byte)(block), 4)))
}

const packedHeader = 4

// packedAt returns value i of a packed block with offsets.
func packedAt(block unsafe.Pointer, i int) valueRef {
	at := binary.LittleEndian.Uint16(unsafe.Slice((*byte)(unsafe.Add(block, 4+2*i)), 2))
	return unsafe.Add(block, int(at))
}
