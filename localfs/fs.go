package localfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// abortLimit is how long Abort waits for the removal of its file. The contract allows 10 s.
const abortLimit = 9500 * time.Millisecond

// FS implements core.FileSystem. Make one with [Open].
type FS struct {
	sys  system
	tree tree
	opts Options
	caps core.Capabilities

	gate       calls.Gate
	abortLimit time.Duration
}

var _ core.FileSystem = (*FS)(nil)

// Open returns the file system of everything at or below the directory base, which is made absolute: see [FS.Base]. The
// base "/" allows every name. The error is an *fs.PathError: fs.ErrNotExist if base does not exist and Options.CreateBase is
// not set, fs.ErrInvalid if it is not a directory, if a name below it could not be used, or for bad options.
//
// Open fsyncs the base and every directory above it, because whoever made them may not have, see Durability above. Those for
// which it lacks the permission and those that cannot be fsynced are left out; any other failure is an error. With
// Options.UnsafeNoFsync and with the base "/" it fsyncs nothing.
//
// If the type of the base's file system is not a well-known one, Open makes and removes a directory in the base to find out
// what it can do. The FS must be closed.
func Open(base string, opts Options) (*FS, error) {
	f, err := open(kernel{}, base, opts)
	if err != nil {
		return nil, pathError("open", base, err)
	}
	return f, nil
}

func open(sys system, base string, opts Options) (*FS, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if base == "" {
		return nil, fmt.Errorf("%w: the base is empty", fs.ErrInvalid)
	}
	absolute, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	base = filepath.ToSlash(absolute)
	if err := core.CheckName("open", "/", base); err != nil {
		return nil, bare(err)
	}
	f := &FS{sys: sys, tree: tree{base: "/"}, opts: opts.withDefaults(), abortLimit: abortLimit}
	if opts.CreateBase {
		if err := f.mkdirAll(context.Background(), base); err != nil {
			return nil, err
		}
	}
	if err := f.enter(base); err != nil {
		return nil, err
	}
	return f, nil
}

// enter makes base the base and finds out what it can do.
func (f *FS) enter(base string) error {
	dir, err := f.sys.open(f.tree, base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer f.release(dir)
	if base != "/" {
		if err := f.fsyncBase(dir, base); err != nil {
			return fmt.Errorf("%s exists, but may not be durable: %w", base, err)
		}
		root, err := os.OpenRoot(base)
		if err != nil {
			return bare(err)
		}
		f.tree = tree{base: base, root: root}
	}
	f.caps = core.Capabilities{
		Durabilities:   []core.Durability{core.Unsynced, core.Synced},
		NoReplaceFiles: true,
		NoReplaceDirs:  f.sys.knownNoReplace(dir) || f.probeNoReplace(dir),
		Sync:           true,
	}
	if f.opts.UnsafeNoFsync {
		f.caps.Durabilities = []core.Durability{core.Unsynced}
	}
	f.warnIfTemporary()
	return nil
}

// fsyncBase makes the entries durable that lead to the base, those of the links by which its name reaches it included.
func (f *FS) fsyncBase(dir *os.File, base string) error {
	if f.opts.UnsafeNoFsync {
		return nil
	}
	above := ancestors(base)
	resolved, err := filepath.EvalSymlinks(base)
	switch {
	case err == nil && resolved != base:
		above = append(above, ancestors(filepath.ToSlash(resolved))...)
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return bare(err)
	}
	for _, name := range above {
		if err := f.fsyncNamed(name); err != nil {
			return err
		}
	}
	return f.fsyncFound(dir)
}

func (f *FS) fsyncNamed(name string) error {
	dir, err := f.sys.open(f.tree, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrPermission) {
		return nil // whoever made it was not somebody like us
	}
	if err != nil {
		return err
	}
	defer f.release(dir)
	return f.fsyncFound(dir)
}

// ancestors returns the directories above a name, from the top.
func ancestors(name string) []string {
	var above []string
	for name != "/" {
		name = path.Dir(name)
		above = append(above, name)
	}
	slices.Reverse(above)
	return above
}

// probeNoReplace tries a rename in the base itself. Where nothing can be made, nothing could be renamed either.
func (f *FS) probeNoReplace(dir *os.File) bool {
	from := ".localfs-probe-" + rand.Text()
	to := from + "-renamed"
	if err := f.sys.mkdir(dir, from, f.opts.DirMode); err != nil {
		return false
	}
	able := f.sys.renameNoReplace(dir, from, dir, to) == nil
	for _, leaf := range []string{from, to} {
		_ = f.sys.rmdir(dir, leaf) // one of the two is not there
	}
	return able
}

// warnIfTemporary warns of a base in a directory that many systems clean up by age.
func (f *FS) warnIfTemporary() {
	base := f.tree.base
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if base != "/" && core.Within(path.Clean(dir), base) {
			f.opts.Logger.Warn("the base is below a temporary directory: the operating system may remove files there", "base", base)
			return
		}
	}
}

