package ops

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	// probeBytes spans several of the pieces in which HDFS writes and checks (512 B, 64 KiB).
	probeBytes = 200_000
	// stepTime bounds each step: something that hangs is a finding too.
	stepTime = 30 * time.Second
	// cleanupTime bounds the removal of the probe after an interruption.
	cleanupTime = 10 * time.Second
	probePrefix = ".hdfsckpt-doctor-"
)

// Examine writes, reads, renames and removes files in a fresh directory of its own below dir, or below the nearest directory above
// that exists, and returns what came of each step, and that directory's name. Nothing is left behind, unless the storage fails
// to remove it; then the last step says so. It looks for safe mode where the file system has one.
func Examine(ctx context.Context, fsys core.FileSystem, dir string, now func() time.Time) (steps []report.Step, probed string) {
	p := &probe{fsys: fsys, now: now, content: make([]byte, probeBytes)}
	_, _ = rand.Read(p.content) // never fails
	p.step(ctx, report.StepDirectory, func(ctx context.Context) error { return p.find(ctx, dir) })
	probed = p.parent
	p.step(ctx, report.StepWrite, p.write)
	if strings.HasPrefix(fsys.URI(), "hdfs://") {
		p.tellSafeMode()
	}
	p.step(ctx, report.StepRead, p.read)
	p.step(ctx, report.StepExclusive, p.exclusive)
	p.step(ctx, report.StepRename, p.rename)
	p.clean(ctx)
	return p.steps, probed
}

// probe is one examination.
type probe struct {
	fsys    core.FileSystem
	now     func() time.Time
	content []byte
	parent  string // an existing directory
	own     string // the directory of the probe; "" before it is made
	details []string
	failure error // that of the first step that failed
	steps   []report.Step
}

func (p *probe) file(name string) string { return path.Join(p.own, name) }

func (p *probe) note(format string, args ...any) {
	p.details = append(p.details, fmt.Sprintf(format, args...))
}

// step does one step, unless one before it failed.
func (p *probe) step(ctx context.Context, name report.StepName, do func(context.Context) error) {
	s := report.Step{Name: name, Status: report.StepSkipped, Details: []string{}}
	if p.failure == nil {
		p.details = []string{}
		begin := p.now()
		limited, cancel := context.WithTimeout(ctx, stepTime)
		p.failure = do(limited)
		cancel()
		s.Milliseconds, s.Details, s.Status = p.now().Sub(begin).Milliseconds(), p.details, report.StepOK
		if p.failure != nil {
			s.Status, s.Problem = report.StepFailed, report.Diagnose(ctx, name, p.failure)
		}
	}
	p.steps = append(p.steps, s)
}

// find looks for the nearest directory that exists.
func (p *probe) find(ctx context.Context, dir string) error {
	for at := dir; ; at = path.Dir(at) {
		info, err := p.fsys.Stat(ctx, at)
		switch {
		case err == nil && info.IsDir():
			p.parent = at
			if at != dir {
				p.note("%s is not there yet, so %s above it is looked at", dir, at)
			}
			return nil
		case err == nil:
			return core.PathError("stat", at, fmt.Errorf("%w: it is a file, not a directory", fs.ErrInvalid))
		case !errors.Is(err, fs.ErrNotExist) || at == "/":
			return err
		}
	}
}

// write makes the probe's directory and a file in it with the strongest durability.
func (p *probe) write(ctx context.Context) error {
	own := path.Join(p.parent, probePrefix+strings.ToLower(rand.Text()))
	if err := p.fsys.MkdirAll(ctx, own); err != nil {
		return err
	}
	p.own = own
	if err := p.create(ctx, p.file("a")); err != nil {
		return err
	}
	p.note("%d bytes, %s", len(p.content), p.fsys.Capabilities().Strongest())
	return nil
}

func (p *probe) create(ctx context.Context, name string) error {
	w, err := p.fsys.Create(ctx, name, core.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := w.Write(p.content); err != nil {
		return errors.Join(err, w.Abort())
	}
	if p.fsys.Capabilities().Sync {
		if err := w.Sync(); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	if err := w.Close(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func (p *probe) read(ctx context.Context) error { return p.compare(ctx, p.file("a")) }

func (p *probe) compare(ctx context.Context, name string) error {
	r, err := p.fsys.Open(ctx, name)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if !bytes.Equal(got, p.content) {
		return core.PathError("read", name, fmt.Errorf("%w: %d bytes were written and %d others read", core.ErrCorrupt, len(p.content), len(got)))
	}
	return nil
}

// exclusive tries what must be refused: checkpoints and fencing rest on it.
func (p *probe) exclusive(ctx context.Context) error {
	w, err := p.fsys.Create(ctx, p.file("a"), core.CreateOptions{})
	if err == nil {
		return errors.Join(core.PathError("create", p.file("a"), report.ErrNotRefused), w.Abort())
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !p.fsys.Capabilities().NoReplaceFiles {
		return core.RenameError(p.file("b"), p.file("a"), fmt.Errorf("%w: no exclusive rename", errors.ErrUnsupported))
	}
	if err := p.create(ctx, p.file("b")); err != nil {
		return err
	}
	switch err := p.fsys.Rename(ctx, p.file("b"), p.file("a"), core.RenameNoReplace); {
	case err == nil:
		return core.RenameError(p.file("b"), p.file("a"), report.ErrNotRefused)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	return nil
}

// rename moves a file to a free name and replaces another.
func (p *probe) rename(ctx context.Context) error {
	if err := p.fsys.Rename(ctx, p.file("a"), p.file("c"), core.RenameNoReplace); err != nil {
		return err
	}
	if _, err := p.fsys.Stat(ctx, p.file("a")); !errors.Is(err, fs.ErrNotExist) {
		return core.PathError("stat", p.file("a"), errors.Join(errors.New("it is still there after a rename"), err))
	}
	if err := p.fsys.Rename(ctx, p.file("c"), p.file("b"), core.RenameReplace); err != nil {
		return err
	}
	return p.compare(ctx, p.file("b"))
}

// clean removes what was made, whatever happened, and also after an interruption.
func (p *probe) clean(ctx context.Context) {
	if p.own == "" {
		p.steps = append(p.steps, report.Step{Name: report.StepRemove, Status: report.StepSkipped, Details: []string{}})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	p.failure = nil
	p.step(ctx, report.StepRemove, func(ctx context.Context) error {
		if err := p.fsys.RemoveAll(ctx, p.own); err != nil {
			p.note("left behind: %s", core.Qualify(p.fsys.URI(), p.own))
			return err
		}
		return nil
	})
}

// tellSafeMode says what the first change, in the step before, has shown.
func (p *probe) tellSafeMode() {
	last := &p.steps[len(p.steps)-1]
	s := report.Step{Name: report.StepSafeMode, Status: report.StepOK, Details: []string{"off"}}
	switch {
	case last.Status == report.StepSkipped:
		s.Status, s.Details = report.StepSkipped, []string{}
	case report.IsSafeMode(p.failure):
		s.Status, s.Details, s.Problem = report.StepFailed, []string{"on"}, last.Problem
		last.Status, last.Problem = report.StepSkipped, nil
	case last.Status == report.StepFailed && p.own == "":
		s.Details = []string{"not known: no change was accepted, for another reason"}
		s.Status = report.StepSkipped
	}
	// Safe mode is what a write is refused for, so it is told first.
	p.steps = append(p.steps[:len(p.steps)-1], s, *last)
}
