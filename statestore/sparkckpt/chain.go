package sparkckpt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// chain is what a version of a RocksDB store is loaded from: the empty store, which may be a snapshot without rows, and
// changelogs in order.
type chain struct {
	base  string
	links []link
}

// loadRocks loads a version by its changelogs.
func (s *Store) loadRocks(ctx context.Context, v Version) (*View, error) {
	view := &View{Version: v}
	if v.Number == 0 {
		return view, nil
	}
	c, err := s.chain(ctx, v)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, l := range c.links {
		if err := s.checkRocksFile(ctx, l.changelog(s.Dir), l.id); err != nil {
			return nil, err
		}
		files = append(files, file{l.changelog(s.Dir), codec.Changelog})
	}
	if view.RowChecksum, err = s.checksummed(ctx, files); err != nil {
		return nil, err
	}
	if view.Base = c.base; c.base != "" {
		view.Files = append(view.Files, c.base)
	}
	rows := map[string][]byte{}
	for _, f := range files {
		if _, err := s.apply(ctx, f, view.RowChecksum, rows); err != nil {
			return nil, err
		}
		view.Files = append(view.Files, path.Base(f.name))
	}
	view.take(rows)
	return view, nil
}

// checkRocksFile compares a file of checkpoint format 2 with its companion, as Spark does. In format 1 Spark 4.2 looks at
// none, and attempts that reused a name may have left one that is of another.
func (s *Store) checkRocksFile(ctx context.Context, name, id string) error {
	if id == "" {
		return nil
	}
	_, err := checkCompanion(ctx, s.c.fsys, name)
	return err
}

// chain finds what a version is loaded from.
func (s *Store) chain(ctx context.Context, v Version) (chain, error) {
	if v.ID == "" {
		return s.chainOfNumbers(ctx, v.Number)
	}
	return s.chainOfIDs(ctx, v)
}

// chainOfNumbers is that of checkpoint format 1: one changelog for each version.
func (s *Store) chainOfNumbers(ctx context.Context, v int64) (chain, error) {
	var c chain
	at := v
	for ; at > 0; at-- {
		f, there := s.Rocks.find(at, "")
		if !there || !f.Changelog {
			break
		}
		c.links = append(c.links, link{version: at})
	}
	slices.Reverse(c.links)
	if at == 0 {
		return c, nil
	}
	// The changelogs reach down to at+1: a snapshot of at or of any version above it is a base.
	var needed error
	for base := at; base <= v; base++ {
		f, there := s.Rocks.find(base, "")
		if !there || !f.Zip {
			continue
		}
		name, err := s.emptyBase(ctx, v, link{version: base})
		if err == nil {
			return chain{base: name, links: c.links[base-at:]}, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return chain{}, err
		}
		needed = err
	}
	if needed != nil {
		return chain{}, needed
	}
	if len(s.Rocks.Of(v)) == 0 {
		return chain{}, missingError(s.Dir, v, "there is neither %s nor %s", statestore.ChangelogName(v, ""), statestore.ZipName(v, ""))
	}
	return chain{}, missingError(s.Dir, v, "%s is missing and no snapshot follows", statestore.ChangelogName(at, ""))
}

// emptyBase is the name of a snapshot that has no rows; of any other the error says that RocksDB is needed.
func (s *Store) emptyBase(ctx context.Context, v int64, l link) (string, error) {
	if err := s.checkRocksFile(ctx, l.zip(s.Dir), l.id); err != nil {
		return "", err
	}
	snapshot, err := ReadRocksSnapshot(ctx, s.c.fsys, l.zip(s.Dir))
	if err != nil {
		return "", err
	}
	name := path.Base(l.zip(s.Dir))
	if !snapshot.Empty() {
		return "", &SnapshotNeededError{Dir: s.Dir, Version: v, Zip: name, Tables: len(snapshot.Tables) + len(snapshot.Logs)}
	}
	return name, nil
}

// chainOfIDs is that of checkpoint format 2. The lineage of a changelog leads from the version before it down to the last
// snapshot, that included; the changelog of that version leads on.
func (s *Store) chainOfIDs(ctx context.Context, v Version) (chain, error) {
	var c chain
	current := link{v.Number, v.ID}
	for {
		lineage, err := s.lineage(ctx, current)
		if errors.Is(err, fs.ErrNotExist) {
			return s.chainFromSnapshot(ctx, v, current, c)
		}
		if err != nil {
			return chain{}, err
		}
		c.links = append(c.links, current)
		if len(lineage) == 0 && current.version == 1 {
			break
		}
		if len(lineage) == 0 {
			return chain{}, missingError(s.Dir, v.Number, "%s names nothing that it builds on", path.Base(current.changelog(s.Dir)))
		}
		for i := len(lineage) - 1; i > 0; i-- {
			c.links = append(c.links, link{lineage[i].Version, lineage[i].CheckpointUniqueID})
		}
		current = link{lineage[0].Version, lineage[0].CheckpointUniqueID}
	}
	slices.Reverse(c.links)
	for _, l := range c.links {
		if f, there := s.Rocks.find(l.version, l.id); !there || !f.Changelog {
			return chain{}, missingError(s.Dir, v.Number, "%s is missing", path.Base(l.changelog(s.Dir)))
		}
	}
	return c, nil
}

// chainFromSnapshot is the case that the changelog of a version is not there; links lead from it to v, newest first.
func (s *Store) chainFromSnapshot(ctx context.Context, v Version, at link, c chain) (chain, error) {
	if f, there := s.Rocks.find(at.version, at.id); !there || !f.Zip {
		if len(c.links) == 0 {
			return chain{}, missingError(s.Dir, v.Number, "there is neither %s nor %s", path.Base(at.changelog(s.Dir)), path.Base(at.zip(s.Dir)))
		}
		return chain{}, missingError(s.Dir, v.Number, "%s is missing", path.Base(at.changelog(s.Dir)))
	}
	name, err := s.emptyBase(ctx, v.Number, at)
	if err != nil {
		return chain{}, err
	}
	c.base = name
	slices.Reverse(c.links)
	return c, nil
}

// lineage reads the head of a changelog. Its versions must follow each other and end below the changelog's own.
func (s *Store) lineage(ctx context.Context, l link) ([]codec.LineageEntry, error) {
	name := l.changelog(s.Dir)
	r, err := s.c.fsys.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	reader, err := codec.NewChangelogReader(r, r.Size(), codec.ReaderOptions{Name: name})
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // it never fails
	lineage := reader.Lineage()
	for i, e := range lineage {
		if want := l.version - int64(len(lineage)-i); e.Version != want || want < 1 || core.CheckComponent(e.CheckpointUniqueID) != nil {
			return nil, core.PathError("read", name, fmt.Errorf("%w: the lineage has version %d with id %q where %d should be", core.ErrCorrupt, e.Version, e.CheckpointUniqueID, want))
		}
	}
	return lineage, nil
}
