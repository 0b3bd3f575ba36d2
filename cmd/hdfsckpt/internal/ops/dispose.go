package ops

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// lookTime is how long it may take to look at what an interrupted disposal has done.
const lookTime = 5 * time.Second

// DisposeOptions of a disposal.
type DisposeOptions struct {
	// Yes: it is done, and not only planned.
	Yes bool
	// Force disposes even of the newest complete checkpoint of a job.
	Force bool
	// IgnoreMetadata as in core.DisposeOptions.
	IgnoreMetadata bool
}

// Dispose disposes of the checkpoints that pointers name, one after the other, and goes on behind those that it cannot dispose
// of. Each pointer is the directory of a checkpoint or savepoint, or its `_metadata`.
func Dispose(ctx context.Context, open core.Opener, pointers []string, opts DisposeOptions) (*report.Disposal, []error) {
	result := &report.Disposal{DryRun: !opts.Yes, Checkpoints: []report.DisposedCheckpoint{}}
	var problems []error
	for _, pointer := range pointers {
		if ctx.Err() != nil {
			return result, append(problems, ctx.Err())
		}
		d, err := disposeOne(ctx, open, pointer, opts)
		result.Checkpoints = append(result.Checkpoints, d)
		if err != nil {
			problems = append(problems, err)
			if ctx.Err() != nil {
				break // the error tells it
			}
		}
	}
	return result, problems
}

func disposeOne(ctx context.Context, open core.Opener, pointer string, opts DisposeOptions) (report.DisposedCheckpoint, error) {
	d := report.NewDisposedCheckpoint(pointer)
	d.Status = report.DisposalError
	fsys, dir, err := open(ctx, pointer)
	if err != nil {
		return d, err
	}
	if path.Base(dir) == core.MetadataName {
		dir = path.Dir(dir)
	}
	d.Pointer = core.Qualify(fsys.URI(), dir)
	left, err := whatIsLeft(ctx, fsys, dir)
	if err != nil {
		return d, err
	}
	if left == nothing {
		if opts.Yes {
			// The last step may have been interrupted, with the emptied directory moved aside.
			_, err = core.Dispose(ctx, fsys, dir, core.DisposeOptions{Read: metadata.ReadObjects})
		}
		if err == nil {
			d.Status = report.Gone
		}
		return d, err
	}
	if refusal, err := guard(ctx, fsys, dir, opts); refusal != nil {
		d.Status = report.NotDisposed
		return d, refusal
	} else if err != nil {
		return d, err
	}
	sizes := map[string]int64{}
	done, err := core.Dispose(ctx, fsys, dir, core.DisposeOptions{
		Read:           recordSizes(d.Pointer, sizes),
		DryRun:         !opts.Yes,
		IgnoreMetadata: opts.IgnoreMetadata,
	})
	d.Take(done, fsys.URI(), sizes)
	if err != nil {
		return d, explainFailure(ctx, fsys, dir, &d, err)
	}
	switch {
	case left == emptyDir:
		d.Status = report.Gone
	case opts.Yes:
		d.Status = report.Disposed
	default:
		d.Status = report.Planned
	}
	return d, nil
}

// explainFailure finds out whether a failed disposal has begun, and says what is left and what to do.
func explainFailure(ctx context.Context, fsys core.FileSystem, dir string, d *report.DisposedCheckpoint, err error) error {
	problem := report.NewProblem(ctx, err)
	// The look must be possible although the command was interrupted.
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	_, statErr := fsys.Stat(look, path.Join(dir, core.MetadataName))
	d.Fail(&problem, errors.Is(statErr, fs.ErrNotExist), report.PathsOf(err))
	return &problem
}

// leftover is what an earlier disposal may have left.
type leftover uint8

const (
	nothing leftover = iota
	emptyDir
	something
)

// whatIsLeft looks at a checkpoint's directory. If it is gone, its parent must be there: the directory of a job or of savepoints
// stays when a checkpoint goes, so that without it the pointer is wrong.
func whatIsLeft(ctx context.Context, fsys core.FileSystem, dir string) (leftover, error) {
	info, err := fsys.Stat(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err = fsys.Stat(ctx, path.Dir(dir))
		return nothing, err
	case err != nil || !info.IsDir():
		return something, err
	}
	for _, err := range fsys.List(ctx, dir) {
		return something, err
	}
	return emptyDir, nil
}

// guard returns the reason not to dispose of the newest complete checkpoint of a job.
func guard(ctx context.Context, fsys core.FileSystem, dir string, opts DisposeOptions) (*report.Problem, error) {
	if _, ok := core.ParseCheckpointDirName(path.Base(dir)); !ok || opts.Force {
		return nil, nil //nolint:nilnil // no reason
	}
	siblings, err := core.ListCheckpoints(ctx, fsys, path.Dir(dir))
	if err != nil {
		return nil, err
	}
	return report.GuardNewest(core.Qualify(fsys.URI(), dir), dir, siblings), nil
}

// recordSizes reads objects and takes down the sizes of those of one checkpoint.
func recordSizes(pointer string, sizes map[string]int64) core.ReadObjects {
	return func(data []byte, dir string) ([]core.Object, error) {
		objects, err := metadata.ReadObjects(data, dir)
		if dir == pointer {
			for _, object := range objects {
				sizes[object.Path] = report.ObjectSize(object)
			}
		}
		return objects, err
	}
}
