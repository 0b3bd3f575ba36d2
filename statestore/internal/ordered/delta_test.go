package ordered_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// loadedAndPut are versions of n keys: one with packed values, one with an object for each.
func loadedAndPut(n int) map[string]*ordered.Map {
	var (
		l ordered.Loader
		e ordered.Editor
	)
	for i := range n {
		l.Put(fmt.Appendf(nil, "key %04d", i), fmt.Appendf(nil, "value %04d", i))
		e.Put(fmt.Appendf(nil, "key %04d", i), fmt.Appendf(nil, "value %04d", i))
	}
	return map[string]*ordered.Map{"loaded": l.Map(), "put": e.Freeze()}
}

func keysOf(a, b *ordered.Map) (keys []string) {
	for c := range ordered.Delta(a, b) {
		keys = append(keys, string(c.Key))
	}
	return keys
}

func TestAPutOfWhatIsThereChangesNothing(t *testing.T) {
	for name, m := range loadedAndPut(1000) {
		e := m.Edit()
		e.Put([]byte("key 0500"), []byte("value 0500"))
		require.Zero(t, e.AddedBytes(), name)
		require.Empty(t, keysOf(m, e.Freeze()), name)
	}
}

func TestADeltaHasNetChangesOnly(t *testing.T) {
	for name, m := range loadedAndPut(1000) {
		e := m.Edit()
		e.Put([]byte("key 0500"), []byte("another"))
		e.Put([]byte("key 0501"), []byte("another"))
		e.Put([]byte("key 0500"), []byte("value 0500"))
		e.Put([]byte("key 0502"), []byte("another"))
		for range e.All() { // a copy of the leaf knows it too
			break
		}
		e.Put([]byte("key 0503"), []byte("another"))
		e.Put([]byte("key 0502"), []byte("value 0502"))
		next := e.Freeze()
		require.Equal(t, []string{"key 0501", "key 0503"}, keysOf(m, next), name)

		e.Put([]byte("key 0501"), []byte("value 0501"))
		require.Equal(t, []string{"key 0501"}, keysOf(next, e.Freeze()), "the next session begins anew")
	}
}

// Values that move out of a block that is worn have changed their place only.
func TestADeltaPassesOverWhatHasMoved(t *testing.T) {
	m := loadedAndPut(1000)["loaded"]
	e := m.Edit()
	var want []string
	for i := 0; i < 1000; i += 3 {
		e.Put(fmt.Appendf(nil, "key %04d", i), []byte("other"))
		want = append(want, fmt.Sprintf("key %04d", i))
	}
	next := e.Freeze()
	require.NoError(t, next.Check())
	require.Equal(t, want, keysOf(m, next))
}

func TestADeltaOfStrangersIsTheirDifference(t *testing.T) {
	m := loadedAndPut(1000)["loaded"]
	a, b := m.Edit(), m.Edit()
	a.Put([]byte("key 0001"), []byte("of a"))
	b.Put([]byte("key 0002"), []byte("of b"))
	require.Equal(t, []string{"key 0001", "key 0002"}, keysOf(a.Freeze(), b.Freeze()))
}

func TestTouchLeavesEverythingAsItIs(t *testing.T) {
	var keys [][]byte
	for _, key := range []string{"", "k", "key 0500", "key 9", "zzz", "key 0500 and more"} {
		keys = append(keys, []byte(key))
	}
	for len(keys) < 2*ordered.Ahead {
		keys = append(keys, fmt.Appendf(nil, "key %04d", len(keys)))
	}
	(&ordered.Map{}).Touch(keys)
	for name, m := range loadedAndPut(5000) {
		m.Touch(nil)
		m.Touch(keys)
		require.NoError(t, m.Check(), name)
		require.Equal(t, 5000, m.Len(), name)
	}
}

// history is versions of one line and of a branch, with what they hold.
type history struct {
	maps   []*ordered.Map
	models []map[string]string
}

func (h *history) edit(from int, change func(put func(i int, value string), remove func(i int))) {
	e, model := h.maps[from].Edit(), maps.Clone(h.models[from])
	key := func(i int) string { return fmt.Sprintf("key %05d", i) }
	change(func(i int, value string) {
		e.Put([]byte(key(i)), []byte(value))
		model[key(i)] = value
	}, func(i int) {
		e.Remove([]byte(key(i)))
		delete(model, key(i))
	})
	h.maps, h.models = append(h.maps, e.Freeze()), append(h.models, model)
}

// changes is what a comparison of two models says, in its order.
func changes(a, b map[string]string) (list []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		old, was := a[key]
		now, is := b[key]
		switch {
		case !was:
			list = append(list, fmt.Sprint(ordered.Added, key, now))
		case !is:
			list = append(list, fmt.Sprint(ordered.Removed, key))
		case old != now:
			list = append(list, fmt.Sprint(ordered.Updated, key, now))
		}
	}
	return list
}

func TestTreesOfAllShapesAreCompared(t *testing.T) {
	const n = 2 * 8000 // three levels
	h := history{maps: []*ordered.Map{{}}, models: []map[string]string{{}}}
	h.edit(0, func(put func(int, string), _ func(int)) { // 1: every second key
		for i := 0; i < n; i += 2 {
			put(i, "")
		}
	})
	h.edit(1, func(put func(int, string), _ func(int)) { // 2: overwritten here and there, so that nodes stand where they did
		for i := 0; i < n; i += 200 {
			put(i, "other")
		}
	})
	h.edit(2, func(put func(int, string), _ func(int)) { // 3: overwritten and inserted, so that nodes are split
		for i := 0; i < n; i += 6 {
			put(i, "another")
		}
		for i := 1; i < n/8; i += 2 {
			put(i, "new")
		}
	})
	h.edit(3, func(_ func(int, string), remove func(int)) { // 4: so little left that the tree is lower
		for i := range n - 50 {
			remove(i)
		}
	})
	h.edit(1, func(put func(int, string), remove func(int)) { // 5: a branch, with removals
		for i := 0; i < n; i += 10 {
			remove(i)
		}
		put(n+1, "behind all")
	})
	for i, a := range h.maps {
		for j, b := range h.maps {
			for name, compare := range map[string]func(a, b *ordered.Map) iter.Seq[ordered.Change]{"diff": ordered.Diff, "delta": ordered.Delta} {
				var got []string
				for c := range compare(a, b) {
					text := fmt.Sprint(c.Kind, string(c.Key))
					if c.Kind != ordered.Removed {
						text = fmt.Sprint(c.Kind, string(c.Key), string(c.New))
					}
					got = append(got, text)
				}
				require.Equal(t, changes(h.models[i], h.models[j]), got, "%s of %d and %d", name, i, j)
			}
		}
	}
}
