package sparkckpt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// The directory of a RocksDB store.
//
//	<v>[_<id>].changelog        changes of version v since the version that its lineage ends with
//	<v>[_<id>].zip              snapshot: metadata, CURRENT, MANIFEST, OPTIONS; the rows are in SSTs/
//	<name>.crc                  Spark's checksum of the whole file, see companion.go
//	SSTs/ logs/                 tables of RocksDB, shared by snapshots
const (
	sstDir = "SSTs"
	logDir = "logs"
)

// RocksVersion is what is there of one version of a RocksDB store; in checkpoint format 2 a version may have several ids.
type RocksVersion struct {
	Version        int64
	ID             string // "" in checkpoint format 1
	Changelog      bool
	Zip            bool
	ChangelogBytes int64
	ZipBytes       int64
}

// RocksListing is what the directory of a RocksDB store holds, sorted out.
type RocksListing struct {
	Versions []RocksVersion // by version, then id
	Foreign  []string
}

// SortRocks sorts out the entries of a RocksDB store's directory.
func SortRocks(entries []core.FileInfo) RocksListing {
	var l RocksListing
	type key struct {
		version int64
		id      string
	}
	byKey := map[key]RocksVersion{}
	for _, e := range entries {
		name, isCompanion := strings.CutSuffix(e.Name, companionSuffix)
		v, id, zip, ok := statestore.ParseRocksName(name)
		switch {
		case ok && isCompanion && e.IsRegular():
		case ok && !isCompanion && e.IsRegular():
			f := byKey[key{v, id}]
			f.Version, f.ID = v, id
			if zip {
				f.Zip, f.ZipBytes = true, e.Size
			} else {
				f.Changelog, f.ChangelogBytes = true, e.Size
			}
			byKey[key{v, id}] = f
		case e.IsDir() && (e.Name == sstDir || e.Name == logDir || e.Name == metadataDir || isStoreName(e.Name)):
		case strings.HasPrefix(e.Name, "."): // Hadoop's checksums and temporaries
		default:
			l.Foreign = append(l.Foreign, e.Name)
		}
	}
	for _, f := range byKey {
		l.Versions = append(l.Versions, f)
	}
	slices.SortFunc(l.Versions, func(a, b RocksVersion) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), strings.Compare(a.ID, b.ID))
	})
	return l
}

// Of returns what is there of a version, one for each id.
func (l RocksListing) Of(v int64) []RocksVersion {
	var found []RocksVersion
	for _, f := range l.Versions {
		if f.Version == v {
			found = append(found, f)
		}
	}
	return found
}

// find returns what is there of a version with an id.
func (l RocksListing) find(v int64, id string) (RocksVersion, bool) {
	i, found := slices.BinarySearchFunc(l.Versions, RocksVersion{Version: v, ID: id}, func(a, b RocksVersion) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), strings.Compare(a.ID, b.ID))
	})
	if !found {
		return RocksVersion{}, false
	}
	return l.Versions[i], true
}

// Highest returns the highest version, or 0.
func (l RocksListing) Highest() int64 {
	if len(l.Versions) == 0 {
		return 0
	}
	return l.Versions[len(l.Versions)-1].Version
}

// SnapshotNeededError says that a version of a RocksDB store can be loaded only by RocksDB: the changelogs that are left
// begin at a snapshot whose rows are in RocksDB's own tables. It is errors.ErrUnsupported.
type SnapshotNeededError struct {
	Dir     string
	Version int64
	Zip     string // the snapshot
	Tables  int    // tables that it names
}

func (e *SnapshotNeededError) Error() string {
	return fmt.Sprintf("version %d of %s is loaded from %s, whose rows are in %d RocksDB tables, which are not read here",
		e.Version, e.Dir, e.Zip, e.Tables)
}

// Unwrap makes the error errors.ErrUnsupported.
func (e *SnapshotNeededError) Unwrap() error { return errors.ErrUnsupported }

// missingError is a version that no files make.
func missingError(dir string, v int64, format string, args ...any) error {
	return core.PathError("load", dir, fmt.Errorf("version %d cannot be rebuilt: %s: %w", v, fmt.Sprintf(format, args...), fs.ErrNotExist))
}

// link is one step of a chain: a version whose changelog is replayed.
type link struct {
	version int64
	id      string
}

func (l link) changelog(dir string) string {
	return path.Join(dir, statestore.ChangelogName(l.version, l.id))
}

func (l link) zip(dir string) string {
	return path.Join(dir, statestore.ZipName(l.version, l.id))
}
