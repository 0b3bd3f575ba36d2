package statestore

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Every file name of a state store is built and parsed in this file and nowhere else.
//
//	<root>/<operator>/<partition>[/<store>]/
//	    <v>.delta  <v>.snapshot           version v, as Spark
//	    .<v>.delta.<id>[.TID<n>].tmp      temporary of Spark, or of this module where <id> is a UUID
//	    <name>.crc  .<name>.crc           companions: Spark's checksum, Hadoop's local checksum
//	    <v>[_<id>].changelog  …zip        RocksDB's changes and snapshots
//	    ._sync.<id>                       what core makes and removes while it settles a rename
//	    _epoch-<e>/                       an owner's directory, see the design page
//
// A name counts only if it is canonical: formatting what was parsed gives the same name. Whatever else stands in the
// directory is foreign: neither counted, nor read, nor deleted.
const (
	// DefaultStore is the name of a store whose directory is that of the partition itself.
	DefaultStore = "default"

	deltaSuffix     = ".delta"
	snapshotSuffix  = ".snapshot"
	changelogSuffix = ".changelog"
	zipSuffix       = ".zip"
	tempSuffix      = ".tmp"
	companionSuffix = ".crc"
	epochPrefix     = "_epoch-"
)

// StoreDir returns the directory of a partition's store below the root, which is <checkpoint>/state in Spark.
func StoreDir(root string, operator, partition int64, store string) (string, error) {
	if operator < 0 || partition < 0 {
		return "", fmt.Errorf("%w: operator %d, partition %d", fs.ErrInvalid, operator, partition)
	}
	dir := path.Join(root, strconv.FormatInt(operator, 10), strconv.FormatInt(partition, 10))
	if store == DefaultStore || store == "" {
		return dir, nil
	}
	if err := core.CheckComponent(store); err != nil {
		return "", err
	}
	return path.Join(dir, store), nil
}

// FileName returns the name of a delta or snapshot of version v, which must be at least 1.
func FileName(v int64, kind codec.Kind) string { return strconv.FormatInt(v, 10) + "." + kind.String() }

// ParseFileName is the inverse of FileName. Only canonical names are accepted: a version of at least 1 in plain decimal.
func ParseFileName(name string) (v int64, kind codec.Kind, ok bool) {
	digits, kind := "", codec.Delta
	switch {
	case strings.HasSuffix(name, deltaSuffix):
		digits = strings.TrimSuffix(name, deltaSuffix)
	case strings.HasSuffix(name, snapshotSuffix):
		digits, kind = strings.TrimSuffix(name, snapshotSuffix), codec.Snapshot
	default:
		return 0, 0, false
	}
	v, ok = parseVersion(digits)
	if !ok {
		return 0, 0, false
	}
	return v, kind, true
}

func parseVersion(digits string) (int64, bool) {
	v, err := strconv.ParseInt(digits, 10, 64)
	return v, err == nil && v >= 1 && strconv.FormatInt(v, 10) == digits
}

// ChangelogName returns the name of the changes of version v of a RocksDB store; id is empty in checkpoint format 1.
func ChangelogName(v int64, id string) string { return rocksName(v, id) + changelogSuffix }

// ZipName returns the name of the snapshot of version v of a RocksDB store.
func ZipName(v int64, id string) string { return rocksName(v, id) + zipSuffix }

func rocksName(v int64, id string) string {
	if id == "" {
		return strconv.FormatInt(v, 10)
	}
	return strconv.FormatInt(v, 10) + "_" + id
}

// ParseRocksName parses what ChangelogName and ZipName return.
func ParseRocksName(name string) (v int64, id string, zip, ok bool) {
	stem, isChangelog := strings.CutSuffix(name, changelogSuffix)
	if !isChangelog {
		if stem, zip = strings.CutSuffix(name, zipSuffix); !zip {
			return 0, "", false, false
		}
	}
	digits, id, hasID := strings.Cut(stem, "_")
	v, ok = parseVersion(digits)
	if !ok || hasID && (id == "" || strings.Contains(id, ".")) {
		return 0, "", false, false
	}
	return v, id, zip, true
}

// TempName returns the name under which the file called name is written before it is published. The id must be unique.
func TempName(name, id string) string { return "." + name + "." + id + tempSuffix }

// tempTail is what Spark and TempName put behind the name: a UUID, the task attempt, the suffix.
var tempTail = regexp.MustCompile(`\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.TID[0-9]+)?\.tmp$`)

// ParseTempName returns the name that a temporary would have been published under. Only the two forms with a UUID that
// Spark and this module use are accepted.
func ParseTempName(temp string) (name string, ok bool) {
	if !strings.HasPrefix(temp, ".") {
		return "", false
	}
	tail := tempTail.FindStringIndex(temp)
	if tail == nil || tail[0] < 1 {
		return "", false
	}
	name = temp[1:tail[0]]
	base := strings.TrimSuffix(name, companionSuffix)
	_, _, ok = ParseFileName(base)
	return name, ok
}

