package codec_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// lz4JavaBlock is a block of lz4-java's stream.
type lz4JavaBlock struct {
	at, payload int
	stored      bool
	content     int
}

// blocksOf parses an lz4 stream, up to its end block, on its own.
func blocksOf(t testing.TB, file []byte) []lz4JavaBlock {
	t.Helper()
	var blocks []lz4JavaBlock
	for at := 0; ; {
		header := file[at:]
		require.Equal(t, "LZ4Block", string(header[:8]))
		b := lz4JavaBlock{
			at: at, payload: int(binary.LittleEndian.Uint32(header[9:])),
			stored: header[8]&0xf0 == 0x10, content: int(binary.LittleEndian.Uint32(header[13:])),
		}
		if b.payload == 0 {
			return blocks
		}
		if b.stored {
			require.Equal(t, b.content, b.payload)
			sum := codec.XXH32(header[21:21+b.payload], 0x9747b28c) & 0x0fffffff
			require.Equal(t, sum, binary.LittleEndian.Uint32(header[17:]))
		}
		blocks = append(blocks, b)
		at += 21 + b.payload
	}
}

// valuesOf makes records of 128 bytes, 256 to a block of 32 KiB, with ascending keys.
func valuesOf(n int, value func(i int, v []byte)) []record {
	records := make([]record, n)
	v := make([]byte, 104)
	for i := range records {
		clear(v)
		value(i, v)
		records[i] = record{key: fmt.Sprintf("%016d", i), value: string(v)}
	}
	return records
}

const perBlock = 256

// noisy fills the last n bytes of a value with noise.
func noisy(r *rand.Rand, n int) func(int, []byte) {
	return func(_ int, v []byte) {
		for i := range v[:n] {
			v[len(v)-n+i] = byte(r.Uint32())
		}
	}
}

func text(r *rand.Rand) func(int, []byte) {
	words := strings.Fields("the state of a job is kept as versions each of them a set of changes that is there or not")
	return func(_ int, v []byte) {
		for at := 0; at < len(v); {
			at += copy(v[at:], words[r.IntN(len(words))]+" ")
		}
	}
}

func zeros(int, []byte) {}

// halves has one kind of data up to a record, then another.
func halves(at int, first, second func(int, []byte)) func(int, []byte) {
	return func(i int, v []byte) {
		if i < at {
			first(i, v)
		} else {
			second(i, v)
		}
	}
}

const (
	testBlocks = 100
	testTurn   = 55 // the block in which halves change
)

func TestASnapshotStoresBlocksThatHardlyCompress(t *testing.T) {
	r := seeded(t)
	probe := func(block int) bool { return block < 16 || block%16 == 0 } // compressed in any case
	for _, test := range []struct {
		name  string
		value func(int, []byte)
		// compressed says whether a block must be compressed; known is false where either will do.
		compressed func(block int) (is, known bool)
	}{
		{"zeros", zeros, func(int) (bool, bool) { return true, true }},
		{"text", text(r), func(int) (bool, bool) { return true, true }},
		{"a half is noise", noisy(r, 64), func(int) (bool, bool) { return true, true }},
		{"three quarters are noise", noisy(r, 96), func(block int) (bool, bool) { return probe(block), true }},
		{"noise, then zeros", halves(testTurn*perBlock, noisy(r, 100), zeros), func(block int) (bool, bool) {
			return block > testTurn || probe(block), block < testTurn || block >= testTurn+16
		}},
		{"zeros, then noise", halves(testTurn*perBlock, zeros, noisy(r, 100)), func(block int) (bool, bool) {
			return block < testTurn || probe(block), block < testTurn || block >= testTurn+16
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			records := valuesOf(testBlocks*perBlock, test.value)
			file := write(t, codec.Snapshot, codec.WriterOptions{}, records)
			blocks := blocksOf(t, file)
			require.Len(t, blocks, testBlocks+1, "and one with the EOF record")
			for i, b := range blocks[:testBlocks] {
				require.Equal(t, 32<<10, b.content)
				if want, known := test.compressed(i); known {
					require.Equal(t, want, !b.stored, "block %d", i)
				}
			}
			for _, parallelism := range []int{1, 2, 5} {
				again := write(t, codec.Snapshot, codec.WriterOptions{Parallelism: parallelism}, records)
				require.True(t, bytes.Equal(file, again), "parallelism %d", parallelism)
			}
			requireReads(t, file, records)
			requireReads(t, write(t, codec.Snapshot, codec.WriterOptions{NoFooter: true}, records), records)
			smallest := write(t, codec.Snapshot, codec.WriterOptions{AlwaysCompress: true}, records)
			for i, b := range blocksOf(t, smallest)[:testBlocks] {
				require.False(t, b.stored, "block %d", i)
			}
		})
	}
}

