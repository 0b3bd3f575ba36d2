package ordered_test

import (
	"fmt"
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
