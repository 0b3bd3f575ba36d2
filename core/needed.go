package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// NeededNames are the names of files that checkpoints need, whatever file system their paths are qualified with: one file
// system may have several names, such as a name service and its NameNodes, and to keep too much is safe. A directory
// stands for everything below it.
type NeededNames map[string]bool

// Add adds the objects of a checkpoint. An object that has no path is fs.ErrInvalid; the others are added all the same. Of a
// directory of packed states the checkpoint needs only those files that are objects themselves.
func (n NeededNames) Add(objects []Object) error {
	var problem error
	for _, object := range objects {
		_, name, err := SplitQualified(object.Path)
		if err != nil {
			problem = err
			continue
		}
		if object.Directory && IsPackDirName(path.Base(name)) {
			continue
		}
		n[name] = true
	}
	return problem
}

// Cover reports whether the file with the clean absolute name is needed.
func (n NeededNames) Cover(name string) bool {
	for ; ; name = parentDir(name) {
		if n[name] {
			return true
		}
		if name == "/" || name == "." {
			return false
		}
	}
}

// needs is what a set of checkpoints needs.
type needs struct {
	names   NeededNames
	blocked string // why the set may be incomplete, "" if it is complete
}

// collectNeeds reads what all checkpoints beside jobDir need, except the one in the directory without. It goes on behind
// what cannot be read, but then says so: no shared file may be deleted. An error that may pass ends it: trying again is
// better than to leave files behind.
func collectNeeds(ctx context.Context, fsys FileSystem, jobDir, without string, read ReadObjects) (needs, error) {
	all := needs{names: NeededNames{}}
	dirs, err := all.jobDirsBeside(ctx, fsys, jobDir)
	if err != nil {
		return all, err
	}
	for _, dir := range dirs {
		if err := all.addJob(ctx, fsys, dir, without, read); err != nil {
			if dir == jobDir {
				return all, err
			}
			if err := all.skip(dir, err); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// jobDirsBeside lists the directories of jobs that may refer to files of jobDir, since a job that was restored from another
// one's checkpoint goes on using that one's files: jobDir itself, the jobs in and beside it, and the one that has them all
// because it was run without a directory of its own.
func (n *needs) jobDirsBeside(ctx context.Context, fsys FileSystem, jobDir string) ([]string, error) {
	dirs := []string{jobDir}
	parent := jobDir
	if _, err := ParseJobID(path.Base(jobDir)); err == nil {
		parent = parentDir(jobDir)
		dirs = append(dirs, parent)
	}
	for info, err := range fsys.List(ctx, parent) {
		if err != nil {
			return dirs, n.skip(parent, err)
		}
		name := join(parent, info.Name)
		if _, err := ParseJobID(info.Name); err == nil && info.IsDir() && name != jobDir {
			dirs = append(dirs, name)
		}
	}
	return dirs, nil
}

// addJob adds what the complete checkpoints of a job need.
func (n *needs) addJob(ctx context.Context, fsys FileSystem, jobDir, without string, read ReadObjects) error {
	for info, err := range fsys.List(ctx, jobDir) {
		if err != nil {
			return err
		}
		id, ok := ParseCheckpointDirName(info.Name)
		dir := join(jobDir, info.Name)
		if !ok || dir == without {
			continue
		}
		entry, err := inspectCheckpoint(ctx, fsys, jobDir, id, info)
		if err == nil && entry.State == Complete {
			var objects []Object
			if objects, err = readCompletedObjects(ctx, entry.Completed, read); err == nil {
				err = n.names.Add(objects)
			}
		}
		if err := n.skip(dir, err); err != nil {
			return err
		}
	}
	return nil
}

// skip decides whether to go on behind a checkpoint or job that could not be read.
func (n *needs) skip(dir string, err error) error {
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil // disposed of since it was listed
	case errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	}
	n.blocked = unreadable(dir)
	return nil
}

func readCompletedObjects(ctx context.Context, c *Completed, read ReadObjects) ([]Object, error) {
	data, err := c.ReadMetadata(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := read(data, c.Pointer)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", c.Metadata.Path, err)
	}
	return objects, nil
}
