package statestore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// faulty runs one fixed history in which one call fails.
type faulty struct {
	t     *testing.T
	inner *memfs.FS
	fsys  *faultfs.FS
	at    int
	log   bytes.Buffer
	store *statestore.Store
	opts  statestore.Options

	versions []state // acknowledged
	surfaced bool
}

func newFaulty(t *testing.T, at int, after bool) *faulty {
	f := &faulty{t: t, inner: newMem(), at: at, versions: []state{{}}}
	f.opts = statestore.Options{
		Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}, Cleanup: statestore.CleanupPolicy{Retain: 2}, CachedVersions: -1,
	}
	f.versions = append(f.versions, history(t, openStore(t, f.inner, f.opts), 0, 5, state{})[1:]...)
	write(t, f.inner, home+"/1.delta.crc", nil)
	write(t, f.inner, home+"/6.delta.crc", nil)
	f.opts.Logger = slog.New(slog.NewTextHandler(&f.log, nil))
	f.fsys = faultfs.Wrap(f.inner, faultfs.Nth(at, faultfs.Fault{Err: faultfs.ErrInjected, After: after}))
	return f
}

func (f *faulty) hit() bool { return f.fsys.Count() > f.at }

// do is tried until it succeeds, as a job does that repeats a batch. An error must be the injected one.
func (f *faulty) do(what string, try func() error) {
	for range 3 {
		err := try()
		if err == nil {
			return
		}
		require.ErrorIs(f.t, err, faultfs.ErrInjected, "%s with call %d failing", what, f.at)
		require.False(f.t, f.surfaced, "one failure surfaces once: %s", what)
		f.surfaced = true
	}
	require.Fail(f.t, "a repetition does not succeed", "%s with call %d failing: %+v", what, f.at, f.fsys.Calls()[f.at])
}

func (f *faulty) run() {
	t := f.t
	f.do("open", func() (err error) {
		f.store, err = statestore.Open(t.Context(), f.fsys, home, f.opts)
		return err
	})
	commit := func(base int64, made state) {
		f.do("commit", func() error { return tryCommit(t, f.store, base, made) })
		f.versions = append(f.versions[:base+1], made)
		f.checkAcknowledged()
	}
	commit(5, state{"a": "1"})
	commit(6, state{"a": "2", "b": "3"})
	f.do("maintain", func() error { return f.store.Maintain(t.Context()) })
	f.checkAcknowledged()
	f.do("recommit", func() error { return tryCommit(t, f.store, 6, f.versions[7]) })
	f.do("rollback", func() error { return f.store.Rollback(t.Context(), 6) })
	f.versions = f.versions[:7]
	f.checkAcknowledged()
	commit(6, state{"c": "4"})
	f.do("load", func() error {
		got, err := tryLoad(t, f.store, 7)
		if err == nil {
			require.Equal(t, f.versions[7], got)
		}
		return err
	})
	f.damageAndRepair()
	require.NoError(t, f.store.Close())
	f.surfaced = f.surfaced || bytes.Contains(f.log.Bytes(), []byte(faultfs.ErrInjected.Error()))
	require.Empty(t, f.inner.OpenFiles())
}

func (f *faulty) damageAndRepair() {
	t := f.t
	f.do("snapshot", func() error { return f.store.Snapshot(t.Context(), 7) })
	damage(t, f.inner, home+"/7.snapshot")
	f.do("repair", func() error {
		_, err := f.store.Repair(t.Context())
		return err
	})
	f.checkAcknowledged()
}

// checkAcknowledged loads what must be there past the faults.
func (f *faulty) checkAcknowledged() {
	s := openStore(f.t, f.inner, f.opts)
	latest, err := s.Latest(f.t.Context())
	require.NoError(f.t, err)
	require.EqualValues(f.t, len(f.versions)-1, latest)
	for v := latest - 1; v <= latest; v++ {
		require.Equal(f.t, f.versions[v], load(f.t, s, v))
	}
}

// Every call of a history fails once. Either the error surfaces, or nothing depended on the call; what was acknowledged stays.
func TestEveryFailureSurfacesAndNothingAcknowledgedIsLost(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 0; ; at++ {
			f := newFaulty(t, at, after)
			f.run()
			if !f.hit() {
				require.Greater(t, at, 100, "the sweep covers the history")
				break
			}
			require.True(t, f.surfaced, "call %d, %+v, after=%v", at, f.fsys.Calls()[at], after)
		}
	}
}

// The storage goes away at any call and stays away. Later, what was acknowledged is there, and a commit that was not is there
// wholly or not at all.
func TestWhatWasAcknowledgedIsThereWhenTheStorageComesBack(t *testing.T) {
	for at := 0; ; at++ {
		inner := newMem()
		fsys := faultfs.Wrap(inner, faultfs.From(at, faultfs.Fault{Err: core.ErrUnavailable, After: at%2 == 0}))
		made := []state{{}}
		err := func() error {
			s, err := statestore.Open(t.Context(), fsys, home, statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}})
			if err != nil {
				return err
			}
			defer func() { require.NoError(t, s.Close()) }()
			for v := range int64(5) {
				next := made[v].with(fmt.Sprint(v), "x")
				if err := tryCommit(t, s, v, next); err != nil {
					return err
				}
				made = append(made, next)
				if err := s.Maintain(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}()
		s := openStore(t, inner, statestore.Options{})
		latest, latestErr := s.Latest(t.Context())
		require.NoError(t, latestErr)
		last := int64(len(made) - 1)
		require.Contains(t, []int64{last, last + 1}, latest, "call %d", at)
		for v := range last + 1 {
			require.Equal(t, made[v], load(t, s, v))
		}
		if latest > last {
			require.Error(t, err)
			require.Equal(t, made[last].with(fmt.Sprint(last), "x"), load(t, s, latest))
		}
		commit(t, s, latest, state{"on": "it goes"})
		if err == nil {
			require.Greater(t, at, 60)
			return
		}
		require.ErrorIs(t, err, core.ErrUnavailable, "call %d", at)
	}
}
