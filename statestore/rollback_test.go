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
)

func TestRollbackDropsTheVersionsAbove(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	states := history(t, s, 0, 8, state{})
	require.NoError(t, s.Snapshot(t.Context(), 7))
	view, err := s.Load(t.Context(), 8)
	require.NoError(t, err)
	require.NoError(t, s.Rollback(t.Context(), 5))
	require.Len(t, versionFiles(t, fsys), 5)
	require.Equal(t, states[8], contents(t, view.All()))
	_, err = s.Load(t.Context(), 8)
	require.ErrorIs(t, err, fs.ErrNotExist)
	commit(t, s, 5, state{"another": "branch"})
	require.Equal(t, state{"another": "branch"}, load(t, openStore(t, fsys, statestore.Options{}), 6))
	require.NoError(t, s.Rollback(t.Context(), 6), "nothing above")
	require.ErrorIs(t, s.Rollback(t.Context(), 7), fs.ErrNotExist)
	require.ErrorIs(t, s.Rollback(t.Context(), -1), fs.ErrInvalid)
	require.NoError(t, s.Rollback(t.Context(), 0))
	require.Empty(t, versionFiles(t, fsys))
	commit(t, s, 0, state{"from": "scratch"})
	require.EqualValues(t, 3+6, s.Stats().RolledBack)
}

func TestRollbackTakesADamagedEndAway(t *testing.T) {
	fsys := newMem()
	states := history(t, openStore(t, fsys, statestore.Options{}), 0, 5, state{})
	replace(t, fsys, home+"/5.delta", nil)
	s := openStore(t, fsys, statestore.Options{})
	require.NoError(t, s.Rollback(t.Context(), 4))
	commit(t, s, 4, states[5])
	require.Equal(t, states[5], load(t, openStore(t, fsys, statestore.Options{}), 5))
}

func TestARollbackBreaksASnapshotOff(t *testing.T) {
	inner := newMem()
	fsys := faultfs.Wrap(inner, nil)
	s := openStore(t, fsys, statestore.Options{})
	states := history(t, s, 0, 6, state{})
	hanging := hangAt(fsys, faultfs.OpWrite)
	broken := make(chan error)
	go func() { broken <- s.Snapshot(context.Background(), 6) }()
	<-hanging
	require.NoError(t, s.Rollback(t.Context(), 5))
	require.ErrorIs(t, <-broken, core.ErrUnavailable)
	commit(t, s, 5, states[5].with("another", "branch"))
	require.False(t, exists(t, inner, "6.snapshot"))
	require.NoError(t, s.Snapshot(t.Context(), 6))
	require.Equal(t, states[5].with("another", "branch"), load(t, openStore(t, inner, statestore.Options{}), 6))
}

func TestASnapshotOfAVersionThatWasReplacedMeanwhileIsNotPublished(t *testing.T) {
	inner := newMem()
	fsys := faultfs.Wrap(inner, nil)
	s := openStore(t, fsys, statestore.Options{})
	states := history(t, s, 0, 6, state{})
	once := true
	fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpCreate && once { // a program that knows of no owners
			once = false
			replace(t, inner, home+"/6.delta", deltaOf(t, states[5], state{"another": "branch"}))
		}
		return faultfs.Fault{}
	})
	var replaced *statestore.ReplacedError
	require.ErrorAs(t, s.Snapshot(t.Context(), 6), &replaced)
	require.False(t, exists(t, inner, "6.snapshot"))
	require.NoError(t, s.Snapshot(t.Context(), 6))
	require.Equal(t, state{"another": "branch"}, load(t, openStore(t, inner, statestore.Options{}), 6))
}

// A fenced owner that is in the midst of a rollback or of a clean-up deletes nothing of its successor's.
func TestAFencedOwnerDeletesNothing(t *testing.T) {
	for _, what := range []string{"rollback", "clean-up", "snapshot", "repair"} {
		inner := newMem()
		fsys := faultfs.Wrap(inner, nil)
		opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 1}}
		zombie := openStore(t, fsys, opts)
		history(t, zombie, 0, 6, state{})
		require.NoError(t, zombie.Snapshot(t.Context(), 5))
		if what == "repair" {
			damage(t, inner, home+"/5.snapshot")
		} else {
			require.NoError(t, zombie.Snapshot(t.Context(), 6))
			require.NoError(t, inner.Remove(t.Context(), home+"/6.snapshot"))
		}
		successor := openStore(t, inner, opts)
		var before []string
		once := true
		fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Op == faultfs.OpRename && once {
				once = false
				require.NoError(t, successor.Claim(t.Context()))
				before = versionFiles(t, inner)
			}
			return faultfs.Fault{}
		})
		var err error
		switch what {
		case "rollback":
			err = zombie.Rollback(t.Context(), 4)
		case "clean-up":
			_, err = zombie.Cleanup(t.Context())
		case "snapshot":
			err = zombie.Snapshot(t.Context(), 6)
		case "repair":
			_, err = zombie.Repair(t.Context())
		}
		require.ErrorIs(t, err, core.ErrFenced, what)
		require.False(t, once, what)
		require.Equal(t, before, versionFiles(t, inner), what)
	}
}

func TestOfStoresOpenedTogetherOneOwns(t *testing.T) {
	for round := range 100 {
		fsys := newMem()
		history(t, openStore(t, fsys, statestore.Options{}), 0, 1, state{})
		const n = 8
		outcomes := make(chan error, n)
		states := make([]state, n)
		start := make(chan struct{})
		for i := range n {
			s := openStore(t, fsys, statestore.Options{})
			states[i] = state{"who": fmt.Sprint(i)}
			tx := begin(t, s, 1)
			change(t, tx, states[i])
			go func() {
				<-start
				_, err := tx.Commit(context.Background())
				outcomes <- err
			}()
		}
		close(start)
		won := 0
		for range n {
			err := <-outcomes
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, core.ErrFenced, "round %d", round)
		}
		require.LessOrEqual(t, won, 1)
		s := openStore(t, fsys, statestore.Options{})
		latest, err := s.Latest(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1+won, latest)
		if won == 1 {
			require.Contains(t, states, load(t, s, 2))
		}
		commit(t, s, latest, state{})
	}
}

func TestTransactionsOfOneOwnerRaceForAVersion(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	for v := range int64(50) {
		const n = 6
		outcomes := make(chan error, n)
		for i := range n {
			tx := begin(t, s, v)
			put(t, tx, "who", fmt.Sprint(v, " ", i/2)) // two of each content
			go func() {
				_, err := tx.Commit(context.Background())
				outcomes <- err
			}()
		}
		won := 0
		for range n {
			if err := <-outcomes; err == nil {
				won++
			} else {
				var conflict *statestore.ConflictError
				require.ErrorAs(t, err, &conflict)
			}
		}
		require.Equal(t, 2, won, "the first, and the one with equal content")
	}
	require.EqualValues(t, 50, s.Stats().Commits)
	require.Len(t, versionFiles(t, fsys), 50)
}
