package statestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Maintain does once what background maintenance does again and again: it takes a snapshot if one is due, writes damaged
// snapshots again, and cleans up. The snapshot comes first. It makes this store the owner, or fails with core.ErrFenced.
// Commits go on meanwhile.
func (s *Store) Maintain(ctx context.Context) error {
	err := s.MaintainSnapshots(ctx)
	_, cleanErr := s.Cleanup(ctx)
	return errors.Join(err, cleanErr)
}

// MaintainSnapshots takes a snapshot of the latest version if one is due by Options.Snapshots, and writes again those
// snapshots that were found damaged and that the deltas still make. The damaged file is kept in the directory _quarantine,
// of which the newest few stay.
func (s *Store) MaintainSnapshots(ctx context.Context) error {
	return s.job(ctx, "snapshot", s.snapshots, func(ctx context.Context, c *claim) error {
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		repairErr := s.repairDamaged(ctx, c, l)
		l = s.withoutDamaged(l)
		plan, err := PlanSnapshot(l, 0, s.opts.Snapshots)
		if err == nil && plan.Due {
			err = s.takeSnapshot(ctx, c, plan.Version)
			if err == nil {
				plan.Deltas = 0
			}
		}
		s.noteShape(l, plan)
		return errors.Join(err, repairErr)
	})
}

// Snapshot writes the snapshot of version v now, whether it is due or not. If it is there already nothing is done.
func (s *Store) Snapshot(ctx context.Context, v int64) error {
	return s.job(ctx, "snapshot", s.snapshots, func(ctx context.Context, c *claim) error {
		if v < 1 {
			return fmt.Errorf("%w: version %d", fs.ErrInvalid, v)
		}
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		if i, ok := l.find(v); ok && l.Versions[i].Snapshot {
			return nil
		}
		return s.takeSnapshot(ctx, c, v)
	})
}

// takeSnapshot writes the snapshot of a version that has none.
func (s *Store) takeSnapshot(ctx context.Context, c *claim, v int64) error {
	err := s.writeSnapshot(ctx, c, v)
	if err == nil {
		s.count(func(stats *Stats) { stats.Snapshots++ })
	}
	return err
}

// writeSnapshot writes the state of a version as its files, or the memory that was made from them, have it.
func (s *Store) writeSnapshot(ctx context.Context, c *claim, v int64) error {
	state, err := s.acquire(ctx, v, false)
	if err != nil {
		return err
	}
	defer s.opts.Budget.release(state)
	_, err = s.publish(ctx, c, FileName(v, codec.Snapshot), codec.Snapshot, state.tree.DataBytes(), func(w *codec.Writer) error {
		n := 0
		for key, value := range state.tree.All() {
			if err := w.Put(key, value); err != nil {
				return err
			}
			if n++; n%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		// Just before it is published: is it still the state of that version?
		same, err := s.stillThere(ctx, state.origin)
		if err == nil && !same {
			err = &ReplacedError{v}
		}
		return err
	})
	return c.explain(ctx, err)
}

// Cleanup deletes what Options.Cleanup does not keep, oldest first, and temporaries that are older than Options.SweepAge. It
// returns how many versions went. The snapshot that the oldest retained version is loaded from is read to its end before
// anything below it is deleted.
func (s *Store) Cleanup(ctx context.Context) (deleted int, err error) {
	return s.cleanup(ctx, s.opts.Cleanup)
}

func (s *Store) cleanup(ctx context.Context, policy CleanupPolicy) (deleted int, err error) {
	err = s.job(ctx, "clean up", s.cleaning, func(ctx context.Context, c *claim) error {
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		deleted, err = s.deleteOld(ctx, c, s.withoutDamaged(l), policy)
		s.count(func(stats *Stats) { stats.DeletedVersions += int64(deleted) })
		return errors.Join(err, s.sweep(ctx, c, l))
	})
	return deleted, err
}

// deleteOld carries a clean-up plan out. A snapshot that turns out to be damaged is left out, and the plan made again.
func (s *Store) deleteOld(ctx context.Context, c *claim, l Listing, policy CleanupPolicy) (deleted int, err error) {
	for {
		plan, err := PlanCleanup(l, 0, policy)
		if err != nil {
			return 0, err
		}
		deleted, err := s.carryOut(ctx, c, plan.Steps)
		var bad *damagedSnapshotError
		if !errors.As(err, &bad) {
			return deleted, err
		}
		s.opts.Logger.WarnContext(ctx, "a snapshot is damaged: what it would replace stays", "store", s.dir, "error", bad.err)
		l = l.WithoutSnapshot(plan.Base)
	}
}

// carryOut takes the steps of a plan, and returns the number of versions whose last file went.
func (s *Store) carryOut(ctx context.Context, c *claim, steps []Step) (versions int, err error) {
	last := int64(0)
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return versions, err
		}
		if step.Op == StepVerify {
			if err := s.verifySnapshot(ctx, step.Name); err != nil {
				return versions, err
			}
			continue
		}
		if err := c.remove(ctx, step.Name); err != nil {
			return versions, err
		}
		if v, _, ok := ParseFileName(step.Name); ok && v != last {
			versions, last = versions+1, v
		}
	}
	return versions, nil
}

