package ordered_test

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// version is a map and what must be in it.
type version struct {
	m     *ordered.Map
	model map[string]string
}

type entry struct{ key, value string }

// entries collects what an iterator yields.
func entries(seq func(func([]byte, []byte) bool)) []entry {
	var list []entry
	for k, v := range seq {
		list = append(list, entry{string(k), string(v)})
	}
	return list
}

// modelRange is what Range must yield.
func modelRange(model map[string]string, from, to []byte) []entry {
	var list []entry
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if k >= string(from) && (to == nil || k < string(to)) {
			list = append(list, entry{k, model[k]})
		}
	}
	return list
}

func requireSame(t testing.TB, model map[string]string, m *ordered.Map) {
	t.Helper()
	require.NoError(t, m.Check())
	require.Equal(t, len(model), m.Len())
	require.Equal(t, modelRange(model, nil, nil), entries(m.All()))
	var data int64
	for k, v := range model {
		data += int64(len(k) + len(v))
	}
	require.Equal(t, data, m.DataBytes())
}

// shape draws keys and values.
type shape struct {
	name  string
	key   func(r *rand.Rand) []byte
	value func(r *rand.Rand) []byte
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var shapes = []shape{
	{"rows of a long", func(r *rand.Rand) []byte {
		k := make([]byte, 16)
		k[8], k[9] = byte(r.IntN(256)), byte(r.IntN(12))
		return k
	}, func(r *rand.Rand) []byte { return randomBytes(r, 104) }},
	{"words over two letters", func(r *rand.Rand) []byte {
		k := make([]byte, r.IntN(14))
		for i := range k {
			k[i] = "\x00b"[r.IntN(2)]
		}
		return k
	}, func(r *rand.Rand) []byte { return randomBytes(r, 8*r.IntN(5)) }},
	{"a few very long keys", func(r *rand.Rand) []byte {
		return append(bytes.Repeat([]byte{'k'}, []int{1, 300, 5_000, 70_000}[min(r.IntN(4), r.IntN(5))]), byte(r.IntN(30)))
	}, func(r *rand.Rand) []byte { return randomBytes(r, r.IntN(300)) }},
	{"values of all sizes", func(r *rand.Rand) []byte {
		return fmt.Appendf(nil, "user-%05d", r.IntN(1500))
	}, func(r *rand.Rand) []byte {
		return randomBytes(r, []int{0, 1, 127, 128, 1024, 1025, 20_000}[min(r.IntN(8), 6)*(r.IntN(3)+1)/3])
	}},
}

// TestHistories edits versions at random, with forks from any of them. Each keeps its content.
func TestHistories(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			runHistory(t, r, s)
		})
	}
}

func runHistory(t *testing.T, r *rand.Rand, s shape) {
	versions := []version{loaded(t, r, s, r.IntN(2000))}
	var set ordered.Set
	set.Add(versions[0].m)
	members := []*ordered.Map{versions[0].m}
	for range historySessions {
		base := versions[len(versions)-1]
		if r.IntN(4) == 0 {
			base = versions[r.IntN(len(versions))]
		}
		e, model := base.m.Edit(), maps.Clone(base.model)
		for range 1 + r.IntN(2) {
			edit(t, r, s, e, model)
			if r.IntN(3) == 0 {
				editDuringIteration(t, r, s, e, model)
			}
			require.NoError(t, e.Check())
			v := version{e.Freeze(), maps.Clone(model)}
			versions = append(versions, v)
			set.Add(v.m)
			members = append(members, v.m)
			require.Equal(t, ordered.TogetherBytes(members...), set.MemoryBytes(), "after Add")
			for len(members) > 6 || len(members) > 1 && r.IntN(4) == 0 {
				i := r.IntN(len(members))
				if r.IntN(2) == 0 {
					i = 0
				}
				before := set.MemoryBytes()
				freed := set.Remove(members[i])
				members = slices.Delete(members, i, i+1)
				require.Equal(t, ordered.TogetherBytes(members...), set.MemoryBytes(), "after Remove")
				require.Equal(t, before-set.MemoryBytes(), freed)
			}
		}
	}
	for _, v := range versions {
		requireSame(t, v.model, v.m)
		from, to := s.key(r), s.key(r)
		require.Equal(t, modelRange(v.model, from, to), entries(v.m.Range(from, to)))
		other := versions[r.IntN(len(versions))]
		requireDiff(t, v, other)
	}
}

