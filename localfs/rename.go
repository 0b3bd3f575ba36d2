package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Rename implements core.FileSystem. An error that says so means that the name has changed, but may change back if the
// machine fails.
func (f *FS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	err := bare(core.CheckName("rename", f.tree.base, oldname))
	if err == nil {
		err = bare(core.CheckName("rename", f.tree.base, newname))
	}
	if err == nil && mode > core.RenameReplace {
		err = fmt.Errorf("%w: mode %d", fs.ErrInvalid, mode)
	}
	if err == nil {
		_, err = call(ctx, f, func() (struct{}, error) { return struct{}{}, f.rename(ctx, oldname, newname, mode) }, nil)
	}
	if err != nil {
		return core.RenameError(oldname, newname, classify(err))
	}
	return nil
}

func (f *FS) rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if oldname == f.tree.base || newname == f.tree.base || core.Within(oldname, newname) {
		return f.renameInPlace(oldname, newname, mode)
	}
	m := move{fs: f, sys: f.sys, oldleaf: path.Base(oldname), newleaf: path.Base(newname)}
	var err error
	if m.olddir, _, err = f.parent(oldname, unix.O_RDONLY); err != nil {
		return missing(err)
	}
	defer f.release(m.olddir)
	if m.old, err = f.sys.lstat(m.olddir, m.oldleaf); err != nil {
		return err
	}
	if err := f.checkMode(m.old, mode); err != nil {
		return err
	}
	m.newdir = m.olddir
	if path.Dir(oldname) != path.Dir(newname) {
		if m.newdir, _, err = f.parent(newname, unix.O_RDONLY); err != nil {
			return err
		}
		defer f.release(m.newdir)
	}
	if same, err := m.sameEntry(); err != nil || same {
		return f.renameInPlace(oldname, oldname, mode)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.run(mode)
}

// checkMode refuses what is not declared before anything else is looked at.
func (f *FS) checkMode(old entry, mode core.RenameMode) error {
	if mode == core.RenameNoReplace && old.mode.IsDir() && !f.caps.NoReplaceDirs {
		return fmt.Errorf("%w: rename of a directory without replacing", errors.ErrUnsupported)
	}
	return nil
}

// renameInPlace answers for names that leave nothing to do: equal ones, and the base, above or below which nothing can go.
func (f *FS) renameInPlace(oldname, newname string, mode core.RenameMode) error {
	old, err := f.stat(oldname)
	if err == nil {
		err = f.checkMode(old, mode)
	}
	switch {
	case err != nil:
		return err
	case oldname == newname && mode == core.RenameReplace && !old.mode.IsDir():
		return nil
	case oldname == newname, newname == f.tree.base:
		return fs.ErrExist
	}
	return fmt.Errorf("%w: a directory cannot be moved below itself, nor anything below a file", fs.ErrInvalid)
}

// move is one rename of an entry between two open directories.
type move struct {
	fs               *FS
	sys              system
	olddir, newdir   *os.File
	oldleaf, newleaf string
	old              entry
}

// sameEntry reports whether two names that differ lead to one directory entry, through a symbolic link or a bind mount. What
// is done to one of two names of a file must not be done to the only one.
func (m *move) sameEntry() (bool, error) {
	if m.oldleaf != m.newleaf || m.olddir == m.newdir {
		return false, nil
	}
	return m.sameDir()
}

func (m *move) sameDir() (bool, error) {
	if m.olddir == m.newdir {
		return true, nil
	}
	olddir, err := m.sys.stat(m.olddir)
	if err != nil {
		return false, err
	}
	newdir, err := m.sys.stat(m.newdir)
	return olddir.id == newdir.id, err
}

func (m *move) run(mode core.RenameMode) error {
	var err error
	if mode == core.RenameNoReplace {
		err = m.noReplace()
	} else {
		err = m.replace()
	}
	if err != nil {
		return err
	}
	if err := m.persist(); err != nil {
		return notDurable("renamed, but not durable", err)
	}
	return nil
}

