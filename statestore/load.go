package statestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// Load returns version v. Version 0 is the empty store; a negative one is fs.ErrInvalid. A version without files is
// fs.ErrNotExist, one that lacks a delta a *GapError. A delta that is damaged is core.ErrCorrupt; a snapshot that is, is
// passed over if the deltas make the same version, and maintenance then writes it again. A storage that cannot be read now
// is an error, never another version. A load writes nothing, and nothing of a load that failed is kept.
//
// If the version is in memory, what is read is only whether its file is still the same.
func (s *Store) Load(ctx context.Context, v int64) (*View, error) {
	ctx, done, err := s.ops.beginStoppable(ctx)
	if err != nil {
		return nil, core.PathError("load", s.dir, err)
	}
	defer done()
	loaded, err := s.acquire(ctx, v, false)
	if err != nil {
		return nil, core.PathError("load", s.versionPath(v), err)
	}
	return &View{store: s, version: loaded}, nil
}

// acquire returns a version in use by the caller. To write after it there must be no versions above its successor.
func (s *Store) acquire(ctx context.Context, v int64, toWrite bool) (*version, error) {
	if v < 0 || toWrite && v > maxVersion {
		return nil, fmt.Errorf("%w: version %d", fs.ErrInvalid, v)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if v == 0 {
		if toWrite {
			if err := s.checkAhead(ctx, v); err != nil {
				return nil, err
			}
		}
		empty := &version{store: s, tree: &ordered.Map{}}
		s.opts.Budget.adopt(empty, 0, false)
		return empty, nil
	}
	cached, err := s.acquireCached(ctx, v)
	if err != nil {
		return nil, err
	}
	if cached == nil {
		if err := s.loading.enter(ctx); err != nil {
			return nil, err
		}
		defer s.loading.leave()
		if cached, err = s.acquireCached(ctx, v); err != nil {
			return nil, err
		}
	}
	if cached == nil {
		return s.load(ctx, v, toWrite)
	}
	s.count(func(stats *Stats) { stats.CacheHits++ })
	if toWrite {
		if err := s.checkAhead(ctx, v); err != nil {
			s.opts.Budget.release(cached)
			return nil, err
		}
	}
	return cached, nil
}

// acquireCached returns the version from memory if its file is still the same, else nil.
func (s *Store) acquireCached(ctx context.Context, v int64) (*version, error) {
	b := s.opts.Budget
	cached := b.acquire(s, v)
	if cached == nil {
		return nil, nil
	}
	same, err := s.stillThere(ctx, cached.origin)
	if same {
		return cached, nil
	}
	b.release(cached)
	if err == nil {
		b.forget(s, func(c *version) bool { return c == cached })
	}
	return nil, err
}

// stillThere reports whether a file is the one that was read or written.
func (s *Store) stillThere(ctx context.Context, o origin) (bool, error) {
	now, err := s.originOf(ctx, o.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && now.equal(o), err
}

func (s *Store) originOf(ctx context.Context, name string) (origin, error) {
	info, err := s.fsys.Stat(ctx, path.Join(s.dir, name))
	return origin{name: name, size: info.Size, modTime: info.ModTime}, err
}

// checkAhead refuses to write after v if there are versions above its successor.
func (s *Store) checkAhead(ctx context.Context, v int64) error {
	s.mu.Lock()
	files := s.files
	s.mu.Unlock()
	if files == nil {
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		files = &l
	}
	return nothingAbove(*files, v+1)
}

// load reads a version from files. The caller holds the gate loading.
func (s *Store) load(ctx context.Context, v int64, toWrite bool) (*version, error) {
	s.count(func(stats *Stats) { stats.Loads++ })
	const attempts = 3
	var err error
	for range attempts {
		var l Listing
		if l, err = s.list(ctx); err != nil {
			return nil, err
		}
		if toWrite {
			if err := nothingAbove(l, v+1); err != nil {
				return nil, err
			}
		}
		var plans []Replay
		if plans, err = PlanReplay(l, v); err != nil {
			return nil, err
		}
		var loaded *version
		if loaded, err = s.replayAny(ctx, l, plans); err == nil {
			return loaded, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// A file went between the listing and its opening: cleaned up, or replaced.
	}
	return nil, err
}

// replayAny takes the first plan whose snapshot is not damaged. All of them make the same version.
func (s *Store) replayAny(ctx context.Context, l Listing, plans []Replay) (*version, error) {
	var damage []error
	for _, plan := range s.soundFirst(l, plans) {
		loaded, err := s.replay(ctx, l, plan)
		var bad *damagedSnapshotError
		switch {
		case err == nil:
			for _, d := range damage {
				s.opts.Logger.WarnContext(ctx, "a snapshot was passed over", "store", s.dir, "version", plan.Version, "error", d)
			}
			return loaded, nil
		case errors.As(err, &bad):
			damage = append(damage, bad.err)
		default:
			return nil, errors.Join(append(damage, err)...)
		}
	}
	return nil, errors.Join(damage...)
}

// soundFirst puts plans whose snapshot was found damaged behind the others. They are not left out: it may have been a replica.
func (s *Store) soundFirst(l Listing, plans []Replay) []Replay {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.damaged) == 0 {
		return plans
	}
	var sound, doubtful []Replay
	for _, plan := range plans {
		o := l.snapshotOrigin(plan.Base)
		if bad, known := s.damaged[o.name]; known && bad.equal(o) {
			doubtful = append(doubtful, plan)
		} else {
			sound = append(sound, plan)
		}
	}
	return append(sound, doubtful...)
}

// damagedSnapshotError says that a plan failed because of its snapshot, so that another may do.
type damagedSnapshotError struct{ err error }

func (e *damagedSnapshotError) Error() string { return e.err.Error() }
func (e *damagedSnapshotError) Unwrap() error { return e.err }

// replay loads a version by one plan, from a version in memory if there is one on the way.
func (s *Store) replay(ctx context.Context, l Listing, plan Replay) (*version, error) {
	parent, err := s.nearest(ctx, plan)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		defer s.opts.Budget.release(parent)
	}
	return s.replayFrom(ctx, l, plan, parent)
}

// replayFrom loads a version by one plan. With a parent, which is in use by the caller, it begins there.
func (s *Store) replayFrom(ctx context.Context, l Listing, plan Replay, parent *version) (*version, error) {
	b := s.opts.Budget
	r := replayer{store: s, ctx: ctx, listing: l, plan: plan}
	defer func() { b.unreserve(r.reserved) }()
	for {
		loaded, err := r.run(parent)
		if err == nil {
			loaded.origin = l.origin(plan.Version)
			b.adopt(loaded, r.reserved, true)
			r.reserved = 0
			return loaded, nil
		}
		if !errors.Is(err, errLarger) {
			return nil, err
		}
		// What was reserved is given back before waiting, so that two loads never wait for each other.
		b.unreserve(r.reserved)
		r.reserved = 0
	}
}

// nearest returns the newest version in memory that the plan leads through, in use by the caller, or nil.
func (s *Store) nearest(ctx context.Context, plan Replay) (*version, error) {
	b := s.opts.Budget
	for to := plan.Version; ; {
		near := b.acquireBelow(s, max(plan.Base, 1), to)
		if near == nil {
			return nil, nil
		}
		same, err := s.stillThere(ctx, near.origin)
		if same {
			return near, nil
		}
		to = near.number
		b.release(near)
		if err != nil {
			return nil, err
		}
		b.forget(s, func(c *version) bool { return c == near })
	}
}

// origin is the file that a version stands for: its delta, or its snapshot if there is no delta.
func (l Listing) origin(v int64) origin {
	i, ok := l.find(v)
	if !ok {
		return origin{}
	}
	if f := l.Versions[i]; f.Delta {
		return origin{FileName(v, codec.Delta), f.DeltaBytes, f.DeltaTime}
	}
	return l.snapshotOrigin(v)
}

func (l Listing) snapshotOrigin(v int64) origin {
	i, ok := l.find(v)
	if !ok || !l.Versions[i].Snapshot {
		return origin{}
	}
	return origin{FileName(v, codec.Snapshot), l.Versions[i].SnapshotBytes, l.Versions[i].SnapshotTime}
}
