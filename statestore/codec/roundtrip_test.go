package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestEveryFileReadsBackAsItWasWritten(t *testing.T) {
	r := seeded(t)
	for _, c := range allCompressions {
		for _, sums := range []bool{false, true} {
			for _, kind := range []codec.Kind{codec.Delta, codec.Snapshot} {
				for _, n := range []int{0, 1, 50} {
					for _, parallelism := range []int{1, 3} {
						name := fmt.Sprintf("%s/sums=%v/%s/%d/parallelism=%d", c, sums, kind, n, parallelism)
						records := randomRecords(r, kind, n)
						noFooter := r.IntN(2) == 0
						t.Run(name, func(t *testing.T) {
							before := runtime.NumGoroutine()
							b := write(t, kind, codec.WriterOptions{Compression: c, RowChecksum: sums, NoFooter: noFooter, Parallelism: parallelism}, records)
							got, err := read(b, kind, codec.ReaderOptions{RowChecksum: sums, Parallelism: parallelism})
							require.NoError(t, err)
							require.Equal(t, records, got)
							requireNoGoroutines(t, before)
							on, known, err := codec.DetectRowChecksum(bytes.NewReader(b), int64(len(b)), kind, codec.ReaderOptions{})
							require.NoError(t, err)
							require.Equal(t, n > 0 || !noFooter, known)
							require.Equal(t, known && sums, on)
							f, err := codec.ReadFooter(bytes.NewReader(b), int64(len(b)))
							require.NoError(t, err)
							require.Equal(t, noFooter, f == nil)
						})
					}
				}
			}
		}
	}
}

func TestBytesDoNotDependOnParallelism(t *testing.T) {
	r := seeded(t)
	records := randomRecords(r, codec.Snapshot, 100)
	for _, c := range allCompressions {
		one := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, records)
		many := write(t, codec.Snapshot, codec.WriterOptions{Compression: c, Parallelism: 4}, records)
		require.True(t, bytes.Equal(one, many), c)
	}
}

func TestEveryBlockSizeReadsBack(t *testing.T) {
	r := seeded(t)
	records := randomRecords(r, codec.Delta, 60)
	for c, sizes := range map[codec.Compression][]int{
		codec.LZ4:    {64, 1000, 1024, 1025, 64 << 10, 1 << 20, 32 << 20},
		codec.Zstd:   {64, 64 << 10, 32 << 20},
		codec.LZF:    {64, 65535},
		codec.Snappy: {64, 1 << 10, 1 << 20},
		codec.None:   {64, 32 << 20},
	} {
		for _, size := range sizes {
			b := write(t, codec.Delta, codec.WriterOptions{Compression: c, BlockSize: size}, records)
			got, err := read(b, codec.Delta, codec.ReaderOptions{})
			require.NoError(t, err, "%s %d", c, size)
			require.Equal(t, records, got, "%s %d", c, size)
		}
	}
}

func TestValuesOfAnyLengthNeedTheFooter(t *testing.T) {
	records := []record{{key: "k", value: "12345678"}, {key: "", value: ""}, {key: "odd", value: "123"}}
	got, err := read(write(t, codec.Delta, codec.WriterOptions{}, records), codec.Delta, codec.ReaderOptions{})
	require.NoError(t, err)
	require.Equal(t, records, got)

	w, err := codec.NewWriter(&bytes.Buffer{}, codec.Delta, codec.WriterOptions{NoFooter: true, Name: "/1.delta"})
	require.NoError(t, err)
	require.ErrorIs(t, w.Put([]byte("odd"), []byte("123")), fs.ErrInvalid)
	require.NoError(t, w.Put([]byte("even"), []byte("12345678")), "the writer goes on")
	require.NoError(t, w.Close())
}

func TestSeekFindsTheFirstRecordAtOrAboveAKey(t *testing.T) {
	r := seeded(t)
	records := randomRecords(r, codec.Snapshot, 300)
	for _, c := range allCompressions {
		for _, parallelism := range []int{1, 2} {
			b := write(t, codec.Snapshot, codec.WriterOptions{Compression: c, RowChecksum: true}, records)
			rd, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), codec.Snapshot, codec.ReaderOptions{RowChecksum: true, Parallelism: parallelism})
			require.NoError(t, err)
			require.True(t, rd.Footer().Sorted)
			require.Greater(t, len(rd.Footer().Index), 2)
			for range 15 {
				key := fmt.Sprintf("%08d", r.IntN(320))
				want := sort.Search(len(records), func(i int) bool { return records[i].key >= key })
				require.NoError(t, rd.Seek([]byte(key)))
				n := 0
				for rec, err := range rd.All() {
					require.NoError(t, err)
					require.Equal(t, records[want+n].key, string(rec.Key))
					require.Equal(t, records[want+n].value, string(rec.Value))
					if n++; n == 20 {
						break
					}
				}
				require.Equal(t, min(20, len(records)-want), n)
			}
			require.NoError(t, rd.Close())
			require.ErrorIs(t, rd.Seek(nil), fs.ErrClosed)
		}
	}
}

