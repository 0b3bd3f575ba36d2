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
	// Complete: the metadata exists.
	Complete
	// Disposing: its disposal has begun. It is no checkpoint any more.
	Disposing
	// Disposed: it was disposed of, all its files are gone. The directory is there because of foreign files, or because the
	// disposal was interrupted before its last step.
	Disposed
	// Foreign: not a directory. There is no checkpoint, but the id is taken.
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

	// oddMetadata: there is a `_metadata` that is neither a file nor a directory, and so may stand for one.
	oddMetadata bool
}

// ListCheckpoints lists what is named chk-<n> below jobDir by ascending id. Names that are not canonical are passed over;
// symbolic links are not followed. It is complete or fails.
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
		entry := CheckpointEntry{ID: id, Dir: join(jobDir, info.Name), State: Foreign, Time: info.ModTime}
		if info.IsDir() {
			entry.State = InProgress
			if entry, err = inspectCheckpointDir(ctx, fsys, entry); err != nil {
				return nil, err
			}
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b CheckpointEntry) int { return cmp.Compare(a.ID, b.ID) })
	return entries, nil
}

// inspectCheckpointDir finds out how far the directory of an entry that is in progress is.
func inspectCheckpointDir(ctx context.Context, fsys FileSystem, entry CheckpointEntry) (CheckpointEntry, error) {
	metadata := join(entry.Dir, MetadataName)
	info, err := fsys.Stat(ctx, metadata)
	switch {
	case err == nil && info.IsRegular():
		entry.State, entry.MetadataSize, entry.Time = Complete, info.Size, info.ModTime
		entry.Completed = newCompleted(fsys, entry.Dir, metadata, info.Size)
		return entry, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return entry, err
	}
	entry.oddMetadata = err == nil && !info.IsDir()
	entry.State, err = StateWithoutMetadata(ctx, fsys, entry.Dir)
	return entry, err
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
		if entry.State != InProgress || entry.oddMetadata {
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
