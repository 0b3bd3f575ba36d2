package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

	// ProtectedIsAll: Protected holds everything that any other checkpoint needs, of this job and of others. Then no other
	// checkpoint is read, which otherwise takes some calls for each job beside this one. It is the caller's word: what is
	// missing in Protected is deleted.
	ProtectedIsAll bool

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
//  3. `._metadata.disposed` is durably renamed to `._metadata.emptied`, so that no crash brings a file back without its list.
//  4. The directory is durably renamed away and deleted. With a file in it that is not the checkpoint's own it stays, and
//     so does `._metadata.emptied`, which says that it is no checkpoint in progress.
//
// It is repeatable: a disposal that was interrupted is resumed by calling it again, one that is done is success. Files that
// are not the checkpoint's own are kept and named in the report, each time, which is no error; files that could not be
// deleted are named in the error.
//
// This form takes the caller's word that nobody restores from or writes to the checkpoint; a job's owner uses Owner.Dispose.
func Dispose(ctx context.Context, fsys FileSystem, dir string, opts DisposeOptions) (*DisposalReport, error) {
	d := &disposal{fsys: fsys, dir: dir, opts: opts}
	return d.run(ctx)
}

// Dispose deletes a checkpoint of the owned job as the function Dispose does, except that its first step passes through the
// claim's directory: if the owner was fenced, the error is ErrFenced and the checkpoint stands.
func (o *Owner) Dispose(ctx context.Context, id int64, opts DisposeOptions) (*DisposalReport, error) {
	if id < 0 {
		return nil, fmt.Errorf("%w: checkpoint id %d is negative", fs.ErrInvalid, id)
	}
	d := &disposal{
		fsys: o.storage.fsys, dir: join(o.storage.JobDir(), CheckpointDirName(id)), opts: opts,
		owner: o, mark: join(o.dir, disposedMarkName(id)), scatter: o.storage.checkpointLocation(id),
	}
	report, err := d.run(ctx)
	return report, o.explain(ctx, err)
}

// disposal of one checkpoint.
type disposal struct {
	fsys FileSystem
	dir  string
	opts DisposeOptions

	owner *Owner // nil where the caller's word is taken
	mark  string // what the metadata is called on its way through the claim's directory
	// scatter is where the owner's storage puts the checkpoint's files.
	scatter *Location
}

func (d *disposal) run(ctx context.Context) (*DisposalReport, error) {
	report := &DisposalReport{Pointer: Qualify(d.fsys.URI(), d.dir), Removed: []string{}}
	if d.opts.Read == nil {
		return report, fmt.Errorf("%w: DisposeOptions.Read is missing", fs.ErrInvalid)
	}
	if err := CheckName("dispose", "/", d.dir); err != nil {
		return report, err
	}
	target, err := examine(ctx, d.fsys, d.dir)
	if d.owner != nil && !d.opts.DryRun && target.metadata == "" && !target.missing {
		// An earlier call may have failed between the two renames of uncommit.
		renamed := d.fsys.Rename(ctx, d.mark, join(d.dir, DisposedName), RenameReplace)
		if renamed == nil {
			target, err = examine(ctx, d.fsys, d.dir)
		} else if ignoreMissing(renamed) != nil {
			return report, renamed
		}
	}
	if err != nil {
		return report, err
	}
	if target.metadata == "" {
		return report, d.removeLeft(ctx, target)
	}
	facts, err := d.gatherFacts(ctx, target)
	if err != nil {
		return report, err
	}
	plan := PlanDisposal(facts)
	report.Kept = plan.Kept
	if d.opts.DryRun {
		report.Removed = append(report.Removed, plan.Remove...)
		return report, nil
	}
	if err := d.uncommit(ctx, target); err != nil {
		return report, fmt.Errorf("nothing was deleted: %w", err)
	}
	removed, err := removeFiles(ctx, d.fsys, plan.Remove)
	report.Removed = append(report.Removed, removed...)
	if err == nil {
		err = d.finish(ctx, target, plan.Kept)
	}
	if err != nil {
		return report, fmt.Errorf("the disposal is incomplete; run it again: %w", err)
	}
	return report, nil
}

// uncommit makes that the target is no checkpoint any more. For an owner it also makes sure that the plan was made under a
// valid claim: nothing that was not needed then can be needed by a successor, since that starts from complete checkpoints.
// All renames replace: the new names are free, and one step everywhere, while some file systems make a rename without
// replacing out of a link and a removal, of which a successor could see the first and suffer the second.
func (d *disposal) uncommit(ctx context.Context, target disposalTarget) error {
	disposed := join(d.dir, DisposedName)
	switch {
	case d.owner == nil && target.metadata == MetadataName:
		return d.fsys.Rename(ctx, join(d.dir, MetadataName), disposed, RenameReplace)
	case d.owner == nil:
		return nil
	case target.metadata != MetadataName:
		return d.owner.Check(ctx)
	}
	if err := d.fsys.Rename(ctx, join(d.dir, MetadataName), d.mark, RenameReplace); err != nil {
		return err
	}
	return d.fsys.Rename(ctx, d.mark, disposed, RenameReplace)
}

