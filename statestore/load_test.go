package statestore_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestADamagedDeltaIsAnErrorEachTimeAndOlderVersionsLoad(t *testing.T) {
	for _, opts := range []statestore.Options{{}, {NoFooter: true}, {Compression: codec.None, NoFooter: true}} {
		fsys := newMem()
		s := openStore(t, fsys, opts)
		var states []state
		for v := range int64(5) {
			states = append(states, state{"k": fmt.Sprintf("%08d", v), "l": "12345678", "m": "abcdefgh"})
			commit(t, s, v, states[v])
		}
		good := read(t, fsys, home+"/5.delta")
		damaged := [][]byte{nil, make([]byte, len(good)), append(append([]byte(nil), good...), 0)}
		for cut := range good {
			damaged = append(damaged, good[:cut])
		}
		whole := 0
		for i, bad := range damaged {
			replace(t, fsys, home+"/5.delta", bad)
			s := openStore(t, fsys, opts)
			if got, err := tryLoad(t, s, 5); err == nil {
				whole++
				require.Equal(t, states[4], got, "only our footer is gone, without which the file is Spark's")
				continue
			}
			for range 2 {
				_, err := s.Load(t.Context(), 5)
				require.ErrorIs(t, err, core.ErrCorrupt, "case %d, %+v", i, opts)
				require.ErrorContains(t, err, "5.delta")
			}
			_, err := s.Begin(t.Context(), 5)
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.Equal(t, states[3], load(t, s, 4))
			problems, err := s.Verify(t.Context())
			require.NoError(t, err)
			require.Len(t, problems, 1)
			require.ErrorIs(t, problems[0].Err, core.ErrCorrupt)
		}
		require.LessOrEqual(t, whole, 1)
		require.True(t, whole == 0 || !opts.NoFooter)
		require.Empty(t, fsys.OpenFiles())
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{CachedVersions: -1})
	states := history(t, s, 0, 2, state{})
	require.NoError(t, s.Snapshot(t.Context(), 2))
	for _, name := range []string{home + "/2.delta", home + "/2.snapshot"} {
		good := read(t, fsys, name)
		for i := range good {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << (i % 8)
			replace(t, fsys, name, bad)
			problems, err := s.Verify(t.Context())
			require.NoError(t, err)
			require.Len(t, problems, 1, "byte %d of %s", i, name)
			require.Equal(t, states[2], load(t, s, 2), "one of the two is good")
		}
		replace(t, fsys, name, good)
	}
}

func TestAMixOfCompressionsLoads(t *testing.T) {
	fsys := newMem()
	want := state{}
	for v := range int64(10) {
		s := openStore(t, fsys, statestore.Options{Compression: codec.Compression(v % 5)})
		want = want.with(fmt.Sprint(v), "12345678")
		commit(t, s, v, want)
		if v%3 == 2 {
			require.NoError(t, s.Snapshot(t.Context(), v+1))
		}
	}
	require.Equal(t, want, load(t, openStore(t, fsys, statestore.Options{}), 10))
}

func TestAPassingErrorIsNeverAnotherVersion(t *testing.T) {
	inner := newMem()
	s := openStore(t, inner, statestore.Options{})
	states := history(t, s, 0, 4, state{})
	require.NoError(t, s.Snapshot(t.Context(), 4))
	for at := 0; ; at++ {
		fsys := faultfs.Wrap(inner, nil)
		s := openStore(t, fsys, statestore.Options{})
		fsys.SetInjector(faultfs.Nth(fsys.Count()+at, faultfs.Fault{Err: core.ErrUnavailable}))
		first := fsys.Count()
		_, err := s.Load(t.Context(), 4)
		if fsys.Count() <= first+at {
			require.NoError(t, err)
			require.Greater(t, at, 2)
			break
		}
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.Zero(t, s.Stats().DamagedFiles, "what cannot be read now is not damaged")
		require.Equal(t, states[4], load(t, s, 4))
	}
}

