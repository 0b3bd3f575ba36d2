package codec_test

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// few are records with what damage tests need: a put, a removal, values that compress and that do not.
func few(t *testing.T) []record {
	r := seeded(t)
	return []record{
		{key: "key 0001", value: noise(r, 104)},
		{key: "key 0002", removed: true},
		{key: "key 0003", value: string(make([]byte, 256))},
		{key: "key 0004", value: noise(r, 16)},
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	records := few(t)
	for _, c := range allCompressions {
		for _, footer := range []bool{true, false} {
			b := write(t, codec.Delta, codec.WriterOptions{Compression: c, BlockSize: 100, NoFooter: !footer}, records)
			stream := len(b)
			if footer {
				f, err := codec.ReadFooter(bytes.NewReader(b), int64(len(b)))
				require.NoError(t, err)
				stream = int(f.StreamBytes)
			}
			for n := range len(b) {
				got, err := read(b[:n], codec.Delta, codec.ReaderOptions{Name: "/7.delta"})
				if n == stream { // exactly the footer is gone: what is left is a complete file as Spark writes it
					require.NoError(t, err)
					require.Equal(t, records, got)
					continue
				}
				require.ErrorIs(t, err, core.ErrCorrupt, "%s cut at %d of %d", c, n, len(b))
				require.ErrorContains(t, err, "/7.delta")
				require.ErrorContains(t, err, "byte")
			}
		}
	}
}

func TestEveryFlippedBitOfAFileWithFooterIsFoundBeforeARecordIsReturned(t *testing.T) {
	records := few(t)
	for _, c := range allCompressions {
		b := write(t, codec.Delta, codec.WriterOptions{Compression: c}, records)
		f, err := codec.ReadFooter(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		for i := range len(b) * 8 {
			bad := bytes.Clone(b)
			bad[i/8] ^= 1 << (i % 8)
			got, err := read(bad, codec.Delta, codec.ReaderOptions{})
			require.Error(t, err, "%s bit %d", c, i)
			if int64(i/8) < f.StreamBytes {
				require.ErrorIs(t, err, core.ErrCorrupt, "%s bit %d", c, i)
				require.Empty(t, got)
			}
		}
	}
}

func TestFlippedBitsOfForeignFilesNeverGiveOtherRowsWhereThereAreChecksums(t *testing.T) {
	records := few(t)
	for _, c := range []codec.Compression{codec.LZ4, codec.Zstd} {
		b := write(t, codec.Delta, codec.WriterOptions{Compression: c, NoFooter: true}, records)
		for i := range len(b) * 8 {
			bad := bytes.Clone(b)
			bad[i/8] ^= 1 << (i % 8)
			got, err := read(bad, codec.Delta, codec.ReaderOptions{})
			require.True(t, err != nil || slices.Equal(records, got), "%s bit %d", c, i)
		}
	}
	for _, c := range allCompressions { // row checksums find what is in a row, whatever the compression
		b := write(t, codec.Delta, codec.WriterOptions{Compression: c, NoFooter: true, RowChecksum: true}, records)
		for i := range len(b) * 8 {
			bad := bytes.Clone(b)
			bad[i/8] ^= 1 << (i % 8)
			got, err := read(bad, codec.Delta, codec.ReaderOptions{RowChecksum: true})
			require.True(t, err != nil || slices.Equal(records, got), "%s bit %d", c, i)
		}
	}
}

func TestBytesAfterTheEndAreRefused(t *testing.T) {
	records := few(t)
	for _, c := range allCompressions {
		for _, noFooter := range []bool{false, true} {
			b := write(t, codec.Delta, codec.WriterOptions{Compression: c, NoFooter: noFooter}, records)
			other := write(t, codec.Delta, codec.WriterOptions{Compression: c, NoFooter: true}, []record{{key: "key 0001", value: ""}})
			for name, tail := range map[string][]byte{
				"a zero": {0}, "a byte": {0x5a}, "32 bytes": bytes.Repeat([]byte("x"), 32), "zeros": make([]byte, 40_000), "a file": other, "itself": b,
			} {
				bad := slices.Concat(b, tail)
				_, err := read(bad, codec.Delta, codec.ReaderOptions{})
				require.ErrorIs(t, err, core.ErrCorrupt, "%s after %s", name, c)
				if noFooter {
					got, err := read(bad, codec.Delta, codec.ReaderOptions{StopAtEOF: true})
					if name != "itself" {
						require.NoError(t, err, "%s after %s", name, c)
						require.Equal(t, records, got)
					}
				}
			}
		}
	}
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func TestRecordsAsSparkTreatsThem(t *testing.T) {
	const eof = 0xffffffff
	cat := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	k, v := []byte("k"), []byte("12345678")
	for _, test := range []struct {
		name string
		kind codec.Kind
		raw  []byte
		want []record
		bad  bool
	}{
		{name: "an empty file", kind: codec.Delta, bad: true},
		{name: "only zeros", kind: codec.Delta, raw: make([]byte, 64), bad: true},
		{name: "only the EOF record", kind: codec.Delta, raw: be32(eof)},
		{name: "only the EOF record in a snapshot", kind: codec.Snapshot, raw: be32(eof)},
		{name: "no EOF record", kind: codec.Delta, raw: cat(be32(1), k, be32(8), v), bad: true},
		{name: "a value length of -2 removes", kind: codec.Delta, raw: cat(be32(1), k, be32(eof-1), be32(eof)), want: []record{{key: "k", removed: true}}},
		{name: "the lowest value length removes", kind: codec.Delta, raw: cat(be32(1), k, be32(1<<31), be32(eof)), want: []record{{key: "k", removed: true}}},
		{name: "a removal in a snapshot", kind: codec.Snapshot, raw: cat(be32(1), k, be32(eof), be32(eof)), bad: true},
		{name: "a key length of -2", kind: codec.Delta, raw: cat(be32(eof-1), be32(eof)), bad: true},
		{name: "value lengths are floored", kind: codec.Delta, raw: cat(be32(1), k, be32(12), v, v[:4], be32(eof)), want: []record{{key: "k", value: "12345678"}}},
		{name: "a short value is empty", kind: codec.Delta, raw: cat(be32(1), k, be32(7), v[:7], be32(eof)), want: []record{{key: "k"}}},
		{name: "keys repeat", kind: codec.Snapshot, raw: cat(be32(1), k, be32(0), be32(1), k, be32(8), v, be32(eof)), want: []record{{key: "k"}, {key: "k", value: "12345678"}}},
		{name: "records after the EOF record", kind: codec.Delta, raw: cat(be32(eof), be32(1), k, be32(0), be32(eof)), bad: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(test.raw, test.kind, codec.ReaderOptions{})
			if test.bad {
				require.ErrorIs(t, err, core.ErrCorrupt)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestHostileLengthsCostNoMemory(t *testing.T) {
	lz4Block := func(method byte, n, raw uint32) []byte {
		b := append([]byte("LZ4Block"), method|0xf)
		return append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, n), raw), 0), make([]byte, 16)...)
	}
	snappy := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
	for name, raw := range map[string][]byte{
		"key of 2 GiB":                 slices.Concat(be32(0x7fffffff), make([]byte, 8)),
		"key of 127 MiB":               slices.Concat(be32(127<<20), make([]byte, 8)),
		"value of 2 GiB":               slices.Concat(be32(1), []byte("k"), be32(0x7fffffff), make([]byte, 8)),
		"value of 127 MiB":             slices.Concat(be32(1), []byte("k"), be32(127<<20), make([]byte, 8)),
		"lz4 block of 2 GiB":           lz4Block(0x20, 0x7fffffff, 32<<20),
		"lz4 block that holds 32 MiB":  lz4Block(0x20, 16, 32<<20),
		"stored lz4 block of 32 MiB":   lz4Block(0x10, 32<<20, 32<<20),
		"lz4 block of -1":              lz4Block(0x20, 0xffffffff, 0xffffffff),
		"snappy block of 2 GiB":        slices.Concat(snappy, be32(0x7fffffff), make([]byte, 8)),
		"snappy block of -1":           slices.Concat(snappy, be32(0xffffffff), make([]byte, 8)),
		"snappy block that holds 4 GB": slices.Concat(snappy, be32(8), []byte("\xff\xff\xff\xff\x0f\x00\x00\x00")),
		"lzf chunk of 64 KiB":          []byte("ZV\x01\xff\xff\xff\xff\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, parallelism := range []int{1, 2} {
				used := allocated(func() {
					_, err := read(raw, codec.Delta, codec.ReaderOptions{Parallelism: parallelism})
					require.ErrorIs(t, err, core.ErrCorrupt)
				})
				require.Less(t, used, uint64(1<<20))
			}
		})
	}
}

func TestZstdWindowsAreBounded(t *testing.T) {
	// A frame header: single segment off, window log 31, then a raw block of the EOF record.
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, (31 - 10) << 3, 0x21, 0, 0, 0xff, 0xff, 0xff, 0xff}
	used := allocated(func() {
		_, err := read(frame, codec.Delta, codec.ReaderOptions{})
		require.ErrorIs(t, err, core.ErrUnsupportedVersion)
	})
	require.Less(t, used, uint64(1<<20))

	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(16<<20))
	require.NoError(t, err)
	_, err = w.Write(be32(0xffffffff))
	require.NoError(t, err)
	require.NoError(t, w.Flush()) // so that the frame does not know its size
	require.NoError(t, w.Close())
	_, err = read(b.Bytes(), codec.Delta, codec.ReaderOptions{})
	require.ErrorIs(t, err, core.ErrUnsupportedVersion)
	_, err = read(b.Bytes(), codec.Delta, codec.ReaderOptions{MaxWindow: 16 << 20})
	require.NoError(t, err)
}

