package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

var allCompressions = []codec.Compression{codec.LZ4, codec.Zstd, codec.LZF, codec.Snappy, codec.None}

// record is codec.Record without its reuse of buffers.
type record struct {
	key, value string
	removed    bool
}

func write(t testing.TB, kind codec.Kind, opts codec.WriterOptions, records []record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := codec.NewWriter(&b, kind, opts)
	require.NoError(t, err)
	for _, r := range records {
		if r.removed {
			require.NoError(t, w.Remove([]byte(r.key)))
		} else {
			require.NoError(t, w.Put([]byte(r.key), []byte(r.value)))
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func read(b []byte, kind codec.Kind, opts codec.ReaderOptions) ([]record, error) {
	r, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), kind, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var records []record
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, record{string(rec.Key), string(rec.Value), rec.Removed})
	}
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// noise is half random and half zeros, so that it both compresses and does not.
func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b[:n/2] {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// randomRecords have sizes around the borders of blocks and chunks; snapshots get ascending keys and no removals.
func randomRecords(r *rand.Rand, kind codec.Kind, n int) []record {
	sizes := []int{0, 8, 16, 24, 104, 256, 4080, 32760, 32768, 65528, 65536, 102400}
	var records []record
	for i := range n {
		rec := record{key: fmt.Sprintf("%08d%s", i, noise(r, r.IntN(24)))}
		if kind == codec.Delta && r.IntN(4) == 0 {
			rec.removed = true
		} else {
			rec.value = noise(r, sizes[min(r.IntN(40), r.IntN(len(sizes)))])
		}
		records = append(records, rec)
	}
	return records
}

// requireNoGoroutines fails if more goroutines run than before for longer than a moment.
func requireNoGoroutines(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched() // a goroutine that was waited for may not be gone yet
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
