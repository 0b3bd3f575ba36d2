package statestore_test

import (
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func exists(t testing.TB, fsys core.FileSystem, name string) bool {
	t.Helper()
	_, err := fsys.Stat(t.Context(), home+"/"+name)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	return err == nil
}

func TestASnapshotComesWithMoreDeltasThanTheMinimum(t *testing.T) {
	for deltas, want := range map[int64]bool{9: false, 10: false, 11: true} {
		fsys := newMem()
		states := history(t, openStore(t, fsys, statestore.Options{}), 0, deltas, nil)
		s := openStore(t, fsys, statestore.Options{}) // after a restart
		require.NoError(t, s.Maintain(t.Context()))
		require.Equal(t, want, exists(t, fsys, statestore.FileName(deltas, codec.Snapshot)))
		require.Equal(t, states[deltas], load(t, openStore(t, fsys, statestore.Options{}), deltas))
		stats := s.Stats()
		require.Equal(t, deltas, stats.LatestVersion)
		if want {
			require.EqualValues(t, 1, stats.Snapshots)
			require.Zero(t, stats.ChainLength)
			require.Zero(t, stats.SnapshotLag())
		} else {
			require.EqualValues(t, deltas, stats.ChainLength)
			require.Equal(t, deltas, stats.SnapshotLag())
		}
	}
}

func TestRetainNMeansThatNVersionsAreLoadable(t *testing.T) {
	fsys := newMem()
	opts := statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 1}, Cleanup: statestore.CleanupPolicy{Retain: 3}}
	s := openStore(t, fsys, opts)
	states := []state{{}}
	for v := range int64(20) {
		states = append(states, states[v].with("k", fmt.Sprint(v)))
		commit(t, s, v, states[v+1])
		require.NoError(t, s.Maintain(t.Context()))
		fresh := openStore(t, fsys, opts)
		for back := max(v+1-2, 1); back <= v+1; back++ {
			require.Equal(t, states[back], load(t, fresh, back))
		}
	}
	require.Equal(t, []string{
		"18.delta", "18.snapshot", "19.delta", "20.delta", "20.snapshot",
	}, versionFiles(t, fsys))
	_, err := openStore(t, fsys, opts).Load(t.Context(), 17)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "cleaned up")
	require.EqualValues(t, 17, s.Stats().DeletedVersions)
}

func TestForeignNamesStopNothingAndStayAsTheyAre(t *testing.T) {
	foreign := []string{
		"README.txt", "abc.delta", ".delta", ".crc", "core.1234", "99999999999999999999.delta", "1e3.delta", "0x10.delta", "5.delta.tmp",
		"1.delta.bak", "7", "03.delta", "+4.delta", "-1.delta", "0.delta", "4.Delta", "2.SNAPSHOT", ".DS_Store", "._1.delta", ".nfs000000001",
		"12_ab.snapshot", "manifest.json",
	}
	fsys := newMem()
	opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 2}}
	s := openStore(t, fsys, opts)
	states := history(t, s, 0, 15, nil)
	for _, name := range foreign {
		write(t, fsys, home+"/"+name, []byte(name))
	}
	require.NoError(t, fsys.MkdirAll(t.Context(), home+"/lost+found"))
	require.NoError(t, fsys.MkdirAll(t.Context(), home+"/30.delta"))
	for v := int64(15); v < 20; v++ {
		require.NoError(t, s.Maintain(t.Context()))
		states = append(states, history(t, s, v, 1, states[v])[1])
	}
	require.NoError(t, s.Maintain(t.Context()))
	require.True(t, exists(t, fsys, "15.snapshot"))
	require.False(t, exists(t, fsys, "14.delta"))
	require.True(t, exists(t, fsys, "15.delta"))
	fresh := openStore(t, fsys, opts)
	for v := 15; v <= 20; v++ {
		require.Equal(t, states[v], load(t, fresh, int64(v)))
	}
	for _, name := range foreign {
		require.Equal(t, name, string(read(t, fsys, home+"/"+name)))
	}
	require.True(t, exists(t, fsys, "lost+found"))
	require.True(t, exists(t, fsys, "30.delta"))
}