func TestALoadGoesOnWhenCleanUpTakesAFileFromIt(t *testing.T) {
	inner := newMem()
	opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 2}}
	s := openStore(t, inner, opts)
	states := history(t, s, 0, 6, state{})
	require.NoError(t, s.Snapshot(t.Context(), 3))
	for _, want := range []int64{3, 6} {
		fsys := faultfs.Wrap(inner, nil)
		reader := openStore(t, fsys, opts)
		paused := true
		fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Op == faultfs.OpOpen && paused {
				paused = false
				if want == 6 {
					require.NoError(t, s.Snapshot(t.Context(), 5))
					require.NoError(t, inner.Remove(t.Context(), home+"/3.snapshot"))
					require.NoError(t, inner.Remove(t.Context(), home+"/3.delta"))
				} else {
					require.NoError(t, inner.Rename(t.Context(), home+"/3.snapshot", home+"/moved", core.RenameNoReplace))
				}
			}
			return faultfs.Fault{}
		})
		require.Equal(t, states[want], load(t, reader, want))
		require.False(t, paused)
		if want == 3 {
			require.NoError(t, inner.Rename(t.Context(), home+"/moved", home+"/3.snapshot", core.RenameNoReplace))
		}
	}
	_, err := openStore(t, inner, opts).Load(t.Context(), 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAVersionInMemoryIsNotTakenForAnotherOnDisk(t *testing.T) {
	fsys := newMem()
	p := openStore(t, fsys, statestore.Options{})
	states := history(t, p, 0, 6, state{})
	view, err := p.Load(t.Context(), 6)
	require.NoError(t, err)
	tx := begin(t, p, 6)
	q := openStore(t, fsys, statestore.Options{})
	require.NoError(t, q.Rollback(t.Context(), 5))
	other := states[5].with("common", "other")
	commit(t, q, 5, other)

	require.Equal(t, other, load(t, p, 6), "what is on disk, not what P remembers")
	require.Equal(t, states[6], contents(t, view.All()), "a view does not change")
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
	fresh := openStore(t, fsys, statestore.Options{})
	base := begin(t, fresh, 6)
	require.NoError(t, fsys.Remove(t.Context(), home+"/6.delta"))
	write(t, fsys, home+"/6.delta", deltaOf(t, states[5], states[6]))
	_, err = base.Commit(t.Context())
	var replaced *statestore.ReplacedError
	require.ErrorAs(t, err, &replaced, "a program that knows of no owners has replaced it")

	again := begin(t, fresh, 6)
	put(t, again, "more", "x")
	require.NoError(t, fsys.Remove(t.Context(), home+"/6.delta"))
	write(t, fsys, home+"/6.delta", deltaOf(t, states[5], states[6]))
	_, err = again.Commit(t.Context())
	require.NoError(t, err, "replaced by the same content")
	require.Equal(t, states[6].with("more", "x"), load(t, openStore(t, fsys, statestore.Options{}), 7))
}

// deltaOf is the file that makes to out of from.
func deltaOf(t testing.TB, from, to state) []byte {
	t.Helper()
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	commit(t, s, 0, from)
	commit(t, s, 1, to)
	return read(t, fsys, home+"/2.delta")
}

func TestALaterVersionIsLoadedFromOneInMemory(t *testing.T) {
	inner := newMem()
	states := history(t, openStore(t, inner, statestore.Options{}), 0, 9, state{})
	fsys := faultfs.Wrap(inner, nil)
	s := openStore(t, fsys, statestore.Options{})
	load(t, s, 7)
	var opened []string
	fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpOpen {
			opened = append(opened, c.Name)
		}
		return faultfs.Fault{}
	})
	require.Equal(t, states[9], load(t, s, 9))
	require.Equal(t, []string{home + "/8.delta", home + "/9.delta"}, opened)
	require.Equal(t, states[9], load(t, s, 9))
	require.Len(t, opened, 2)
	require.EqualValues(t, 1, s.Stats().CacheHits)
}

func TestACloseEndsALoadThatHangs(t *testing.T) {
	inner := newMem()
	history(t, openStore(t, inner, statestore.Options{}), 0, 3, state{})
	fsys := faultfs.Wrap(inner, nil)
	s := openStore(t, fsys, statestore.Options{})
	hanging := hangAt(fsys, faultfs.OpOpen)
	failed := make(chan error)
	go func() {
		_, err := s.Load(context.Background(), 3)
		failed <- err
	}()
	<-hanging
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.NoError(t, <-closed)
}