// finish makes the list the mark of an emptied directory, and removes that, unless foreign files are in it.
func (d *disposal) finish(ctx context.Context, target disposalTarget, kept []KeptObject) error {
	if target.metadata != emptiedName {
		// The rename makes the removals in the directory durable with it.
		err := d.fsys.Rename(ctx, join(d.dir, DisposedName), join(d.dir, emptiedName), RenameReplace)
		if err := ignoreMissing(err); err != nil {
			return err
		}
	}
	return d.removeDir(ctx, kept)
}

// disposalTarget is a directory that is to be disposed of.
type disposalTarget struct {
	missing  bool
	entries  []FileInfo
	metadata string // base name of the file that lists the objects; "" if there is nothing left to dispose of
}

// errNotComplete: a directory with entries but without metadata is not disposed of; a live checkpoint looks like this.
var errNotComplete = errors.New("no complete checkpoint")

// examine finds out what there is to dispose of. A directory that is empty or missing is what a finished disposal leaves.
func examine(ctx context.Context, fsys FileSystem, dir string) (disposalTarget, error) {
	var target disposalTarget
	refuse := func(format string, args ...any) (disposalTarget, error) {
		return target, &fs.PathError{Op: "dispose", Path: dir, Err: fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...)}
	}
	info, err := fsys.Stat(ctx, dir)
	if err == nil && !info.IsDir() {
		return refuse("it is no directory; a symbolic link is not followed")
	}
	if err == nil {
		target.entries, err = listAll(ctx, fsys, dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		target.missing = true
		return target, nil
	}
	if err != nil {
		return target, err
	}
	found := map[string]bool{}
	for _, entry := range target.entries {
		if !isMetadataName(entry.Name) {
			continue
		}
		if !entry.IsRegular() {
			return refuse("its %s is not a regular file", entry.Name)
		}
		found[entry.Name] = true
	}
	switch {
	case found[MetadataName] && len(found) > 1:
		return refuse("it holds %s and the list of an earlier disposal; move the one away that does not belong there", MetadataName)
	case found[MetadataName]:
		target.metadata = MetadataName
	case found[DisposedName]:
		target.metadata = DisposedName
	case found[emptiedName]:
		target.metadata = emptiedName
	case len(target.entries) > 0:
		return refuse("%w: it holds no %s", errNotComplete, MetadataName)
	}
	return target, nil
}

// gatherFacts reads everything that the plan depends on. What other checkpoints need is read only where it can matter:
// without an owner other checkpoints might refer even to files in this one's own directory.
func (d *disposal) gatherFacts(ctx context.Context, target disposalTarget) (DisposalFacts, error) {
	facts := DisposalFacts{URI: d.fsys.URI(), Dir: d.dir, Entries: target.entries, Needed: NeededNames{}}
	jobDir := parentDir(d.dir)
	if _, ok := ParseCheckpointDirName(path.Base(d.dir)); ok {
		facts.SharedDir, facts.TaskOwnedDir = join(jobDir, SharedDirName), join(jobDir, TaskOwnedDirName)
	}
	if d.scatter != nil && d.scatter.Scattered() {
		facts.Place = d.scatter.Place
	}
	if !d.opts.IgnoreMetadata {
		var err error
		if facts.Objects, err = d.readList(ctx, target.metadata); err != nil {
			return facts, err
		}
	}
	if err := facts.Needed.Add(d.opts.Protected); err != nil {
		return facts, fmt.Errorf("nothing was deleted; DisposeOptions.Protected: %w", err)
	}
	readOthers := d.owner == nil || !d.opts.KeepShared && refersToShared(facts)
	if facts.SharedDir != "" && readOthers && !d.opts.ProtectedIsAll {
		others, err := collectNeeds(ctx, d.fsys, jobDir, d.dir, d.opts.Read)
		if err != nil {
			return facts, fmt.Errorf("nothing was deleted, since it is not known what other checkpoints need: %w", err)
		}
		maps.Copy(facts.Needed, others.names)
		facts.SharedBlocked = others.blocked
	}
	if d.opts.KeepShared {
		facts.SharedBlocked = keptOnRequest
	}
	return facts, nil
}

// readList reads what the metadata names. That of an emptied directory is read because a crash may have brought back files in
// other directories; one that is damaged has nothing to say, and its directory was emptied without it.
func (d *disposal) readList(ctx context.Context, metadata string) ([]Object, error) {
	data, err := readWhole(ctx, d.fsys, join(d.dir, metadata), MaxMetadataSize)
	if err != nil {
		return nil, err
	}
	objects, err := d.opts.Read(data, Qualify(d.fsys.URI(), d.dir))
	switch {
	case err == nil:
		return objects, nil
	case metadata == emptiedName && (errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupportedVersion)):
		return nil, nil
	}
	return nil, fmt.Errorf("nothing was deleted, since the metadata of %s cannot be read: %w", d.dir, err)
}

// refersToShared reports whether any object lies in the job's shared directory.
func refersToShared(facts DisposalFacts) bool {
	for _, object := range facts.Objects {
		uri, name, err := SplitQualified(object.Path)
		if object.Directory && IsPackDirName(path.Base(object.Path)) {
			continue
		}
		if err == nil && facts.onThis(uri) && (Within(facts.SharedDir, name) || facts.place(object, name) == InSharedDir) {
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
