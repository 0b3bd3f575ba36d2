package sparkckpt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Verified is what was found out about a store by reading all of it.
type Verified struct {
	// Versions are those that files are named for, Loadable those of them that can be loaded by Spark.
	Versions, Loadable []int64
	Files              int
	Bytes              int64
	// WithoutChecksum counts files in which a flipped bit may go unnoticed: their compression has no checksum, and there is
	// neither a row checksum, nor a footer, nor a checksum file.
	WithoutChecksum int
	Findings        []Finding
}

// Worst is the highest severity of the findings, 0 if there are none.
func (v Verified) Worst() Severity {
	var worst Severity
	for _, f := range v.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Verify reads every file of a store to its end, rebuilds every version, and compares each snapshot with what the deltas make.
// It holds up to two versions in memory. What is wrong are findings; the error is that of the context, or of a directory that
// cannot be listed. done is called after each file with its size; it may be nil.
func (s *Store) Verify(ctx context.Context, done func(bytes int64)) (Verified, error) {
	v := &verifier{Store: s, done: done}
	v.Verified.Findings = s.nameFindings()
	v.Verified.Versions = s.Versions()
	var err error
	if s.Provider == RocksDB {
		err = v.rocks(ctx)
	} else {
		err = v.hdfs(ctx)
	}
	if ctx.Err() != nil {
		return Verified{}, ctx.Err()
	}
	v.uncommitted()
	return v.Verified, err
}

type verifier struct {
	*Store
	Verified
	done   func(int64)
	ranges unloadable
	// unclear counts files that could not be looked at: what depends on them is not known to be wrong.
	unclear int
}

func (v *verifier) find(f Finding) { v.Verified.Findings = append(v.Verified.Findings, f) }

// failed makes a finding of a file that cannot be read.
func (v *verifier) failed(name string, err error, advice string) {
	f := Finding{Kind: FileCorrupt, Severity: Damage, Path: name, Message: cause(err), Advice: advice, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Kind, f.Message = FileMissing, "it was listed and is gone"
		f.Severity, f.Advice = Unclear, "if the query is running it has cleaned up meanwhile: verify again"
	case !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion):
		f.Kind, f.Severity, f.Advice = FileUnreadable, Unclear, "remove the cause and verify again"
	}
	if f.Severity == Unclear {
		v.unclear++
	}
	v.find(f)
}

// cause is the text of an error without operation and path, which a finding names itself.
func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// read reads a file and reports what is wrong with it.
func (v *verifier) read(ctx context.Context, f file, rowChecksum bool, rows map[string][]byte, advice string) bool {
	content, err := v.apply(ctx, f, rowChecksum, rows)
	v.Verified.Files++
	if v.done != nil {
		v.done(v.size(path.Base(f.name)))
	}
	v.Verified.Bytes += v.size(path.Base(f.name))
	if err != nil {
		v.failed(f.name, err, advice)
		return false
	}
	if pinned, known := v.c.Pins.Compression(); known && pinned != content.Compression {
		v.find(Finding{
			Kind: OtherCodec, Severity: Damage, Path: f.name, Advice: "write the version again with a snapshot in the pinned compression: state compact",
			Message: fmt.Sprintf("it is compressed with %s, the offset log pins %s: Spark cannot read it", content.Compression, pinned),
		})
	}
	companion := v.companion(ctx, f)
	if content.Compression != codec.LZ4 && content.Footer == nil && !rowChecksum && !companion {
		v.WithoutChecksum++
	}
	return true
}

func (v *verifier) size(name string) int64 {
	for _, e := range v.Entries {
		if e.Name == name {
			return e.Size
		}
	}
	return 0
}

// companion compares a file with Spark's checksum of it and reports whether there is a right one. In checkpoint format 2
// Spark refuses the file if they differ; before that only Spark 4.1 does.
func (v *verifier) companion(ctx context.Context, f file) bool {
	present, err := checkCompanion(ctx, v.c.fsys, f.name)
	if err == nil || !present {
		if err != nil {
			v.failed(f.name+companionSuffix, err, "")
		}
		return present
	}
	severity, message := Warning, "it disagrees with its file, which Spark 4.1 refuses then: "
	if _, id, _, isRocks := statestore.ParseRocksName(path.Base(f.name)); isRocks && id != "" {
		severity, message = Damage, "it disagrees with its file, which Spark refuses then: "
	}
	v.find(Finding{
		Kind: ChecksumFile, Severity: severity, Path: f.name + companionSuffix, Message: message + cause(err), Err: err,
		Advice: "if the file itself is right, delete the checksum file",
	})
	return false
}

