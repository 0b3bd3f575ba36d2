package sparkckpt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// rocks verifies a RocksDB store: every changelog is read, and of every snapshot the metadata, the checksum file, and
// whether its tables are there with their sizes. The tables themselves are not read.
func (v *verifier) rocks(ctx context.Context) error {
	on, err := v.checksummed(ctx, v.changeFiles())
	if err != nil && ctx.Err() != nil {
		return err
	}
	tables, err := v.tables(ctx)
	if err != nil {
		return err
	}
	loadable := map[link]bool{}
	last, previous := int64(0), int64(0)
	for _, f := range v.Rocks.Versions {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l, unclear := link{f.Version, f.ID}, v.unclear
		zip := f.Zip && v.zip(ctx, l, tables)
		ok, why := v.changelog(ctx, l, f.Changelog, on, loadable)
		loadable[l] = zip || ok
		if !loadable[l] && f.ID != "" {
			why = fmt.Sprintf("id %s: %s", f.ID, why)
		}
		if previous > 0 && f.Version > previous+1 && zip {
			v.hidden(path.Base(link{version: f.Version - 1}.changelog(v.Dir)), previous+1, f.Version-1, "nothing leads to "+path.Base(l.zip(v.Dir)))
		}
		previous = f.Version
		if loadable[l] && last != f.Version {
			v.Verified.Loadable = append(v.Verified.Loadable, f.Version)
			last = f.Version
		}
		v.ranges.add(f.Version, loadable[l], why, v.unclear > unclear)
	}
	v.unloadable()
	return nil
}

// changelog reads a changelog and tells whether it makes its version, or why not.
func (v *verifier) changelog(ctx context.Context, l link, there, on bool, loadable map[link]bool) (bool, string) {
	name := path.Base(l.changelog(v.Dir))
	if !there {
		return false, name + " is missing"
	}
	if !v.read(ctx, file{l.changelog(v.Dir), codec.Changelog}, on, nil, "it can only be restored from a copy") {
		return false, name + " cannot be read"
	}
	if l.version == 1 {
		return true, ""
	}
	before := link{version: l.version - 1}
	if l.id != "" {
		lineage, err := v.lineage(ctx, l)
		if err != nil {
			v.failed(l.changelog(v.Dir), err, "it can only be restored from a copy")
			return false, name + " cannot be read"
		}
		if len(lineage) == 0 {
			return false, name + " names nothing that it builds on"
		}
		before.id = lineage[len(lineage)-1].CheckpointUniqueID
	}
	if !loadable[before] {
		return false, path.Base(before.changelog(v.Dir)) + " is missing or cannot be used"
	}
	return true, ""
}

// tables lists the files that snapshots share, with their sizes.
func (v *verifier) tables(ctx context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, dir := range []string{sstDir, logDir} {
		for info, err := range v.c.fsys.List(ctx, path.Join(v.Dir, dir)) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return nil, err
			}
			sizes[path.Join(dir, info.Name)] = info.Size
		}
	}
	return sizes, nil
}

// zip looks at a snapshot.
func (v *verifier) zip(ctx context.Context, l link, sizes map[string]int64) bool {
	name := l.zip(v.Dir)
	v.Verified.Files++
	v.Verified.Bytes += v.size(path.Base(name))
	if v.done != nil {
		v.done(v.size(path.Base(name)))
	}
	const advice = "Spark passes over it if older changelogs make the version"
	snapshot, err := ReadRocksSnapshot(ctx, v.c.fsys, name)
	if err != nil {
		v.failed(name, err, advice)
		return false
	}
	v.companion(ctx, file{name: name})
	whole := true
	for _, shared := range []struct {
		dir    string
		tables []RocksTable
	}{{sstDir, snapshot.Tables}, {logDir, snapshot.Logs}} {
		for _, table := range shared.tables {
			at := path.Join(shared.dir, table.Name)
			if core.CheckComponent(table.Name) != nil {
				v.failed(name, fmt.Errorf("%w: it names a table %q", core.ErrCorrupt, table.Name), advice)
				whole = false
				continue
			}
			size, there := sizes[at]
			switch {
			case !there:
				v.find(Finding{Kind: FileMissing, Severity: Damage, Path: path.Join(v.Dir, at), Message: path.Base(name) + " needs it", Advice: "it can only be restored from a copy"})
				whole = false
			case size != table.Size:
				v.find(Finding{
					Kind: FileCorrupt, Severity: Damage, Path: path.Join(v.Dir, at),
					Message: fmt.Sprintf("it has %d bytes, %s says %d", size, path.Base(name), table.Size), Advice: "it can only be restored from a copy",
				})
				whole = false
			}
		}
	}
	return whole
}
