package statestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// FileProblem is a file of a version that cannot be read to its end.
type FileProblem struct {
	Name    string // in the store's directory
	Version int64
	Kind    codec.Kind
	// Err is core.ErrCorrupt for damage; what else it is may pass.
	Err error
}

// Verify reads every delta and snapshot to its end and returns those that cannot be read, and then the gap errors of versions
// that lack a delta; versions below all that are loadable are what a clean-up has left. It writes nothing. In files without our footer damage that the compression does not see is not found.
func (s *Store) Verify(ctx context.Context) ([]FileProblem, error) {
	ctx, done, err := s.ops.beginStoppable(ctx)
	if err != nil {
		return nil, core.PathError("verify", s.dir, err)
	}
	defer done()
	l, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var problems []FileProblem
	for _, f := range l.Versions {
		for _, kind := range []codec.Kind{codec.Delta, codec.Snapshot} {
			if kind == codec.Delta && !f.Delta || kind == codec.Snapshot && !f.Snapshot {
				continue
			}
			name := FileName(f.Version, kind)
			if err := s.readThrough(ctx, name, kind); err != nil {
				if ctx.Err() != nil {
					return problems, core.PathError("verify", s.dir, ctx.Err())
				}
				problems = append(problems, FileProblem{Name: name, Version: f.Version, Kind: kind, Err: err})
			}
		}
	}
	loadable := Loadable(l)
	for _, f := range l.Versions {
		if len(loadable) > 0 && f.Version < loadable[0] {
			continue // a clean-up stopped there
		}
		if _, err := PlanReplay(l, f.Version); err != nil {
			problems = append(problems, FileProblem{Name: FileName(f.Version, codec.Delta), Version: f.Version, Kind: codec.Delta, Err: err})
		}
	}
	return problems, nil
}

// Repair reads every snapshot to its end and writes those again that are damaged, if the deltas make them. It returns their
// versions. A damaged snapshot that the deltas do not make stays as it is, and is an error; so is a damaged delta when a
// version is rebuilt from it.
func (s *Store) Repair(ctx context.Context) (repaired []int64, err error) {
	err = s.job(ctx, "repair", s.snapshots, func(ctx context.Context, c *claim) error {
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		var failed []error
		for _, f := range l.Versions {
			if !f.Snapshot {
				continue
			}
			var bad *damagedSnapshotError
			switch err := s.verifySnapshot(ctx, FileName(f.Version, codec.Snapshot)); {
			case errors.As(err, &bad):
				if err := s.repairSnapshot(ctx, c, f.Version); err != nil {
					failed = append(failed, fmt.Errorf("%w: it cannot be rebuilt: %w", bad.err, err))
				} else {
					repaired = append(repaired, f.Version)
				}
			case err != nil:
				return errors.Join(append(failed, err)...)
			}
		}
		return errors.Join(failed...)
	})
	return repaired, err
}

