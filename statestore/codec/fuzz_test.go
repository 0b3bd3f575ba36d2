package codec_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// addSpark seeds a target with small files that Spark wrote.
func addSpark(f *testing.F, suffix string, add func(b []byte)) {
	f.Helper()
	require.NoError(f, filepath.WalkDir(filepath.Join("testdata", "spark", "generated"), func(name string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, suffix) {
			return err
		}
		b, err := os.ReadFile(name)
		if len(b) < 2000 {
			add(b)
		}
		return err
	}))
}

// bounded are options under which no input may need more than a few MiB.
func bounded(sums bool, parallelism int) codec.ReaderOptions {
	return codec.ReaderOptions{RowChecksum: sums, Parallelism: parallelism, MaxBytes: 1 << 20, MaxWindow: 8 << 20}
}

func requireKnownError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion) && !strings.Contains(err.Error(), "row checksums are") {
		t.Fatalf("unexpected error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	add := func(b []byte) { f.Add(b, false, false) }
	addSpark(f, ".delta", add)
	addSpark(f, ".snapshot", func(b []byte) { f.Add(b, true, true) })
	for _, c := range allCompressions {
		add(write(f, codec.Delta, codec.WriterOptions{Compression: c}, []record{{key: "a", value: "12345678"}, {key: "b", removed: true}}))
	}
	f.Fuzz(func(t *testing.T, b []byte, snapshot, sums bool) {
		kind := codec.Delta
		if snapshot {
			kind = codec.Snapshot
		}
		one, errOne := read(b, kind, bounded(sums, 1))
		many, errMany := read(b, kind, bounded(sums, 2))
		require.Equal(t, one, many)
		require.Equal(t, errOne == nil, errMany == nil)
		if errOne != nil {
			requireKnownError(t, errOne)
			return
		}
		again, err := read(write(t, kind, codec.WriterOptions{Compression: codec.None, RowChecksum: sums}, one), kind, bounded(sums, 1))
		require.NoError(t, err)
		require.Equal(t, one, again)
	})
}

func FuzzChangelogReader(f *testing.F) {
	addSpark(f, ".changelog", func(b []byte) { f.Add(b, false) })
	f.Add([]byte("\x00\x02v4\x00\x02[]\x20\x00\x00\x00\x01a\x00\x00\x00\x01b\x00"), false)
	f.Fuzz(func(t *testing.T, b []byte, sums bool) {
		r, err := codec.NewChangelogReader(bytes.NewReader(b), int64(len(b)), bounded(sums, 1))
		if err != nil {
			requireKnownError(t, err)
			return
		}
		defer func() { _ = r.Close() }()
		var out bytes.Buffer
		w, err := codec.NewChangelogWriter(&out, r.Version(), r.Lineage(), codec.WriterOptions{RowChecksum: sums})
		if err != nil { // a lineage that Spark would not write
			w = nil
		}
		n := 0
		for {
			change, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				requireKnownError(t, err)
				return
			}
			n++
			if w != nil {
				require.NoError(t, w.Write(change))
			}
		}
		if w == nil {
			return
		}
		require.NoError(t, w.Close())
		again, err := codec.NewChangelogReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bounded(sums, 1))
		require.NoError(t, err)
		defer func() { _ = again.Close() }()
		for _, err := range again.All() {
			require.NoError(t, err)
			n--
		}
		require.Zero(t, n)
	})
}

func FuzzFooter(f *testing.F) {
	for _, c := range allCompressions {
		f.Add(write(f, codec.Snapshot, codec.WriterOptions{Compression: c}, []record{{key: "a", value: "12345678"}}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		footer, err := codec.ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			requireKnownError(t, err)
		} else if footer != nil {
			require.Less(t, footer.StreamBytes, int64(len(b)))
		}
		if footer, err = codec.ParseFooter(b); err == nil { // without its checksum, which fuzzing does not get past
			require.Equal(t, b, codec.BareFooter(footer))
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("some content, some content, some content"), uint8(0), 100)
	f.Add(make([]byte, 70_000), uint8(2), 65535)
	f.Add([]byte(noise(seeded(f), 20_000)), uint8(0), 0) // in blocks of 64 bytes: some are stored
	f.Fuzz(func(t *testing.T, b []byte, c uint8, blockSize int) {
		opts := codec.WriterOptions{Compression: codec.Compression(c % 5), BlockSize: 64 + (blockSize&0x7fffffff)%65472}
		n := len(b) / 3
		records := []record{{key: string(b[:n]), value: string(b[n : 2*n])}, {key: string(b[2*n:]), removed: true}}
		got, err := read(write(t, codec.Delta, opts, records), codec.Delta, codec.ReaderOptions{})
		require.NoError(t, err)
		require.Equal(t, records, got)

		file := write(t, codec.Snapshot, opts, records[:1])
		opts.Parallelism = 2
		require.True(t, bytes.Equal(file, write(t, codec.Snapshot, opts, records[:1])))
		for _, parallelism := range []int{0, 2} {
			got, err = readBatches(file, codec.ReaderOptions{Parallelism: parallelism, Keep: true})
			require.NoError(t, err)
			require.Equal(t, records[:1], got)
		}
	})
}

func FuzzLZFDecompress(f *testing.F) {
	f.Add([]byte{0x03, 0, 0, 0, 0x20, 0x20, 0x03}, 8)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		_ = codec.LZFDecompress(make([]byte, n&0xffff), b)
		if len(b) > 0 && len(b) <= 65535 {
			packed := codec.LZFCompress(b)
			raw := make([]byte, len(b))
			require.True(t, codec.LZFDecompress(raw, packed))
			require.True(t, bytes.Equal(b, raw))
		}
	})
}
