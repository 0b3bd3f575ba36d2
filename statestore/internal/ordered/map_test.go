package ordered_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

func TestTheZeroValuesAreEmpty(t *testing.T) {
	var m ordered.Map
	require.Zero(t, m.Len())
	require.Zero(t, m.DataBytes())
	require.Zero(t, m.MemoryBytes())
	require.Empty(t, entries(m.All()))
	_, ok := m.Get(nil)
	require.False(t, ok)
	require.False(t, m.Edit().Remove([]byte("k")))
	for range ordered.Diff(&m, &m) {
		t.Fatal("a difference")
	}

	var e ordered.Editor
	require.False(t, e.Remove(nil))
	require.Zero(t, e.Freeze().Len())
	e = ordered.Editor{}
	e.Put(nil, nil)
	value, ok := e.Get([]byte{})
	require.True(t, ok)
	require.Empty(t, value)
	require.NotNil(t, value)
	require.Equal(t, []entry{{}}, entries(e.Freeze().All()))

	require.Zero(t, (&ordered.Builder{}).Map().Len())
	require.Zero(t, (&ordered.Loader{Parallelism: 2}).Map().Len())
	var set ordered.Set
	set.Add(&m)
	require.Zero(t, set.Len())
	require.Zero(t, set.Remove(&m))
}

func TestRangeBorders(t *testing.T) {
	e := (&ordered.Map{}).Edit()
	var keys []string
	for i := range 300 {
		k := fmt.Sprintf("%03d", i*2)
		keys = append(keys, k)
		e.Put([]byte(k), nil)
	}
	m := e.Freeze()
	for _, tt := range []struct {
		from, to []byte
		want     []string
	}{
		{nil, nil, keys},
		{[]byte{}, []byte{}, nil},
		{nil, []byte("000"), nil},
		{nil, []byte("0000"), keys[:1]},
		{[]byte("000"), []byte("002"), keys[:1]},
		{[]byte("001"), []byte("005"), keys[1:3]},
		{[]byte("598"), nil, keys[299:]},
		{[]byte("599"), nil, nil},
		{[]byte("400"), []byte("100"), nil},
		{[]byte("101"), []byte("501"), keys[51:251]},
	} {
		var got []string
		for k := range m.Range(tt.from, tt.to) {
			got = append(got, string(k))
		}
		require.Equal(t, tt.want, got, "%q to %q", tt.from, tt.to)
	}
	for k := range m.All() {
		require.Equal(t, "000", string(k))
		break
	}
	for range ordered.Diff(&ordered.Map{}, m) {
		break
	}
}

// TestCopies changes arguments after the call.
func TestCopies(t *testing.T) {
	for name, make := range map[string]func(key, value []byte) func() *ordered.Map{
		"Editor": func(k, v []byte) func() *ordered.Map {
			e := (&ordered.Map{}).Edit()
			e.Put(k, v)
			return e.Freeze
		},
		"Builder": func(k, v []byte) func() *ordered.Map {
			var b ordered.Builder
			require.NoError(t, b.Append(k, v))
			return b.Map
		},
		"Loader": func(k, v []byte) func() *ordered.Map {
			var l ordered.Loader
			l.Put(k, v)
			return l.Map
		},
	} {
		for _, size := range []int{5, 5000} {
			k, v := []byte("key"), bytes.Repeat([]byte("v"), size)
			done := make(k, v)
			k[0], v[0] = 'x', 'x'
			require.Equal(t, []entry{{"key", string(bytes.Repeat([]byte("v"), size))}}, entries(done().All()), name)
		}
	}
}

// TestAliases: what Get gave out stays, whatever the editor does, and cannot be appended to in place.
func TestAliases(t *testing.T) {
	e := loadRows(1000).Edit()
	w := newRows(9)
	key := bytes.Clone(w.keyOf(7))
	var got, want [][]byte
	for range 50 {
		v, ok := e.Get(key)
		require.True(t, ok)
		require.Equal(t, len(v), cap(v))
		got, want = append(got, v), append(want, bytes.Clone(v))
		e.Put(key, w.newValue())
		for range 20 {
			e.Put(w.keyOf(w.r.IntN(1000)), w.newValue())
		}
	}
	require.Equal(t, want, got)
}

func TestBuilderRefusesKeysOutOfOrder(t *testing.T) {
	var b ordered.Builder
	require.NoError(t, b.Append([]byte("b"), []byte("1")))
	require.ErrorIs(t, b.Append([]byte("b"), []byte("2")), fs.ErrInvalid)
	require.ErrorIs(t, b.Append([]byte("a"), []byte("2")), fs.ErrInvalid)
	require.NoError(t, b.Append([]byte("b\x00"), []byte("3")))
	for i := range 1000 {
		require.NoError(t, b.Append(fmt.Appendf(nil, "c%04d", i), nil))
		require.ErrorIs(t, b.Append([]byte("b1"), nil), fs.ErrInvalid)
	}
	m := b.Map()
	require.NoError(t, m.Check())
	require.Equal(t, 1002, m.Len())
	require.Zero(t, b.Map().Len(), "Map empties the builder")
	require.NoError(t, b.Append([]byte("a"), nil))
}