func TestADamagedSnapshotIsPassedOverRepairedAndKeptInQuarantine(t *testing.T) {
	for _, how := range []string{"flipped", "empty", "cut", "followed by more"} {
		fsys := newMem()
		s := openStore(t, fsys, statestore.Options{})
		states := history(t, s, 0, 8, nil)
		require.NoError(t, s.Snapshot(t.Context(), 6))
		good := read(t, fsys, home+"/6.snapshot")
		bad := append([]byte(nil), good...)
		switch how {
		case "flipped":
			bad[len(bad)/2] ^= 1
		case "empty":
			bad = bad[:0]
		case "cut":
			bad = bad[:len(bad)-1]
		case "followed by more":
			bad = append(bad, 0)
		}
		replace(t, fsys, home+"/6.snapshot", bad)

		s = openStore(t, fsys, statestore.Options{})
		require.Equal(t, states[8], load(t, s, 8), how)
		require.Equal(t, states[6], load(t, s, 6), how)
		require.Equal(t, bad, read(t, fsys, home+"/6.snapshot"), "a load changes nothing")
		require.Equal(t, 1, s.Stats().DamagedFiles)
		require.NoError(t, s.Maintain(t.Context()))
		require.Equal(t, good, read(t, fsys, home+"/6.snapshot"), how)
		require.EqualValues(t, 1, s.Stats().Repairs)
		require.Zero(t, s.Stats().DamagedFiles)
		kept := names(t, fsys, home+"/_quarantine")
		require.Len(t, kept, 1)
		require.Equal(t, len(bad), len(read(t, fsys, home+"/_quarantine/"+kept[0])))
		problems, err := s.Verify(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
	}
}

func TestTheQuarantineIsBounded(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	history(t, s, 0, 3, nil)
	require.NoError(t, s.Snapshot(t.Context(), 3))
	for range 20 {
		damage(t, fsys, home+"/3.snapshot")
		repaired, err := openStore(t, fsys, statestore.Options{}).Repair(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{3}, repaired)
	}
	require.Len(t, names(t, fsys, home+"/_quarantine"), 4)
}

func TestADamagedSnapshotThatNothingElseMakesStays(t *testing.T) {
	fsys := newMem()
	opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 1}}
	s := openStore(t, fsys, opts)
	history(t, s, 0, 5, nil)
	require.NoError(t, s.Snapshot(t.Context(), 5))
	require.NoError(t, s.Maintain(t.Context()))
	require.Equal(t, []string{"5.delta", "5.snapshot"}, versionFiles(t, fsys))
	damage(t, fsys, home+"/5.snapshot")
	bad := read(t, fsys, home+"/5.snapshot")
	s = openStore(t, fsys, opts)
	_, err := s.Load(t.Context(), 5)
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "5.snapshot")
	_, err = s.Repair(t.Context())
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.Error(t, s.Maintain(t.Context()))
	require.Error(t, s.Stats().Snapshotting.LastError)
	require.Equal(t, bad, read(t, fsys, home+"/5.snapshot"))
	problems, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, "5.snapshot", problems[0].Name)
}

func TestNothingIsDeletedThatADamagedSnapshotWouldReplace(t *testing.T) {
	fsys := newMem()
	opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 2}}
	s := openStore(t, fsys, opts)
	states := history(t, s, 0, 20, state{})
	require.NoError(t, s.Snapshot(t.Context(), 10))
	require.NoError(t, s.Snapshot(t.Context(), 20))
	damage(t, fsys, home+"/10.snapshot")
	s = openStore(t, fsys, opts)
	deleted, err := s.Cleanup(t.Context())
	require.NoError(t, err)
	require.Zero(t, deleted)
	for v := range states {
		require.Equal(t, states[v], load(t, s, int64(v)))
	}
	require.NoError(t, s.Maintain(t.Context())) // repairs it
	require.False(t, exists(t, fsys, "9.delta"))
	require.Equal(t, states[19], load(t, openStore(t, fsys, opts), 19))
}

