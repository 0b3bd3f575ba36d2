//go:build !race

package ordered_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// heap returns what is alive on the heap.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestMemory measures what entries of 120 bytes take, after a load and after 500 versions that each overwrite 1 % of them,
// and that accounting says the same. HDFSCKPT_ORDERED_MEMORY=1 does it with a million entries instead of 100,000.
func TestMemory(t *testing.T) {
	n, commits := 100_000, 500
	if os.Getenv("HDFSCKPT_ORDERED_MEMORY") != "" {
		n = 1_000_000
	}
	limit := int64(float64(n) * (1.125*120 + 32))
	before := heap()
	var set ordered.Set
	m := loadRows(n)
	set.Add(m)
	measure := func(name string) int64 {
		used := heap() - before
		t.Logf("%s: %.1f bytes a key; accounted: %.1f", name, float64(used)/float64(n), float64(set.MemoryBytes())/float64(n))
		require.InEpsilon(t, used, set.MemoryBytes(), 0.02, name)
		return used
	}
	require.Less(t, measure("loaded"), limit)

	w := newRows(2)
	versions := []*ordered.Map{m}
	peak := int64(0)
	for i := range commits {
		e := m.Edit()
		for range n / 100 {
			e.Put(w.keyOf(w.r.IntN(n)), w.newValue())
		}
		m = e.Freeze()
		versions = append(versions, m)
		set.Add(m)
		if i == 8 {
			require.Less(t, measure("ten versions after the load"), int64(200*n))
		}
		if len(versions) == 10 {
			set.Remove(versions[0])
			versions[0] = nil
			versions = versions[1:]
		}
		peak = max(peak, m.MemoryBytes())
	}
	t.Logf("the largest version: %.1f bytes a key", float64(peak)/float64(n))
	require.Less(t, peak, limit)
	require.Less(t, measure("nine versions at the end"), int64(200*n))
	for _, v := range versions[:len(versions)-1] {
		set.Remove(v)
	}
	versions = nil
	require.Less(t, measure("one version at the end"), limit)
	runtime.KeepAlive(versions)
	runtime.KeepAlive(m)
}
