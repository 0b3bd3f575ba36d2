package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// maxLooks is how often a directory is looked at that changes meanwhile.
const maxLooks = 5

// ListOptions of a listing.
type ListOptions struct {
	// Quick: metadata is not read.
	Quick bool
	// Parallel is how many directories are looked at at the same time.
	Parallel int
	// Meter is told about the progress; it may be nil.
	Meter *progress.Meter
}

// largeMetadata is the size from which on only one metadata file is read at a time: what is kept of its files takes memory.
const largeMetadata = 8 << 20

// lister looks at many directories at the same time.
type lister struct {
	fsys  core.FileSystem
	quick bool
	large sync.Mutex
}

// place is a directory that has the name of a checkpoint or savepoint, or is named by the user.
type place struct {
	dir  string
	job  string
	info core.FileInfo
}

// List looks at the checkpoints and savepoints at root, which may be a base directory, a job's directory, a directory of
// savepoints, or one of those themselves. Foreign names are passed over without a look. The problems are directories of jobs
// that could not be listed.
func List(ctx context.Context, fsys core.FileSystem, root string, opts ListOptions) ([]report.Facts, []error, error) {
	places, problems, err := findPlaces(ctx, fsys, root)
	if err != nil {
		return nil, nil, err
	}
	l := &lister{fsys: fsys, quick: opts.Quick}
	opts.Meter.Expect(len(places), 0)
	found := make([]*report.Facts, len(places))
	each(ctx, opts.Parallel, len(places), func(i int) {
		found[i] = l.look(ctx, places[i])
		opts.Meter.Done(1, 0)
	})
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	var facts []report.Facts
	for _, f := range found {
		if f != nil {
			facts = append(facts, *f)
		}
	}
	return facts, problems, nil
}

// each calls do with 0 to n-1, at most parallel at the same time, until the context ends.
func each(ctx context.Context, parallel, n int, do func(int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(max(1, parallel), n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
}

// findPlaces finds the directories to look at.
func findPlaces(ctx context.Context, fsys core.FileSystem, root string) ([]place, []error, error) {
	level, err := listLevel(ctx, fsys, root)
	if err != nil {
		return nil, nil, err
	}
	if level.itself {
		info, err := fsys.Stat(ctx, root)
		return []place{{dir: root, job: jobOf(path.Dir(root)), info: info}}, nil, err
	}
	places := level.places
	var problems []error
	for _, job := range level.jobs {
		below, err := listLevel(ctx, fsys, job)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Removed since it was listed.
		case ctx.Err() != nil:
			return nil, nil, err
		case err != nil:
			problems = append(problems, err)
		}
		places = append(places, below.places...)
	}
	return places, problems, nil
}

// level is what is ours among the children of a directory.
type level struct {
	itself bool // the directory is a checkpoint or savepoint itself
	places []place
	jobs   []string
}

func listLevel(ctx context.Context, fsys core.FileSystem, dir string) (level, error) {
	l := level{itself: isOurs(path.Base(dir))}
	for info, err := range fsys.List(ctx, dir) {
		if err != nil {
			return level{}, err
		}
		name := path.Join(dir, info.Name)
		switch {
		case info.Name == core.MetadataName || info.Name == core.DisposedName:
			l.itself = true
		case !info.IsDir():
		case isOurs(info.Name):
			l.places = append(l.places, place{dir: name, job: jobOf(dir), info: info})
		case jobOf(name) != "":
			l.jobs = append(l.jobs, name)
		}
	}
	return l, nil
}

// isOurs reports whether a name is that of a checkpoint's or savepoint's directory.
func isOurs(name string) bool {
	_, isCheckpoint := core.ParseCheckpointDirName(name)
	return isCheckpoint || core.IsSavepointDirName(name)
}

// jobOf is the job id that a job's directory is named by, "" if it is not.
func jobOf(dir string) string {
	if _, err := core.ParseJobID(path.Base(dir)); err != nil {
		return ""
	}
	return path.Base(dir)
}

// look finds out about one directory; nil if it is gone. A directory that changes meanwhile is looked at again.
func (l *lister) look(ctx context.Context, p place) *report.Facts {
	var f *report.Facts
	for range maxLooks {
		f = l.lookOnce(ctx, p)
		if f == nil || !errors.Is(f.Err, fs.ErrNotExist) {
			return f
		}
	}
	return f
}

func (l *lister) lookOnce(ctx context.Context, p place) *report.Facts {
	fsys := l.fsys
	f := &report.Facts{Pointer: core.Qualify(fsys.URI(), p.dir), Job: p.job, Time: p.info.ModTime}
	info, err := fsys.Stat(ctx, path.Join(p.dir, core.MetadataName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lookWithoutMetadata(ctx, fsys, p, f)
	case err != nil:
		f.Err = err
		return f
	}
	f.HasMetadata, f.MetadataSize, f.Time = true, info.Size, info.ModTime
	switch {
	case !info.IsRegular():
		f.Err = &fs.PathError{Op: "open", Path: path.Join(p.dir, core.MetadataName), Err: fmt.Errorf("%w: the metadata is not a regular file", core.ErrCorrupt)}
	case !l.quick:
		f.Content, f.Err = l.readContent(ctx, f.Pointer, info.Size)
	}
	return f
}

// lookWithoutMetadata tells a checkpoint in progress from one whose disposal has begun or is finished, and from one that is gone.
func lookWithoutMetadata(ctx context.Context, fsys core.FileSystem, p place, f *report.Facts) *report.Facts {
	switch state, err := core.StateWithoutMetadata(ctx, fsys, p.dir); {
	case err != nil:
		f.Err = err
		return f
	case state == core.Disposing:
		f.Disposing = true
		return f
	case state == core.Disposed:
		f.Disposed = true
		return f
	}
	switch _, err := fsys.Stat(ctx, p.dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		f.Err = err
	}
	return f
}

func (l *lister) readContent(ctx context.Context, pointer string, size int64) (*report.Content, error) {
	if size > largeMetadata {
		l.large.Lock()
		defer l.large.Unlock()
	}
	s, err := TakeSurvey(ctx, core.OnlyOn(l.fsys), pointer, metadata.InventoryOptions{})
	defer s.Release()
	if err != nil {
		return nil, err
	}
	return &report.Content{ID: s.Checkpoint.ID, Inventory: report.NewInventory(s.Files)}, nil
}
