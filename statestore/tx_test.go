package statestore_test

import (
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

func begin(t testing.TB, s *statestore.Store, v int64) *statestore.Tx {
	t.Helper()
	tx, err := s.Begin(t.Context(), v)
	require.NoError(t, err)
	return tx
}

func put(t testing.TB, tx *statestore.Tx, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, tx.Put([]byte(pairs[i]), []byte(pairs[i+1])))
	}
}

func TestATransactionSeesItsChangesAndNobodyElseDoes(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	commit(t, s, 0, state{"a": "1", "b": "2"})
	tx, other := begin(t, s, 1), begin(t, s, 1)
	put(t, tx, "c", "3")
	require.NoError(t, tx.Remove([]byte("a")))
	require.NoError(t, tx.Remove([]byte("not there")))
	require.Equal(t, state{"b": "2", "c": "3"}, contents(t, tx.All()))
	require.EqualValues(t, 2, tx.Len())
	require.EqualValues(t, 2, tx.Version())
	_, ok, err := tx.Get([]byte("a"))
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, state{"a": "1", "b": "2"}, contents(t, other.All()))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, state{"a": "1", "b": "2"}, contents(t, other.All()))
	require.Equal(t, state{"a": "1", "b": "2"}, load(t, s, 1))
	require.Equal(t, state{"b": "2", "c": "3"}, load(t, s, 2))
	require.NoError(t, other.Abort())
}

func TestIteratorsSeeTheStateAtTheirCreation(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	tx := begin(t, s, 0)
	put(t, tx, "a", "1", "ab", "2", "b", "3", "\xff", "4", "\xff\xff", "5")
	all, prefix, high, between := tx.All(), tx.Prefix([]byte("a")), tx.Prefix([]byte("\xff")), tx.Range([]byte("ab"), []byte("\xff"))
	put(t, tx, "a", "changed", "aa", "new")
	require.NoError(t, tx.Remove([]byte("b")))
	require.Equal(t, state{"a": "1", "ab": "2", "b": "3", "\xff": "4", "\xff\xff": "5"}, contents(t, all))
	require.Equal(t, state{"a": "1", "ab": "2"}, contents(t, prefix))
	require.Equal(t, state{"\xff": "4", "\xff\xff": "5"}, contents(t, high))
	require.Equal(t, state{"ab": "2", "b": "3"}, contents(t, between))
	n := 0
	for e, err := range tx.All() { // changes during an iteration
		require.NoError(t, err)
		put(t, tx, "z"+string(e.Key), "x")
		n++
	}
	require.Equal(t, 5, n)
	require.EqualValues(t, 10, tx.Len())
	for _, err := range tx.All() {
		require.NoError(t, err)
		break
	}
	require.NoError(t, tx.Abort())
}

func TestPutCopies(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	tx := begin(t, s, 0)
	key, value := []byte("key"), []byte("value")
	require.NoError(t, tx.Put(key, value))
	key[0], value[0] = 'X', 'X'
	require.Equal(t, state{"key": "value"}, contents(t, tx.All()))
	require.NoError(t, tx.Abort())
}

func TestATransactionHasOneEnding(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	tx := begin(t, s, 0)
	put(t, tx, "a", "1")
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Abort(), "a deferred Abort")
	require.NoError(t, tx.Abort())
	require.Equal(t, state{"a": "1"}, load(t, openStore(t, fsys, statestore.Options{}), 1))
	aborted := begin(t, s, 1)
	put(t, aborted, "b", "2")
	require.NoError(t, aborted.Abort())
	for _, over := range []*statestore.Tx{tx, aborted} {
		_, err = over.Commit(t.Context())
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, over.Put([]byte("k"), nil), fs.ErrClosed)
		require.ErrorIs(t, over.Remove([]byte("k")), fs.ErrClosed)
		_, _, err = over.Get([]byte("a"))
		require.ErrorIs(t, err, fs.ErrClosed)
		for _, err := range over.All() {
			require.ErrorIs(t, err, fs.ErrClosed)
		}
	}
	require.Equal(t, []string{"1.delta"}, versionFiles(t, fsys))
	require.Zero(t, s.Stats().OpenTransactions)
}

func TestOfTwoCommitsOfATransactionOneWins(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	for v := range int64(50) {
		tx := begin(t, s, v)
		put(t, tx, "k", string(rune('a'+v)))
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := tx.Commit(t.Context()); err == nil {
					won.Add(1)
				}
				_ = tx.Abort()
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, won.Load())
	}
}

func TestARecommitWithEqualContentSucceedsAndAnyOtherIsAConflict(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	states := history(t, s, 0, 3, nil)
	before := read(t, fsys, home+"/3.delta")
	for _, again := range []*statestore.Store{s, openStore(t, fsys, statestore.Options{Compression: 1})} {
		require.NoError(t, tryCommit(t, again, 2, states[3]))
		var conflict *statestore.ConflictError
		err := tryCommit(t, again, 2, states[3].with("common", "other", "more", "x"))
		require.ErrorAs(t, err, &conflict)
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, statestore.ConflictError{Version: 3, Differences: 2}, *conflict)
		require.Equal(t, before, read(t, fsys, home+"/3.delta"))
		require.Equal(t, states[3], load(t, again, 3))
		require.EqualValues(t, 1, again.Stats().Recommits)
		require.EqualValues(t, 1, again.Stats().Conflicts)
		s2 := again
		var ahead *statestore.AheadError
		require.ErrorAs(t, tryCommit(t, s2, 1, states[2]), &ahead)
		require.Equal(t, []int64{3}, ahead.Above)
	}
	for _, name := range names(t, fsys, home+"/"+statestore.EpochName(2)) {
		if name != "owner" {
			require.Empty(t, names(t, fsys, home+"/"+statestore.EpochName(2)+"/"+name), "no temporary stays")
		}
	}
}

