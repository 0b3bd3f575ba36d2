package ops

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// VerifyOptions of a verification.
type VerifyOptions struct {
	// Deep: every byte is read, and compared with checksums where they are recorded.
	Deep bool
	// Parallel is how many objects are checked at the same time.
	Parallel int
	PathMap  PathMap
	// Meter is told about the progress; it may be nil.
	Meter *progress.Meter
}

// target is an object of one or more of the checkpoints that are verified.
type target struct {
	object  core.Object
	where   string // the path to look at
	atLeast int64  // the end of the last segment that is needed of it
	outcome report.Outcome
}

// suspect is a checkpoint that is verified.
type suspect struct {
	result   report.Verified
	open     core.Opener
	metadata string // path of the metadata
	objects  []*target
}

// Verify checks the checkpoints that pointers name. The errors are of checkpoints that are not there, or of the context; what is
// wrong with a checkpoint are findings. An object that several checkpoints need is checked once.
func Verify(ctx context.Context, open core.Opener, pointers []string, opts VerifyOptions) (*report.Verification, []error) {
	var problems []error
	var suspects []*suspect
	targets := targetSet{opts: opts}
	if len(pointers) > 1 {
		targets.known = map[targetKey]*target{}
	}
	for _, pointer := range pointers {
		s, err := summon(ctx, open, pointer, &targets)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		suspects = append(suspects, s)
	}
	targets.check(ctx, open)
	v := &report.Verification{Deep: opts.Deep, Checkpoints: []report.Verified{}}
	for _, s := range suspects {
		result, err := s.conclude(ctx)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		v.Checkpoints = append(v.Checkpoints, result)
	}
	if ctx.Err() != nil {
		problems = []error{ctx.Err()}
	}
	return v, problems
}

// summon reads the metadata of a checkpoint.
func summon(ctx context.Context, open core.Opener, pointer string, targets *targetSet) (*suspect, error) {
	c, err := Read(ctx, open, pointer)
	if c == nil {
		return nil, err
	}
	s := &suspect{open: open, metadata: c.Metadata.Path, result: report.Verified{Pointer: c.Pointer}}
	if err != nil {
		finding := report.MetadataFinding(ctx, c.Metadata.Path, err)
		if finding == nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = vanished(c.Pointer)
			}
			return nil, err
		}
		s.result.Findings = []report.Finding{*finding}
		return s, nil
	}
	s.result.MetadataVersion, s.result.MetadataChecksum = c.Content.Version, c.Content.Footer != nil
	ends := report.SegmentEnds(c.Content, c.Objects)
	s.objects = make([]*target, 0, len(c.Objects))
	for _, object := range c.Objects {
		s.objects = append(s.objects, targets.add(object, ends[object.Path]))
	}
	return s, nil
}

// conclude sums up the outcomes. Objects that are missing because the checkpoint itself was disposed of meanwhile are no
// findings.
func (s *suspect) conclude(ctx context.Context) (report.Verified, error) {
	missing := false
	for _, t := range s.objects {
		s.result.Add(t.object, t.atLeast, t.outcome)
		missing = missing || t.outcome.Finding != nil && t.outcome.Finding.Kind == report.Missing
	}
	if missing && ctx.Err() == nil {
		if _, err := core.ResolvePointer(ctx, s.open, s.metadata); errors.Is(err, fs.ErrNotExist) {
			return report.Verified{}, vanished(s.result.Pointer)
		}
	}
	s.result.Conclude(ctx.Err() != nil)
	return s.result, nil
}

// targetSet holds every object once.
type targetSet struct {
	opts  VerifyOptions
	list  []*target
	known map[targetKey]*target // nil if there is only one checkpoint, which names every object once
}

// targetKey tells objects apart that a checkpoint could judge differently.
type targetKey struct {
	path      string
	size      int64
	atLeast   int64
	flagByte  bool
	directory bool
	chunkSize int
	sums      uint32 // checksum of the checksums
}

func newTargetKey(o core.Object, atLeast int64) targetKey {
	key := targetKey{path: o.Path, size: o.Size, atLeast: atLeast, flagByte: o.FlagByte, directory: o.Directory}
	if o.Checksums != nil {
		key.chunkSize = o.Checksums.ChunkSize
		sums := make([]byte, 0, 4*len(o.Checksums.Sums))
		for _, sum := range o.Checksums.Sums {
			sums = binary.BigEndian.AppendUint32(sums, sum)
		}
		key.sums = core.CRC32C(sums)
	}
	return key
}

func (s *targetSet) add(object core.Object, atLeast int64) *target {
	if s.known == nil {
		return s.addNew(object, atLeast)
	}
	key := newTargetKey(object, atLeast)
	t := s.known[key]
	if t == nil {
		t = s.addNew(object, atLeast)
		s.known[key] = t
	}
	return t
}

func (s *targetSet) addNew(object core.Object, atLeast int64) *target {
	t := &target{object: object, where: object.Path, atLeast: atLeast}
	if !object.Relative {
		t.where = s.opts.PathMap.Map(object.Path)
	}
	s.list = append(s.list, t)
	s.opts.Meter.Expect(1, s.toRead(object))
	return t
}

// toRead is how many bytes of an object will be read.
func (s *targetSet) toRead(object core.Object) int64 {
	if !s.opts.Deep || object.Directory {
		return 0
	}
	return max(0, report.ObjectSize(object))
}

func (s *targetSet) check(ctx context.Context, open core.Opener) {
	checker := checker{open: open, deep: s.opts.Deep, meter: s.opts.Meter, buffers: sync.Pool{New: func() any {
		buffer := make([]byte, core.ChecksumChunk)
		return &buffer
	}}}
	each(ctx, s.opts.Parallel, len(s.list), func(i int) {
		t := s.list[i]
		t.outcome = checker.check(ctx, t)
		if t.outcome.Finding != nil {
			s.opts.Meter.Found()
		}
		s.opts.Meter.Done(1, 0)
	})
}
