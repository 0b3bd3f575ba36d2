package sparkckpt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Entry is a row: its bytes as the store holds them. For the HDFS-backed provider these are those of the UnsafeRows; for
// RocksDB they are RocksDB's own, with version bytes, prefixes of column families, and row checksums.
type Entry struct {
	Key, Value []byte
}

// View is the content of one version.
type View struct {
	Version Version
	// Base is the snapshot that it was loaded from, "" for the empty store; Files are the base and all deltas or changelogs.
	Base  string
	Files []string
	// Passed are damaged snapshots that the version could be loaded without.
	Passed []error
	// RowChecksum: rows have checksums, and they were right.
	RowChecksum bool

	entries []Entry // by key
}

// Len is the number of entries.
func (v *View) Len() int { return len(v.entries) }

// All iterates over the entries, sorted by the bytes of their keys. They must not be changed.
func (v *View) All() iter.Seq[Entry] { return slices.Values(v.entries) }

// Get returns the value of a key.
func (v *View) Get(key []byte) (value []byte, found bool) {
	i, found := slices.BinarySearchFunc(v.entries, key, func(e Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	if !found {
		return nil, false
	}
	return v.entries[i].Value, true
}

// Bytes are those of all keys and values.
func (v *View) Bytes() int64 {
	n := int64(0)
	for _, e := range v.entries {
		n += int64(len(e.Key) + len(e.Value))
	}
	return n
}

// maxLooks is how often a directory is looked at that is cleaned up meanwhile.
const maxLooks = 3

// snapshotParallel is how many goroutines decompress a snapshot.
const snapshotParallel = 4

// Load reads a version of a store. Version 0 is the empty store. A version that no files make is fs.ErrNotExist, one that
// only RocksDB can load a *SnapshotNeededError, damage core.ErrCorrupt; a damaged snapshot is passed over if there is
// another way to the same version.
func (s *Store) Load(ctx context.Context, v Version) (*View, error) {
	for looks := 1; ; looks++ {
		view, err := s.load(ctx, v)
		if err == nil || looks == maxLooks || !errors.Is(err, fs.ErrNotExist) {
			return view, err
		}
		// The query may have cleaned up since the directory was listed.
		fresh := &Store{StoreID: s.StoreID, Dir: s.Dir, c: s.c}
		if listErr := fresh.list(ctx); listErr != nil {
			return nil, listErr
		}
		if sameEntries(s.Entries, fresh.Entries) {
			return nil, err
		}
		s = fresh
	}
}

// sameEntries compares listings by what a publishing rename or a deletion changes.
func sameEntries(a, b []core.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b core.FileInfo) bool {
		return a.Name == b.Name && a.Size == b.Size && a.ModTime.Equal(b.ModTime)
	})
}

func (s *Store) load(ctx context.Context, v Version) (*View, error) {
	if v.Number < 0 {
		return nil, core.PathError("load", s.Dir, fmt.Errorf("%w: version %d", fs.ErrInvalid, v.Number))
	}
	if s.Provider == RocksDB {
		return s.loadRocks(ctx, v)
	}
	if v.ID != "" {
		return nil, missingError(s.Dir, v.Number, "an HDFS-backed store has no checkpoint ids")
	}
	plans, err := statestore.PlanReplay(s.Listing, v.Number)
	if err != nil {
		return nil, core.PathError("load", s.Dir, err)
	}
	var passed []error
	for _, plan := range plans {
		view, err := s.replay(ctx, v, plan)
		if err == nil {
			view.Passed = passed
			return view, nil
		}
		var bad *badBaseError
		if !errors.As(err, &bad) {
			return nil, err
		}
		passed = append(passed, bad.err)
	}
	return nil, errors.Join(passed...)
}

// badBaseError is damage of the snapshot that a replay begins with.
type badBaseError struct{ err error }

func (e *badBaseError) Error() string { return e.err.Error() }

func (e *badBaseError) Unwrap() error { return e.err }

// replay loads a version of an HDFS-backed store by a plan.
func (s *Store) replay(ctx context.Context, v Version, plan statestore.Replay) (*View, error) {
	var files []file
	view := &View{Version: v}
	if plan.Base > 0 {
		view.Base = statestore.FileName(plan.Base, codec.Snapshot)
		files = append(files, file{path.Join(s.Dir, view.Base), codec.Snapshot})
	}
	for _, delta := range plan.Deltas {
		files = append(files, file{path.Join(s.Dir, statestore.FileName(delta, codec.Delta)), codec.Delta})
	}
	on, err := s.checksummed(ctx, files)
	if err != nil {
		return nil, baseError(view.Base, err)
	}
	view.RowChecksum = on
	rows := map[string][]byte{}
	for _, f := range files {
		if _, err := s.apply(ctx, f, on, rows); err != nil {
			return nil, baseError(view.Base, err)
		}
		view.Files = append(view.Files, path.Base(f.name))
	}
	view.take(rows)
	return view, nil
}

// baseError marks damage of the snapshot, which another plan may do without.
func baseError(base string, err error) error {
	var at *fs.PathError
	if base != "" && errors.Is(err, core.ErrCorrupt) && errors.As(err, &at) && path.Base(at.Path) == base {
		return &badBaseError{err}
	}
	return err
}