func TestATransactionThatBeganBelowAnAbandonedBranchIsRefused(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	history(t, s, 0, 6, nil)
	_, err := openStore(t, fsys, statestore.Options{}).Begin(t.Context(), 0)
	var ahead *statestore.AheadError
	require.ErrorAs(t, err, &ahead, "a new run on the directory of another")
	require.EqualValues(t, 1, ahead.Version)
	late := begin(t, s, 5)
	put(t, late, "late", "x")
	commit(t, s, 6, state{})
	_, err = late.Commit(t.Context())
	require.ErrorAs(t, err, &ahead)
}

func TestSomethingElseInTheFilesPlace(t *testing.T) {
	for _, content := range []bool{false, true} {
		fsys := newMem()
		s := openStore(t, fsys, statestore.Options{})
		states := history(t, s, 0, 2, nil)
		require.NoError(t, fsys.MkdirAll(t.Context(), home+"/3.delta"))
		if content {
			write(t, fsys, home+"/3.delta/x", nil)
		}
		err := tryCommit(t, s, 2, states[2])
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, "3.delta")
		fresh := openStore(t, fsys, statestore.Options{})
		require.ErrorIs(t, tryCommit(t, fresh, 2, states[2]), fs.ErrExist)
		latest, err := fresh.Latest(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, latest)
		require.Equal(t, states[2], load(t, fresh, 2))
		_, err = fresh.Load(t.Context(), 3)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Empty(t, fsys.OpenFiles())
	}
}

func TestAnOwnersFilesAreHarmlessToSpark(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 1}})
	history(t, s, 0, 3, nil)
	require.NoError(t, s.Maintain(t.Context()))
	damage(t, fsys, home+"/3.snapshot")
	_, err := s.Repair(t.Context())
	require.NoError(t, err)
	for _, name := range versionFiles(t, fsys) {
		_, _, ok := statestore.ParseFileName(name)
		require.True(t, ok || name == "_quarantine", name)
	}
	for info, err := range fsys.List(t.Context(), home) {
		require.NoError(t, err)
		if info.IsDir() {
			require.NotContains(t, info.Name, ".")
		}
	}
	require.NotContains(t, names(t, fsys, home+"/_quarantine")[0], ".")
}

func TestTheCommitOfAnOlderOwnerIsFenced(t *testing.T) {
	fsys := newMem()
	old := openStore(t, fsys, statestore.Options{OwnerName: "old"})
	states := history(t, old, 0, 2, nil)
	zombie := begin(t, old, 2)
	put(t, zombie, "zombie", "x")

	successor := openStore(t, fsys, statestore.Options{OwnerName: "new"})
	unused := openStore(t, fsys, statestore.Options{})
	commit(t, successor, 2, states[2].with("new", "y"))
	_, err := zombie.Commit(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
	require.ErrorIs(t, old.Rollback(t.Context(), 1), core.ErrFenced)
	require.ErrorIs(t, old.Maintain(t.Context()), core.ErrFenced)
	require.ErrorIs(t, tryCommit(t, unused, 3, state{}), core.ErrFenced, "opened before the successor claimed")
	require.Equal(t, states[2].with("new", "y"), load(t, old, 3), "reading goes on")
	require.Equal(t, []string{"1.delta", "2.delta", "3.delta"}, versionFiles(t, fsys))
	commit(t, successor, 3, state{})
	require.Contains(t, string(read(t, fsys, home+"/_epoch-2/owner")), `"owner":"new"`)
}

func TestTheLargestKeyAndValueComeBack(t *testing.T) {
	for _, opts := range []statestore.Options{{MaxBytes: 64}, {MaxBytes: 64, RowChecksum: true}, {MaxBytes: 64, NoFooter: true, RowChecksum: true}} {
		for _, n := range []int{56, 60, 64} {
			fsys := newMem()
			s := openStore(t, fsys, opts)
			want := state{string(make([]byte, n)): string(make([]byte, n&^7)), "removed": ""}
			tx := begin(t, s, 0)
			for k, v := range want {
				if err := tx.Put([]byte(k), []byte(v)); err != nil {
					require.ErrorIs(t, err, fs.ErrInvalid)
					delete(want, k)
				}
			}
			_, err := tx.Commit(t.Context())
			require.NoError(t, err)
			commit(t, s, 1, state{})
			require.NoError(t, s.Snapshot(t.Context(), 1))
			fresh := openStore(t, fsys, opts)
			require.Equal(t, want, load(t, fresh, 1), "%d bytes, %+v", n, opts)
			require.Empty(t, load(t, fresh, 2))
			if n == 56 {
				require.Len(t, want, 2)
			}
		}
	}
}