// hdfs verifies an HDFS-backed store, its versions in ascending order.
func (v *verifier) hdfs(ctx context.Context) error {
	on, err := v.checksummed(ctx, v.allFiles())
	if err != nil && ctx.Err() != nil {
		return err
	}
	rows, valid := map[string][]byte{}, true // of the version before
	previous, lowest := int64(0), v.lowest()
	for _, f := range v.Listing.Versions {
		follows, unclear, before := f.Version == previous+1, v.unclear, previous
		previous = f.Version
		why := ""
		if f.Delta {
			rows, valid, why = v.delta(ctx, f, on, rows, valid && follows)
		} else {
			rows, valid = nil, false
		}
		switch {
		case why != "":
		case !follows:
			why = statestore.FileName(f.Version-1, codec.Delta) + " is missing"
		case !f.Delta:
			why = statestore.FileName(f.Version, codec.Delta) + " is missing"
		}
		if f.Snapshot {
			if why != "" && f.Version > lowest && (!f.Delta || !follows) {
				v.uncompared(f, before)
			}
			rows, valid = v.snapshot(ctx, f, on, rows, valid)
		}
		if valid {
			v.Verified.Loadable = append(v.Verified.Loadable, f.Version)
		}
		v.ranges.add(f.Version, valid, why, v.unclear > unclear)
	}
	v.unloadable()
	return ctx.Err()
}

// lowest is the version below which a clean-up has left nothing, 0 without versions.
func (v *verifier) lowest() int64 {
	if len(v.Listing.Versions) == 0 {
		return 0
	}
	return v.Listing.Versions[0].Version
}

// uncompared reports deltas that are missing at or right below a snapshot, which hides that: the snapshot makes its version.
// previous is the version before that has files.
func (v *verifier) uncompared(f statestore.VersionFiles, previous int64) {
	snapshot := statestore.FileName(f.Version, codec.Snapshot)
	if previous < f.Version-1 {
		v.hidden(statestore.FileName(f.Version-1, codec.Delta), previous+1, f.Version-1, snapshot+" cannot be compared with what the deltas make")
		return
	}
	v.find(Finding{
		Kind: FileMissing, Severity: Warning, Path: path.Join(v.Dir, statestore.FileName(f.Version, codec.Delta)),
		Message: fmt.Sprintf("it is missing: %s cannot be compared with what the deltas make", snapshot), Advice: "the snapshot makes the version: keep it",
	})
}

// hidden reports versions below a snapshot that have no files at all. No names tell of them.
func (v *verifier) hidden(name string, from, to int64, consequence string) {
	which := fmt.Sprintf("version %d", from)
	if to > from {
		which = fmt.Sprintf("versions %d to %d", from, to)
	}
	v.find(Finding{
		Kind: FileMissing, Severity: Warning, Path: path.Join(v.Dir, name), Message: fmt.Sprintf("it is missing: %s cannot be loaded, and %s", which, consequence),
		Advice: "the snapshot above makes its version: keep it; the query cannot be started from what is missing",
	})
}

func (v *verifier) allFiles() []file {
	var files []file
	for _, f := range v.Listing.Versions {
		if f.Delta {
			files = append(files, file{path.Join(v.Dir, statestore.FileName(f.Version, codec.Delta)), codec.Delta})
		}
		if f.Snapshot {
			files = append(files, file{path.Join(v.Dir, statestore.FileName(f.Version, codec.Snapshot)), codec.Snapshot})
		}
	}
	return files
}

// delta reads a delta and applies it, if the version before is valid.
func (v *verifier) delta(ctx context.Context, f statestore.VersionFiles, on bool, rows map[string][]byte, valid bool) (map[string][]byte, bool, string) {
	name := statestore.FileName(f.Version, codec.Delta)
	if !valid {
		rows = nil
	}
	advice := "it can only be restored from a copy"
	if f.Snapshot {
		advice = "the snapshot of the same version has what it would make: leave it, and keep the snapshot"
	}
	if !v.read(ctx, file{path.Join(v.Dir, name), codec.Delta}, on, rows, advice) {
		return nil, false, name + " cannot be read"
	}
	return rows, valid, ""
}

