package statestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// Commit makes the version and returns its number: when it returns nil the changes are in one file with the chosen
// durability, also if there are none. Whatever the outcome, the transaction has ended.
//
// If the version is there already, by another attempt, equal content is success and other content a *ConflictError. If the
// version that the transaction began from was replaced since, the error is a *ReplacedError; if there are versions above, an
// *AheadError; if another owner has taken over, core.ErrFenced. After core.ErrOutcomeUnknown the version may or may not be
// there: doing the same again tells.
func (t *Tx) Commit(ctx context.Context) (int64, error) {
	t.mu.Lock()
	err := t.usable("commit")
	if err == nil {
		t.state = committing
	}
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	defer t.end(committing)
	s := t.store
	err = s.write(ctx, "commit", func(ctx context.Context) error { return s.commit(ctx, t) })
	if err != nil {
		s.count(func(stats *Stats) { stats.FailedCommits++ })
		return 0, t.failed("commit", err)
	}
	return t.base.number + 1, nil
}

// commit is called with the gate writing held.
func (s *Store) commit(ctx context.Context, t *Tx) error {
	c, err := s.own(ctx)
	if err != nil {
		return err
	}
	return c.explain(ctx, s.commitAs(ctx, c, t))
}

func (s *Store) commitAs(ctx context.Context, c *claim, t *Tx) (err error) {
	if err := s.checkBase(ctx, t.base); err != nil {
		return err
	}
	files := s.known()
	v := t.base.number + 1
	if err := nothingAbove(*files, v); err != nil {
		return err
	}
	if name := FileName(v, codec.Delta); files.blocks(name) {
		return fmt.Errorf("%w: %s is not a regular file", fs.ErrExist, name)
	}
	t.settle()
	changed := t.editor.AddedBytes()
	made := &version{store: s, number: v, tree: t.editor.Freeze()}
	if _, exists := files.find(v); exists {
		return s.recommit(ctx, t, made)
	}
	made.origin, err = s.publishDelta(ctx, c, t.base.tree, made, changed)
	switch {
	case errors.Is(err, fs.ErrExist) && !errors.Is(err, core.ErrOutcomeUnknown):
		s.forgetFiles()
		return s.recommit(ctx, t, made) // a program that knows of no owners was faster
	case err != nil:
		s.forgetFiles()
		return err
	}
	s.keep(t, made)
	s.count(func(stats *Stats) { stats.Commits++ })
	return nil
}

// known returns what the owner knows to be in the directory, or nil.
func (s *Store) known() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

// forgetFiles makes the owner look again before it writes again.
func (s *Store) forgetFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = nil
}

// keep takes a version that is on disk into the cache and into what is known.
func (s *Store) keep(t *Tx, made *version) {
	t.mu.Lock()
	reserved := t.reserved
	t.reserved = 0
	t.mu.Unlock()
	b := s.opts.Budget
	b.adopt(made, reserved, true)
	b.release(made)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files != nil {
		s.files = s.files.with(made.number, made.origin)
	}
}

// with returns the listing with the delta of a version above all others.
func (l *Listing) with(v int64, delta origin) *Listing {
	if _, ok := l.find(v); ok || v < l.Highest() {
		return l
	}
	more := *l
	more.Versions = append(l.Versions, VersionFiles{Version: v, Delta: true, DeltaBytes: delta.size, DeltaTime: delta.modTime})
	return &more
}

// blocks reports whether something other than a file has the name.
func (l *Listing) blocks(name string) bool {
	for _, blocked := range l.Blocked {
		if blocked == name {
			return true
		}
	}
	return false
}

// checkBase makes sure that a version in memory is still what the files say: a delta that is written after it is applied to
// those.
func (s *Store) checkBase(ctx context.Context, base *version) error {
	if base.number == 0 {
		return nil
	}
	same, err := s.stillThere(ctx, base.origin)
	if err != nil || same {
		return err
	}
	s.forgetFiles()
	if _, err := s.own(ctx); err != nil {
		return err
	}
	now, err := s.reload(ctx, base.number)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(&ReplacedError{base.number}, err)
	case err != nil:
		return err
	}
	defer s.opts.Budget.release(now)
	if countDifferences(base.tree, now.tree) > 0 {
		return &ReplacedError{base.number}
	}
	return nil // written again with the same content, as Spark does when it repeats a batch
}

// reload reads a version from the files, whatever is in memory.
func (s *Store) reload(ctx context.Context, v int64) (*version, error) {
	s.opts.Budget.forget(s, func(c *version) bool { return c.number == v })
	return s.acquire(ctx, v, false)
}

