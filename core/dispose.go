package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

// deleteParallelism is how many files are deleted at the same time.
const deleteParallelism = 8

// DisposeOptions of a disposal.
type DisposeOptions struct {
	// Read parses the metadata; required. metadata.ReadObjects is the one to use.
	Read ReadObjects

	// DryRun plans and reports, and changes nothing.
	DryRun bool

	// Protected are objects that are needed beyond those of the checkpoints that can be listed, for instance by one that is
	// in progress.
	Protected []Object

	// KeepShared keeps every file outside of the checkpoint's own directory.
	KeepShared bool

	// IgnoreMetadata is the way out for a checkpoint whose metadata cannot be read: what is named like a state file in its own
	// directory is deleted, nothing else.
	IgnoreMetadata bool
}

// DisposalReport tells what a disposal did, or with DryRun would do.
type DisposalReport struct {
	Pointer string       `json:"pointer"`
	Removed []string     `json:"removed"`
	Kept    []KeptObject `json:"kept,omitempty"`
}

// Dispose deletes a checkpoint or savepoint and what it alone owns (see PlanDisposal). Everything is decided before the
// first change; metadata or siblings that cannot be read stop the deletion of what they may refer to.
//
//  1. `_metadata` is durably renamed to `._metadata.disposed`: from then on it is no checkpoint.
//  2. Its files are deleted, by the list in the metadata.
//  3. `._metadata.disposed` is deleted, then the directory if it is empty.
//
// It is repeatable: a disposal that was interrupted is resumed by calling it again, one that is done is success. Files that
// are not the checkpoint's own are kept and named in the report, which is no error; files that could not be deleted are
// named in the error.
//
// This form takes the caller's word that nobody restores from or writes to the checkpoint; a job's owner uses Owner.Dispose.
func Dispose(ctx context.Context, fsys FileSystem, dir string, opts DisposeOptions) (*DisposalReport, error) {
	return dispose(ctx, fsys, dir, opts, true, func(ctx context.Context) error {
		return fsys.Rename(ctx, join(dir, MetadataName), join(dir, DisposedName), RenameNoReplace)
	})
}

// Dispose deletes a checkpoint of the owned job as the function Dispose does, except that its first step passes through the
// epoch directory: if the owner was fenced, the error is ErrFenced and the checkpoint stands.
func (o *Owner) Dispose(ctx context.Context, id int64, opts DisposeOptions) (*DisposalReport, error) {
	fsys, dir := o.storage.fsys, join(o.storage.JobDir(), CheckpointDirName(id))
	mark, disposed := join(o.dir, disposedMarkName(id)), join(dir, DisposedName)
	if !opts.DryRun {
		// An earlier call may have failed between the two renames.
		if err := ignoreMissing(fsys.Rename(ctx, mark, disposed, RenameNoReplace)); err != nil {
			return nil, err
		}
	}
	return dispose(ctx, fsys, dir, opts, false, func(ctx context.Context) error {
		if err := fsys.Rename(ctx, join(dir, MetadataName), mark, RenameNoReplace); err != nil {
			return o.explain(ctx, err)
		}
		return o.explain(ctx, fsys.Rename(ctx, mark, disposed, RenameNoReplace))
	})
}

func dispose(
	ctx context.Context, fsys FileSystem, dir string, opts DisposeOptions, foreign bool, uncommit func(context.Context) error,
) (*DisposalReport, error) {
	if opts.Read == nil && !opts.IgnoreMetadata {
		return nil, fmt.Errorf("%w: DisposeOptions.Read is missing", fs.ErrInvalid)
	}
	report := &DisposalReport{Pointer: Qualify(fsys.URI(), dir), Removed: []string{}}
	target, err := examine(ctx, fsys, dir)
	if err != nil || target.gone {
		return report, err
	}
	facts, err := gatherDisposalFacts(ctx, fsys, target, opts, foreign)
	if err != nil {
		return report, err
	}
	plan := PlanDisposal(facts)
	report.Kept = plan.Kept
	if opts.DryRun {
		report.Removed = append(report.Removed, plan.Remove...)
		return report, nil
	}
	if target.metadata == MetadataName {
		if err := uncommit(ctx); err != nil {
			return report, fmt.Errorf("nothing was deleted: %w", err)
		}
	}
	removed, err := removeFiles(ctx, fsys, plan.Remove)
	report.Removed = append(report.Removed, removed...)
	if err != nil {
		return report, fmt.Errorf("the disposal is incomplete; run it again: %w", err)
	}
	return report, finishDisposal(ctx, fsys, dir)
}