// TestLoader compares with a plain map: distributions of keys, repeated and removed ones, with and without goroutines.
func TestLoader(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for name, key := range map[string]func(i int) []byte{
		"ascending":      func(i int) []byte { return fmt.Appendf(nil, "%08d", i) },
		"descending":     func(i int) []byte { return fmt.Appendf(nil, "%08d", 1_000_000-i) },
		"random":         func(int) []byte { return randomBytes(r, 16) },
		"one head":       func(int) []byte { return fmt.Appendf(nil, "a%020d", r.IntN(30_000)) },
		"short and long": func(int) []byte { return bytes.Repeat([]byte{'a'}, r.IntN(300)) },
		"one key":        func(int) []byte { return []byte("k") },
	} {
		for _, parallelism := range []int{0, 3} {
			l := ordered.Loader{Parallelism: parallelism}
			for range loaderRounds { // the second time it was emptied
				model := map[string]string{}
				for i := range loaderCalls {
					k, v := key(i), randomBytes(r, r.IntN(20))
					l.Put(k, v)
					model[string(k)] = string(v)
					if r.IntN(8) == 0 {
						k = key(r.IntN(i + 1))
						l.Remove(k)
						delete(model, string(k))
					}
				}
				m := l.Map()
				require.NoError(t, m.Check(), name)
				require.Len(t, model, m.Len(), name)
				require.Equal(t, modelRange(model, nil, nil), entries(m.All()), name)
			}
		}
	}
}

// TestPutShared reads records out of content, between calls that copy.
func TestPutShared(t *testing.T) {
	var l ordered.Loader
	l.Put([]byte("b"), []byte("first"))
	content := []byte("..\x00\x00\x00\x01a\x00\x00\x00\x0esumm01234567..\x00\x00\x00\x01b\x00\x00\x00\x04summ")
	l.PutShared(content, []uint32{2, uint32(bytes.Index(content, []byte("\x00\x00\x00\x01b")))}, 4, 8)
	l.Put([]byte("c"), []byte("123456789"))
	require.Equal(t, []entry{{"a", "01234567"}, {"b", ""}, {"c", "123456789"}}, entries(l.Map().All()))
}

// TestReadersBesideAnEditor is for the race detector: versions are read while the next ones are made of them.
func TestReadersBesideAnEditor(t *testing.T) {
	w := newRows(3)
	m := loadRows(5000)
	versions := make(chan *ordered.Map, 64)
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			r := newRows(uint64(i))
			for v := range versions {
				n, last := 0, []byte(nil)
				for k := range v.All() {
					if last != nil && bytes.Compare(last, k) >= 0 {
						t.Error("keys do not ascend")
					}
					last = k
					n++
				}
				if n != v.Len() {
					t.Errorf("%d entries, not %d", n, v.Len())
				}
				for range 200 {
					v.Get(r.keyOf(r.r.IntN(6000)))
				}
				v.Edit().Put(r.keyOf(1), nil)
			}
		})
	}
	for range 40 {
		e := m.Edit()
		for range 100 {
			e.Put(w.keyOf(w.r.IntN(6000)), w.newValue())
			e.Remove(w.keyOf(w.r.IntN(6000)))
		}
		m = e.Freeze()
		versions <- m
		versions <- m
	}
	close(versions)
	group.Wait()
}

func TestSizeClassesAreThoseOfTheAllocator(t *testing.T) {
	classes := ordered.SizeClasses()
	require.True(t, slices.IsSorted(classes))
	for n := 1; n < 70_000; n += 1 + n/200 {
		require.Equal(t, cap(append([]byte(nil), make([]byte, n)...)), ordered.ClassOf(n), "%d bytes", n)
	}
}

// FuzzEditor plays a string of operations on an editor and on a plain map.
func FuzzEditor(f *testing.F) {
	f.Add([]byte("pap1pbr1raf0"))
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 60))
	seed := rand.New(rand.NewPCG(1, 2))
	f.Add(randomBytes(seed, 3000))
	f.Fuzz(func(t *testing.T, ops []byte) {
		versions := []version{{&ordered.Map{}, map[string]string{}}}
		e, model := versions[0].m.Edit(), map[string]string{}
		for len(ops) >= 3 {
			op, a, b := ops[0], ops[1], ops[2]
			ops = ops[3:]
			key := append(bytes.Repeat([]byte{a & 3}, int(b&7)), a, b>>4)
			switch op % 8 {
			default:
				value := bytes.Repeat([]byte{b}, int(op)*int(a)/8)
				e.Put(key, value)
				model[string(key)] = string(value)
			case 5, 6:
				_, had := model[string(key)]
				require.Equal(t, had, e.Remove(key))
				delete(model, string(key))
			case 7:
				versions = append(versions, version{e.Freeze(), maps.Clone(model)})
				if a&1 == 0 {
					from := versions[int(b)%len(versions)]
					e, model = from.m.Edit(), maps.Clone(from.model)
				}
			}
		}
		versions = append(versions, version{e.Freeze(), model})
		for i, v := range versions {
			requireSame(t, v.model, v.m)
			requireDiff(t, versions[0], v)
			requireDiff(t, v, versions[i*7%len(versions)])
		}
	})
}
