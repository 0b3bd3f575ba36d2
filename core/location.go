package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
)

// maxSavepointAttempts is how many random directory names are tried for a savepoint, as in Flink.
const maxSavepointAttempts = 10

// PendingLocation is the location of a checkpoint or savepoint that its owner has begun: state and metadata can be written
// to it, and it can be taken back as a whole. Safe for concurrent use.
type PendingLocation struct {
	*Location
	owner     *Owner
	id        int64
	savepoint bool
	mark      string // of a savepoint, see savepointmark.go
	// fresh: Begin has just seen that there is no metadata; the first stream need not look again.
	fresh atomic.Bool
}

// Begin makes the directory of checkpoint id, durably, and returns its location. An id that has a complete checkpoint, or
// one whose disposal is not finished, is fs.ErrExist; a negative one fs.ErrInvalid; a lost claim is ErrFenced. Ids must be
// new to the job: take them from NextID of a listing.
func (o *Owner) Begin(ctx context.Context, id int64) (*PendingLocation, error) {
	if id < 0 {
		return nil, fmt.Errorf("%w: checkpoint id %d is negative", fs.ErrInvalid, id)
	}
	// A fenced owner must not make directories. One that is fenced from here on may still make this one, which is as harmless as
	// it was a moment before: nothing can be published from it.
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	l := &PendingLocation{Location: o.storage.checkpointLocation(id), owner: o, id: id}
	l.fresh.Store(true)
	if err := l.fsys.MkdirAll(ctx, l.metadataDir()); err != nil {
		return nil, err
	}
	for info, err := range l.fsys.List(ctx, l.metadataDir()) {
		if err != nil {
			return nil, o.explain(ctx, err)
		}
		if isMetadataName(info.Name) {
			return nil, &fs.PathError{Op: "begin", Path: l.metadataDir(), Err: fmt.Errorf("%w: checkpoint %d was complete before", fs.ErrExist, id)}
		}
	}
	return l, nil
}

// BeginSavepoint makes a fresh directory savepoint-<job>-<random> in the qualified directory target, or, if that is "", in
// Options.SavepointDir, and returns its location. State of every scope goes to that one directory. Without any target the
// error is fs.ErrInvalid; a file system that lacks what Options ask for is errors.ErrUnsupported, as in NewStorage.
func (o *Owner) BeginSavepoint(ctx context.Context, target string) (*PendingLocation, error) {
	s := o.storage
	if target == "" {
		target = s.opts.SavepointDir
	}
	if target == "" {
		return nil, fmt.Errorf("%w: no target for the savepoint: give one, or set Options.SavepointDir", fs.ErrInvalid)
	}
	fsys, base, err := s.opts.Opener(ctx, target)
	if err != nil {
		return nil, err
	}
	problems := append(capabilityProblems(fsys, base, s.opts), CheckName("begin", "/", base))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	for range maxSavepointAttempts {
		random, err := s.opts.NewUUID()
		if err != nil {
			return nil, PathError("begin", base, err)
		}
		dir := join(base, savepointDirName(s.job, random))
		switch _, err := fsys.Stat(ctx, removeEntropy(fsys, dir)); {
		case err == nil:
			continue // MkdirAll would accept the directory of another savepoint
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		l := &PendingLocation{Location: s.savepointLocation(fsys, dir), owner: o, savepoint: true}
		if l.mark, err = o.markSavepoint(ctx, l.String()); err != nil {
			return nil, err
		}
		if err := fsys.MkdirAll(ctx, l.metadataDir()); err != nil {
			return nil, err
		}
		return l, nil
	}
	return nil, &fs.PathError{Op: "begin", Path: base, Err: fmt.Errorf("%w: %d random names were taken", fs.ErrExist, maxSavepointAttempts)}
}

// metadataTemp names the temporary of a metadata stream: in the epoch directory, so that it cannot be published after the
// claim is lost; for a savepoint, which may be on another file system, beside its target.
func (l *PendingLocation) metadataTemp() (string, error) {
	if !l.savepoint {
		return l.owner.trashName(CheckpointDirName(l.id) + MetadataName)
	}
	id, err := l.owner.storage.opts.NewUUID()
	return join(l.metadataDir(), inProgressPrefix+id.String()), err
}

// checkSavepointClaim keeps a fenced owner from finishing a savepoint, whose temporary the fence does not cover.
func (l *PendingLocation) checkSavepointClaim(ctx context.Context) error {
	if !l.savepoint {
		return nil
	}
	return l.owner.Check(ctx)
}

// DisposeOnFailure takes the location back as a whole, with everything in it, also after ctx has ended. The directory of a
// checkpoint is renamed into the epoch directory first: what of it was visible disappears in one step, late workers find no
// directory to write to, and a fenced owner (ErrFenced) removes nothing. Of a savepoint the metadata goes first, durably. A
// missing directory is success.
func (l *PendingLocation) DisposeOnFailure(ctx context.Context) error {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	if l.savepoint {
		// A removal takes its files in any order, and a crash must not leave the metadata without the state.
		metadata, disposed := l.MetadataName(), join(l.metadataDir(), DisposedName)
		if err := ignoreMissing(l.fsys.Rename(ctx, metadata, disposed, RenameReplace)); err != nil {
			return err
		}
		if err := l.fsys.RemoveAll(ctx, l.metadataDir()); err != nil {
			return err
		}
		l.forgetSavepoint(ctx)
		return nil
	}
	aside, err := l.owner.trashName(CheckpointDirName(l.id))
	if err != nil {
		return err
	}
	err = l.fsys.Rename(ctx, l.metadataDir(), aside, l.owner.dirRenameMode())
	switch err = l.owner.explain(ctx, err); {
	case errors.Is(err, ErrFenced):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return l.owner.removeTree(ctx, aside)
}
