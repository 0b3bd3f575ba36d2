package coordinator

import (
	"encoding/binary"
	"math/bits"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// OperatorIDOf returns the id that belongs to a uid, the same in every process. It is the one that Flink gives an operator
// with that uid: Murmur3_128 with seed 0 over its UTF-8 bytes (StreamGraphHasherV2.generateUserSpecifiedHash).
func OperatorIDOf(uid string) metadata.OperatorID {
	h1, h2 := murmur128([]byte(uid))
	var id metadata.OperatorID
	binary.LittleEndian.PutUint64(id[:8], h1)
	binary.LittleEndian.PutUint64(id[8:], h2)
	return id
}

const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur128 is MurmurHash3_x64_128 with seed 0.
func murmur128(data []byte) (h1, h2 uint64) {
	length := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= murmurMix1(binary.LittleEndian.Uint64(data))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= murmurMix2(binary.LittleEndian.Uint64(data[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h1 ^= murmurMix1(binary.LittleEndian.Uint64(tail[:]))
	h2 ^= murmurMix2(binary.LittleEndian.Uint64(tail[8:]))

	h1 ^= length
	h2 ^= length
	h1 += h2
	h2 += h1
	h1, h2 = murmurFinal(h1), murmurFinal(h2)
	h1 += h2
	h2 += h1
	return h1, h2
}

func murmurMix1(k uint64) uint64 { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }

func murmurMix2(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurFinal(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