func TestDecompressionBombsAreBoundedByTheLimit(t *testing.T) {
	for _, c := range []codec.Compression{codec.LZ4, codec.Zstd, codec.Snappy, codec.LZF} {
		b := write(t, codec.Delta, codec.WriterOptions{Compression: c, NoFooter: true}, []record{{key: "k", value: string(make([]byte, 16<<20))}})
		var err error
		used := allocated(func() { _, err = read(b, codec.Delta, codec.ReaderOptions{MaxBytes: 1 << 20}) })
		require.ErrorIs(t, err, core.ErrCorrupt)
		require.ErrorContains(t, err, "limit")
		require.Less(t, used, uint64(12<<20), c)
	}
}

func TestFramingsThatSparkDoesNotReadAreNamed(t *testing.T) {
	for head, name := range map[string]string{
		"\x04\x22\x4d\x18\x60\x40\x82\x00": "LZ4 frame",
		"\xff\x06\x00\x00sNaPpY":           "snappy framing",
		"\x1f\x8b\x08\x00\x00\x00":         "gzip",
	} {
		_, err := read([]byte(head), codec.Delta, codec.ReaderOptions{Name: "/1.delta"})
		require.ErrorIs(t, err, core.ErrUnsupportedVersion)
		require.ErrorContains(t, err, name)
	}
	_, err := read([]byte("\x99 is nothing"), codec.Delta, codec.ReaderOptions{})
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func TestAFileUnderAnotherNameIsFoundByItsFooter(t *testing.T) {
	b := write(t, codec.Delta, codec.WriterOptions{}, nil)
	_, err := read(b, codec.Snapshot, codec.ReaderOptions{})
	require.ErrorIs(t, err, core.ErrCorrupt)
	_, err = read(b, codec.Delta, codec.ReaderOptions{RowChecksum: true})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// flaky fails every read that touches a byte.
type flaky struct {
	b   []byte
	bad int64
}

func (f *flaky) ReadAt(p []byte, off int64) (int, error) {
	if off <= f.bad && f.bad < off+int64(len(p)) {
		return 0, errDisk
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

func TestFailuresToReadAreNotDamage(t *testing.T) {
	r := seeded(t)
	for _, c := range allCompressions {
		b := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, randomRecords(r, codec.Snapshot, 80))
		for _, parallelism := range []int{1, 3} {
			for _, bad := range []int{0, len(b) / 3, len(b) / 2, len(b) - 1} {
				rd, err := codec.NewReader(&flaky{b, int64(bad)}, int64(len(b)), codec.Snapshot, codec.ReaderOptions{Parallelism: parallelism})
				for err == nil {
					_, err = rd.Next()
				}
				require.ErrorIs(t, err, errDisk)
				require.NotErrorIs(t, err, core.ErrCorrupt)
			}
		}
	}
}
