package statestore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Puts and removals of a transaction are made in groups. Nobody may notice.
func TestATransactionSeesEveryChangeAtOnce(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	commit(t, s, 0, state{"a": "1", "b": "2"})
	tx, err := s.Begin(t.Context(), 1)
	require.NoError(t, err)
	key, value := []byte("k"), []byte("v")
	require.NoError(t, tx.Put(key, value))
	key[0], value[0] = 'x', 'x' // both were copied
	require.EqualValues(t, 3, tx.Len())
	require.NoError(t, tx.Remove([]byte("a")))
	got, ok, err := tx.Get([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "v", string(got))
	_, ok, err = tx.Get([]byte("a"))
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, tx.Put([]byte("c"), nil))
	before := tx.All()
	require.NoError(t, tx.Put([]byte("d"), []byte("later")))
	require.Equal(t, state{"b": "2", "c": "", "k": "v"}, contents(t, before), "the state when All was called")
	require.NoError(t, tx.Remove([]byte("none")))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, state{"b": "2", "c": "", "d": "later", "k": "v"}, load(t, s, 2))
}

func TestChangesOfOneKeyAreMadeInTheirOrder(t *testing.T) {
	large := strings.Repeat("large value ", 2000) // does not wait
	for _, n := range []int{1, 2, 31, 32, 33, 64, 100} {
		s := openStore(t, newMem(), statestore.Options{})
		tx, err := s.Begin(t.Context(), 0)
		require.NoError(t, err)
		want := state{}
		for i := range n {
			key := fmt.Sprint("key ", i%3)
			switch i % 5 {
			case 1:
				require.NoError(t, tx.Remove([]byte(key)))
				delete(want, key)
			case 3:
				require.NoError(t, tx.Put([]byte(key), []byte(large)))
				want[key] = large
			default:
				want[key] = fmt.Sprint("value ", i)
				require.NoError(t, tx.Put([]byte(key), []byte(want[key])))
			}
		}
		require.EqualValues(t, len(want), tx.Len())
		_, err = tx.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, load(t, s, 1), "%d changes", n)
	}
}

func TestADeltaHasOnlyWhatDiffersInTheEnd(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	start := state{}
	for i := range 200 {
		start[fmt.Sprintf("key %03d", i)] = "12345678"
	}
	commit(t, s, 0, start)
	tx, err := s.Begin(t.Context(), 1)
	require.NoError(t, err)
	for i := range 100 {
		key := fmt.Appendf(nil, "key %03d", i)
		require.NoError(t, tx.Put(key, []byte("another.")))
		if i != 50 {
			require.NoError(t, tx.Put(key, []byte("12345678")))
		}
	}
	require.NoError(t, tx.Put([]byte("key 150"), []byte("12345678")))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	f, err := fsys.Open(t.Context(), home+"/2.delta")
	require.NoError(t, err)
	footer, err := codec.ReadFooter(f, f.Size())
	require.NoError(t, err)
	require.EqualValues(t, 1, footer.Puts)
	require.Zero(t, footer.Removals)
	require.NoError(t, f.Close())
}
