package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// A savepoint's directory is of the user's choosing, so no sweep of the job directory finds one that a crash left
// unfinished. Its owner therefore marks it beforehand:
//
//	.epoch-<e>/<claim>/savepoint-<job>-<random>.begun    holds the savepoint's qualified directory
//
// The mark goes when the savepoint is finished or taken back. The next owner removes the directory of a mark that it finds,
// unless there is a `_metadata` in it. One that is taken back first gets its `_metadata` renamed to `._metadata.disposed`, so
// that what a crash leaves of it is removed too.

// maxMarkSize is the largest mark in bytes that is read; a path is much shorter.
const maxMarkSize = 64 << 10

// markSavepoint makes the mark of the savepoint in the qualified directory dir, durably, and returns its name.
func (o *Owner) markSavepoint(ctx context.Context, dir string) (string, error) {
	mark := join(o.dir, savepointMarkName(path.Base(dir)))
	w, err := o.storage.fsys.Create(ctx, mark, o.storage.createOptions())
	if err != nil {
		return "", o.explain(ctx, err)
	}
	if _, err = w.Write([]byte(dir)); err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", o.explain(ctx, errors.Join(err, w.Abort()))
	}
	return mark, nil
}

// forgetSavepoint removes the mark of a savepoint that has its outcome. A mark that stays does no harm.
func (l *PendingLocation) forgetSavepoint(ctx context.Context) {
	if l.mark == "" {
		return
	}
	if err := removeFile(ctx, l.owner.storage.fsys, l.mark); err != nil {
		l.owner.storage.opts.Logger.WarnContext(ctx, "the mark of a savepoint is left behind", "mark", l.mark, "error", err)
	}
}

// removeUnfinishedSavepoint removes the savepoint that an older owner's mark names, if it is not finished. A savepoint that
// cannot be looked at or removed must not keep the job from being taken over, so that is only logged.
func (o *Owner) removeUnfinishedSavepoint(ctx context.Context, mark string) {
	logger := o.storage.opts.Logger
	dir, err := readWhole(ctx, o.storage.fsys, mark, maxMarkSize)
	if errors.Is(err, fs.ErrNotExist) {
		return // an older owner that was still fencing has settled it
	}
	if err != nil {
		logger.WarnContext(ctx, "the mark of a savepoint cannot be read; its directory may be left behind", "mark", mark, "error", err)
		return
	}
	if err := o.removeUnfinished(ctx, string(dir)); err != nil {
		logger.WarnContext(ctx, "an unfinished savepoint is left behind", "savepoint", string(dir), "error", err)
	}
}

func (o *Owner) removeUnfinished(ctx context.Context, dir string) error {
	if !IsSavepointDirName(path.Base(dir)) {
		return fmt.Errorf("%w: %q is no directory of a savepoint", fs.ErrInvalid, dir)
	}
	fsys, name, err := o.storage.opts.Opener(ctx, dir)
	if err != nil {
		return err
	}
	// With a mark `._metadata.disposed` is no list of a complete savepoint, but that of one on its way back. A directory that a
	// disposal has emptied is there because of what is foreign in it.
	for _, metadata := range []string{MetadataName, emptiedName} {
		switch _, err := fsys.Stat(ctx, join(name, metadata)); {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return fsys.RemoveAll(ctx, name)
}