// readThrough reads a file to its end.
func (s *Store) readThrough(ctx context.Context, name string, kind codec.Kind) error {
	in, err := s.openFile(ctx, name, kind, false)
	if err != nil {
		return err
	}
	defer in.close()
	for n := 1; ; n++ {
		if _, err := in.records.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// verifySnapshot reads a snapshot to its end, unless that was done. Damage is a *damagedSnapshotError.
func (s *Store) verifySnapshot(ctx context.Context, name string) error {
	o, err := s.originOf(ctx, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	done := s.verified[name].equal(o)
	s.mu.Unlock()
	if done {
		return nil
	}
	err = s.readThrough(ctx, name, codec.Snapshot)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.verified[name] = o
		delete(s.damaged, name)
	case errors.Is(err, core.ErrCorrupt):
		s.damaged[name] = o
		return &damagedSnapshotError{err}
	}
	return err
}

// withoutDamaged returns the listing without the snapshots that are known to be damaged, and forgets of those what is gone.
func (s *Store) withoutDamaged(l Listing) Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.damaged {
		v, _, _ := ParseFileName(name)
		if l.snapshotOrigin(v).equal(o) {
			l = l.WithoutSnapshot(v)
		} else {
			delete(s.damaged, name)
		}
	}
	for name, o := range s.verified {
		if v, _, _ := ParseFileName(name); !l.snapshotOrigin(v).equal(o) {
			delete(s.verified, name)
		}
	}
	return l
}

// repairDamaged writes again what is known to be damaged and can be rebuilt.
func (s *Store) repairDamaged(ctx context.Context, c *claim, l Listing) error {
	s.withoutDamaged(l)
	s.mu.Lock()
	var versions []int64
	for name := range s.damaged {
		v, _, _ := ParseFileName(name)
		versions = append(versions, v)
	}
	s.mu.Unlock()
	slices.Sort(versions)
	var failed []error
	for _, v := range versions {
		if err := s.repairSnapshot(ctx, c, v); err != nil {
			failed = append(failed, fmt.Errorf("%s is damaged and was not repaired: %w", FileName(v, codec.Snapshot), err))
		}
	}
	return errors.Join(failed...)
}

// repairSnapshot puts a damaged snapshot into quarantine and writes it again. The state is loaded first: without another way
// to make it the damaged file is all there is, and stays.
func (s *Store) repairSnapshot(ctx context.Context, c *claim, v int64) error {
	name := FileName(v, codec.Snapshot)
	s.mu.Lock()
	bad := s.damaged[name]
	s.mu.Unlock()
	l, err := s.list(ctx)
	if err != nil {
		return err
	}
	if _, err := PlanReplay(l.WithoutSnapshot(v), v); err != nil {
		return err
	}
	state, err := s.acquire(ctx, v, false)
	if err != nil {
		return err
	}
	defer s.opts.Budget.release(state)
	if err := s.quarantine(ctx, c, bad); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.damaged, name)
	s.mu.Unlock()
	if err := s.writeSnapshot(ctx, c, v); err != nil {
		return err
	}
	s.count(func(stats *Stats) { stats.Repairs++ })
	s.opts.Logger.InfoContext(ctx, "a damaged snapshot was written again", "store", s.dir, "version", v)
	return nil
}

const (
	// quarantineDir holds damaged files. Neither it nor what is in it has a dot in its name, so Spark passes it by.
	quarantineDir = "_quarantine"
	// maxQuarantined is how many files stay there.
	maxQuarantined = 4
)

// quarantine moves a damaged file away, through the claim's directory: only the owner can. A file that is not the one that
// was found damaged is put back.
func (s *Store) quarantine(ctx context.Context, c *claim, bad origin) error {
	dir := path.Join(s.dir, quarantineDir)
	if err := s.fsys.MkdirAll(ctx, dir); err != nil {
		return err
	}
	if err := s.boundQuarantine(ctx, c, dir); err != nil {
		return err
	}
	aside, err := c.fresh("damaged")
	if err != nil {
		return err
	}
	file := path.Join(s.dir, bad.name)
	if err := s.fsys.Rename(ctx, file, aside, core.RenameNoReplace); err != nil {
		return c.explain(ctx, err)
	}
	info, err := s.fsys.Stat(ctx, aside)
	if err == nil && !bad.equal(origin{bad.name, info.Size, info.ModTime}) {
		err = core.PathError("repair", file, fmt.Errorf("%w: the file was replaced meanwhile", core.ErrUnavailable))
	}
	if err != nil {
		return errors.Join(err, s.fsys.Rename(ctx, aside, file, core.RenameNoReplace))
	}
	v, _, _ := ParseFileName(bad.name)
	id, err := s.opts.NewUUID()
	if err != nil {
		return core.PathError("repair", file, err)
	}
	kept := path.Join(dir, strconv.FormatInt(v, 10)+"-snapshot-"+id.String())
	return c.explain(ctx, s.fsys.Rename(ctx, aside, kept, core.RenameNoReplace))
}

// boundQuarantine makes room for one more file, oldest first.
func (s *Store) boundQuarantine(ctx context.Context, c *claim, dir string) error {
	var kept []core.FileInfo
	for info, err := range s.fsys.List(ctx, dir) {
		if err != nil {
			return err
		}
		if info.IsRegular() {
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b core.FileInfo) int { return a.ModTime.Compare(b.ModTime) })
	for len(kept) >= maxQuarantined {
		err := c.remove(ctx, path.Join(quarantineDir, kept[0].Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		kept = kept[1:]
	}
	return nil
}
