package ops

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestPathMapReplacesWholeComponentsOnce(t *testing.T) {
	var m PathMap
	for _, sides := range [][2]string{
		{"file:///old/", "hdfs://ns1/new"}, {"hdfs://ns1/new", "file:/never"}, {"file:/old/deeper", "file:/never"}, {"s3://b/", "file:/"},
	} {
		mapping, err := NewMapping(sides[0], sides[1])
		require.NoError(t, err)
		m = append(m, mapping)
	}
	for recorded, want := range map[string]string{
		"file:/old/a/b":      "hdfs://ns1/new/a/b",
		"file:/old":          "hdfs://ns1/new",
		"file:/old/deeper/x": "hdfs://ns1/new/deeper/x",
		"file:/older/a":      "file:/older/a",
		"file:/x/old/a":      "file:/x/old/a",
		"s3://b/k/a":         "file:/k/a",
		"s3://bb/a":          "s3://bb/a",
	} {
		require.Equal(t, want, m.Map(recorded))
	}
	require.Equal(t, "file:/a", PathMap(nil).Map("file:/a"))
	for _, bad := range []string{"", "relative", "/no/scheme", "hdfs:x"} {
		_, err := NewMapping(bad, "file:/a")
		require.ErrorIs(t, err, fs.ErrInvalid, bad)
		_, err = NewMapping("file:/a", bad)
		require.ErrorIs(t, err, fs.ErrInvalid, bad)
	}
}

func TestEachIsBoundedAndStopsWithTheContext(t *testing.T) {
	var running, most, done atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	each(t.Context(), 3, 100, func(int) {
		n := running.Add(1)
		for {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		if n == 3 {
			once.Do(func() { close(full) })
		}
		<-full // until three run at the same time
		done.Add(1)
		running.Add(-1)
	})
	require.Equal(t, int32(100), done.Load())
	require.Equal(t, int32(3), most.Load())

	ctx, cancel := context.WithCancel(t.Context())
	done.Store(0)
	each(ctx, 2, 1000, func(int) {
		if done.Add(1) == 10 {
			cancel()
		}
	})
	require.Less(t, done.Load(), int32(1000))
}

func TestObjectsWithOtherChecksumsAreOtherTargets(t *testing.T) {
	sums := func(values ...uint32) *core.Checksums { return &core.Checksums{ChunkSize: 1 << 20, Sums: values} }
	a := core.Object{Path: "file:/a", Size: 5, Checksums: sums(1, 2)}
	same := a
	same.Checksums = sums(1, 2)
	longer := a
	longer.AtLeast = 1
	require.Equal(t, newTargetKey(a), newTargetKey(same), "the same checksums read from two checkpoints")
	require.NotEqual(t, newTargetKey(a), newTargetKey(longer), "a merged file may be long enough for one checkpoint only")
	for _, change := range []func(*core.Object){
		func(o *core.Object) { o.Path = "file:/b" },
		func(o *core.Object) { o.Size = 6 },
		func(o *core.Object) { o.FlagByte = true },
		func(o *core.Object) { o.Checksums = sums(1, 3) },
		func(o *core.Object) { o.Checksums = nil },
		func(o *core.Object) { o.Segments = []core.Segment{{Offset: 1}} },
	} {
		other := a
		change(&other)
		require.NotEqual(t, newTargetKey(a), newTargetKey(other))
	}
}