func TestAfterAnyPartOfACleanUpAllRetainedVersionsLoad(t *testing.T) {
	for at := 0; ; at++ {
		inner := newMem()
		opts := statestore.Options{Cleanup: statestore.CleanupPolicy{Retain: 2}}
		s := openStore(t, inner, opts)
		states := history(t, s, 0, 20, state{})
		require.NoError(t, s.Snapshot(t.Context(), 10))
		require.NoError(t, s.Snapshot(t.Context(), 20))
		write(t, inner, home+"/3.delta.crc", nil)
		fsys := faultfs.Wrap(inner, nil)
		s = openStore(t, fsys, opts)
		require.NoError(t, s.Claim(t.Context()))
		fsys.SetInjector(faultfs.From(fsys.Count()+at, faultfs.Fault{Err: faultfs.ErrInjected}))
		_, err := s.Cleanup(t.Context())
		fresh := openStore(t, inner, opts)
		require.Equal(t, states[19], load(t, fresh, 19))
		require.Equal(t, states[20], load(t, fresh, 20))
		if err == nil {
			require.Equal(t, "10.delta", versionFiles(t, inner)[0])
			require.False(t, exists(t, inner, "3.delta.crc"))
			break
		}
	}
}

func TestAGapIsNamedAndNothingIsDoneAboutIt(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	states := history(t, s, 0, 4, nil)
	require.NoError(t, fsys.Remove(t.Context(), home+"/3.delta"))
	before := versionFiles(t, fsys)
	s = openStore(t, fsys, statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 1}, Cleanup: statestore.CleanupPolicy{Retain: 1}})
	require.Equal(t, states[2], load(t, s, 2))
	var gap *statestore.GapError
	_, err := s.Load(t.Context(), 4)
	require.ErrorAs(t, err, &gap)
	require.EqualValues(t, 3, gap.Missing)
	require.ErrorContains(t, err, home)
	require.ErrorAs(t, s.Maintain(t.Context()), &gap)
	require.Equal(t, 1, s.Stats().Snapshotting.Failures)
	require.Equal(t, 1, s.Stats().Cleaning.Failures)
	_, err = s.Latest(t.Context())
	require.ErrorAs(t, err, &gap)
	latest, err := s.LatestLoadable(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, latest)
	require.Equal(t, before, versionFiles(t, fsys))
	problems, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, problems, 1)
}

func TestOldTemporariesAreSweptAndFreshOnesStay(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	fsys := memfs.New(memfs.Options{Now: func() time.Time { return now }})
	opts := statestore.Options{Now: func() time.Time { return now }}
	s := openStore(t, fsys, opts)
	history(t, s, 0, 2, nil)
	old, orphan, fresh, barrier := ".9.delta."+uuid+".tmp", ".99.delta.crc", ".8.snapshot."+uuid+".TID7.tmp", "._sync."+uuid
	write(t, fsys, home+"/"+old, nil)
	write(t, fsys, home+"/"+orphan, nil)
	write(t, fsys, home+"/"+barrier, nil)
	write(t, fsys, home+"/9.delta.tmp", nil)
	now = now.Add(25 * time.Hour)
	write(t, fsys, home+"/"+fresh, nil)
	require.NoError(t, openStore(t, fsys, statestore.Options{SweepAge: -1, Now: opts.Now}).Maintain(t.Context()))
	require.True(t, exists(t, fsys, old))
	s = openStore(t, fsys, opts)
	require.NoError(t, s.Maintain(t.Context()))
	require.False(t, exists(t, fsys, old))
	require.False(t, exists(t, fsys, orphan))
	require.False(t, exists(t, fsys, barrier))
	require.True(t, exists(t, fsys, fresh))
	require.True(t, exists(t, fsys, "9.delta.tmp"))
	require.EqualValues(t, 3, s.Stats().Swept)
}

func TestStaleCompanionsGoBeforeAFileTakesTheirName(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	history(t, s, 0, 2, nil)
	stale := append(statestore.CompanionNames("3.delta"), statestore.CompanionNames("3.snapshot")...)
	for _, name := range stale {
		write(t, fsys, home+"/"+name, []byte("{}"))
	}
	other := statestore.CompanionNames("2.delta")
	for _, name := range other {
		write(t, fsys, home+"/"+name, []byte("{}"))
	}
	s = openStore(t, fsys, statestore.Options{})
	commit(t, s, 2, state{"a": "b"})
	require.NoError(t, s.Snapshot(t.Context(), 3))
	for _, name := range stale {
		require.False(t, exists(t, fsys, name), name)
	}
	for _, name := range other {
		require.True(t, exists(t, fsys, name), name)
	}
	require.NoError(t, s.Rollback(t.Context(), 1))
	for _, name := range other {
		require.False(t, exists(t, fsys, name), name)
	}
}