// recommit compares a version that is there with the one that was to be made.
func (s *Store) recommit(ctx context.Context, t *Tx, made *version) error {
	if _, err := s.own(ctx); err != nil {
		return err
	}
	if name := FileName(made.number, codec.Delta); s.known().blocks(name) {
		return fmt.Errorf("%w: %s is not a regular file", fs.ErrExist, name)
	}
	there, err := s.committed(ctx, t.base, made.number)
	if err != nil {
		return fmt.Errorf("version %d is committed already, and cannot be compared: %w", made.number, err)
	}
	defer s.opts.Budget.release(there)
	if n := countDifferences(there.tree, made.tree); n > 0 {
		s.count(func(stats *Stats) { stats.Conflicts++ })
		return &ConflictError{Version: made.number, Differences: n}
	}
	s.count(func(stats *Stats) { stats.Recommits++ })
	return nil
}

// committed reads the successor of a version that is there, from its delta if it has one.
func (s *Store) committed(ctx context.Context, base *version, v int64) (*version, error) {
	l := *s.known()
	if i, ok := l.find(v); !ok || !l.Versions[i].Delta {
		return s.reload(ctx, v)
	}
	return s.replayFrom(ctx, l, Replay{Version: v, Base: base.number, Deltas: []int64{v}}, base)
}

func countDifferences(a, b *ordered.Map) int {
	n := 0
	for range ordered.Diff(a, b) {
		n++
	}
	return n
}

// publishDelta writes what made has changed since base, which is about size bytes.
func (s *Store) publishDelta(ctx context.Context, c *claim, base *ordered.Map, made *version, size int64) (origin, error) {
	name := FileName(made.number, codec.Delta)
	return s.publish(ctx, c, name, codec.Delta, size, func(w *codec.Writer) error {
		for change := range ordered.Delta(base, made.tree) {
			var err error
			if change.Kind == ordered.Removed {
				err = w.Remove(change.Key)
			} else {
				err = w.Put(change.Key, change.New)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// publish is the one way in which a file of a version comes to be: written in the claim's directory, made durable, renamed
// without replacing, and looked at. size is about how large it will be.
func (s *Store) publish(ctx context.Context, c *claim, name string, kind codec.Kind, size int64, fill func(*codec.Writer) error) (origin, error) {
	if err := s.removeCompanions(ctx, c, name); err != nil {
		return origin{}, err
	}
	temp, err := c.fresh(kind.String())
	if err != nil {
		return origin{}, err
	}
	file, err := core.CreateAtomic(ctx, s.fsys, core.AtomicOptions{
		Temp: temp, Final: path.Join(s.dir, name), Mode: core.RenameNoReplace, Create: s.opts.create(),
	})
	if err != nil {
		return origin{}, err
	}
	defer func() { _ = file.Abort() }() // after Commit it does nothing
	if err := s.encode(file, file.Abort, name, kind, size, fill); err != nil {
		return origin{}, err
	}
	written := file.Size()
	if err := file.Commit(); err != nil {
		return origin{}, err
	}
	return s.confirm(ctx, name, written)
}

// encode writes a file's content.
func (s *Store) encode(dst io.Writer, abort func() error, name string, kind codec.Kind, size int64, fill func(*codec.Writer) error) error {
	w, err := codec.NewWriter(dst, kind, s.opts.writer(path.Join(s.dir, name), size))
	if err == nil {
		defer w.Abort()
		if err = fill(w); err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		return errors.Join(err, abort())
	}
	return nil
}

// confirm looks at a file that was published. A storage that says it has renamed but has not is found here, and not at the
// next restart.
func (s *Store) confirm(ctx context.Context, name string, size int64) (origin, error) {
	o, err := s.originOf(ctx, name)
	if err == nil && o.size != size {
		err = core.PathError("stat", path.Join(s.dir, name), fmt.Errorf("%w: %d bytes, and %d were written", core.ErrCorrupt, o.size, size))
	}
	if err != nil {
		return o, fmt.Errorf("%w: the file was published, but cannot be seen: %w", core.ErrOutcomeUnknown, err)
	}
	return o, nil
}

// removeCompanions removes the checksum files that others have left for a file of this name: Spark 4.1 would hold them
// against the new one.
func (s *Store) removeCompanions(ctx context.Context, c *claim, name string) error {
	files := s.known()
	if files == nil {
		return nil
	}
	stale := append([]string(nil), files.Companions[name]...)
	for _, orphan := range files.Orphans {
		if file, _ := ParseCompanionName(orphan.Name); file == name {
			stale = append(stale, orphan.Name)
		}
	}
	for _, companion := range stale {
		if err := c.remove(ctx, companion); err != nil {
			return err
		}
	}
	return nil
}
