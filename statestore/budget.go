package statestore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// BudgetOptions of a [Budget].
type BudgetOptions struct {
	// Limit in bytes of all versions in memory, shared parts counted once. 0 is no limit.
	Limit int64
	// Wait is how long a Load or Begin waits for room that others may give back. 0 is 10 s; negative is not at all.
	Wait time.Duration
}

const defaultBudgetWait = 10 * time.Second

// BudgetStats is what a [Budget] holds.
type BudgetStats struct {
	Limit  int64
	Used   int64 // bytes, those of versions that are only cached included
	Cached int   // versions that nobody uses and that can be given up
	// Evicted counts versions that were given up to make room.
	Evicted int64
	// Waits counts how often a call had to wait for room, Refused how often there was none.
	Waits   int64
	Refused int64
}

// Budget bounds the memory of the versions of any number of stores. Versions that nobody uses are given up, least recently
// used first, when another needs the room; where those in use leave none, a Load or Begin waits, then fails with
// [ErrBudget], and a Put fails at once. What is counted is the bytes that the versions really take, with what they share
// counted once. A Budget is safe for concurrent use.
type Budget struct {
	wait time.Duration

	mu      sync.Mutex
	stats   BudgetStats
	used    int64
	idle    []*version // cached and not in use, least recently used first
	waiters []*waiter  // in the order they came
}

// waiter waits until need bytes are there; then they are reserved for it and ready is closed.
type waiter struct {
	need  int64
	ready chan struct{}
}

// NewBudget returns an empty budget.
func NewBudget(opts BudgetOptions) *Budget {
	if opts.Wait == 0 {
		opts.Wait = defaultBudgetWait
	}
	b := &Budget{wait: opts.Wait}
	b.stats.Limit = max(opts.Limit, 0)
	return b
}

// Stats returns what the budget holds now.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Used, s.Cached = b.used, len(b.idle)
	return s
}

// reserve takes n bytes, and waits for them if need be.
func (b *Budget) reserve(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.makeRoom(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	if n > b.stats.Limit || b.wait < 0 {
		defer b.mu.Unlock()
		return b.refused(n)
	}
	b.stats.Waits++
	w := &waiter{need: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()

	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	var ended error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		ended = ctx.Err()
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // at the same moment
		return nil
	default:
	}
	b.waiters = slices.DeleteFunc(b.waiters, func(o *waiter) bool { return o == w })
	b.serve() // those behind it may need less
	if ended != nil {
		return fmt.Errorf("%w: %w", ended, b.refused(n))
	}
	return b.refused(n)
}

// tryReserve takes n bytes if they are there.
func (b *Budget) tryReserve(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.makeRoom(n) {
		return b.refused(n)
	}
	b.used += n
	return nil
}

// unreserve gives n bytes back.
func (b *Budget) unreserve(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.serve()
}

func (b *Budget) refused(n int64) error {
	b.stats.Refused++
	return fmt.Errorf("%w: %d bytes are needed, %d of %d are in use", ErrBudget, n, b.used, b.stats.Limit)
}

// makeRoom gives up idle versions until n bytes fit, and reports whether they do.
func (b *Budget) makeRoom(n int64) bool {
	if b.stats.Limit == 0 {
		return true
	}
	for b.used+n > b.stats.Limit && len(b.idle) > 0 {
		b.stats.Evicted++
		b.uncache(b.idle[0])
	}
	return b.used+n <= b.stats.Limit
}

// serve lets those go on that have waited and now find room, in their order.
func (b *Budget) serve() {
	for len(b.waiters) > 0 && b.makeRoom(b.waiters[0].need) {
		w := b.waiters[0]
		b.waiters = slices.Delete(b.waiters, 0, 1)
		b.used += w.need
		close(w.ready)
	}
}

func (b *Budget) limited() bool { return b.stats.Limit > 0 }
