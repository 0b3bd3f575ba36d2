package chunksum

import (
	"encoding/binary"
	"hash/crc32"
)

// Size is that of a sum.
const Size = 4

// abreast is how many chunks are summed up at once.
const abreast = 3

// Castagnoli is the table of CRC32C, the usual kind.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Count is how many chunks so many bytes have.
func Count(n, chunk int) int { return (n + chunk - 1) / chunk }

// Put writes the sums of data to sums, which has room for all of them.
func Put(sums, data []byte, chunk int, table *crc32.Table) {
	if together(chunk, table) {
		var three [abreast]uint32
		for ; len(data) >= abreast*chunk; data, sums = data[abreast*chunk:], sums[abreast*Size:] {
			sumThree(data, chunk, &three)
			for i, sum := range three {
				binary.BigEndian.PutUint32(sums[i*Size:], sum)
			}
		}
	}
	for ; len(data) > 0; sums = sums[Size:] {
		k := min(chunk, len(data))
		binary.BigEndian.PutUint32(sums, crc32.Checksum(data[:k], table))
		data = data[k:]
	}
}

// Right returns how many bytes of data are chunks with the right sums, from the first chunk to the last one before a wrong one.
// There are sums for all of data, or more.
func Right(sums, data []byte, chunk int, table *crc32.Table) int {
	n := 0
	if together(chunk, table) {
		var three [abreast]uint32
		for ; len(data)-n >= abreast*chunk; n, sums = n+abreast*chunk, sums[abreast*Size:] {
			sumThree(data[n:], chunk, &three)
			for i, sum := range three {
				if sum != binary.BigEndian.Uint32(sums[i*Size:]) {
					return n + i*chunk
				}
			}
		}
	}
	for ; n < len(data); sums = sums[Size:] {
		k := min(chunk, len(data)-n)
		if crc32.Checksum(data[n:n+k], table) != binary.BigEndian.Uint32(sums) {
			break
		}
		n += k
	}
	return n
}

// together reports whether such chunks can be summed up three at once.
func together(chunk int, table *crc32.Table) bool {
	return instruction && table == Castagnoli && chunk%8 == 0
}

// sumThree puts the sums of the first three chunks of data, all of them whole, into sums.
func sumThree(data []byte, chunk int, sums *[abreast]uint32) {
	_ = data[:abreast*chunk] // what follows checks nothing
	castagnoliThree(&data[0], chunk, sums)
}