// Close ends the file system and waits for the work that calls have left behind when their contexts ended, see
// [FS.Background]. Afterwards every call is fs.ErrClosed, those of open Readers and Writers included, except their Close and
// Abort. Calling it again is harmless.
func (f *FS) Close() error {
	f.gate.Close()
	f.gate.Wait()
	if f.tree.root == nil {
		return nil
	}
	return pathError("close", f.tree.base, bare(f.tree.root.Close()))
}

// Background returns how many system calls and clean-ups are still going on although their callers have left, because
// their contexts had ended or they gave up after 10 s. Close waits for them.
func (f *FS) Background() int { return f.gate.Background() }

// Base returns the directory at or below which all names lie, as an absolute and clean name, whatever the form in which Open
// got it. Symbolic links in it are not resolved.
func (f *FS) Base() string { return f.tree.base }

// URI implements core.FileSystem: it returns "file://".
func (f *FS) URI() string { return "file://" }

// Capabilities implements core.FileSystem.
func (f *FS) Capabilities() core.Capabilities {
	caps := f.caps
	caps.Durabilities = slices.Clone(caps.Durabilities)
	return caps
}

// Stat implements core.FileSystem.
func (f *FS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	if err := core.CheckName("stat", f.tree.base, name); err != nil {
		return core.FileInfo{}, err
	}
	e, err := call(ctx, f, func() (entry, error) { return f.stat(name) }, nil)
	if err != nil {
		return core.FileInfo{}, pathError("stat", name, err)
	}
	return e.info(path.Base(name)), nil
}

func (f *FS) stat(name string) (entry, error) {
	if name == f.tree.base {
		dir, err := f.sys.open(f.tree, name, lookupFlag|unix.O_DIRECTORY)
		if err != nil {
			return entry{}, err
		}
		defer f.release(dir)
		return f.sys.stat(dir)
	}
	dir, leaf, err := f.parent(name, lookupFlag)
	if err != nil {
		return entry{}, missing(err)
	}
	defer f.release(dir)
	e, err := f.sys.lstat(dir, leaf)
	return e, missing(err)
}

// parent opens the directory of a name that is not the base.
func (f *FS) parent(name string, flag int) (dir *os.File, leaf string, err error) {
	dir, err = f.sys.open(f.tree, path.Dir(name), flag|unix.O_DIRECTORY)
	return dir, path.Base(name), err
}

// release closes what nothing was written to, or what is given up.
func (f *FS) release(file *os.File) { _ = f.sys.close(file) }

// fsyncDir makes the entries of a directory durable.
func (f *FS) fsyncDir(dir *os.File) error {
	if f.opts.UnsafeNoFsync {
		return nil
	}
	err := f.sys.fsync(dir)
	if unsupported(err) {
		return fmt.Errorf("%w: %v", errNoDirFsync, err) //nolint:errorlint // it is no refusal of the call, which has had its effect
	}
	return err
}
