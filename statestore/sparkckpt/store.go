package sparkckpt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Store is one partition of a store of an operator, as its directory was when it was listed. It is safe for concurrent use.
type Store struct {
	statestore.StoreID
	Dir string
	// Provider is told from the files; where there are none, or those of both, from the offset log.
	Provider Provider
	// Listing are the files of an HDFS-backed store, Rocks those of a RocksDB store.
	Listing statestore.Listing
	Rocks   RocksListing
	// Entries are all entries of the directory, as they were listed.
	Entries []core.FileInfo

	c *Checkpoint
}

// Store lists a store's directory. If that is not there the error is fs.ErrNotExist, and so it is for the default store of a
// partition that has others only: its directory is theirs too.
func (c *Checkpoint) Store(ctx context.Context, id statestore.StoreID) (*Store, error) {
	dir, err := statestore.StoreDir(c.StateRoot(), id.Operator, id.Partition, id.Name)
	if err != nil {
		return nil, core.PathError("open", c.StateRoot(), err)
	}
	if id.Name == "" {
		id.Name = statestore.DefaultStore
	}
	s := &Store{StoreID: id, Dir: dir, c: c}
	if err := s.list(ctx); err != nil {
		return s, err
	}
	if id.Name == statestore.DefaultStore && len(s.Listing.Versions)+len(s.Rocks.Versions) == 0 {
		o, _ := c.operator(ctx, id.Operator) // what is wrong with it says Operators
		if names, err := c.storeNames(ctx, o, dir); err != nil || !slices.Contains(names, id.Name) {
			return s, core.PathError("open", dir, cmp.Or(err, fmt.Errorf("%w: the partition has the stores %s", fs.ErrNotExist, strings.Join(names, ", "))))
		}
	}
	return s, nil
}

// list looks at the directory again.
func (s *Store) list(ctx context.Context) error {
	s.Entries = nil
	for info, err := range s.c.fsys.List(ctx, s.Dir) {
		if err != nil {
			return err
		}
		s.Entries = append(s.Entries, info)
	}
	s.Listing, s.Rocks = statestore.Sort(s.Entries), SortRocks(s.Entries)
	s.Provider = providerOf(s.Listing, s.Rocks, s.c.Pins)
	return nil
}

func providerOf(l statestore.Listing, r RocksListing, pins Pins) Provider {
	switch hdfs, rocks := len(l.Versions) > 0, len(r.Versions) > 0; {
	case hdfs && !rocks:
		return HDFSBacked
	case rocks && !hdfs:
		return RocksDB
	}
	return pins.Provider()
}

// Checkpoint is the one that the store belongs to.
func (s *Store) Checkpoint() *Checkpoint { return s.c }

// Highest is the highest version that a file is named for, 0 if there is none.
func (s *Store) Highest() int64 {
	if s.Provider == RocksDB {
		return s.Rocks.Highest()
	}
	return s.Listing.Highest()
}

// Versions are those that files are named for, ascending, each once.
func (s *Store) Versions() []int64 {
	var versions []int64
	for _, f := range s.Listing.Versions {
		versions = append(versions, f.Version)
	}
	if s.Provider == RocksDB {
		versions = nil
		for _, f := range s.Rocks.Versions {
			versions = append(versions, f.Version)
		}
	}
	return slices.Compact(versions)
}

// Loadable are the versions whose files are complete, by their names, for Spark: of a RocksDB store also those that only
// RocksDB can load. In checkpoint format 2 a version counts if one of its ids has a changelog or a snapshot; which of them the
// lineage leads to is not looked at.
func (s *Store) Loadable() []int64 {
	if s.Provider != RocksDB {
		return statestore.Loadable(s.Listing)
	}
	var loadable []int64
	previous, complete := int64(0), true
	for _, v := range s.Versions() {
		zip, changelog := false, false
		for _, f := range s.Rocks.Of(v) {
			zip, changelog = zip || f.Zip, changelog || f.Changelog
		}
		complete = zip || changelog && complete && v == previous+1
		previous = v
		if complete {
			loadable = append(loadable, v)
		}
	}
	return loadable
}

