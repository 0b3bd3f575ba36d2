package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// maxMkdirAttempts bounds how often MkdirAll starts again because somebody removes what it has found or made.
const maxMkdirAttempts = 100

// MkdirAll implements core.FileSystem. A directory that it finds is made durable like one that it makes, in every call:
// the process that made it may have died before it came to that, and nothing that could be remembered of an earlier call
// tells whether another process has removed the directory and made it again since.
func (f *FS) MkdirAll(ctx context.Context, dir string) error {
	if err := core.CheckName("mkdir", f.tree.base, dir); err != nil {
		return err
	}
	_, err := call(ctx, f, func() (struct{}, error) { return struct{}{}, f.mkdirAll(ctx, dir) }, nil)
	return pathError("mkdir", dir, err)
}

func (f *FS) mkdirAll(ctx context.Context, dir string) error {
	var err error
	for range maxMkdirAttempts {
		if err = f.ensureDir(ctx, dir); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// ensureDir makes name and its parents and makes their entries durable. fs.ErrNotExist means that somebody removed a
// directory meanwhile.
func (f *FS) ensureDir(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := f.lookupDir(name)
	switch {
	case err == nil && (name == f.tree.base || f.opts.UnsafeNoFsync):
		return nil
	case err != nil && (name == f.tree.base || !errors.Is(err, fs.ErrNotExist)):
		return err
	}
	exists := err == nil
	if err := f.ensureDir(ctx, path.Dir(name)); err != nil {
		return err
	}
	parent, leaf, err := f.parent(name, unix.O_RDONLY)
	if err != nil {
		if exists && errors.Is(err, fs.ErrPermission) {
			return nil // whoever made it was not somebody like us
		}
		return err
	}
	defer f.release(parent)
	if exists {
		if err := f.fsyncFound(parent); err != nil {
			return fmt.Errorf("%s exists, but may not be durable: %w", name, err)
		}
		return nil
	}
	if err := f.makeDir(parent, leaf, name); err != nil {
		return err
	}
	if err := f.fsyncDir(parent); err != nil {
		return fmt.Errorf("%s was made, but is not durable: %w", name, err)
	}
	return nil
}

// lookupDir finds a directory, through symbolic links that stay in the base.
func (f *FS) lookupDir(name string) error {
	dir, err := f.sys.open(f.tree, name, lookupFlag|unix.O_DIRECTORY)
	if err == nil {
		f.release(dir)
	}
	return err
}

// fsyncFound makes entries durable that this process may not have made. Where it is not allowed to do that, or nobody can,
// it leaves them to those who made them; what is read-only takes no file that could be lost with them.
func (f *FS) fsyncFound(dir *os.File) error {
	err := f.fsyncDir(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errNoDirFsync) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// makeDir makes one directory with exactly the configured mode. Somebody else may be faster.
func (f *FS) makeDir(parent *os.File, leaf, name string) error {
	err := f.sys.mkdir(parent, leaf, f.opts.DirMode)
	if errors.Is(err, fs.ErrExist) {
		err := f.lookupDir(name)
		if errors.Is(err, fs.ErrNotExist) {
			if e, lerr := f.sys.lstat(parent, leaf); lerr == nil && e.mode&fs.ModeSymlink != 0 {
				err = fmt.Errorf("%w: %s is a symbolic link to nothing", syscall.ENOTDIR, name)
			}
		}
		return err
	}
	if err != nil {
		return err
	}
	dir, err := f.sys.openDir(parent, leaf)
	if err != nil {
		return err
	}
	defer f.release(dir)
	made, err := f.sys.stat(dir)
	if err == nil && made.mode.Perm() != f.opts.DirMode {
		err = f.sys.chmod(dir, made.mode&fs.ModeSetgid|f.opts.DirMode)
	}
	if err != nil {
		_ = f.sys.rmdir(parent, leaf) // nobody should find it with another mode
	}
	return err
}