func TestSeekIsRefusedWithoutAnIndex(t *testing.T) {
	records := []record{{key: "b", value: ""}, {key: "a", value: ""}}
	for _, opts := range []codec.WriterOptions{{}, {NoFooter: true}} {
		b := write(t, codec.Snapshot, opts, records)
		r, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), codec.Snapshot, codec.ReaderOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, r.Seek([]byte("a")), errors.ErrUnsupported)
		rec, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, "b", string(rec.Key), "the refusal has no effect")
		require.NoError(t, r.Close())
	}
}

func TestIndexStaysSmall(t *testing.T) {
	var first []codec.IndexEntry
	for _, parallelism := range []int{1, 3} {
		w, err := codec.NewWriter(io.Discard, codec.Snapshot, codec.WriterOptions{Compression: codec.Snappy, BlockSize: 1 << 20, Parallelism: parallelism})
		require.NoError(t, err)
		value := make([]byte, 128<<10)
		for i := range 2400 { // 315 MB of zeros
			require.NoError(t, w.Put(fmt.Appendf(nil, "%08d", i), value))
		}
		require.NoError(t, w.Close())
		require.LessOrEqual(t, len(w.Footer().Index), 1025)
		require.Greater(t, len(w.Footer().Index), 500)
		if first == nil {
			first = w.Footer().Index
		}
		require.Equal(t, first, w.Footer().Index)
	}
}

func TestReaderIsOverAfterClose(t *testing.T) {
	b := write(t, codec.Delta, codec.WriterOptions{}, []record{{key: "a"}})
	r, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), codec.Delta, codec.ReaderOptions{Name: "/x/1.delta"})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	_, err = r.Next()
	var pe *fs.PathError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, "/x/1.delta", pe.Path)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// counting counts the reads of a file.
type counting struct {
	bytes.Reader
	reads int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(p, off)
}

func TestASmallFileIsReadAtOnce(t *testing.T) {
	b := write(t, codec.Delta, codec.WriterOptions{}, []record{{key: "a"}})
	src := &counting{Reader: *bytes.NewReader(b)}
	r, err := codec.NewReader(src, int64(len(b)), codec.Delta, codec.ReaderOptions{})
	require.NoError(t, err)
	for _, err := range r.All() {
		require.NoError(t, err)
	}
	require.NoError(t, r.Close())
	require.Equal(t, 1, src.reads)
	_, err = codec.NewReader(src, int64(len(b))+1, codec.Delta, codec.ReaderOptions{})
	require.ErrorIs(t, err, core.ErrCorrupt, "shorter than it said")
}

func TestClosingEarlyStopsTheGoroutines(t *testing.T) {
	r := seeded(t)
	b := write(t, codec.Snapshot, codec.WriterOptions{}, randomRecords(r, codec.Snapshot, 400))
	before := runtime.NumGoroutine()
	for range 20 {
		rd, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), codec.Snapshot, codec.ReaderOptions{Parallelism: 4})
		require.NoError(t, err)
		_, err = rd.Next()
		require.NoError(t, err)
		require.NoError(t, rd.Close())
	}
	requireNoGoroutines(t, before)
}

func TestOptionsReportAllProblems(t *testing.T) {
	_, err := codec.NewWriter(nil, codec.Delta, codec.WriterOptions{Compression: 9, Level: 23, Parallelism: -1, MaxBytes: -1})
	for _, problem := range []string{"compression(9)", "Level 23", "Parallelism -1", "MaxBytes -1"} {
		require.ErrorContains(t, err, problem)
	}
	_, err = codec.NewWriter(nil, codec.Delta, codec.WriterOptions{Compression: codec.LZF, BlockSize: 65536})
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = codec.NewReader(bytes.NewReader(nil), 0, codec.Delta, codec.ReaderOptions{Parallelism: -1, MaxBytes: -1, MaxWindow: 1 << 40})
	for _, problem := range []string{"MaxWindow", "Parallelism -1", "MaxBytes -1"} {
		require.ErrorContains(t, err, problem)
	}
}
