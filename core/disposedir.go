package core

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// A directory that its disposal has emptied must never look like a checkpoint in progress, whatever the moment of a crash, and
// although a removal need not be durable. So `._metadata.emptied` stays in it while it has its name: the directory goes by one
// durable rename, and only under the new name it is taken apart:
//
//	.epoch-<e>/<claim>/chk-<n>.<random>   for an owner; the next one removes it with the claim
//	.chk-<n>.emptied                      beside it for others; a second run, or the next sweep, removes it
//
// With foreign content it stays where it is, and so does the mark in it.

// removeDir removes the directory, which holds nothing of the checkpoint's own any more but the mark, unless there is something
// in it that stays.
func (d *disposal) removeDir(ctx context.Context, kept []KeptObject) error {
	entries, err := listAll(ctx, d.fsys, d.dir)
	if err != nil {
		return ignoreMissing(err)
	}
	if !canGo(d.dir, entries, kept) {
		return nil
	}
	aside, err := d.asideName()
	if err != nil {
		return err
	}
	if aside == "" {
		return takeApart(ctx, d.fsys, d.dir, entries)
	}
	err = d.moveDir(ctx, d.dir, aside)
	if errors.Is(err, fs.ErrExist) && d.owner == nil {
		if err = d.clear(ctx, aside); err == nil {
			err = d.moveDir(ctx, d.dir, aside)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.owner == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return d.owner.Check(ctx)
	case err != nil:
		return err
	}
	return d.clear(ctx, aside)
}

// asideName is where the directory is taken apart; "" for in its place, because it has no name that could be misunderstood.
func (d *disposal) asideName() (string, error) {
	base := path.Base(d.dir)
	switch {
	case d.owner != nil:
		return d.owner.trashName(base)
	case isDisposableName(base):
		return join(parentDir(d.dir), emptiedDirName(base)), nil
	}
	return "", nil
}

func (d *disposal) moveDir(ctx context.Context, from, to string) error {
	return d.fsys.Rename(ctx, from, to, RenameReplace)
}

// clear takes apart what was moved aside. What somebody has put into it in the last moment goes back with it.
func (d *disposal) clear(ctx context.Context, aside string) error {
	entries, err := listAll(ctx, d.fsys, aside)
	if err != nil {
		return ignoreMissing(err)
	}
	if !canGo(aside, entries, nil) {
		return ignoreMissing(d.moveDir(ctx, aside, d.dir))
	}
	return takeApart(ctx, d.fsys, aside, entries)
}

// canGo reports whether a directory can be removed with its entries: nothing in it is foreign or kept.
func canGo(dir string, entries []FileInfo, kept []KeptObject) bool {
	stays := map[string]bool{}
	for _, object := range kept {
		stays[object.Path] = true
	}
	for _, entry := range entries {
		mark := entry.Name == emptiedName && entry.IsRegular()
		if stays[join(dir, entry.Name)] || !mark && !isOurs(entry) {
			return false
		}
	}
	return true
}

// takeApart removes a directory with the given entries, the mark of its disposal last.
func takeApart(ctx context.Context, fsys FileSystem, dir string, entries []FileInfo) error {
	var late []string
	for _, entry := range entries {
		if entry.Name != emptiedName {
			late = append(late, join(dir, entry.Name))
		}
	}
	if _, err := removeFiles(ctx, fsys, late); err != nil {
		return err
	}
	if err := removeFile(ctx, fsys, join(dir, emptiedName)); err != nil {
		return err
	}
	return removeIfEmpty(ctx, fsys, dir)
}

func removeIfEmpty(ctx context.Context, fsys FileSystem, dir string) error {
	err := fsys.Remove(ctx, dir)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeLeft removes what an earlier disposal may have left without its list: a directory that is empty or was moved aside. One
// without a name of ours stays.
func (d *disposal) removeLeft(ctx context.Context, target disposalTarget) error {
	if d.opts.DryRun || !isDisposableName(path.Base(d.dir)) {
		return nil
	}
	switch {
	case d.owner == nil && target.missing:
		return d.clear(ctx, join(parentDir(d.dir), emptiedDirName(path.Base(d.dir))))
	case d.owner == nil:
		return removeIfEmpty(ctx, d.fsys, d.dir)
	case target.missing:
		return nil
	}
	return d.removeDir(ctx, nil)
}

// isDisposableName reports whether a directory with this name is one of a checkpoint or savepoint.
func isDisposableName(base string) bool {
	_, isCheckpoint := ParseCheckpointDirName(base)
	return isCheckpoint || IsSavepointDirName(base)
}