// Snapshots are the versions that have a snapshot.
func (s *Store) Snapshots() []int64 {
	var versions []int64
	if s.Provider == RocksDB {
		for _, f := range s.Rocks.Versions {
			if f.Zip {
				versions = append(versions, f.Version)
			}
		}
		return slices.Compact(versions)
	}
	for _, f := range s.Listing.Versions {
		if f.Snapshot {
			versions = append(versions, f.Version)
		}
	}
	return versions
}

// Bytes are the sizes of the files of all versions, without what RocksDB's snapshots share.
func (s *Store) Bytes() int64 {
	n := int64(0)
	if s.Provider == RocksDB {
		for _, f := range s.Rocks.Versions {
			n += f.ChangelogBytes + f.ZipBytes
		}
		return n
	}
	for _, f := range s.Listing.Versions {
		n += f.DeltaBytes + f.SnapshotBytes
	}
	return n
}

// Files is the number of files of all versions.
func (s *Store) Files() int {
	n := 0
	count := func(there ...bool) {
		for _, t := range there {
			if t {
				n++
			}
		}
	}
	if s.Provider == RocksDB {
		for _, f := range s.Rocks.Versions {
			count(f.Changelog, f.Zip)
		}
		return n
	}
	for _, f := range s.Listing.Versions {
		count(f.Delta, f.Snapshot)
	}
	return n
}

// Version names a version of a store; ID is "" in checkpoint format 1.
type Version struct {
	Number int64
	ID     string
}

// String returns the version as file names have it.
func (v Version) String() string {
	if v.ID == "" {
		return fmt.Sprint(v.Number)
	}
	return fmt.Sprintf("%d_%s", v.Number, v.ID)
}

// AmbiguousError says that a version has several ids and the commit log does not tell which one counts. It is fs.ErrInvalid.
type AmbiguousError struct {
	Dir     string
	Version int64
	IDs     []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("version %d of %s has %d ids, and the commit log names none of them: %v", e.Version, e.Dir, len(e.IDs), e.IDs)
}

// Unwrap makes the error fs.ErrInvalid.
func (e *AmbiguousError) Unwrap() error { return fs.ErrInvalid }

// Resolve completes a version of a store in checkpoint format 2 that has no id: with the one that the commit log names, else
// with the only one that there is. Several are an *AmbiguousError. Every other version stays as it is.
func (s *Store) Resolve(ctx context.Context, v Version) (Version, error) {
	if v.ID != "" || s.Provider != RocksDB {
		return v, nil
	}
	candidates := s.Rocks.Of(v.Number)
	if len(candidates) == 0 || candidates[0].ID == "" {
		return v, nil
	}
	committed, err := s.c.UniqueIDs(ctx, v.Number-1, s.Operator, s.Partition)
	if err != nil {
		return v, err
	}
	var ids []string
	for _, f := range candidates {
		// The ids of a partition's stores are all different, so the one that is here is this store's.
		if slices.Contains(committed, f.ID) {
			return Version{v.Number, f.ID}, nil
		}
		ids = append(ids, f.ID)
	}
	if len(ids) > 1 {
		return v, &AmbiguousError{Dir: s.Dir, Version: v.Number, IDs: ids}
	}
	return Version{v.Number, ids[0]}, nil
}

// checksummed returns whether rows have checksums: as the offset log says, else as the first of the files tells in which
// there is a row. What cannot be told because of damage is an error: a wrong guess would make wrong values.
func (s *Store) checksummed(ctx context.Context, files []file) (bool, error) {
	if on, known := s.c.Pins.RowChecksum(); known {
		return on, nil
	}
	var damage error
	for _, f := range files {
		on, known, err := s.detect(ctx, f)
		switch {
		case known && err == nil:
			return on, nil
		case err != nil && !errors.Is(err, core.ErrCorrupt):
			return false, err
		case err != nil && damage == nil:
			damage = err
		}
	}
	return false, damage
}

// file is one that is read for a version.
type file struct {
	name string
	kind codec.Kind
}
