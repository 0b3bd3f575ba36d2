package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// needs is what a set of checkpoints needs.
type needs struct {
	paths   map[string]bool // qualified
	blocked string          // why the set may be incomplete, "" if it is complete
}

func (n *needs) add(objects []Object) {
	for _, object := range objects {
		n.paths[object.Path] = true
	}
}

// jobDirsBeside lists the job directories that may refer to files of jobDir: jobDir itself and, where it is named by a
// job id, its neighbours, since a job that was restored from another one's checkpoint goes on using that one's files.
func jobDirsBeside(ctx context.Context, fsys FileSystem, jobDir string) ([]string, error) {
	dirs := []string{jobDir}
	if _, err := ParseJobID(path.Base(jobDir)); err != nil {
		return dirs, nil //nolint:nilerr // a directory without a job id has no neighbours of its kind
	}
	for info, err := range fsys.List(ctx, parentDir(jobDir)) {
		if err != nil {
			return nil, err
		}
		name := join(parentDir(jobDir), info.Name)
		if _, err := ParseJobID(info.Name); err == nil && info.IsDir() && name != jobDir {
			dirs = append(dirs, name)
		}
	}
	return dirs, nil
}

// collectNeeds reads what all checkpoints beside jobDir need, except the one in the directory without. It goes on behind a
// checkpoint that cannot be read or that is in progress, but then says so: no shared file may be deleted.
func collectNeeds(ctx context.Context, fsys FileSystem, jobDir, without string, read ReadObjects) (needs, error) {
	all := needs{paths: map[string]bool{}}
	dirs, err := jobDirsBeside(ctx, fsys, jobDir)
	if err != nil {
		return all, err
	}
	for _, dir := range dirs {
		entries, err := ListCheckpoints(ctx, fsys, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			return all, err
		}
		for _, entry := range entries {
			if entry.Dir == without || entry.State != Complete {
				continue
			}
			objects, err := readCompletedObjects(ctx, entry.Completed, read)
			switch {
			case err == nil:
				all.add(objects)
			case errors.Is(err, fs.ErrNotExist):
				// Disposed of since it was listed.
			case ctx.Err() != nil:
				return all, err
			default:
				all.blocked = unreadable(entry.Dir)
			}
		}
	}
	return all, nil
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
