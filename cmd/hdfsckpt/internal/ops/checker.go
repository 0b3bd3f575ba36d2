package ops

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// checker checks single objects. It is safe for concurrent use.
type checker struct {
	open    core.Opener
	deep    bool
	meter   *progress.Meter
	buffers sync.Pool // of *[]byte, one chunk of a file each
}

// check looks at an object and, if it is a file of the right length, reads it. An object that could not be looked at because
// the context has ended is not checked.
func (c *checker) check(ctx context.Context, t *target) report.Outcome {
	fsys, name, err := c.open(ctx, t.where)
	if err != nil {
		return c.failed(ctx, t, report.Outcome{}, err)
	}
	info, err := fsys.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.object.Directory:
		return report.Outcome{Checked: true, MissingDirectory: true}
	case err != nil:
		return c.failed(ctx, t, report.Outcome{}, err)
	case t.object.Directory != info.IsDir() || !info.IsDir() && !info.IsRegular():
		return report.Outcome{Checked: true, Finding: report.JudgeType(t.object, t.where)}
	case info.IsDir():
		return report.Outcome{Checked: true}
	}
	if finding := report.JudgeSize(t.object, t.atLeast, t.where, info.Size); finding != nil || !c.deep {
		return report.Outcome{Checked: true, Finding: finding}
	}
	return c.read(ctx, t)
}

// read reads every byte of an object.
func (c *checker) read(ctx context.Context, t *target) report.Outcome {
	outcome := report.Outcome{Checked: true}
	object := t.object
	object.Path = t.where
	r, err := core.OpenObject(ctx, c.open, object)
	if err != nil {
		return c.failed(ctx, t, outcome, err)
	}
	defer func() { _ = r.Close() }()
	outcome.WithoutChecksum = !r.Verified()
	buffer := c.buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer c.buffers.Put(buffer)
	for {
		n, err := r.Read(*buffer)
		outcome.ReadBytes += int64(n)
		c.meter.Done(0, int64(n))
		switch {
		case errors.Is(err, io.EOF):
			// The file may have become shorter since it was opened.
			outcome.Finding = report.JudgeSize(t.object, t.atLeast, t.where, outcome.ReadBytes)
			return outcome
		case err != nil:
			return c.failed(ctx, t, outcome, err)
		}
	}
}

// failed turns a failure into a finding, unless the context has ended.
func (c *checker) failed(ctx context.Context, t *target, outcome report.Outcome, err error) report.Outcome {
	if ctx.Err() != nil {
		outcome.Checked = false
		return outcome
	}
	outcome.Checked = true
	outcome.Finding = report.JudgeError(t.object, t.where, err)
	return outcome
}