// sweep removes what other programs have left, and what an interrupted confirmation of core has.
func (s *Store) sweep(ctx context.Context, c *claim, l Listing) error {
	if s.opts.SweepAge < 0 {
		return nil
	}
	for _, step := range PlanSweep(l, s.opts.Now().Add(-s.opts.SweepAge), nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.remove(ctx, step.Name); err != nil {
			return err
		}
		s.count(func(stats *Stats) { stats.Swept++ })
	}
	return nil
}

// noteShape remembers what maintenance has seen.
func (s *Store) noteShape(l Listing, plan SnapshotPlan) {
	s.count(func(stats *Stats) {
		stats.LatestVersion = l.Highest()
		stats.ChainLength = plan.Deltas
		stats.Retained = len(l.Versions)
		stats.LastSnapshot = 0
		for _, f := range l.Versions {
			if f.Snapshot {
				stats.LastSnapshot = f.Version
			}
		}
		if plan.Due && plan.Deltas == 0 {
			stats.LastSnapshot = plan.Version
		}
	})
}

// job runs maintenance as the owner, one of a kind at a time. Close and Rollback break it off.
func (s *Store) job(ctx context.Context, op string, kind gate, work func(context.Context, *claim) error) error {
	err := s.runJob(ctx, kind, work)
	if err != nil {
		err = core.PathError(op, s.dir, err)
	}
	if errors.Is(err, fs.ErrClosed) || errors.Is(err, errInterrupted) || ctx.Err() != nil {
		return err // it was broken off, which says nothing of the store
	}
	now := s.opts.Now()
	s.count(func(stats *Stats) {
		if kind == s.cleaning {
			stats.Cleaning.note(now, err)
		} else {
			stats.Snapshotting.note(now, err)
		}
	})
	return err
}

// errInterrupted is why a job ends that a rollback breaks off.
var errInterrupted = fmt.Errorf("%w: a rollback broke it off", core.ErrUnavailable)

func (s *Store) runJob(ctx context.Context, kind gate, work func(context.Context, *claim) error) error {
	if s.opts.ReadOnly {
		return fmt.Errorf("%w: the store was opened for reading only", fs.ErrPermission)
	}
	ctx, done, err := s.ops.beginStoppable(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !s.register(&cancel) {
		return errInterrupted
	}
	defer s.unregister(&cancel)
	err = s.inGates(ctx, kind, work)
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return err
}

func (s *Store) inGates(ctx context.Context, kind gate, work func(context.Context, *claim) error) error {
	if err := kind.enter(ctx); err != nil {
		return err
	}
	defer kind.leave()
	if err := s.writing.enter(ctx); err != nil {
		return err
	}
	c, err := s.own(ctx)
	s.writing.leave() // commits go on
	if err != nil {
		return err
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	return work(ctx, c)
}

// register makes a job known to Rollback; it is false while a rollback is under way.
func (s *Store) register(cancel *context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rollingBack {
		return false
	}
	s.jobs[cancel] = struct{}{}
	return true
}

func (s *Store) unregister(cancel *context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, cancel)
}

// interruptMaintenance breaks off what maintenance is under way, and keeps any from beginning until leave.
func (s *Store) interruptMaintenance(ctx context.Context) (leave func(), err error) {
	s.mu.Lock()
	s.rollingBack = true
	for cancel := range s.jobs {
		(*cancel)(errInterrupted)
	}
	s.mu.Unlock()
	var held []gate
	leave = func() {
		for _, g := range held {
			g.leave()
		}
		s.mu.Lock()
		s.rollingBack = false
		s.mu.Unlock()
	}
	for _, g := range []gate{s.snapshots, s.cleaning} {
		if err := g.enter(ctx); err != nil {
			leave()
			return nil, err
		}
		held = append(held, g)
	}
	return leave, nil
}
