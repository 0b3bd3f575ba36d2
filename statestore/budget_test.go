package statestore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// filled returns a provider of n stores that have a version 1 of about 100 kB each, and forgets it all from memory.
func filled(t *testing.T, n int64, opts statestore.Options) []*statestore.Store {
	t.Helper()
	fsys := newMem()
	big := state{}
	for i := range 100 {
		big[fmt.Sprintf("key-%03d", i)] = strings.Repeat("v", 1000)
	}
	open := func(opts statestore.Options) []*statestore.Store {
		p, err := statestore.NewProvider(fsys, "/ckpt/state", opts)
		require.NoError(t, err)
		var stores []*statestore.Store
		for i := range n {
			s, err := p.Open(t.Context(), statestore.StoreID{Partition: i})
			require.NoError(t, err)
			stores = append(stores, s)
		}
		return stores
	}
	for _, s := range open(statestore.Options{}) {
		commit(t, s, 0, big)
		commit(t, s, 1, big.with("key-000", "changed"))
	}
	return open(opts)
}

func TestIdleVersionsMakeRoomForOthers(t *testing.T) {
	b := statestore.NewBudget(statestore.BudgetOptions{Limit: 1 << 20, Wait: -1})
	stores := filled(t, 15, statestore.Options{Budget: b})
	for range 3 {
		for _, s := range stores {
			require.Len(t, load(t, s, 2), 100)
			require.LessOrEqual(t, b.Stats().Used, int64(1<<20))
		}
	}
	require.NotZero(t, b.Stats().Evicted)
	require.NotZero(t, b.Stats().Cached)
	require.Zero(t, b.Stats().Refused)
	for _, s := range stores {
		require.NoError(t, s.Close())
	}
	require.Zero(t, b.Stats().Used)
	require.Zero(t, b.Stats().Cached)
}

func TestVersionsInUseAreNotGivenUpAndALoadFailsClearly(t *testing.T) {
	b := statestore.NewBudget(statestore.BudgetOptions{Limit: 1 << 20, Wait: -1})
	stores := filled(t, 20, statestore.Options{Budget: b})
	var views []*statestore.View
	var err error
	for _, s := range stores {
		var view *statestore.View
		if view, err = s.Load(t.Context(), 2); err != nil {
			break
		}
		views = append(views, view)
	}
	require.ErrorIs(t, err, statestore.ErrBudget)
	require.Greater(t, len(views), 1)
	require.LessOrEqual(t, b.Stats().Used, int64(1<<20))
	for _, view := range views {
		require.Len(t, contents(t, view.All()), 100)
		require.NoError(t, view.Close())
	}
	require.Len(t, load(t, stores[19], 2), 100)

	tx := begin(t, stores[0], 2)
	for i := 0; err == nil || i == 0; i++ {
		err = tx.Put([]byte(fmt.Sprint(i)), make([]byte, 10_000))
		require.Less(t, i, 200)
	}
	require.ErrorIs(t, err, statestore.ErrBudget)
	require.NoError(t, tx.Abort())

	tiny := filled(t, 1, statestore.Options{Budget: statestore.NewBudget(statestore.BudgetOptions{Limit: 10_000, Wait: time.Hour})})
	_, err = tiny[0].Load(t.Context(), 2)
	require.ErrorIs(t, err, statestore.ErrBudget, "what can never fit is refused at once")
}

func TestALoadWaitsForRoom(t *testing.T) {
	b := statestore.NewBudget(statestore.BudgetOptions{Limit: 1 << 20, Wait: time.Hour})
	stores := filled(t, 20, statestore.Options{Budget: b})
	var views []*statestore.View
	for _, s := range stores {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			view, err := s.Load(ctx, 2)
			if err == nil {
				views = append(views, view)
			}
			done <- err
		}()
		before := b.Stats().Waits
		for b.Stats().Waits == before && len(done) == 0 {
			time.Sleep(time.Millisecond)
		}
		if len(done) > 0 && b.Stats().Waits == before {
			require.NoError(t, <-done)
			cancel()
			continue
		}
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, statestore.ErrBudget)
		break
	}
	require.EqualValues(t, 1, b.Stats().Waits)
	last := make(chan error, 1)
	go func() {
		view, err := stores[19].Load(t.Context(), 2)
		if err == nil {
			err = view.Close()
		}
		last <- err
	}()
	for b.Stats().Waits < 2 {
		time.Sleep(time.Millisecond)
	}
	require.Empty(t, last)
	for _, view := range views {
		require.NoError(t, view.Close())
	}
	require.NoError(t, <-last)
}

func TestManyLoadsAndCommitsShareABudget(t *testing.T) {
	b := statestore.NewBudget(statestore.BudgetOptions{Limit: 1 << 20, Wait: time.Hour})
	stores := filled(t, 8, statestore.Options{Budget: b})
	var wg sync.WaitGroup
	for _, s := range stores {
		for range 2 {
			wg.Go(func() {
				for v := range int64(10) {
					if view, err := s.Load(context.Background(), 1+v%2); err != nil {
						t.Error(err)
					} else {
						_ = view.Close()
					}
				}
			})
		}
		wg.Go(func() {
			for v := int64(2); v < 10; v++ {
				tx, err := s.Begin(context.Background(), v)
				if err == nil {
					err = tx.Put([]byte("key-050"), []byte(fmt.Sprint(v)))
				}
				if err == nil {
					_, err = tx.Commit(context.Background())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		require.Equal(t, "9", load(t, s, 10)["key-050"])
		require.NoError(t, s.Close())
	}
	require.Zero(t, b.Stats().Used)
}
