package sparkckpt

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// FindingKind classes what is wrong with a store.
type FindingKind string

// The kinds of findings.
const (
	FileCorrupt     FindingKind = "corrupt"     // bytes are there but wrong
	FileUnreadable  FindingKind = "unreadable"  // it could not be looked at
	FileMissing     FindingKind = "missing"     // a file, or a store, that others name
	NotLoadable     FindingKind = "unloadable"  // versions that no files make
	NotCommitted    FindingKind = "uncommitted" // the version that the query would begin with is not loadable
	SnapshotDiffers FindingKind = "mismatch"    // a snapshot is not what the deltas make
	ChecksumFile    FindingKind = "checksum"    // a .crc that disagrees with its file
	OtherCodec      FindingKind = "compression" // another one than the offset log pins
	VersionAhead    FindingKind = "ahead"       // of a version that the logs do not lead to
	NameBlocked     FindingKind = "blocked"     // a directory or link has the name of a version
	NameForeign     FindingKind = "foreign"     // a name that upsets Spark
	FileLeftOver    FindingKind = "leftover"    // a temporary, or a checksum without its file
)

// Severity says what a finding means.
type Severity uint8

// The severities. Unclear says that something could not be looked at and may be right.
const (
	Warning Severity = iota + 1
	Unclear
	Damage
)

// String returns a name in lower case.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Unclear:
		return "unclear"
	case Damage:
		return "damage"
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// Finding is something wrong with a store, and what to do about it.
type Finding struct {
	Kind     FindingKind
	Severity Severity
	Path     string
	Message  string
	Advice   string
	// Err is the cause, nil if it is none of an operation.
	Err error
}

// sparkTrouble says what Spark's HDFS-backed provider makes of a name that is not one of its own, "" if it passes over it.
// Spark splits a name at its dots and takes the first of exactly two parts for a number; its loads look at whatever ends in
// .snapshot.
func sparkTrouble(name string) string {
	if stem, isSnapshot := strings.CutSuffix(name, ".snapshot"); isSnapshot && !isJavaLong(stem) {
		return "every load of Spark 4.1 and later fails because of its name"
	}
	stem, suffix, found := strings.Cut(name, ".")
	switch {
	case !found || strings.Contains(suffix, "."):
		return ""
	case !isJavaLong(stem):
		return "Spark makes no snapshots and cleans nothing up here any more because of its name"
	}
	lower := strings.ToLower(suffix)
	if _, _, ours := statestore.ParseFileName(name); !ours && (lower == "delta" || lower == "snapshot") {
		return "Spark takes it for a version because of its name"
	}
	return ""
}

// isJavaLong: java.lang.Long.parseLong takes a sign and leading zeros.
func isJavaLong(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil && !strings.ContainsAny(text, "_")
}

// nameFindings are those about names alone.
func (s *Store) nameFindings() []Finding {
	var found []Finding
	add := func(kind FindingKind, name, message, advice string) {
		found = append(found, Finding{Kind: kind, Severity: Warning, Path: path.Join(s.Dir, name), Message: message, Advice: advice})
	}
	if s.Provider == HDFSBacked {
		for _, e := range s.Entries {
			if trouble := sparkTrouble(e.Name); trouble != "" {
				add(NameForeign, e.Name, trouble, "move it out of the directory")
			}
		}
		for _, name := range s.Listing.Blocked {
			add(NameBlocked, name, "it has the name of a version and is no regular file: the version can never be written", "move it out of the directory")
		}
		for _, l := range append(s.Listing.Temps, s.Listing.Orphans...) {
			add(FileLeftOver, l.Name, "it belongs to no version", "delete it, if no job writes to the directory")
		}
	}
	return append(found, s.aheadFindings()...)
}

// aheadFindings are versions that no batch of the logs has written: their files are of a branch that was given up.
func (s *Store) aheadFindings() []Finding {
	last := max(s.c.LastOffset(), s.c.LastCommit())
	if last < 0 {
		return nil
	}
	var ahead []int64
	for _, v := range s.Versions() {
		if v > last+1 {
			ahead = append(ahead, v)
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	return []Finding{{
		Kind: VersionAhead, Severity: Warning, Path: s.Dir,
		Message: fmt.Sprintf("there are files of versions up to %d, and the newest batch in the logs is %d: those above %d are of a run that was given up", ahead[len(ahead)-1], last, last+1),
		Advice:  fmt.Sprintf("drop them with state rollback --version %d; until it has passed them, Spark takes no snapshots", last+1),
	}}
}
