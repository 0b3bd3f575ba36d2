package metadata

import (
	"fmt"
	"io/fs"
	"math/bits"
	"unicode/utf8"
)

// MaxKeyGroups is the largest number of key groups, that is the largest max parallelism, that an operator can have.
const MaxKeyGroups = 1 << 15

// KeyGroupRange is a range of key groups: those from Start to Start+Count-1.
type KeyGroupRange struct {
	Start int32 `json:"start"`
	Count int32 `json:"count"`
}

// Contains reports whether the key group is in the range.
func (r KeyGroupRange) Contains(keyGroup int) bool {
	return keyGroup >= int(r.Start) && keyGroup < r.End()
}

// End is the first key group behind the range.
func (r KeyGroupRange) End() int { return int(r.Start) + int(r.Count) }

// Intersect returns the key groups that both ranges have; the zero value if there are none.
func (r KeyGroupRange) Intersect(other KeyGroupRange) KeyGroupRange {
	start, end := max(r.Start, other.Start), min(r.End(), other.End())
	if int(start) >= end {
		return KeyGroupRange{}
	}
	return KeyGroupRange{Start: start, Count: int32(end - int(start))}
}

// String returns the range as "[start, last]", or "[]" if it is empty.
func (r KeyGroupRange) String() string {
	if r.Count <= 0 {
		return "[]"
	}
	return fmt.Sprintf("[%d, %d]", r.Start, r.End()-1)
}

// KeyGroupOfHash returns the key group of a key whose Java hashCode is given. It is the one that Flink assigns.
// maxParallelism must be from 1 to [MaxKeyGroups].
func KeyGroupOfHash(hash int32, maxParallelism int) int {
	return int(murmur(uint32(hash))) % maxParallelism
}

// KeyGroupOfString returns the key group of a string key: that of Flink for the same java.lang.String.
func KeyGroupOfString(key string, maxParallelism int) int {
	return KeyGroupOfHash(javaStringHash(key), maxParallelism)
}

// KeyGroupOfBytes returns the key group of a key of bytes. Its hash is that of Java's Arrays.hashCode(byte[]).
func KeyGroupOfBytes(key []byte, maxParallelism int) int {
	hash := int32(1)
	for _, b := range key {
		hash = 31*hash + int32(int8(b))
	}
	return KeyGroupOfHash(hash, maxParallelism)
}

// KeyGroupsOfSubtask returns the key groups of the subtask with the given index, as Flink deals them out. The error is
// fs.ErrInvalid: maxParallelism must be from 1 to [MaxKeyGroups], parallelism from 1 to maxParallelism, and the index from 0 to
// parallelism-1.
func KeyGroupsOfSubtask(index, parallelism, maxParallelism int) (KeyGroupRange, error) {
	switch {
	case maxParallelism < 1 || maxParallelism > MaxKeyGroups:
		return KeyGroupRange{}, fmt.Errorf("%w: max parallelism %d is not in 1…%d", fs.ErrInvalid, maxParallelism, MaxKeyGroups)
	case parallelism < 1 || parallelism > maxParallelism:
		return KeyGroupRange{}, fmt.Errorf("%w: parallelism %d is not in 1…%d", fs.ErrInvalid, parallelism, maxParallelism)
	case index < 0 || index >= parallelism:
		return KeyGroupRange{}, fmt.Errorf("%w: subtask index %d is not in 0…%d", fs.ErrInvalid, index, parallelism-1)
	}
	start := (index*maxParallelism + parallelism - 1) / parallelism
	last := ((index+1)*maxParallelism - 1) / parallelism
	return KeyGroupRange{Start: int32(start), Count: int32(last - start + 1)}, nil
}

// SubtaskOfKeyGroup returns the index of the subtask that owns the key group: the inverse of [KeyGroupsOfSubtask].
func SubtaskOfKeyGroup(keyGroup, parallelism, maxParallelism int) int {
	return keyGroup * parallelism / maxParallelism
}

// murmur is Murmur3 for one 32-bit block, made non-negative the way Flink does.
func murmur(code uint32) int32 {
	code *= 0xcc9e2d51
	code = bits.RotateLeft32(code, 15)
	code *= 0x1b873593
	code = bits.RotateLeft32(code, 13)
	code = code*5 + 0xe6546b64
	code ^= 4 // the length of the block

	code ^= code >> 16
	code *= 0x85ebca6b
	code ^= code >> 13
	code *= 0xc2b2ae35
	code ^= code >> 16

	switch hash := int32(code); {
	case hash >= 0:
		return hash
	case hash != -1<<31:
		return -hash
	}
	return 0
}

// javaStringHash is String.hashCode over the UTF-16 units of the text.
func javaStringHash(s string) int32 {
	var hash int32
	for len(s) > 0 {
		if s[0] < utf8.RuneSelf {
			hash = 31*hash + int32(s[0])
			s = s[1:]
			continue
		}
		r, size := decodeRune(s)
		s = s[size:]
		if r >= 0x10000 {
			r -= 0x10000
			hash = 31*hash + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		hash = 31*hash + r
	}
	return hash
}