// finishDisposal removes the list and then the directory, which stays if foreign files are in it.
func finishDisposal(ctx context.Context, fsys FileSystem, dir string) error {
	if err := removeFile(ctx, fsys, join(dir, DisposedName)); err != nil {
		return fmt.Errorf("the disposal is incomplete; run it again: %w", err)
	}
	err := fsys.Remove(ctx, dir)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// disposalTarget is a directory that is to be disposed of.
type disposalTarget struct {
	dir      string
	entries  []FileInfo
	metadata string // name of the file that lists its objects
	gone     bool
}

// examine finds out what there is to dispose of. A directory that is empty or missing is what a finished disposal leaves.
func examine(ctx context.Context, fsys FileSystem, dir string) (disposalTarget, error) {
	target := disposalTarget{dir: dir}
	committed, disposed := false, false
	for info, err := range fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			target.gone = true
			return target, nil
		}
		if err != nil {
			return target, err
		}
		committed = committed || info.Name == MetadataName
		disposed = disposed || info.Name == DisposedName
		target.entries = append(target.entries, info)
	}
	refuse := func(format string, args ...any) (disposalTarget, error) {
		return target, &fs.PathError{Op: "dispose", Path: dir, Err: fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...)}
	}
	switch {
	case committed && disposed:
		return refuse("it holds both %s and %s; move the one away that does not belong there", MetadataName, DisposedName)
	case committed:
		target.metadata = MetadataName
	case disposed:
		target.metadata = DisposedName
	case len(target.entries) == 0:
		target.gone = true
		return target, ignoreMissing(fsys.Remove(ctx, dir))
	default:
		return refuse("it holds no %s, so it is no complete checkpoint", MetadataName)
	}
	return target, nil
}

// gatherDisposalFacts reads everything that the plan depends on. What other checkpoints need is read only where it can
// matter: checkpoints of other writers (foreign) might refer even to files in this one's own directory.
func gatherDisposalFacts(
	ctx context.Context, fsys FileSystem, target disposalTarget, opts DisposeOptions, foreign bool,
) (DisposalFacts, error) {
	facts := DisposalFacts{URI: fsys.URI(), Dir: target.dir, Entries: target.entries, Needed: map[string]bool{}}
	jobDir := parentDir(target.dir)
	if _, ok := ParseCheckpointDirName(path.Base(target.dir)); ok {
		facts.SharedDir = join(jobDir, SharedDirName)
	}
	if !opts.IgnoreMetadata {
		data, err := readWhole(ctx, fsys, join(target.dir, target.metadata))
		if err != nil {
			return facts, err
		}
		facts.Objects, err = opts.Read(data, Qualify(fsys.URI(), target.dir))
		if err != nil {
			return facts, fmt.Errorf("nothing was deleted, since the metadata of %s cannot be read: %w", target.dir, err)
		}
	}
	for _, object := range opts.Protected {
		facts.Needed[object.Path] = true
	}
	if facts.SharedDir != "" && (foreign || !opts.KeepShared && refersTo(facts.Objects, facts.URI, facts.SharedDir)) {
		others, err := collectNeeds(ctx, fsys, jobDir, target.dir, opts.Read)
		if err != nil {
			return facts, err
		}
		for needed := range others.paths {
			facts.Needed[needed] = true
		}
		facts.SharedBlocked = others.blocked
	}
	if opts.KeepShared {
		facts.SharedBlocked = "shared files are kept as asked"
	}
	return facts, nil
}

// refersTo reports whether any object lies in dir.
func refersTo(objects []Object, uri, dir string) bool {
	for _, object := range objects {
		on, name, err := SplitQualified(object.Path)
		if err == nil && (on == "" || on == uri) && Within(dir, name) {
			return true
		}
	}
	return false
}

// removeFiles deletes names in parallel and goes on behind failures. It returns what is gone and the joined failures.
func removeFiles(ctx context.Context, fsys FileSystem, names []string) (removed []string, err error) {
	outcomes := make([]error, len(names))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(deleteParallelism, len(names)) {
		workers.Go(func() {
			for i := range next {
				outcomes[i] = removeFile(ctx, fsys, names[i])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, name := range names {
		if outcomes[i] == nil {
			removed = append(removed, name)
		}
	}
	return removed, errors.Join(outcomes...)
}
