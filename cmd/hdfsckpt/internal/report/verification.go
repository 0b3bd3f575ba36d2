package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// FindingKind classes what is wrong with an object. The values are part of the JSON interface.
type FindingKind string

// The kinds of findings. Unreadable alone does not mean that something is wrong: it could not be looked at.
const (
	Missing    FindingKind = "missing"
	Short      FindingKind = "short"
	Long       FindingKind = "long"
	Corrupt    FindingKind = "corrupt"
	Unreadable FindingKind = "unreadable"
)

// Finding is something wrong with one object of a checkpoint, or with its metadata.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Path is where it was looked for, Recorded the path in the metadata if --path-map changed it.
	Path     string `json:"path"`
	Recorded string `json:"recorded_path,omitempty"`
	// ExpectedBytes and FoundBytes are set for short and long objects.
	ExpectedBytes *int64 `json:"expected_bytes,omitempty"`
	FoundBytes    *int64 `json:"found_bytes,omitempty"`
	Message       string `json:"message"`
}

// Verdict sums up the findings of a checkpoint. The values are part of the JSON interface.
type Verdict string

// The verdicts.
const (
	Sound   Verdict = "sound"   // nothing is wrong with what was checked, and all was checked
	Unsound Verdict = "damaged" // it cannot be restored as a whole
	Unknown Verdict = "unknown" // something could not be looked at
)

// Verification is the result of verify.
type Verification struct {
	Deep        bool       `json:"deep"`
	Checkpoints []Verified `json:"checkpoints"`
}

// Verified is what verify found out about one checkpoint.
type Verified struct {
	Pointer string  `json:"pointer"`
	Verdict Verdict `json:"verdict"`
	// MetadataVersion is 0 if the metadata could not be read. MetadataChecksum: it holds a checksum of itself, and that is right.
	MetadataVersion  int  `json:"metadata_version"`
	MetadataChecksum bool `json:"metadata_checksum"`
	// Objects are all that the metadata names, Checked those that were looked at.
	Objects int `json:"objects"`
	Checked int `json:"checked"`
	// Bytes are the recorded sizes of the objects; UnknownSizes have none, and count with what is needed of them.
	Bytes        int64 `json:"bytes"`
	UnknownSizes int   `json:"objects_of_unknown_size"`
	// ReadBytes were read by a deep verification. Of the objects that were read, WithoutChecksum had none to compare with.
	ReadBytes       int64 `json:"read_bytes"`
	WithoutChecksum int   `json:"objects_without_checksum"`
	// MissingDirectories of merged files are no finding: what is needed of them is checked file by file.
	MissingDirectories int       `json:"missing_directories"`
	Findings           []Finding `json:"findings"`
}

// Outcome is what was seen of one object.
type Outcome struct {
	Checked   bool
	ReadBytes int64
	// WithoutChecksum: it was read, and there was nothing to compare its bytes with.
	WithoutChecksum  bool
	MissingDirectory bool
	Finding          *Finding
}

// Add takes the outcome of an object into account, of which the first atLeast bytes are needed if its size is not recorded.
func (v *Verified) Add(object core.Object, atLeast int64, o Outcome) {
	var one Inventory
	one.Add(object, atLeast)
	v.Objects += one.Objects
	v.Bytes += one.Bytes
	v.UnknownSizes += one.UnknownSizes
	if o.Checked {
		v.Checked += one.Objects
	}
	if o.WithoutChecksum {
		v.WithoutChecksum++
	}
	v.ReadBytes += o.ReadBytes
	if o.MissingDirectory {
		v.MissingDirectories++
	}
	if o.Finding != nil {
		v.Findings = append(v.Findings, *o.Finding)
	}
}

// Conclude sorts the findings and decides the verdict. ended tells that the verification was cut off.
func (v *Verified) Conclude(ended bool) {
	if v.Findings == nil {
		v.Findings = []Finding{}
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	v.Verdict = Sound
	if ended || v.Checked < v.Objects {
		v.Verdict = Unknown
	}
	for _, f := range v.Findings {
		if f.Kind != Unreadable {
			v.Verdict = Unsound
			return
		}
		v.Verdict = Unknown
	}
}

// LooksMoved reports whether files are missing outside of the directory that the checkpoint's lies in: absolute paths of an
// old place, probably.
func (v *Verification) LooksMoved() bool {
	for _, c := range v.Checkpoints {
		for _, f := range c.Findings {
			if f.Kind == Missing && f.Recorded == "" && !strings.HasPrefix(f.Path, path.Dir(c.Pointer)+"/") {
				return true
			}
		}
	}
	return false
}

// ExitCode is that of the worst verdict: something wrong is a finding, something that could not be looked at is not.
func (v *Verification) ExitCode() int {
	var codes []int
	for _, c := range v.Checkpoints {
		switch c.Verdict {
		case Unsound:
			codes = append(codes, ExitFindings)
		case Unknown:
			codes = append(codes, ExitEnvironment)
		}
	}
	return ExitCode(nil, codes...)
}

// ObjectSize is the length that the object's file must have, -1 if it is not recorded.
func ObjectSize(object core.Object) int64 {
	if object.FlagByte && object.Size >= 0 {
		return object.Size + 1
	}
	return object.Size
}

// JudgeSize compares the length of a regular file with the recorded one; a file of which only segments are recorded must
// reach to the end of the last, atLeast. It returns nil if nothing is wrong.
func JudgeSize(object core.Object, atLeast int64, where string, found int64) *Finding {
	expected := ObjectSize(object)
	if expected < 0 {
		expected = max(found, atLeast)
	}
	if found == expected {
		return nil
	}
	f := newFinding(Short, object, where, fmt.Sprintf("%d of %d bytes", found, expected))
	if found > expected {
		f.Kind = Long
	}
	f.ExpectedBytes, f.FoundBytes = &expected, &found
	return f
}

// JudgeError classes the failure to look at an object or to read it.
func JudgeError(object core.Object, where string, err error) *Finding {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newFinding(Missing, object, where, "there is no such file")
	case errors.Is(err, core.ErrCorrupt):
		return newFinding(Corrupt, object, where, causeOf(err))
	}
	return newFinding(Unreadable, object, where, causeOf(err))
}

// causeOf is the text of an error without the operation and path, which a finding names itself.
func causeOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// JudgeType is the finding for something that is neither a file nor, where one is needed, a directory.
func JudgeType(object core.Object, where string) *Finding {
	if object.Directory {
		return newFinding(Corrupt, object, where, "a file is where a directory should be")
	}
	return newFinding(Corrupt, object, where, "it is not a regular file")
}

func newFinding(kind FindingKind, object core.Object, where, message string) *Finding {
	f := &Finding{Kind: kind, Path: where, Message: message}
	if where != object.Path {
		f.Recorded = object.Path
	}
	return f
}

// MetadataFinding is the finding for metadata that cannot be read; nil if err means that the checkpoint itself is not there
// or that the command was cut off, which are problems and no findings.
func MetadataFinding(ctx context.Context, path string, err error) *Finding {
	if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
		return nil
	}
	return JudgeError(core.Object{Path: path}, path, err)
}
