package report

import (
	"cmp"
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
	Deep bool `json:"deep"`
	// Checksums: recorded checksums were compared with those that the file system keeps.
	Checksums   bool       `json:"checksums"`
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
	// Compared are the objects whose recorded checksums were compared with those that the file system keeps, without reading them;
	// NotCompared those for which either is missing.
	Compared    int `json:"objects_compared"`
	NotCompared int `json:"objects_not_compared"`
	// MissingDirectories of merged files are no finding: what is needed of them is checked file by file.
	MissingDirectories int `json:"missing_directories"`
	// Found counts all findings; those of Findings are the first by path, at most as many as --max-findings says.
	Found    Found     `json:"found"`
	Findings []Finding `json:"findings"`

	most int
}

// Found counts findings by kind.
type Found struct {
	Missing    int `json:"missing"`
	Short      int `json:"short"`
	Long       int `json:"long"`
	Corrupt    int `json:"corrupt"`
	Unreadable int `json:"unreadable"`
}

// All is the number of findings.
func (f Found) All() int { return f.Missing + f.Short + f.Long + f.Corrupt + f.Unreadable }

func (f *Found) count(kind FindingKind) {
	switch kind {
	case Missing:
		f.Missing++
	case Short:
		f.Short++
	case Long:
		f.Long++
	case Corrupt:
		f.Corrupt++
	case Unreadable:
		f.Unreadable++
	}
}

// NewVerified begins with a checkpoint of which nothing has been checked. At most most findings are kept; the others are counted.
func NewVerified(pointer string, most int) *Verified {
	return &Verified{Pointer: pointer, Findings: []Finding{}, most: most}
}

// Outcome is what was seen of one object, or of a segment of one.
type Outcome struct {
	// Checked: the object was looked at. It is not set for the segments of an object.
	Checked   bool
	ReadBytes int64
	// WithoutChecksum: it was read, and there was nothing to compare its bytes with.
	WithoutChecksum  bool
	MissingDirectory bool
	// Compared and NotCompared as in Verified.
	Compared, NotCompared bool
	Finding               *Finding
}

// Expect takes over what the metadata says of the objects.
func (v *Verified) Expect(i Inventory) {
	v.Objects, v.Bytes, v.UnknownSizes = i.Objects, i.Bytes, i.UnknownSizes
}

// Add takes an outcome into account.
func (v *Verified) Add(o Outcome) {
	for _, n := range [...]struct {
		counter *int
		set     bool
	}{
		{&v.Checked, o.Checked},
		{&v.WithoutChecksum, o.WithoutChecksum},
		{&v.MissingDirectories, o.MissingDirectory},
		{&v.Compared, o.Compared},
		{&v.NotCompared, o.NotCompared},
	} {
		if n.set {
			*n.counter++
		}
	}
	v.ReadBytes += o.ReadBytes
	if o.Finding != nil {
		v.find(*o.Finding)
	}
}

// find keeps a finding if there is room, or if it comes before one that is kept.
func (v *Verified) find(f Finding) {
	v.Found.count(f.Kind)
	v.Findings = append(v.Findings, f)
	if len(v.Findings) > 2*v.most {
		v.trim()
	}
}

func (v *Verified) trim() {
	slices.SortFunc(v.Findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	v.Findings = v.Findings[:min(len(v.Findings), v.most)]
}

// Conclude sorts the findings and decides the verdict. ended tells that the verification was cut off.
func (v *Verified) Conclude(ended bool) {
	v.trim()
	switch {
	case v.Found.All() > v.Found.Unreadable:
		v.Verdict = Unsound
	case ended || v.Checked < v.Objects || v.Found.Unreadable > 0:
		v.Verdict = Unknown
	default:
		v.Verdict = Sound
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
// reach to the end of the last. It returns nil if nothing is wrong.
func JudgeSize(object core.Object, where string, found int64) *Finding {
	expected := ObjectSize(object)
	if expected < 0 {
		expected = max(found, object.AtLeast)
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

// JudgeSum compares the checksum that a file system keeps of a file with the recorded ones; nil if nothing is wrong.
func JudgeSum(object core.Object, where string, found uint32, size int64) *Finding {
	if finding := JudgeSize(object, where, size); finding != nil {
		return finding
	}
	if expected := object.Checksums.Whole(size); found != expected {
		return newFinding(Corrupt, object, where, fmt.Sprintf("the file system's checksum of it is %08x, the recorded one %08x", found, expected))
	}
	return nil
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
