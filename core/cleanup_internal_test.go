package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Each test runs in a bubble, which fails if a goroutine is left in it.

func TestCleanupContextLivesWhileItsParentLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		defer end()
		ctx, cancel := cleanupContext(parent)
		time.Sleep(24 * time.Hour)
		require.NoError(t, ctx.Err())
		_, limited := ctx.Deadline()
		require.False(t, limited)
		cancel()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		cancel()
	})
}

func TestCleanupContextEndsTenSecondsAfterItsParent(t *testing.T) {
	for name, alreadyEnded := range map[string]bool{"ended before": true, "ends later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, end := context.WithCancel(t.Context())
				if alreadyEnded {
					end()
				}
				ctx, cancel := cleanupContext(parent)
				defer cancel()
				end()
				time.Sleep(10*time.Second - 1)
				synctest.Wait()
				require.NoError(t, ctx.Err())
				time.Sleep(1)
				synctest.Wait()
				require.ErrorIs(t, ctx.Err(), context.Canceled)
			})
		})
	}
}

func TestCleanupContextCanBeCancelledAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		ctx, cancel := cleanupContext(parent)
		end()
		synctest.Wait() // its timer runs
		start := time.Now()
		done := make(chan struct{})
		for range 2 {
			go func() { cancel(); done <- struct{}{} }()
		}
		<-done
		<-done
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		synctest.Wait()
		require.Zero(t, time.Since(start), "nothing waits for the timer")
	})
}

func TestCleanupContextKeepsTheValuesOfItsParent(t *testing.T) {
	type key struct{}
	ctx, cancel := cleanupContext(context.WithValue(t.Context(), key{}, "value"))
	defer cancel()
	require.Equal(t, "value", ctx.Value(key{}))
}

func TestDiscardContextTakesTenSecondsWhateverItsParentDoes(t *testing.T) {
	for name, alreadyEnded := range map[string]bool{"ended": true, "alive": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, end := context.WithCancel(t.Context())
				defer end()
				if alreadyEnded {
					end()
				}
				ctx, cancel := discardContext(parent)
				defer cancel()
				require.NoError(t, ctx.Err())
				time.Sleep(10*time.Second - 1)
				synctest.Wait()
				require.NoError(t, ctx.Err())
				time.Sleep(1)
				synctest.Wait()
				require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			})
		})
	}
}
