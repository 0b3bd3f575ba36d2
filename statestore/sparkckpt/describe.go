package sparkckpt

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Description is what names, sizes and the ends of its files tell of a store; no file is read as a whole.
type Description struct {
	// Compression is that of the newest file that tells it; Known is false if none does.
	Compression codec.Compression
	Known       bool
	// RowChecksum is as pinned, else as the rows tell.
	RowChecksum, RowChecksumKnown bool
	// Chain is how many deltas or changelogs are replayed for the highest version, -1 if it is not loadable.
	Chain    int
	Versions []VersionInfo
	// Foreign are the names that belong to no version.
	Foreign []string
	// Findings are those about names.
	Findings []Finding
}

// VersionInfo is what is there of a version.
type VersionInfo struct {
	Version  Version
	Time     time.Time // of its delta or changelog, else of its snapshot
	Loadable bool
	Delta    bool // there is a delta or changelog
	Snapshot bool
	// Footer: all of its files have the footer of this module.
	Footer                    bool
	DeltaBytes, SnapshotBytes int64
}

// Describe looks at a store without reading all of it. Damage that it meets is left out: Verify finds it.
func (s *Store) Describe(ctx context.Context) (Description, error) {
	d := Description{Chain: -1, Findings: s.nameFindings()}
	loadable := s.Loadable()
	for _, v := range s.versionInfos() {
		v.Loadable = slices.Contains(loadable, v.Version.Number)
		if err := s.footer(ctx, &v); err != nil {
			return d, err
		}
		d.Versions = append(d.Versions, v)
	}
	d.Foreign = s.Rocks.Foreign
	if s.Provider != RocksDB {
		d.Foreign = s.foreign()
	}
	if highest := s.Highest(); highest > 0 && slices.Contains(loadable, highest) {
		d.Chain = s.chainLength(highest)
	}
	return d, s.describeRows(ctx, &d)
}

// foreign are the foreign names except Spark's own directories and those of named stores.
func (s *Store) foreign() []string {
	dirs := map[string]bool{}
	for _, e := range s.Entries {
		dirs[e.Name] = e.IsDir()
	}
	return slices.DeleteFunc(slices.Clone(s.Listing.Foreign), func(name string) bool {
		return dirs[name] && (strings.HasPrefix(name, "_") || s.Name == statestore.DefaultStore && isStoreName(name))
	})
}

// versionInfos lists the versions by their names.
func (s *Store) versionInfos() []VersionInfo {
	times := make(map[string]time.Time, len(s.Entries))
	for _, e := range s.Entries {
		times[e.Name] = e.ModTime
	}
	var infos []VersionInfo
	if s.Provider == RocksDB {
		for _, f := range s.Rocks.Versions {
			l := link{f.Version, f.ID}
			v := VersionInfo{Version: Version{f.Version, f.ID}, Delta: f.Changelog, DeltaBytes: f.ChangelogBytes, Snapshot: f.Zip, SnapshotBytes: f.ZipBytes}
			v.Time = times[path.Base(l.zip("/"))]
			if f.Changelog {
				v.Time = times[path.Base(l.changelog("/"))]
			}
			infos = append(infos, v)
		}
		return infos
	}
	for _, f := range s.Listing.Versions {
		v := VersionInfo{Version: Version{Number: f.Version}, Delta: f.Delta, DeltaBytes: f.DeltaBytes, Snapshot: f.Snapshot, SnapshotBytes: f.SnapshotBytes}
		v.Time = times[statestore.FileName(f.Version, codec.Snapshot)]
		if f.Delta {
			v.Time = times[statestore.FileName(f.Version, codec.Delta)]
		}
		infos = append(infos, v)
	}
	return infos
}

// footer finds out whether all files of a version have our footer.
func (s *Store) footer(ctx context.Context, v *VersionInfo) error {
	var files []string
	if s.Provider == RocksDB && v.Delta {
		files = append(files, link{v.Version.Number, v.Version.ID}.changelog(s.Dir))
	}
	if s.Provider != RocksDB && v.Delta {
		files = append(files, path.Join(s.Dir, statestore.FileName(v.Version.Number, codec.Delta)))
	}
	if s.Provider != RocksDB && v.Snapshot {
		files = append(files, path.Join(s.Dir, statestore.FileName(v.Version.Number, codec.Snapshot)))
	}
	v.Footer = len(files) > 0
	for _, name := range files {
		has, err := s.hasFooter(ctx, name)
		if err != nil {
			return err
		}
		v.Footer = v.Footer && has
	}
	return nil
}

func (s *Store) hasFooter(ctx context.Context, name string) (bool, error) {
	r, err := s.c.fsys.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	footer, err := codec.ReadFooter(r, r.Size())
	if errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion) {
		return true, nil // it is there; what is wrong with it is found by reading the file
	}
	return footer != nil, core.PathError("read", name, err)
}

// chainLength is how many deltas are replayed for a loadable version.
func (s *Store) chainLength(v int64) int {
	snapshots := s.Snapshots()
	base := int64(0)
	for _, snapshot := range snapshots {
		if snapshot <= v {
			base = snapshot
		}
	}
	return int(v - base)
}

// describeRows finds out about compression and row checksums, from the newest files on.
func (s *Store) describeRows(ctx context.Context, d *Description) error {
	files := s.changeFiles()
	slices.Reverse(files)
	for _, f := range files {
		c, err := s.sniff(ctx, f.name)
		if errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		d.Compression, d.Known = c, true
		break
	}
	if d.RowChecksum, d.RowChecksumKnown = s.c.Pins.RowChecksum(); d.RowChecksumKnown {
		return nil
	}
	for _, f := range files {
		on, known, err := s.detect(ctx, f)
		switch {
		case err == nil && known:
			d.RowChecksum, d.RowChecksumKnown = on, true
			return nil
		case err != nil && !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion) && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// sniff tells the compression of a file from its first bytes.
func (s *Store) sniff(ctx context.Context, name string) (codec.Compression, error) {
	r, err := s.c.fsys.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	head := make([]byte, min(sniffBytes, r.Size()))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, core.PathError("read", name, err)
	}
	c, err := codec.Sniff(head)
	return c, core.PathError("read", name, err)
}

const sniffBytes = 16

// changeFiles are all deltas, or all changelogs, and where a version has only a snapshot of the HDFS-backed provider, that.
func (s *Store) changeFiles() []file {
	var files []file
	if s.Provider == RocksDB {
		for _, f := range s.Rocks.Versions {
			if f.Changelog {
				files = append(files, file{link{f.Version, f.ID}.changelog(s.Dir), codec.Changelog})
			}
		}
		return files
	}
	for _, f := range s.Listing.Versions {
		kind := codec.Delta
		if !f.Delta {
			kind = codec.Snapshot
		}
		files = append(files, file{path.Join(s.Dir, statestore.FileName(f.Version, kind)), kind})
	}
	return files
}