// take makes the sorted entries out of rows.
func (v *View) take(rows map[string][]byte) {
	v.entries = make([]Entry, 0, len(rows))
	for key, value := range rows {
		v.entries = append(v.entries, Entry{[]byte(key), value})
	}
	slices.SortFunc(v.entries, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
}

// FileContent is what was seen in a file that was read to its end.
type FileContent struct {
	Puts, Removals, Merges int64
	Compression            codec.Compression
	// Footer is that of this module, nil in files of Spark.
	Footer *codec.Footer
	// ChangelogVersion is 0 for deltas and snapshots.
	ChangelogVersion int
}

// apply reads a file to its end and applies it to rows; nil rows only read. If it fails, rows hold a part of it.
func (s *Store) apply(ctx context.Context, f file, rowChecksum bool, rows map[string][]byte) (FileContent, error) {
	r, err := s.c.fsys.Open(ctx, f.name)
	if err != nil {
		return FileContent{}, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	opts := codec.ReaderOptions{Name: f.name, RowChecksum: rowChecksum}
	if f.kind == codec.Changelog {
		return s.applyChangelog(r, opts, rows)
	}
	if f.kind == codec.Snapshot {
		opts.Parallelism = snapshotParallel
	}
	return applyRecords(r, f.kind, opts, rows)
}

func applyRecords(r core.Reader, kind codec.Kind, opts codec.ReaderOptions, rows map[string][]byte) (FileContent, error) {
	reader, err := codec.NewReader(r, r.Size(), kind, opts)
	if err != nil {
		return FileContent{}, err
	}
	defer func() { _ = reader.Close() }() // it never fails
	seen := FileContent{Compression: reader.Compression(), Footer: reader.Footer()}
	for record, err := range reader.All() {
		switch {
		case err != nil:
			return seen, err
		case record.Removed:
			seen.Removals++
			delete(rows, string(record.Key))
		default:
			seen.Puts++
			if rows != nil {
				rows[string(record.Key)] = bytes.Clone(record.Value)
			}
		}
	}
	return seen, nil
}

func (s *Store) applyChangelog(r core.Reader, opts codec.ReaderOptions, rows map[string][]byte) (FileContent, error) {
	reader, err := codec.NewChangelogReader(r, r.Size(), opts)
	if err != nil {
		return FileContent{}, err
	}
	defer func() { _ = reader.Close() }() // it never fails
	seen := FileContent{Compression: reader.Compression(), Footer: reader.Footer(), ChangelogVersion: reader.Version()}
	delimiter := s.c.Pins.mergeDelimiter()
	for change, err := range reader.All() {
		if err != nil {
			return seen, err
		}
		seen.count(change.Op)
		if rows != nil {
			applyChange(rows, change, delimiter)
		}
	}
	return seen, nil
}

func (c *FileContent) count(op codec.ChangeOp) {
	switch op {
	case codec.ChangePut:
		c.Puts++
	case codec.ChangeMerge:
		c.Merges++
	case codec.ChangeDelete, codec.ChangeDeleteRange:
		c.Removals++
	}
}

func applyChange(rows map[string][]byte, change codec.Change, delimiter string) {
	key := string(change.Key)
	switch change.Op {
	case codec.ChangePut:
		rows[key] = bytes.Clone(change.Stored)
	case codec.ChangeMerge:
		old, there := rows[key]
		if there {
			old = append(old, delimiter...)
		}
		rows[key] = append(old, change.Stored...)
	case codec.ChangeDelete:
		delete(rows, key)
	case codec.ChangeDeleteRange:
		end := string(change.End)
		for k := range rows {
			if k >= key && k < end {
				delete(rows, k)
			}
		}
	}
}

// detect tells whether the rows of a file have checksums; known is false if it has no rows.
func (s *Store) detect(ctx context.Context, f file) (on, known bool, err error) {
	r, err := s.c.fsys.Open(ctx, f.name)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	if f.kind != codec.Changelog {
		return codec.DetectRowChecksum(r, r.Size(), f.kind, codec.ReaderOptions{Name: f.name})
	}
	reader, err := codec.NewChangelogReader(r, r.Size(), codec.ReaderOptions{Name: f.name})
	if err != nil {
		return false, false, err
	}
	defer func() { _ = reader.Close() }() // it never fails
	if footer := reader.Footer(); footer != nil {
		return footer.RowChecksum, true, nil
	}
	for change, err := range reader.All() {
		if err != nil {
			return false, false, err
		}
		return checksummedChange(change), true, nil
	}
	return false, false, nil
}

// checksumHead is what stands before a value with row checksum in a changelog: CRC32C and length.
const checksumHead = 8

// checksummedChange reports whether a change that was read as one without row checksum has one, and that is right. 32 bits
// that match by chance are not to be expected.
func checksummedChange(change codec.Change) bool {
	stored := change.Stored
	switch change.Op {
	case codec.ChangeDelete:
		const head = 4
		return len(change.Key) >= head && binary.LittleEndian.Uint32(change.Key) == core.CRC32C(change.Key[head:])
	case codec.ChangeDeleteRange:
		stored = change.End
	}
	return len(stored) >= checksumHead && bytes.Equal(stored, codec.AppendChecksummedValue(nil, change.Key, stored[checksumHead:]))
}