// requireReads reads a snapshot in every way.
func requireReads(t *testing.T, file []byte, records []record) {
	t.Helper()
	for _, parallelism := range []int{0, 2} {
		for _, keep := range []bool{false, true} {
			opts := codec.ReaderOptions{Parallelism: parallelism, Keep: keep}
			for _, read := range []func() ([]record, error){
				func() ([]record, error) { return read(file, codec.Snapshot, opts) },
				func() ([]record, error) { return readBatches(file, opts) },
			} {
				got, err := read()
				require.NoError(t, err)
				require.True(t, slices.Equal(records, got), "parallelism %d, keep %v", parallelism, keep)
			}
		}
		rd, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Snapshot, codec.ReaderOptions{Parallelism: parallelism})
		require.NoError(t, err)
		for i := 0; i < len(records) && rd.Footer() != nil; i += len(records) / 7 {
			require.NoError(t, rd.Seek([]byte(records[i].key)))
			rec, err := rd.Next()
			require.NoError(t, err)
			require.Equal(t, records[i].key, string(rec.Key))
			require.Equal(t, records[i].value, string(rec.Value))
		}
		require.NoError(t, rd.Close())
	}
}

func TestWhatIsNotALargeLZ4SnapshotIsCompressed(t *testing.T) {
	r := seeded(t)
	many, few := valuesOf(40*perBlock, noisy(r, 96)), valuesOf(16*perBlock-1, noisy(r, 96))
	for name, file := range map[string][]byte{
		"delta":                     write(t, codec.Delta, codec.WriterOptions{}, many),
		"small snapshot":            write(t, codec.Snapshot, codec.WriterOptions{}, few),
		"snapshot of large blocks":  write(t, codec.Snapshot, codec.WriterOptions{BlockSize: 512 << 10}, many),
		"always":                    write(t, codec.Snapshot, codec.WriterOptions{AlwaysCompress: true}, many),
		"always, without a footer":  write(t, codec.Snapshot, codec.WriterOptions{AlwaysCompress: true, NoFooter: true}, many),
		"always, several at a time": write(t, codec.Snapshot, codec.WriterOptions{AlwaysCompress: true, Parallelism: 3}, many),
	} {
		for i, b := range blocksOf(t, file) {
			require.True(t, !b.stored || b.content < 100, "%s: block %d", name, i) // that of the EOF record may be stored
		}
	}
	for _, c := range allCompressions[1:] {
		adaptive := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, many)
		require.True(t, bytes.Equal(adaptive, write(t, codec.Snapshot, codec.WriterOptions{Compression: c, AlwaysCompress: true}, many)), c)
	}
}

func TestAFlippedBitInAStoredBlockIsFoundWithoutAFooter(t *testing.T) {
	r := seeded(t)
	file := write(t, codec.Snapshot, codec.WriterOptions{NoFooter: true}, valuesOf(40*perBlock, noisy(r, 96)))
	blocks := blocksOf(t, file)
	for range 20 {
		i := 17 + r.IntN(15)
		require.True(t, blocks[i].stored)
		at, bit := blocks[i].at+21+r.IntN(blocks[i].payload), byte(1)<<r.IntN(8)
		file[at] ^= bit
		for _, parallelism := range []int{0, 2} {
			got, err := readBatches(file, codec.ReaderOptions{Parallelism: parallelism, Keep: parallelism > 0})
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, fmt.Sprintf("at byte %d: checksum of the lz4 block", blocks[i].at))
			require.LessOrEqual(t, len(got), i*perBlock, "nothing of the damaged block was given out")
		}
		file[at] ^= bit
	}
}
