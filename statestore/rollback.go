package statestore

import (
	"context"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Rollback drops every version above v, newest first, so that v is the latest: the next transaction begins there. v must be
// loadable by its files, or be 0. When Rollback returns nil the versions are durably gone; when it fails an older end of
// them may be, and it can be called again. Transactions on dropped versions fail when they commit; views stay readable.
//
// It makes this store the owner, or fails with core.ErrFenced if another is: what a successor has committed is never dropped.
func (s *Store) Rollback(ctx context.Context, v int64) error {
	return s.write(ctx, "rollback", func(ctx context.Context) error {
		return core.PathError("rollback", s.versionPath(v), s.rollback(ctx, v))
	})
}

func (s *Store) rollback(ctx context.Context, v int64) error {
	// A snapshot of a version that is about to go must not be published afterwards.
	leave, err := s.interruptMaintenance(ctx)
	if err != nil {
		return err
	}
	defer leave()
	c, err := s.own(ctx)
	if err != nil {
		return err
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	s.forgetFiles()
	l, err := s.list(ctx)
	if err != nil {
		return err
	}
	steps, err := PlanRollback(l, v)
	if err != nil {
		return err
	}
	s.opts.Budget.forget(s, func(c *version) bool { return c.number > v })
	for _, step := range steps {
		if err := c.remove(ctx, step.Name); err != nil {
			return err
		}
	}
	s.count(func(stats *Stats) {
		if n := l.Highest() - v; n > 0 {
			stats.RolledBack += n
		}
	})
	return nil
}
