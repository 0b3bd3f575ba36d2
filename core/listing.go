package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// CheckpointState says how far a checkpoint directory is.
type CheckpointState uint8

const (
	// InProgress: no metadata yet. It is being written, or was given up.
	InProgress CheckpointState = iota
	// Complete: the metadata exists. If what has its name is no regular file, or the directory is a symbolic link, it is not
	// followed: Completed.ReadMetadata is ErrCorrupt, and what the checkpoint needs is not known.
	Complete
	// Disposing: its disposal has begun. It is no checkpoint any more.
	Disposing
	// Disposed: it was disposed of, all its files are gone. The directory is there because of foreign files, or because the
	// disposal was interrupted before its last step.
	Disposed
	// Foreign: a file. There is no checkpoint, but the id is taken.
	Foreign
)

// String returns the state in lower case.
func (s CheckpointState) String() string {
	switch s {
	case InProgress:
		return "in progress"
	case Complete:
		return "complete"
	case Disposing:
		return "disposing"
	case Disposed:
		return "disposed"
	case Foreign:
		return "foreign"
	}
	return "invalid"
}

// CheckpointEntry is what has the name of a checkpoint directory of a job.
type CheckpointEntry struct {
	ID    int64
	Dir   string // name on the file system
	State CheckpointState
	// MetadataSize and Time are those of the metadata file; without one, Time is the directory's.
	MetadataSize int64
	Time         time.Time
	// Completed is set if State is Complete.
	Completed *Completed
}

// ListCheckpoints lists what is named chk-<n> below jobDir by ascending id. Names that are not canonical are passed over;
// symbolic links are not followed, but may stand for checkpoints. It is complete or fails.
func ListCheckpoints(ctx context.Context, fsys FileSystem, jobDir string) ([]CheckpointEntry, error) {
	var entries []CheckpointEntry
	for info, err := range fsys.List(ctx, jobDir) {
		if err != nil {
			return nil, err
		}
		id, ok := ParseCheckpointDirName(info.Name)
		if !ok {
			continue
		}
		entry, err := inspectCheckpoint(ctx, fsys, jobDir, id, info)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b CheckpointEntry) int { return cmp.Compare(a.ID, b.ID) })
	return entries, nil
}

// inspectCheckpoint finds out what it is that has the name of a checkpoint's directory.
func inspectCheckpoint(ctx context.Context, fsys FileSystem, jobDir string, id int64, info FileInfo) (CheckpointEntry, error) {
	entry := CheckpointEntry{ID: id, Dir: join(jobDir, info.Name), State: Foreign, Time: info.ModTime}
	metadata := join(entry.Dir, MetadataName)
	if info.Mode.Type()&fs.ModeSymlink != 0 {
		entry.State, entry.Completed = Complete, newCompleted(fsys, entry.Dir, metadata, 0)
		entry.Completed.odd = oddFile(info.Mode)
		return entry, nil
	}
	if !info.IsDir() {
		return entry, nil
	}
	file, err := fsys.Stat(ctx, metadata)
	if errors.Is(err, fs.ErrNotExist) {
		entry.State, err = StateWithoutMetadata(ctx, fsys, entry.Dir)
		return entry, err
	}
	if err != nil {
		return entry, err
	}
	entry.State, entry.Time = Complete, file.ModTime
	if file.IsRegular() {
		entry.MetadataSize = file.Size
	}
	entry.Completed = newCompleted(fsys, entry.Dir, metadata, entry.MetadataSize)
	entry.Completed.odd = oddFile(file.Mode)
	return entry, nil
}

// oddFile says what stands in the place of a metadata file, nil for one.
func oddFile(mode fs.FileMode) error {
	what := ""
	switch {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link, which is not followed"
	case mode.IsDir():
		what = "a directory"
	default:
		what = "no regular file"
	}
	return fmt.Errorf("%w: it is %s; put what belongs there in its place, or move it away if nothing does", ErrCorrupt, what)
}

// StateWithoutMetadata tells how far the directory of a checkpoint or savepoint without a `_metadata` is: InProgress,
// Disposing or Disposed.
func StateWithoutMetadata(ctx context.Context, fsys FileSystem, dir string) (CheckpointState, error) {
	for _, mark := range []struct {
		name  string
		state CheckpointState
	}{{DisposedName, Disposing}, {emptiedName, Disposed}} {
		switch _, err := fsys.Stat(ctx, join(dir, mark.name)); {
		case err == nil:
			return mark.state, nil
		case !errors.Is(err, fs.ErrNotExist):
			return InProgress, err
		}
	}
	return InProgress, nil
}

// NeverCompleted returns, by ascending id, the checkpoints that were certainly never complete: those in progress above every
// one that is or was complete. Below, a directory without metadata may be what others left of a complete checkpoint.
func NeverCompleted(entries []CheckpointEntry) []CheckpointEntry {
	var never []CheckpointEntry
	for _, entry := range slices.Backward(entries) {
		if entry.State == Foreign {
			continue
		}
		if entry.State != InProgress {
			break
		}
		never = append(never, entry)
	}
	slices.Reverse(never)
	return never
}

// Latest returns the complete entry with the highest id, and false if there is none.
func Latest(entries []CheckpointEntry) (CheckpointEntry, bool) {
	var latest CheckpointEntry
	found := false
	for _, entry := range entries {
		if entry.State == Complete && (!found || entry.ID > latest.ID) {
			latest, found = entry, true
		}
	}
	return latest, found
}

// NextID returns an id above that of every entry, whatever its state, so that it collides with nothing that is there. After
// id 2^63-1 it fails with fs.ErrInvalid.
func NextID(entries []CheckpointEntry) (int64, error) {
	next := int64(1)
	for _, entry := range entries {
		next = max(next, entry.ID+1)
		if entry.ID+1 < entry.ID {
			return 0, fmt.Errorf("%w: %s has the last id; move it away", fs.ErrInvalid, entry.Dir)
		}
	}
	return next, nil
}
