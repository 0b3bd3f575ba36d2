package metadata

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortLikeHashMap puts states into the order in which a java.util.HashMap, sized for them, yields their names: by bucket,
// and within a bucket as they were. Flink keeps the states of a handle in such a map, so this is the order of its files.
func sortLikeHashMap(states []NamedState) {
	mask := hashMapCapacity(len(states)) - 1
	slices.SortStableFunc(states, func(a, b NamedState) int {
		return cmp.Compare(hashMapBucket(a.Name, mask), hashMapBucket(b.Name, mask))
	})
}

// hashMapCapacity is the number of buckets that a map sized for n entries has at a load factor of 0.75.
func hashMapCapacity(n int) uint32 {
	if n == 0 {
		return 1
	}
	needed := uint32((4*n + 2) / 3) // n / 0.75, rounded up
	return 1 << bits.Len32(needed-1)
}

func hashMapBucket(name string, mask uint32) uint32 {
	hash := uint32(javaStringHash(name))
	return (hash ^ hash>>16) & mask
}
