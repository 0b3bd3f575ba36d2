package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// MkdirAll implements core.FileSystem.
func (f *FS) MkdirAll(ctx context.Context, dir string) error {
	if err := core.CheckName("mkdir", f.opts.Base, dir); err != nil {
		return err
	}
	err := do(ctx, f, func() error {
		return f.retryAnyway(ctx, func() error { return f.client.mkdirs(ctx, dir, uint32(0o777&^f.settings.umask)) })
	})
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: a file is in the way", fs.ErrInvalid)
	}
	return core.PathError("mkdir", dir, err)
}

// Rename implements core.FileSystem. Both modes are one step of the NameNode, for files and for directories.
func (f *FS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if err := core.CheckName("rename", f.opts.Base, oldname); err != nil {
		return err
	}
	var pathErr *fs.PathError
	if err := core.CheckName("rename", f.opts.Base, newname); errors.As(err, &pathErr) {
		return core.RenameError(oldname, newname, pathErr.Err)
	}
	if oldname == f.opts.Base || newname == f.opts.Base && newname != "/" {
		return core.RenameError(oldname, newname, fmt.Errorf("%w: the base can neither be moved nor replaced", fs.ErrInvalid))
	}
	if mode > core.RenameReplace {
		return core.RenameError(oldname, newname, fmt.Errorf("%w: mode %d", fs.ErrInvalid, mode))
	}
	return core.RenameError(oldname, newname, do(ctx, f, func() error { return f.rename(ctx, oldname, newname, mode) }))
}

func (f *FS) rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if f.client.features().repeats && !core.Within(oldname, newname) {
		err := f.retry(ctx, func() error { return f.client.rename(ctx, oldname, newname, false) })
		switch {
		case inDoubt(err):
			return fmt.Errorf("it is not known whether it was done: %w", err)
		case mode != core.RenameReplace || !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return f.renameKnown(ctx, oldname, newname, mode)
}

// renameKnown looks at what is to be moved before it moves it.
func (f *FS) renameKnown(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	source, err := f.stat(ctx, oldname)
	if err != nil {
		return err
	}
	if oldname == newname {
		if mode == core.RenameReplace && !source.dir {
			return nil
		}
		return fmt.Errorf("%w: it is the old name", fs.ErrExist)
	}
	if source.dir && core.Within(oldname, newname) {
		return fmt.Errorf("%w: a directory cannot be moved below itself", fs.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	replace := mode == core.RenameReplace && !source.dir
	deadline := time.Now().Add(f.opts.RetryFor)
	for doubted := false; ; doubted = true {
		err = f.retry(ctx, func() error { return f.client.rename(ctx, oldname, newname, replace) })
		if err == nil || !doubted && !inDoubt(err) {
			return err
		}
		// An inode never has two names, so it tells whether this or an earlier attempt was done.
		target, statErr := f.stat(ctx, newname)
		switch {
		case statErr == nil && target.id == source.id:
			return nil
		case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
			return errors.Join(fmt.Errorf("it is not known whether it was done: %w", err), statErr)
		case !inDoubt(err) || time.Now().After(deadline):
			return err
		}
	}
}

// Remove implements core.FileSystem.
func (f *FS) Remove(ctx context.Context, name string) error {
	if err := f.checkRemovable("remove", name); err != nil {
		return err
	}
	return core.PathError("remove", name, do(ctx, f, func() error {
		removed := false
		err := f.retry(ctx, func() (err error) {
			removed, err = f.client.remove(ctx, name, false)
			return err
		})
		switch {
		case inDoubt(err):
			return fmt.Errorf("it may have been removed: %w", err)
		case err == nil && !removed:
			return fs.ErrNotExist
		}
		return err
	}))
}

// RemoveAll implements core.FileSystem. It is one step of the NameNode.
func (f *FS) RemoveAll(ctx context.Context, name string) error {
	if err := f.checkRemovable("remove", name); err != nil {
		return err
	}
	err := do(ctx, f, func() error {
		return f.retryAnyway(ctx, func() error {
			_, err := f.client.remove(ctx, name, true)
			return err
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return core.PathError("remove", name, err)
}

func (f *FS) checkRemovable(op, name string) error {
	if err := core.CheckName(op, f.opts.Base, name); err != nil {
		return err
	}
	if name == path.Clean(f.opts.Base) {
		return core.PathError(op, name, fmt.Errorf("%w: the base cannot be removed", fs.ErrInvalid))
	}
	return nil
}
