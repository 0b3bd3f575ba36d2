package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	// maxMkdirAttempts bounds how often MkdirAll starts again because somebody removes what it has found or made.
	maxMkdirAttempts = 100

	// maxKnownDirs bounds the memory of durableDirs.
	maxKnownDirs = 4096
)

// durableDirs remembers which directories are known to have a durable entry, so that each is fsynced for once.
type durableDirs struct {
	mu  sync.Mutex
	ids map[string]fileID
}

func (d *durableDirs) has(name string, id fileID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, found := d.ids[name]
	return found && known == id
}

func (d *durableDirs) add(name string, id fileID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ids == nil || len(d.ids) >= maxKnownDirs {
		d.ids = make(map[string]fileID)
	}
	d.ids[name] = id
}

// MkdirAll implements core.FileSystem. A directory that it finds is made durable like one that it makes, once, because the
// process that made it may have died before it came to that.
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
	found, err := f.lookupDir(name)
	switch {
	case err == nil && (name == f.tree.base || f.opts.UnsafeNoFsync || f.known.has(name, found.id)):
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
	if !exists {
		if found, err = f.makeDir(parent, leaf, name); err != nil {
			return err
		}
	}
	err = f.fsyncDir(parent)
	switch {
	case err == nil:
	case !exists:
		return fmt.Errorf("%s was made, but is not durable: %w", name, err)
	case !errors.Is(err, errNoDirFsync) && !errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s exists, but may not be durable: %w", name, err)
	}
	f.known.add(name, found.id)
	return nil
}

// lookupDir finds a directory, through symbolic links that stay in the base.
func (f *FS) lookupDir(name string) (entry, error) {
	dir, err := f.sys.open(f.tree, name, lookupFlag|unix.O_DIRECTORY)
	if err != nil {
		return entry{}, err
	}
	defer f.release(dir)
	return f.sys.stat(dir)
}

// makeDir makes one directory with exactly the configured mode. Somebody else may be faster.
func (f *FS) makeDir(parent *os.File, leaf, name string) (entry, error) {
	err := f.sys.mkdir(parent, leaf, f.opts.DirMode)
	if errors.Is(err, fs.ErrExist) {
		found, err := f.lookupDir(name)
		if errors.Is(err, fs.ErrNotExist) {
			if e, lerr := f.sys.lstat(parent, leaf); lerr == nil && e.mode&fs.ModeSymlink != 0 {
				err = fmt.Errorf("%w: %s is a symbolic link to nothing", syscall.ENOTDIR, name)
			}
		}
		return found, err
	}
	if err != nil {
		return entry{}, err
	}
	dir, err := f.sys.openDir(parent, leaf)
	if err != nil {
		return entry{}, err
	}
	defer f.release(dir)
	made, err := f.sys.stat(dir)
	if err == nil && made.mode.Perm() != f.opts.DirMode {
		err = f.sys.chmod(dir, made.mode&fs.ModeSetgid|f.opts.DirMode)
	}
	if err != nil {
		_ = f.sys.rmdir(parent, leaf) // nobody should find it with another mode
	}
	return made, err
}
