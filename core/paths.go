package core

import (
	"crypto/md5" //nolint:gosec // a name-based id, no secret
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Every file name of the checkpoint storage is built and parsed in this file and nowhere else.
const (
	// MetadataName is the file whose existence makes a checkpoint.
	MetadataName = "_metadata"
	// DisposedName is what MetadataName is renamed to when a checkpoint's disposal begins.
	DisposedName = "._metadata.disposed"
	// emptiedName is what DisposedName is renamed to when all files that it lists are gone for good.
	emptiedName = "._metadata.emptied"
	// SharedDirName and TaskOwnedDirName are the directories of state that outlives one checkpoint.
	SharedDirName    = "shared"
	TaskOwnedDirName = "taskowned"

	checkpointPrefix = "chk-"
	savepointPrefix  = "savepoint-"
	epochPrefix      = ".epoch-"
	ownerName        = "owner"
	inProgressPrefix = "._metadata.inprogress."
	barrierPrefix    = "._sync."
	disposedSuffix   = ".disposed"
	emptiedSuffix    = ".emptied"
	begunSuffix      = ".begun"
	restoredPrefix   = ".restored."

	packJobPrefix    = "job_"
	packWorkerPrefix = "_tm_hdfsckpt-"
	maxWorkerName    = 100
)

// JobID is Flink's 16-byte job id; its text is 32 lower-case hex digits and names the job's directory.
type JobID [16]byte

// NewJobID returns a random id.
func NewJobID() (JobID, error) {
	id, err := uuid.NewRandom()
	return JobID(id), err
}

// JobIDOf returns the id that belongs to a job name, the same in every process, so that a job finds its directory again.
func JobIDOf(name string) JobID { return md5.Sum([]byte("hdfsckpt job " + name)) }

// ParseJobID parses the 32 hex digits of String; the error is fs.ErrInvalid.
func ParseJobID(text string) (JobID, error) {
	var id JobID
	if len(text) != 2*len(id) || strings.ToLower(text) != text {
		return JobID{}, fmt.Errorf("%w: job id %q: want 32 lower-case hex digits", fs.ErrInvalid, text)
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return JobID{}, fmt.Errorf("%w: job id %q: %w", fs.ErrInvalid, text, err)
	}
	return id, nil
}

// String returns 32 lower-case hex digits.
func (id JobID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id JobID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *JobID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseJobID(string(text))
	return err
}

// CheckpointDirName is "chk-<id>", the id decimal and unpadded as Flink writes it.
func CheckpointDirName(id int64) string { return checkpointPrefix + strconv.FormatInt(id, 10) }

// ParseCheckpointDirName returns the id of a name that CheckpointDirName would give; "chk-007" and "chk--1" are none.
func ParseCheckpointDirName(name string) (int64, bool) {
	text, found := strings.CutPrefix(name, checkpointPrefix)
	if !found {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id >= 0 && CheckpointDirName(id) == name
}

// savepointDirName is Flink's "savepoint-<first 6 hex digits of the job id>-<12 hex digits>".
func savepointDirName(job JobID, random uuid.UUID) string {
	return savepointPrefix + job.String()[:6] + "-" + hex.EncodeToString(random[:6])
}

// IsSavepointDirName reports whether name has the form of a savepoint's directory.
func IsSavepointDirName(name string) bool {
	text, found := strings.CutPrefix(name, savepointPrefix)
	return found && len(text) == 19 && text[6] == '-' && isLowerHex(text[:6]) && isLowerHex(text[7:])
}

// IsStateFileName reports whether name is that of a state file: a UUID in its canonical lower-case text.
func IsStateFileName(name string) bool {
	id, err := uuid.Parse(name)
	return err == nil && id.String() == name
}

// isMetadataTempName reports whether name is a temporary of a metadata stream, ours in a savepoint or Flink's anywhere.
func isMetadataTempName(name string) bool {
	id, found := strings.CutPrefix(name, inProgressPrefix)
	return found && IsStateFileName(id)
}

// isMetadataName reports whether name is that of a checkpoint's metadata before or in its disposal.
func isMetadataName(name string) bool {
	return name == MetadataName || name == DisposedName || name == emptiedName
}

func isBarrierName(name string) bool {
	id, found := strings.CutPrefix(name, barrierPrefix)
	return found && IsStateFileName(id)
}

func epochDirName(epoch uint64) string { return epochPrefix + strconv.FormatUint(epoch, 10) }

func parseEpochDirName(name string) (uint64, bool) {
	text, found := strings.CutPrefix(name, epochPrefix)
	if !found {
		return 0, false
	}
	epoch, err := strconv.ParseUint(text, 10, 64)
	return epoch, err == nil && epoch > 0 && epochDirName(epoch) == name
}

// disposedMarkName is the name of a checkpoint's metadata while it passes through its owner's epoch directory.
func disposedMarkName(id int64) string { return CheckpointDirName(id) + disposedSuffix }

func parseDisposedMarkName(name string) (int64, bool) {
	dir, found := strings.CutSuffix(name, disposedSuffix)
	if !found {
		return 0, false
	}
	return ParseCheckpointDirName(dir)
}

// emptiedDirName is what the emptied directory of a checkpoint or savepoint is renamed to before it is removed.
func emptiedDirName(base string) string { return "." + base + emptiedSuffix }

// isEmptiedDirName reports whether name is that of the emptied directory of a checkpoint.
func isEmptiedDirName(name string) bool {
	text, found := strings.CutSuffix(name, emptiedSuffix)
	if !found || !strings.HasPrefix(text, ".") {
		return false
	}
	_, ok := ParseCheckpointDirName(text[1:])
	return ok
}

// savepointMarkName is the name of the mark of a savepoint that is begun.
func savepointMarkName(savepoint string) string { return savepoint + begunSuffix }

func isSavepointMarkName(name string) bool {
	dir, found := strings.CutSuffix(name, begunSuffix)
	return found && IsSavepointDirName(dir)
}

// restoredMarkName is the name of a mark that says what may be done with a checkpoint that the job was restored from.
func restoredMarkName(id uuid.UUID) string { return restoredPrefix + id.String() }

func isRestoredMarkName(name string) bool {
	id, found := strings.CutPrefix(name, restoredPrefix)
	return found && IsStateFileName(id)
}

// isCheckpointTrash reports whether a name in a claim's directory is that of a checkpoint's directory on its way out.
func isCheckpointTrash(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || !IsStateFileName(name[dot+1:]) {
		return false
	}
	_, ok := ParseCheckpointDirName(name[:dot])
	return ok
}

// packDirName is Flink's "job_<job id>_tm_<task manager>", with a task manager that tells whose files these are.
func packDirName(job JobID, worker string) string {
	return packJobPrefix + job.String() + packWorkerPrefix + worker
}

// IsPackDirName reports whether name is that of a directory of packed states that this module wrote. Its files have the
// names of state files, and each is needed by those checkpoints only that refer to segments of it.
func IsPackDirName(name string) bool {
	rest, found := strings.CutPrefix(name, packJobPrefix)
	if !found {
		return false
	}
	job, worker, found := strings.Cut(rest, packWorkerPrefix)
	_, err := ParseJobID(job)
	return found && err == nil && isWorkerName(worker)
}

func isWorkerName(text string) bool {
	return text != "" && len(text) <= maxWorkerName && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// isPackedFile reports whether name is that of a file of packed states in a pack directory directly below dir.
func isPackedFile(dir, name string) bool {
	pack := parentDir(name)
	return parentDir(pack) == dir && IsPackDirName(path.Base(pack)) && IsStateFileName(path.Base(name))
}

func isLowerHex(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

// Qualify puts a file system's URI before a name, in the form Flink writes: "file:/a/b", "hdfs://ns1/a/b".
func Qualify(uri, name string) string {
	if scheme, authority, found := strings.Cut(uri, "://"); found && authority == "" {
		return scheme + ":" + name
	}
	return uri + name
}

// SplitQualified splits a qualified path into the URI of its file system and the clean name there. A path without a scheme
// has the URI "". It understands "file:/a", "file:///a" and "hdfs://ns1/a"; repeated and trailing slashes are dropped, as
// Flink does. Everything else is fs.ErrInvalid.
func SplitQualified(qualified string) (uri, name string, err error) {
	rest := qualified
	if colon := strings.IndexByte(qualified, ':'); colon >= 0 && !strings.Contains(qualified[:colon], "/") {
		scheme := qualified[:colon]
		if !isScheme(scheme) {
			return "", "", fmt.Errorf("%w: %q has no valid scheme", fs.ErrInvalid, qualified)
		}
		rest = qualified[colon+1:]
		authority := ""
		if after, found := strings.CutPrefix(rest, "//"); found {
			slash := strings.IndexByte(after, '/')
			if slash < 0 {
				slash = len(after)
			}
			authority, rest = after[:slash], after[slash:]
		}
		uri = scheme + "://" + authority
	}
	if !strings.HasPrefix(rest, "/") {
		return "", "", fmt.Errorf("%w: %q is not an absolute path", fs.ErrInvalid, qualified)
	}
	return uri, path.Clean(rest), nil
}

func isScheme(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	})
}

// join joins a directory's name and one component.
func join(dir, component string) string {
	if dir == "/" {
		return dir + component
	}
	return dir + "/" + component
}

// parentDir is the directory of a clean absolute name.
func parentDir(name string) string { return path.Dir(name) }
