package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// VerifyOptions of a verification.
type VerifyOptions struct {
	// Deep: every byte is read, and compared with checksums where they are recorded.
	Deep bool
	// Checksums: recorded checksums are compared with those that the file system keeps, where it does.
	Checksums bool
	// Parallel is how many objects are checked at the same time.
	Parallel int
	// MaxFindings is how many findings of a checkpoint are kept; 0 is no limit.
	MaxFindings int
	PathMap     PathMap
	// Meter is told about the progress; it may be nil.
	Meter *progress.Meter
}

// Verify checks the checkpoints that pointers name, one after the other. The errors are of checkpoints that are not there, of what
// could not be done as asked, or of the context; what is wrong with a checkpoint are findings. An object that several checkpoints need
// is checked once, unless something is wrong with it. No more than the objects that are being checked is in memory.
func Verify(ctx context.Context, open core.Opener, pointers []string, opts VerifyOptions) (*report.Verification, []error) {
	if opts.MaxFindings == 0 {
		opts.MaxFindings = maxInt
	}
	var problems []error
	v := &report.Verification{Deep: opts.Deep, Checksums: opts.Checksums, Checkpoints: []report.Verified{}}
	verifier := verifier{open: open, opts: opts}
	if len(pointers) > 1 {
		verifier.sound = map[targetKey]soundness{}
	}
	for _, pointer := range pointers {
		if ctx.Err() != nil {
			break
		}
		result, err := verifier.verify(ctx, pointer)
		if err != nil {
			problems = append(problems, err)
		}
		if result != nil {
			v.Checkpoints = append(v.Checkpoints, *result)
		}
	}
	if ctx.Err() != nil {
		problems = []error{ctx.Err()}
	}
	return v, problems
}

const maxInt = int(^uint(0)>>1) / 2 // of which twice as many is still a number

// verifier verifies checkpoint after checkpoint.
type verifier struct {
	open core.Opener
	opts VerifyOptions
	// sound are the outcomes of objects with which nothing is wrong; nil if there is only one checkpoint, which names every object
	// once.
	mu    sync.Mutex
	sound map[targetKey]soundness
}

// verify checks one checkpoint. There may be both a result and an error.
func (v *verifier) verify(ctx context.Context, pointer string) (*report.Verified, error) {
	s, err := TakeSurvey(ctx, v.open, pointer, metadata.InventoryOptions{})
	defer s.Release()
	if s == nil {
		return nil, err
	}
	result := report.NewVerified(s.Pointer, v.opts.MaxFindings)
	if err != nil {
		return result, v.unreadable(ctx, s, result, err)
	}
	result.MetadataVersion, result.MetadataChecksum = s.Checkpoint.Version, s.Checkpoint.Footer != nil
	result.Expect(report.NewInventory(s.Files))
	err = v.checkAll(ctx, s, result)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if result.Found.Missing > 0 && ctx.Err() == nil {
		// Objects that are missing because the checkpoint itself was disposed of meanwhile are no findings.
		if _, err := core.ResolvePointer(ctx, v.open, s.Metadata.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, vanished(s.Pointer)
		}
	}
	result.Conclude(ctx.Err() != nil)
	return result, v.notCompared(s, result)
}

// unreadable turns a failure to read the metadata into a finding, or returns it.
func (v *verifier) unreadable(ctx context.Context, s *Survey, result *report.Verified, err error) error {
	finding := report.MetadataFinding(ctx, s.Metadata.Path, err)
	if finding == nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = vanished(s.Pointer)
		}
		return err
	}
	result.Add(report.Outcome{Finding: finding})
	result.Conclude(false)
	return nil
}

// notCompared is the error for checksums that were to be compared, when none could be.
func (v *verifier) notCompared(s *Survey, result *report.Verified) error {
	if !v.opts.Checksums || result.Compared > 0 || result.NotCompared == 0 {
		return nil
	}
	return &report.Problem{
		Kind: report.Unsupported, Path: s.Pointer,
		Message: fmt.Sprintf("%s: nothing to compare checksums with: %s does not tell checksums of its files, or none are recorded", s.Pointer, s.FileSystem().URI()),
		Hint:    "what was checked is that the files are there with their sizes; use --deep to read every byte",
	}
}

// checkAll checks all objects of a checkpoint.
func (v *verifier) checkAll(ctx context.Context, s *Survey, result *report.Verified) error {
	bytes := int64(0)
	if v.opts.Deep {
		bytes = s.Files.Bytes
	}
	v.opts.Meter.Expect(s.Files.Files, bytes)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dispatch{verifier: v, result: result, targets: make(chan target), checker: newChecker(v.open, v.opts), ended: ctx.Done()}
	var workers sync.WaitGroup
	for range v.opts.Parallel {
		workers.Go(func() { d.work(ctx) })
	}
	err := d.feed(ctx, s)
	close(d.targets)
	workers.Wait()
	return s.located(err)
}

// target is an object, or a segment of one, that is to be checked.
type target struct {
	metadata.NeededFile
	where string // the path to look at
	key   targetKey
}

// dispatch hands the objects of a checkpoint out to workers and collects the outcomes.
type dispatch struct {
	*verifier
	checker *checker
	targets chan target
	ended   <-chan struct{}

	mu     sync.Mutex
	result *report.Verified
}

// feed goes through the objects in the order of the metadata.
func (d *dispatch) feed(ctx context.Context, s *Survey) error {
	bad := map[string]bool{} // merged files in which there is nothing to be read
	for file, err := range s.All() {
		if err != nil {
			return err
		}
		t := target{NeededFile: file, where: file.Path}
		if !file.Relative {
			t.where = d.opts.PathMap.Map(file.Path)
		}
		if len(file.Segments) > 0 {
			// The file is looked at before any segment of it, so that one that is missing is one finding.
			if file.First {
				whole := t
				whole.Segments = nil
				if !d.settle(ctx, whole, d.checker.look) {
					bad[file.Path] = true
				}
			}
			if !d.opts.Deep || bad[file.Path] {
				continue
			}
		}
		select {
		case d.targets <- t:
		case <-d.ended:
			return nil
		}
	}
	return nil
}

func (d *dispatch) work(ctx context.Context) {
	files := newOpenFiles(d.opts.Parallel)
	defer files.close()
	for t := range d.targets {
		d.settle(ctx, t, func(ctx context.Context, t *target) report.Outcome { return d.checker.check(ctx, t, files) })
	}
}

// settle adds the outcome of a target, which may be known from an earlier checkpoint, and reports whether all is well.
func (d *dispatch) settle(ctx context.Context, t target, check func(context.Context, *target) report.Outcome) bool {
	outcome, known := d.recall(&t)
	if !known {
		outcome = check(ctx, &t)
		d.remember(&t, outcome)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.Add(outcome)
	if outcome.Finding != nil {
		d.opts.Meter.Found()
	}
	if outcome.Checked && !t.Directory {
		d.opts.Meter.Done(1, 0)
	}
	return outcome.Finding == nil
}

func (v *verifier) recall(t *target) (report.Outcome, bool) {
	if v.sound == nil {
		return report.Outcome{}, false
	}
	t.key = newTargetKey(t.Object)
	v.mu.Lock()
	defer v.mu.Unlock()
	s, known := v.sound[t.key]
	return s.outcome(), known
}

func (v *verifier) remember(t *target, outcome report.Outcome) {
	if v.sound == nil || outcome.Finding != nil || !outcome.Checked && len(t.Segments) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sound[t.key] = newSoundness(outcome)
}
