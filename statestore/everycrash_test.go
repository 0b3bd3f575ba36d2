package statestore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// shortHistory has everything that changes a store's directory, once: claims, commits, one of them again, a fork, snapshots, a clean-up,
// a rollback, a repair.
func shortHistory(m *model) {
	t := m.t
	for range 4 {
		m.commit()
	}
	m.recommit()
	m.fork()
	m.maintain()
	m.commit()
	m.rollbackTo(m.latest - 1)
	m.commit()
	m.takeOver()
	m.commit()
	m.maintain()
	m.zombieActs()

	require.NoError(t, m.owner.Snapshot(t.Context(), m.latest))
	m.damagedSnapshot = true
	damage(t, m.fsys, fmt.Sprint(home, "/", m.latest, ".snapshot"))
	repaired, err := m.owner.Repair(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{m.latest}, repaired)
	m.commit()
}

// The sweep of random histories takes a sample; this one takes every single mutation, with nothing, all, and several choices
// of what was not synced left by the crash.
func TestACrashAtEverySingleMutationOfAShortHistoryLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	lots := rand.New(rand.NewPCG(seed, 13))
	m := &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 7)), fsys: newMem(), versions: map[int64]state{0: {}},
		budget: statestore.NewBudget(statestore.BudgetOptions{}),
		opts: statestore.Options{
			Snapshots: statestore.SnapshotPolicy{MinDeltas: 2}, Cleanup: statestore.CleanupPolicy{Retain: 2},
		},
	}
	m.reopen()
	crashes := 0
	m.fsys.OnMutation(func(memfs.Mutation) {
		for _, percent := range []int{0, 30, 70, 100} {
			m.afterCrash(m.fsys.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: lots}), lots)
		}
		crashes++
	})
	shortHistory(m)
	require.Equal(t, m.fsys.Mutations(), crashes)
	t.Logf("%d mutations", crashes)
	require.Greater(t, crashes, 100)
	m.check(m.owner, m.loadable())
	for _, s := range m.opened {
		require.NoError(t, s.Close())
	}
}
