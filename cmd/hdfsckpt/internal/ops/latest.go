package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// LatestOptions of Latest.
type LatestOptions struct {
	// Job chooses a job below the root; "" is the only one that has a complete checkpoint.
	Job string
	// AllowOlder takes the newest checkpoint whose metadata can be used, if that of the newest one cannot.
	AllowOlder bool
}

// jobCheckpoints is a job's directory with what it holds.
type jobCheckpoints struct {
	dir     string
	entries []core.CheckpointEntry
}

// Latest finds the newest complete checkpoint of a job and reads its metadata.
func Latest(ctx context.Context, fsys core.FileSystem, root string, opts LatestOptions) (*report.Latest, error) {
	var err error
	for range maxLooks {
		var latest *report.Latest
		latest, err = latestOnce(ctx, fsys, root, opts)
		var problem *report.Problem
		if !errors.As(err, &problem) || problem.Kind != report.Vanished {
			return latest, err
		}
	}
	return nil, err
}

// latestOnce fails with the kind vanished if a checkpoint was disposed of after it was listed.
func latestOnce(ctx context.Context, fsys core.FileSystem, root string, opts LatestOptions) (*report.Latest, error) {
	job, err := chooseJob(ctx, fsys, root, opts.Job)
	if err != nil {
		return nil, err
	}
	result := &report.Latest{Job: jobOf(job.dir), Skipped: []report.Skipped{}}
	for {
		entry, ok := core.Latest(job.entries)
		if !ok {
			return nil, noneLeft(fsys, job.dir, result.Skipped)
		}
		pointer := entry.Completed.Pointer
		survey, err := TakeSurvey(ctx, core.OnlyOn(fsys), pointer, metadata.InventoryOptions{})
		survey.Release()
		switch {
		case err == nil:
			result.Pointer, result.ID, result.Time = pointer, entry.ID, entry.Time.UTC()
			return result, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, vanished(pointer)
		case !unusable(err):
			return nil, err
		case !opts.AllowOlder:
			return nil, newestUnusable(ctx, err)
		}
		result.Skipped = append(result.Skipped, report.Skipped{Pointer: pointer, Problem: report.NewProblem(ctx, err)})
		job.entries = without(job.entries, entry.ID)
	}
}

// unusable reports whether an error says that the metadata itself is of no use, and not that it cannot be read now.
func unusable(err error) bool {
	return errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion)
}

func newestUnusable(ctx context.Context, err error) error {
	p := report.NewProblem(ctx, err)
	p.Message = "the newest complete checkpoint cannot be used: " + p.Message
	p.Hint = "look at it with verify; if an older one will do, use --allow-older"
	return &p
}

func noneLeft(fsys core.FileSystem, dir string, skipped []report.Skipped) error {
	p := &report.Problem{
		Kind: report.None, Path: core.Qualify(fsys.URI(), dir),
		Message: fmt.Sprintf("%s has no complete checkpoint", core.Qualify(fsys.URI(), dir)),
		Hint:    "list what is there with ls; savepoints do not count",
	}
	if len(skipped) > 0 {
		p.Message += " whose metadata can be used"
	}
	return p
}

func without(entries []core.CheckpointEntry, id int64) []core.CheckpointEntry {
	var rest []core.CheckpointEntry
	for _, entry := range entries {
		if entry.ID != id {
			rest = append(rest, entry)
		}
	}
	return rest
}

// chooseJob finds the one job that is meant.
func chooseJob(ctx context.Context, fsys core.FileSystem, root, job string) (jobCheckpoints, error) {
	found, err := findJobs(ctx, fsys, root, job)
	if err != nil {
		return jobCheckpoints{}, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return jobCheckpoints{}, noneLeft(fsys, root, nil)
	}
	var names []string
	for _, f := range found {
		names = append(names, path.Base(f.dir))
	}
	return jobCheckpoints{}, report.UsageProblem(
		fmt.Sprintf("%s has checkpoints of %d jobs: %s", core.Qualify(fsys.URI(), root), len(names), strings.Join(names, ", ")),
		"choose one with --job")
}

// findJobs returns the jobs at root that have a complete checkpoint; if a job is named, that one whatever it has.
func findJobs(ctx context.Context, fsys core.FileSystem, root, job string) ([]jobCheckpoints, error) {
	level, err := listLevel(ctx, fsys, root)
	if err != nil {
		return nil, err
	}
	dirs := level.jobs
	if len(level.places) > 0 {
		dirs = append(dirs, root)
	}
	var found []jobCheckpoints
	for _, dir := range dirs {
		if job != "" && path.Base(dir) != job {
			continue
		}
		entries, err := core.ListCheckpoints(ctx, fsys, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		if _, ok := core.Latest(entries); ok || job != "" {
			found = append(found, jobCheckpoints{dir: dir, entries: entries})
		}
	}
	if job != "" && len(found) == 0 {
		return nil, &report.Problem{
			Kind: report.None, Path: core.Qualify(fsys.URI(), root),
			Message: fmt.Sprintf("%s has no job %s", core.Qualify(fsys.URI(), root), job),
			Hint:    "list what is there with ls",
		}
	}
	return found, nil
}
