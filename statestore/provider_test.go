package statestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

func TestAProviderOpensPartitionsAndNamedStores(t *testing.T) {
	fsys := newMem()
	p, err := statestore.NewProvider(fsys, "/x/.hidden/v1.2/3.delta/state.snapshot", statestore.Options{})
	require.NoError(t, err)
	want := map[string]string{}
	for _, id := range []statestore.StoreID{
		{}, {Partition: 1, Name: statestore.DefaultStore}, {Operator: 2, Partition: 3, Name: "left-keyToNumValues"}, {Operator: 2, Partition: 3},
	} {
		s, err := p.Open(t.Context(), id)
		require.NoError(t, err)
		again, err := p.Open(t.Context(), id)
		require.NoError(t, err)
		require.Same(t, s, again)
		history(t, s, 0, 12, state{"id": s.Dir()})
		require.NoError(t, s.Maintain(t.Context()))
		want[s.Dir()] = s.Dir()
	}
	require.Len(t, want, 4)
	require.Len(t, p.Stores(), 4)
	for _, s := range p.Stores() {
		require.Equal(t, want[s.Dir()], load(t, s, 12)["id"])
		require.EqualValues(t, 1, s.Stats().Snapshots)
	}
	first := p.Stores()[0]
	require.NoError(t, first.Close())
	require.Len(t, p.Stores(), 3)
	_, err = p.Open(t.Context(), statestore.StoreID{Operator: -1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = p.Open(t.Context(), statestore.StoreID{Name: "../x"})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.Empty(t, p.Stores())
	_, err = p.Open(t.Context(), statestore.StoreID{})
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = p.StartMaintenance(statestore.MaintenanceOptions{})
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Zero(t, p.Budget().Stats().Used)
	_, err = statestore.NewProvider(fsys, "relative", statestore.Options{CachedVersions: -7})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// waitFor waits for a condition that background work brings about.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond, what)
}

func TestBackgroundMaintenanceWorksOnAllStoresAndOneThatFailsStopsNoOther(t *testing.T) {
	fsys := newMem()
	var log lockedBuffer
	opts := statestore.Options{
		Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}, Cleanup: statestore.CleanupPolicy{Retain: 1},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	p, err := statestore.NewProvider(fsys, "/state", opts)
	require.NoError(t, err)
	var stores []*statestore.Store
	for i := range int64(6) {
		s, err := p.Open(t.Context(), statestore.StoreID{Partition: i})
		require.NoError(t, err)
		history(t, s, 0, 5, state{})
		stores = append(stores, s)
	}
	require.NoError(t, fsys.Remove(t.Context(), stores[2].Dir()+"/3.delta"))
	m, err := p.StartMaintenance(statestore.MaintenanceOptions{Interval: time.Millisecond, Workers: 2, MaxDeletes: 1})
	require.NoError(t, err)
	_, err = p.StartMaintenance(statestore.MaintenanceOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	for i, s := range stores {
		if i == 2 {
			waitFor(t, "the failure is seen", func() bool { return s.Stats().Snapshotting.Failures > 1 && s.Stats().Cleaning.Failures > 1 })
			require.ErrorIs(t, s.Stats().Cleaning.LastError, fs.ErrNotExist)
			continue
		}
		waitFor(t, "old versions go, one in a round", func() bool { return s.Stats().DeletedVersions == 4 })
		require.EqualValues(t, 5, s.Stats().LastSnapshot)
		require.NoError(t, errors.Join(s.Stats().Snapshotting.LastError, s.Stats().Cleaning.LastError))
	}
	m.Stop()
	m.Stop()
	require.Contains(t, log.String(), stores[2].Dir())
	again, err := p.StartMaintenance(statestore.MaintenanceOptions{Interval: time.Hour})
	require.NoError(t, err)
	_ = again
	require.NoError(t, p.Close())
	_, err = statestore.StartMaintenance(nil, statestore.MaintenanceOptions{Interval: -1, Workers: -1, MaxDeletes: -1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "Workers")
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Neither a clean-up nor a snapshot that hangs keeps commits, or the other, from going on.
func TestCommitsDoNotWaitForMaintenanceNorSnapshotsForCleanUp(t *testing.T) {
	for _, hangs := range []faultfs.Op{faultfs.OpRemove, faultfs.OpWrite} {
		inner := newMem()
		fsys := faultfs.Wrap(inner, nil)
		opts := statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}, Cleanup: statestore.CleanupPolicy{Retain: 1}}
		s := openStore(t, fsys, opts)
		history(t, s, 0, 5, state{})
		require.NoError(t, s.Snapshot(t.Context(), 5))
		hanging := hangAt(fsys, hangs)
		stopped := make(chan error)
		go func() {
			var err error
			if hangs == faultfs.OpRemove {
				_, err = s.Cleanup(t.Context())
			} else {
				err = s.Snapshot(t.Context(), 4)
			}
			stopped <- err
		}()
		<-hanging
		history(t, s, 5, 4, state{})
		if hangs == faultfs.OpRemove {
			require.NoError(t, s.MaintainSnapshots(t.Context()))
			require.True(t, exists(t, inner, "9.snapshot"))
		} else {
			n, err := s.Cleanup(t.Context())
			require.NoError(t, err)
			require.Equal(t, 4, n)
		}
		require.NoError(t, s.Close(), "which breaks it off")
		if err := <-stopped; hangs == faultfs.OpWrite {
			require.Error(t, err)
		}
		require.False(t, exists(t, inner, "4.snapshot"))
	}
}

func TestCommitsAndLoadsGoOnDuringMaintenance(t *testing.T) {
	fsys := newMem()
	opts := statestore.Options{Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}, Cleanup: statestore.CleanupPolicy{Retain: 3}}
	s := openStore(t, fsys, opts)
	m, err := statestore.StartMaintenance(func() []*statestore.Store { return []*statestore.Store{s} }, statestore.MaintenanceOptions{Interval: time.Millisecond})
	require.NoError(t, err)
	states := []state{{}}
	for v := range int64(200) {
		states = append(states, states[v].with(fmt.Sprint(v%20), fmt.Sprint(v)))
		commit(t, s, v, states[v+1])
		if v%10 == 9 {
			require.Equal(t, states[v-1], load(t, openStore(t, fsys, opts), v-1))
		}
	}
	waitFor(t, "maintenance has caught up", func() bool { return s.Stats().LastSnapshot > 190 && s.Stats().DeletedVersions > 150 })
	m.Stop()
	require.NoError(t, errors.Join(s.Stats().Snapshotting.LastError, s.Stats().Cleaning.LastError))
	require.NoError(t, s.Maintain(t.Context()))
	require.Equal(t, states[200], load(t, openStore(t, fsys, opts), 200))
}
