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
	open      core.Opener
	deep      bool
	checksums bool
	meter     *progress.Meter
	buffers   sync.Pool // of *[]byte, one chunk of a file each
}

func newChecker(open core.Opener, opts VerifyOptions) *checker {
	return &checker{open: open, deep: opts.Deep, checksums: opts.Checksums, meter: opts.Meter, buffers: sync.Pool{New: func() any {
		buffer := make([]byte, core.ChecksumChunk)
		return &buffer
	}}}
}

// check looks at an object and, if it is a file of the right length, reads it; of a segment it reads the bytes. An object that could
// not be looked at because the context has ended is not checked.
func (c *checker) check(ctx context.Context, t *target, files *openFiles) report.Outcome {
	if len(t.Segments) > 0 {
		return c.readSegment(ctx, t, files)
	}
	outcome := c.look(ctx, t)
	switch {
	case !outcome.Checked || outcome.Finding != nil || t.Directory:
		return outcome
	case c.checksums:
		c.compare(ctx, t, &outcome)
	}
	if c.deep && outcome.Finding == nil {
		c.readWhole(ctx, t, &outcome)
	}
	return outcome
}

// look finds out whether an object is there and has the right length.
func (c *checker) look(ctx context.Context, t *target) report.Outcome {
	outcome := report.Outcome{Checked: !t.Directory}
	// Of merged files the parts that are needed are read later; whether all of them have checksums is known here.
	merged := !t.Directory && t.NeededFile.Size < 0 && t.AtLeast > 0
	outcome.WithoutChecksum = merged && c.deep && !t.Checksummed
	outcome.NotCompared = merged && c.checksums
	fsys, name, err := c.open(ctx, t.where)
	if err != nil {
		return c.failed(ctx, t, outcome, err)
	}
	info, err := fsys.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.Directory:
		outcome.MissingDirectory = true
	case err != nil:
		return c.failed(ctx, t, outcome, err)
	case t.Directory != info.IsDir() || !info.IsDir() && !info.IsRegular():
		outcome.Finding = report.JudgeType(t.Object, t.where)
	case !info.IsDir():
		outcome.Finding = report.JudgeSize(t.Object, t.where, info.Size)
	}
	if outcome.Finding != nil {
		outcome.WithoutChecksum = false
	}
	return outcome
}

// compare compares the recorded checksums with those that the file system keeps.
func (c *checker) compare(ctx context.Context, t *target, outcome *report.Outcome) {
	if outcome.NotCompared {
		return
	}
	outcome.NotCompared = true
	if t.Checksums == nil {
		return
	}
	fsys, name, err := c.open(ctx, t.where)
	if err != nil {
		*outcome = c.failed(ctx, t, *outcome, err)
		return
	}
	keeper, ok := fsys.(core.Checksummer)
	if !ok {
		return
	}
	sum, size, err := keeper.FileCRC32C(ctx, name)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		*outcome = c.failed(ctx, t, *outcome, err)
	default:
		outcome.Compared, outcome.NotCompared = true, false
		outcome.Finding = report.JudgeSum(t.Object, t.where, sum, size)
	}
}

// readWhole reads every byte of an object.
func (c *checker) readWhole(ctx context.Context, t *target, outcome *report.Outcome) {
	object := t.Object
	object.Path = t.where
	r, err := core.OpenObject(ctx, c.open, object)
	if err != nil {
		*outcome = c.failed(ctx, t, *outcome, err)
		return
	}
	defer func() { _ = r.Close() }()
	outcome.WithoutChecksum = !r.Verified()
	if err := c.drain(r, outcome); err != nil {
		*outcome = c.failed(ctx, t, *outcome, err)
		return
	}
	// The file may have become shorter since it was opened.
	outcome.Finding = report.JudgeSize(t.Object, t.where, outcome.ReadBytes)
}

// readSegment reads every byte of a segment. The file as a whole was looked at before.
func (c *checker) readSegment(ctx context.Context, t *target, files *openFiles) report.Outcome {
	var outcome report.Outcome
	r, err := files.open(ctx, c.open, t)
	if err != nil {
		return c.failed(ctx, t, outcome, err)
	}
	part, err := r.Segment(t.Segments[0])
	if err == nil {
		err = c.drain(part, &outcome)
		err = errors.Join(err, part.Close())
	}
	if err != nil {
		return c.failed(ctx, t, outcome, err)
	}
	return outcome
}

// drain reads to the end and counts.
func (c *checker) drain(r io.Reader, outcome *report.Outcome) error {
	buffer := c.buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer c.buffers.Put(buffer)
	for {
		n, err := r.Read(*buffer)
		outcome.ReadBytes += int64(n)
		c.meter.Done(0, int64(n))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// failed turns a failure into a finding, unless the context has ended.
func (c *checker) failed(ctx context.Context, t *target, outcome report.Outcome, err error) report.Outcome {
	if ctx.Err() != nil {
		outcome.Checked = false
		return outcome
	}
	outcome.Finding = report.JudgeError(t.Object, t.where, err)
	return outcome
}

// openFiles are the merged files that a worker has read of last: their segments come close to each other, and opening costs more
// than reading.
type openFiles struct {
	names   []string
	readers []*core.StateReader
	next    int
}

// mostOpenFiles is how many merged files all workers together keep open.
const mostOpenFiles = 128

func newOpenFiles(workers int) *openFiles {
	n := max(1, min(8, mostOpenFiles/workers))
	return &openFiles{names: make([]string, n), readers: make([]*core.StateReader, n)}
}

// open returns a reader of the whole file of a target, which stays open until others need its place.
func (f *openFiles) open(ctx context.Context, open core.Opener, t *target) (*core.StateReader, error) {
	for i, name := range f.names {
		if name == t.where && f.readers[i] != nil {
			return f.readers[i], nil
		}
	}
	r, err := core.OpenObject(ctx, open, core.Object{Path: t.where, Size: t.NeededFile.Size, AtLeast: t.AtLeast})
	if err != nil {
		return nil, err
	}
	f.drop(f.next)
	f.names[f.next], f.readers[f.next] = t.where, r
	f.next = (f.next + 1) % len(f.names)
	return r, nil
}

func (f *openFiles) drop(i int) {
	if f.readers[i] != nil {
		_ = f.readers[i].Close() // nothing was written
		f.readers[i] = nil
	}
}

func (f *openFiles) close() {
	for i := range f.readers {
		f.drop(i)
	}
}