// loaded is a version from a builder or a loader.
func loaded(t *testing.T, r *rand.Rand, s shape, n int) version {
	model := map[string]string{}
	l := ordered.Loader{Parallelism: r.IntN(3)}
	for range n {
		k := s.key(r)
		if r.IntN(10) == 0 {
			l.Remove(k)
			delete(model, string(k))
			continue
		}
		v := s.value(r)
		l.Put(k, v)
		model[string(k)] = string(v)
	}
	v := version{l.Map(), model}
	requireSame(t, model, v.m)
	if r.IntN(2) == 0 {
		var b ordered.Builder
		for k, v := range v.m.All() {
			require.NoError(t, b.Append(k, v))
		}
		v.m = b.Map()
		requireSame(t, model, v.m)
	}
	return v
}

func edit(t *testing.T, r *rand.Rand, s shape, e *ordered.Editor, model map[string]string) {
	removes := r.IntN(3) * 4
	for range r.IntN(300) {
		k := s.key(r)
		_, had := model[string(k)]
		if r.IntN(10) < removes {
			require.Equal(t, had, e.Remove(k))
			delete(model, string(k))
			continue
		}
		v := s.value(r)
		e.Put(k, v)
		model[string(k)] = string(v)
		got, ok := e.Get(k)
		require.True(t, ok)
		require.True(t, bytes.Equal(v, got))
	}
	require.Equal(t, len(model), e.Len())
}

// editDuringIteration changes what an iterator is passing over; it must not notice.
func editDuringIteration(t *testing.T, r *rand.Rand, s shape, e *ordered.Editor, model map[string]string) {
	want := modelRange(model, nil, nil)
	var got []entry
	for k, v := range e.All() {
		if r.IntN(20) == 0 {
			e.Remove(k)
			delete(model, string(k))
		}
		if r.IntN(20) == 0 {
			key, value := s.key(r), s.value(r)
			e.Put(key, value)
			model[string(key)] = string(value)
		}
		got = append(got, entry{string(k), string(v)})
	}
	require.Equal(t, want, got)
}

func requireDiff(t *testing.T, a, b version) {
	t.Helper()
	requireChanges(t, a, b, ordered.Diff(a.m, b.m), true)
	requireChanges(t, a, b, ordered.Delta(a.m, b.m), false)
}

func requireChanges(t *testing.T, a, b version, changes iter.Seq[ordered.Change], withOld bool) {
	t.Helper()
	model := maps.Clone(a.model)
	last := []byte(nil)
	for c := range changes {
		require.True(t, last == nil || bytes.Compare(last, c.Key) < 0)
		last = append([]byte{}, c.Key...)
		old, had := a.model[string(c.Key)]
		now, has := b.model[string(c.Key)]
		kind := map[[2]bool]ordered.ChangeKind{{false, true}: ordered.Added, {true, true}: ordered.Updated, {true, false}: ordered.Removed}[[2]bool{had, has}]
		require.Equal(t, kind, c.Kind)
		if withOld || c.Old != nil {
			require.Equal(t, old, string(c.Old))
		}
		require.Equal(t, now, string(c.New))
		require.False(t, c.Kind == ordered.Updated && old == now)
		if has {
			model[string(c.Key)] = now
		} else {
			delete(model, string(c.Key))
		}
	}
	require.Equal(t, b.model, model)
}
