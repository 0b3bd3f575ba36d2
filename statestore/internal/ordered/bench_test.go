package ordered_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// rows are entries as a stateful query has them: the key a row of one long, 16 bytes; the value a row of 104 bytes, of which
// 84 are noise.
type rows struct {
	r     *rand.Rand
	key   [16]byte
	value [104]byte
}

func newRows(seed uint64) *rows {
	w := &rows{r: rand.New(rand.NewPCG(seed, 0))}
	w.value[8], w.value[12] = 84, 16
	return w
}

// keyOf returns key number i, as Spark writes a long.
func (w *rows) keyOf(i int) []byte {
	binary.LittleEndian.PutUint64(w.key[8:], uint64(i))
	return w.key[:]
}

func (w *rows) newValue() []byte {
	for j := 16; j < 96; j += 8 {
		binary.LittleEndian.PutUint64(w.value[j:], w.r.Uint64())
	}
	return w.value[:]
}

// loadRows makes a version of n rows; keys come in the order of their numbers, which is none of their bytes.
func loadRows(n int) *ordered.Map {
	w := newRows(1)
	l := ordered.Loader{Parallelism: 2}
	for i := range n {
		l.Put(w.keyOf(i), w.newValue())
	}
	return l.Map()
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			m, w := loadRows(n), newRows(2)
			for b.Loop() {
				if _, ok := m.Get(w.keyOf(w.r.IntN(n))); !ok {
					b.Fatal("a key is missing")
				}
			}
		})
	}
}

// BenchmarkCommit overwrites 10,000 random keys of each version.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			if n > 1_000_000 && testing.Short() {
				b.Skip("takes 1.5 GB")
			}
			m, w := loadRows(n), newRows(2)
			b.ReportAllocs()
			for b.Loop() {
				e := m.Edit()
				for range 10_000 {
					e.Put(w.keyOf(w.r.IntN(n)), w.newValue())
				}
				m = e.Freeze()
			}
		})
	}
}

// BenchmarkSlidingWindow commits 10,000 new keys on a million, and removes the oldest 10,000.
func BenchmarkSlidingWindow(b *testing.B) {
	const n = 1_000_000
	m, w := loadRows(n), newRows(2)
	first := 0
	b.ReportAllocs()
	for b.Loop() {
		e := m.Edit()
		for i := range 10_000 {
			e.Put(w.keyOf(first+n+i), w.newValue())
			e.Remove(w.keyOf(first + i))
		}
		first += 10_000
		m = e.Freeze()
	}
}

func BenchmarkBuild(b *testing.B) {
	const n = 1_000_000
	w := newRows(1)
	type pair struct{ key, value []byte }
	sorted := make([]pair, n)
	data := make([]byte, 0, n*120)
	for i := range sorted {
		data = append(data, w.newValue()...)
		data = binary.BigEndian.AppendUint64(data, 0)
		data = binary.BigEndian.AppendUint64(data, uint64(i))
		at := data[len(data)-120:]
		sorted[i] = pair{at[104:], at[:104]}
	}
	shuffled := make([]pair, n)
	for i, j := range rand.New(rand.NewPCG(3, 0)).Perm(n) {
		shuffled[i] = sorted[j]
	}
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			var builder ordered.Builder
			for _, p := range sorted {
				if err := builder.Append(p.key, p.value); err != nil {
					b.Fatal(err)
				}
			}
			builder.Map()
		}
	})
	for _, order := range []struct {
		name  string
		pairs []pair
	}{{"sorted", sorted}, {"unsorted", shuffled}} {
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("load/%s/parallelism=%d", order.name, parallelism), func(b *testing.B) {
				for b.Loop() {
					l := ordered.Loader{Parallelism: parallelism}
					for _, p := range order.pairs {
						l.Put(p.key, p.value)
					}
					l.Map()
				}
			})
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	const n = 1_000_000
	m, w := loadRows(n), newRows(2)
	e := m.Edit()
	for range 10_000 {
		e.Put(w.keyOf(w.r.IntN(n)), w.newValue())
	}
	next := e.Freeze()
	for b.Loop() {
		count := 0
		for range ordered.Diff(m, next) {
			count++
		}
		if count < 9_900 {
			b.Fatal(count)
		}
	}
}
