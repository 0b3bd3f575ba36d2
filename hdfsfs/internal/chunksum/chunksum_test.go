package chunksum

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is what HDFS says of each chunk.
func plain(data []byte, chunk int, table *crc32.Table) []byte {
	var sums []byte
	for len(data) > 0 {
		k := min(chunk, len(data))
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(data[:k], table))
		data = data[k:]
	}
	return sums
}

func random(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	p := make([]byte, n)
	_, _ = r.Read(p)
	return p
}

func TestSumsAreThoseOfEachChunkAlone(t *testing.T) {
	tables := map[string]*crc32.Table{"CRC32C": Castagnoli, "CRC32": crc32.IEEETable}
	for name, table := range tables {
		for _, chunk := range []int{1, 7, 8, 16, 100, 504, 512, 1000, 4096} {
			for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk - 1, 3 * chunk, 3*chunk + 1, 7*chunk + chunk/2, 128 * chunk} {
				data := random(uint64(chunk+n), n+1)[1:] // at an odd address
				want := plain(data, chunk, table)
				sums := make([]byte, Size*Count(n, chunk)+1)
				sums[len(sums)-1] = 0xa5
				Put(sums, data, chunk, table)
				what := fmt.Sprintf("%s, %d bytes in chunks of %d", name, n, chunk)
				require.Equal(t, append(want, 0xa5), sums, what)
				require.Equal(t, n, Right(want, data, chunk, table), what)
			}
		}
	}
}

func TestTheFirstWrongChunkEndsWhatIsRight(t *testing.T) {
	const chunk, chunks = 64, 11
	for _, n := range []int{chunks * chunk, chunks*chunk - 5} {
		data := random(1, n)
		sums := plain(data, chunk, Castagnoli)
		for bit := range 8 * n {
			data[bit/8] ^= 1 << (bit % 8)
			require.Equal(t, bit/8/chunk*chunk, Right(sums, data, chunk, Castagnoli), "bit %d of the data", bit)
			data[bit/8] ^= 1 << (bit % 8)
		}
		for bit := range 8 * len(sums) {
			sums[bit/8] ^= 1 << (bit % 8)
			require.Equal(t, bit/8/Size*chunk, Right(sums, data, chunk, Castagnoli), "bit %d of the sums", bit)
			sums[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("some bytes of a block"), 8)
	f.Add(random(2, 2000), 512)
	f.Fuzz(func(t *testing.T, data []byte, chunk int) {
		chunk = 1 + int(uint(chunk)%5000)
		sums := make([]byte, Size*Count(len(data), chunk))
		Put(sums, data, chunk, Castagnoli)
		require.Equal(t, len(data), Right(sums, data, chunk, Castagnoli))
		if len(data) > 0 {
			require.Equal(t, plain(data, chunk, Castagnoli), sums)
		}
	})
}

func BenchmarkRight(b *testing.B) {
	data := random(3, 64<<10)
	sums := plain(data, 512, Castagnoli)
	b.Run("chunks", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if Right(sums, data, 512, Castagnoli) != len(data) {
				b.Fatal("wrong")
			}
		}
	})
	b.Run("one-by-one", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			for n := 0; n < len(data); n += 512 {
				if crc32.Checksum(data[n:n+512], Castagnoli) != binary.BigEndian.Uint32(sums[n/512*Size:]) {
					b.Fatal("wrong")
				}
			}
		}
	})
}