func (m *move) noReplace() error {
	err := m.settle(m.sys.renameNoReplace(m.olddir, m.oldleaf, m.newdir, m.newleaf))
	switch {
	case !unsupported(err):
		return err
	case !m.old.mode.IsDir():
		return m.byLink()
	case m.sys.knownNoReplace(m.newdir):
		return err // so it is not the flag that is invalid, but the move
	}
	return fmt.Errorf("%w: rename of a directory without replacing, on this mount: %v", errors.ErrUnsupported, err) //nolint:errorlint // EINVAL misleads
}

func (m *move) replace() error {
	if m.old.mode.IsDir() {
		return m.replaceNothing()
	}
	twoNames, err := m.twoNames()
	if err != nil {
		return err
	}
	if twoNames {
		return m.dropOldName() // rename would do nothing
	}
	err = m.settle(m.sys.rename(m.olddir, m.oldleaf, m.newdir, m.newleaf))
	if errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%w: the new name is a directory", fs.ErrExist)
	}
	return err
}

// dropOldName leaves a file that has both names the new one. Nobody is raced with: whoever removes the old name, the file is
// where it was to go.
func (m *move) dropOldName() error {
	err := m.sys.unlink(m.olddir, m.oldleaf)
	if err == nil {
		return nil
	}
	if m.hasMoved() {
		return nil
	}
	return err
}

// twoNames reports whether the new name is a second link of the file, such as a crash between link and unlink leaves, and
// not the same entry spelled as a file system that ignores case allows.
func (m *move) twoNames() (bool, error) {
	taken, err := m.sys.lstat(m.newdir, m.newleaf)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || taken.id != m.old.id || taken.links < 2 {
		return false, err
	}
	same, err := m.sameDir()
	if err != nil || !same {
		return err == nil, err
	}
	names, err := m.fs.namesIn(m.newdir, ".")
	return slices.Contains(names, m.oldleaf) && slices.Contains(names, m.newleaf), err
}

// replaceNothing moves a directory to a name that must be free. The kernel would replace an empty directory.
func (m *move) replaceNothing() error {
	err := m.settle(m.sys.renameNoReplace(m.olddir, m.oldleaf, m.newdir, m.newleaf))
	if !unsupported(err) {
		return err
	}
	_, err = m.sys.lstat(m.newdir, m.newleaf)
	switch {
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	err = m.settle(m.sys.rename(m.olddir, m.oldleaf, m.newdir, m.newleaf))
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: the new name is a file", fs.ErrExist)
	}
	return err
}

// hasMoved looks whether the file has the new name and nothing the old one.
func (m *move) hasMoved() bool {
	_, oldErr := m.sys.lstat(m.olddir, m.oldleaf)
	now, newErr := m.sys.lstat(m.newdir, m.newleaf)
	return errors.Is(oldErr, fs.ErrNotExist) && newErr == nil && now.id == m.old.id
}

// settle finds out what a rename has done whose answer leaves that open, as those of network mounts may.
func (m *move) settle(err error) error {
	if unanswered(err) && m.hasMoved() {
		return nil
	}
	return err
}

// persist makes the new entry durable before the loss of the old one.
func (m *move) persist() error {
	if err := m.fs.fsyncDir(m.newdir); err != nil || m.newdir == m.olddir {
		return err
	}
	return m.fs.fsyncDir(m.olddir)
}

// errNotDurable is for changes of names that have happened and could not be made durable.
var errNotDurable = errors.New("the change of names is not durable")

// notDurable is the error of a failed fsync of a directory. Whatever its errno means elsewhere, it must not be taken for a
// lost answer to the rename: what the fsync has failed to write no later one need write.
func notDurable(what string, err error) error {
	var errno syscall.Errno
	sentinel := errNotDurable
	if errors.As(err, &errno) && errors.Is(meaning(errno), core.ErrNoSpace) {
		sentinel = core.ErrNoSpace
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return &classified{err: fmt.Errorf("%s: %v", what, err), sentinel: sentinel} //nolint:errorlint // it is no refusal of the rename
	}
	return &classified{err: fmt.Errorf("%s: %w", what, err), sentinel: sentinel}
}
