package core_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestChecksumsOfChunksMakeThatOfTheFile(t *testing.T) {
	data := make([]byte, 10_000)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(source.Uint32())
	}
	for _, size := range []int{0, 1, 7, 8, 9, 999, 1000, 1001, 2000, 9999, 10_000} {
		for _, chunk := range []int{1, 8, 1000, 1024, 1 << 20} {
			sums := &core.Checksums{ChunkSize: chunk}
			for at := 0; at < size; at += chunk {
				sums.Sums = append(sums.Sums, core.CRC32C(data[at:min(at+chunk, size)]))
			}
			require.NoError(t, sums.Validate(int64(size)))
			require.Equal(t, core.CRC32C(data[:size]), sums.Whole(int64(size)), "%d bytes in chunks of %d", size, chunk)
		}
	}
}
