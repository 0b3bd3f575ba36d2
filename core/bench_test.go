package core_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// benchLocation is a location with the default options, as a worker resolves it.
func benchLocation(tb testing.TB) *core.Location {
	tb.Helper()
	storage, err := core.NewStorage(memfs.New(memfs.Options{}), "/checkpoints", rigJob, core.Options{})
	require.NoError(tb, err)
	location, err := storage.ResolveLocation(tb.Context(), 7, nil)
	require.NoError(tb, err)
	return location
}

// keepInline is the life of a stream whose state stays inline.
func keepInline(location *core.Location, data []byte) (core.StreamHandle, error) {
	s := location.CreateStateStream(context.Background(), core.Exclusive)
	defer func() { _ = s.Close() }() // nothing that could fail after CloseAndGetHandle
	if _, err := s.Write(data); err != nil {
		return nil, err
	}
	return s.CloseAndGetHandle()
}

// BenchmarkInlineState is a state of 1 KiB from stream to handle.
func BenchmarkInlineState(b *testing.B) {
	b.Run("size=1k", func(b *testing.B) {
		location, data := benchLocation(b), noise(1<<10)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := keepInline(location, data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestInlineStateOfOneKiBTakesThreeAllocations is the stream with its handle, the name and the bytes.
func TestInlineStateOfOneKiBTakesThreeAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own allocations count too")
	}
	location, data := benchLocation(t), noise(1<<10)
	keep := func() {
		if _, err := keepInline(location, data); err != nil {
			t.Error(err)
		}
	}
	const runs = 1000
	keep() // fills the pool of buffers
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	allocations := testing.AllocsPerRun(runs, keep)
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, allocations, 3.0)
	require.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)/(runs+1), uint64(1536))
}