// barrier is the name of a file that says nothing: core's publishing makes it for a moment. Spark passes over it.
var barrier = regexp.MustCompile(`^\._sync\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// CompanionNames returns the names of the checksum files that others may have put beside the file called name: Spark's,
// Hadoop's, and Hadoop's of Spark's.
func CompanionNames(name string) []string {
	return []string{name + companionSuffix, "." + name + companionSuffix, "." + name + companionSuffix + companionSuffix}
}

// ParseCompanionName returns the name of the delta or snapshot that a companion belongs to.
func ParseCompanionName(companion string) (name string, ok bool) {
	name, ok = strings.CutSuffix(companion, companionSuffix)
	if !ok {
		return "", false
	}
	if hidden, isHidden := strings.CutPrefix(name, "."); isHidden {
		name = strings.TrimSuffix(hidden, companionSuffix)
	}
	_, _, ok = ParseFileName(name)
	return name, ok
}

// EpochName returns the name of an owner's directory. It has no dot, so that Spark passes over it.
func EpochName(epoch int64) string { return epochPrefix + strconv.FormatInt(epoch, 10) }

// ParseEpochName is the inverse of EpochName.
func ParseEpochName(name string) (epoch int64, ok bool) {
	digits, ok := strings.CutPrefix(name, epochPrefix)
	if !ok {
		return 0, false
	}
	return parseVersion(digits)
}

// VersionFiles is what is there of one version.
type VersionFiles struct {
	Version       int64
	Delta         bool
	Snapshot      bool
	DeltaBytes    int64
	SnapshotBytes int64
	DeltaTime     time.Time // of modification
	SnapshotTime  time.Time
}

// Leftover is a file that belongs to no version: a temporary, or a companion whose file is gone.
type Leftover struct {
	Name    string
	ModTime time.Time
}

// Listing is what a store's directory holds, sorted out. The zero value is an empty directory.
type Listing struct {
	Versions   []VersionFiles      // by version, ascending
	Companions map[string][]string // of a file that is there
	Orphans    []Leftover          // companions without their file
	Temps      []Leftover
	Epochs     []int64  // owners' directories, ascending
	Blocked    []string // names of versions that are no regular files: nothing can be published there
	Foreign    []string // everything else
}

// Sort sorts out the entries of a store's directory, in whatever order they come. It looks at last path elements only.
func Sort(entries []core.FileInfo) Listing {
	l := Listing{Companions: map[string][]string{}}
	byVersion := map[int64]VersionFiles{}
	companions := map[string]Leftover{}
	for _, e := range entries {
		v, kind, isVersion := ParseFileName(e.Name)
		epoch, isEpoch := ParseEpochName(e.Name)
		_, isTemp := ParseTempName(e.Name)
		_, isCompanion := ParseCompanionName(e.Name)
		switch {
		case isVersion && !e.IsRegular():
			l.Blocked = append(l.Blocked, e.Name)
		case isVersion:
			f := byVersion[v]
			f.Version = v
			if kind == codec.Delta {
				f.Delta, f.DeltaBytes, f.DeltaTime = true, e.Size, e.ModTime
			} else {
				f.Snapshot, f.SnapshotBytes, f.SnapshotTime = true, e.Size, e.ModTime
			}
			byVersion[v] = f
		case isEpoch && e.IsDir():
			l.Epochs = append(l.Epochs, epoch)
		case (isTemp || barrier.MatchString(e.Name)) && e.IsRegular():
			l.Temps = append(l.Temps, Leftover{e.Name, e.ModTime})
		case isCompanion && e.IsRegular():
			companions[e.Name] = Leftover{e.Name, e.ModTime}
		default:
			l.Foreign = append(l.Foreign, e.Name)
		}
	}
	for _, f := range byVersion {
		l.Versions = append(l.Versions, f)
	}
	l.sortCompanions(companions, byVersion)
	slices.SortFunc(l.Versions, func(a, b VersionFiles) int { return cmp.Compare(a.Version, b.Version) })
	slices.SortFunc(l.Temps, func(a, b Leftover) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.Orphans, func(a, b Leftover) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(l.Epochs)
	slices.Sort(l.Blocked)
	slices.Sort(l.Foreign)
	return l
}

func (l *Listing) sortCompanions(companions map[string]Leftover, versions map[int64]VersionFiles) {
	for name, c := range companions {
		file, _ := ParseCompanionName(name)
		v, kind, _ := ParseFileName(file)
		f := versions[v]
		if kind == codec.Delta && f.Delta || kind == codec.Snapshot && f.Snapshot {
			l.Companions[file] = append(l.Companions[file], name)
		} else {
			l.Orphans = append(l.Orphans, c)
		}
	}
	for _, names := range l.Companions {
		slices.Sort(names)
	}
}

// find returns the index of version v, or where it would stand.
func (l Listing) find(v int64) (int, bool) {
	return slices.BinarySearchFunc(l.Versions, v, func(f VersionFiles, v int64) int { return cmp.Compare(f.Version, v) })
}

// Highest returns the highest version that a file is named for, or 0.
func (l Listing) Highest() int64 {
	if len(l.Versions) == 0 {
		return 0
	}
	return l.Versions[len(l.Versions)-1].Version
}

// WithoutSnapshot returns the listing as if the snapshot of version v were not there, because it is damaged.
func (l Listing) WithoutSnapshot(v int64) Listing {
	i, ok := l.find(v)
	if !ok || !l.Versions[i].Snapshot {
		return l
	}
	l.Versions = slices.Clone(l.Versions)
	l.Versions[i].Snapshot, l.Versions[i].SnapshotBytes, l.Versions[i].SnapshotTime = false, 0, time.Time{}
	if !l.Versions[i].Delta {
		l.Versions = slices.Delete(l.Versions, i, i+1)
	}
	return l
}