// snapshot reads a snapshot and compares it with what the deltas make, if they make the version.
func (v *verifier) snapshot(ctx context.Context, f statestore.VersionFiles, on bool, rows map[string][]byte, valid bool) (map[string][]byte, bool) {
	name := path.Join(v.Dir, statestore.FileName(f.Version, codec.Snapshot))
	advice := "no deltas make this version: it can only be restored from a copy"
	if valid {
		advice = "the deltas make this version: write the snapshot again with state repair"
	}
	whole := map[string][]byte{}
	if !v.read(ctx, file{name, codec.Snapshot}, on, whole, advice) {
		return rows, valid
	}
	if !valid {
		return whole, true
	}
	if difference := compareRows(rows, whole); difference != "" {
		v.find(Finding{
			Kind: SnapshotDiffers, Severity: Damage, Path: name, Message: "it is not what the deltas make: " + difference,
			Advice: "if the deltas are right, move the snapshot out of the directory and write it again with state compact; Spark loads the snapshot",
		})
	}
	return rows, true
}

// compareRows describes how a snapshot differs from what the deltas make, "" if it does not.
func compareRows(deltas, snapshot map[string][]byte) string {
	missing, other := 0, 0
	for key, value := range deltas {
		got, there := snapshot[key]
		switch {
		case !there:
			missing++
		case !bytes.Equal(got, value):
			other++
		}
	}
	more := len(snapshot) - (len(deltas) - missing)
	if missing+other+more == 0 {
		return ""
	}
	return fmt.Sprintf("%d keys are missing, %d are too many, %d have another value", missing, more, other)
}

// unloadable groups versions that cannot be loaded.
type unloadable struct {
	groups   []versionRange
	loadable bool  // the last version that was added
	newest   int64 // that was loadable
}

type versionRange struct {
	from, to int64
	why      string
	unclear  bool
	// below is the newest version below that can be loaded, 0 if there is none; above tells whether there is one above.
	below int64
	above bool
}

func (u *unloadable) add(version int64, loadable bool, why string, unclear bool) {
	last := len(u.groups) - 1
	switch {
	case loadable && last >= 0 && !u.loadable:
		u.groups[last].above = true
	case !loadable && (u.loadable || last < 0):
		u.groups = append(u.groups, versionRange{from: version, to: version, why: why, unclear: unclear, below: u.newest})
	case !loadable:
		u.groups[last].to = version
	}
	if u.loadable = loadable; loadable {
		u.newest = version
	}
}

// unloadable reports ranges of versions that cannot be loaded.
func (v *verifier) unloadable() {
	for _, g := range v.ranges.groups {
		f := Finding{Kind: NotLoadable, Severity: Damage, Path: v.Dir}
		which := fmt.Sprintf("version %d", g.from)
		if g.to > g.from {
			which = fmt.Sprintf("versions %d to %d", g.from, g.to)
		}
		f.Message = which + " cannot be loaded: " + g.why
		switch {
		case g.unclear:
			f.Severity, f.Advice = Unclear, "remove the cause and verify again"
		case g.above && g.below == 0:
			f.Severity, f.Advice = Warning, "a clean-up that was interrupted leaves such files; later versions are complete"
		case g.above:
			f.Advice = "later versions are complete; the query cannot be started from these"
		case g.below > 0:
			f.Advice = fmt.Sprintf("restore the file from a copy, or give the versions up with state rollback --version %d; the query's logs must then go back too", g.below)
		default:
			f.Advice = "restore the file from a copy"
		}
		v.find(f)
	}
}

// uncommitted reports that the version that the query would begin with cannot be loaded.
func (v *verifier) uncommitted() {
	committed, known := v.c.CommittedVersion()
	if !known || committed == 0 {
		return
	}
	for _, loadable := range v.Verified.Loadable {
		if loadable == committed {
			return
		}
	}
	f := Finding{
		Kind: NotCommitted, Severity: Damage, Path: v.Dir,
		Message: fmt.Sprintf("version %d, which the newest batch committed, cannot be loaded: the query cannot be started again", committed),
		Advice:  "repair it, or restore it from a copy; or go back to a batch whose version every store has",
	}
	if v.unclear > 0 {
		f.Severity, f.Advice = Unclear, "remove the cause of what could not be read, and verify again"
	}
	v.find(f)
}
