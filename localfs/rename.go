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
		return m.linkAndUnlink()
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
	if where, lookErr := m.whereabouts(); lookErr == nil && (where == newNameOnly || where == elsewhere) {
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

// settle finds out what a rename has done whose answer leaves that open, as those of network mounts may.
func (m *move) settle(err error) error {
	if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ETIMEDOUT) && !errors.Is(err, syscall.ESTALE) {
		return err
	}
	_, oldErr := m.sys.lstat(m.olddir, m.oldleaf)
	now, newErr := m.sys.lstat(m.newdir, m.newleaf)
	if errors.Is(oldErr, fs.ErrNotExist) && newErr == nil && now.id == m.old.id {
		return nil
	}
	return err
}

// linkAndUnlink moves a file where the kernel cannot rename without replacing. Of callers with one new name, only the one
// whose link succeeds goes on, also if they have the old name in common; of those that have linked one file to different
// names, one removal of the old name succeeds.
func (m *move) linkAndUnlink() error {
	if err := m.sys.link(m.olddir, m.oldleaf, m.newdir, m.newleaf); err != nil {
		return m.explainLink(err)
	}
	// Else a crash could leave the removal of the old name durable and the new name not.
	if err := m.fs.fsyncDir(m.newdir); err != nil {
		return notDurable("the file has both names, the new one is not durable", err)
	}
	err := m.sys.unlink(m.olddir, m.oldleaf)
	if err == nil {
		return nil
	}
	switch where, lookErr := m.whereabouts(); {
	case lookErr != nil:
		return fmt.Errorf("the file has the new name, and perhaps the old one: removing that: %w; looking at it: %w", err, lookErr)
	case where == newNameOnly:
		return nil
	case where == nowhere:
		return err
	case where == elsewhere && !errors.Is(err, fs.ErrNotExist):
		// Either this call has removed the old name or another did, whose file it then is. To keep a name too many loses nothing.
		return fmt.Errorf("the file has the new name and one that another caller has given it: removing the old one: %w", err)
	}
	if undoErr := m.sys.unlink(m.newdir, m.newleaf); undoErr != nil && !errors.Is(undoErr, fs.ErrNotExist) {
		return fmt.Errorf("the file has both names: removing the old one: %w; removing the new one: %w", err, undoErr)
	}
	return err
}

// whereabouts is where a file is whose old name could not be removed.
type whereabouts uint8

const (
	// bothNames: nothing has happened.
	bothNames whereabouts = iota
	// newNameOnly: the old name was removed, and only the answer was wrong: NFS repeats a call whose answer was lost, and
	// then finds no such file.
	newNameOnly
	// elsewhere: the old name is gone, and the file has another name that it had not before, besides the new one.
	elsewhere
	// nowhere: neither name is the file's.
	nowhere
)

// whereabouts looks at both names. Who takes the old name away by moving it has given the file another name before, so the
// number of names tells that from a lost answer.
func (m *move) whereabouts() (whereabouts, error) {
	_, err := m.sys.lstat(m.olddir, m.oldleaf)
	switch {
	case err == nil:
		return bothNames, nil
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	now, err := m.sys.lstat(m.newdir, m.newleaf)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && now.id != m.old.id:
		return nowhere, nil
	case err != nil:
		return 0, err
	case now.links > m.old.links:
		return elsewhere, nil
	}
	return newNameOnly, nil
}

// explainLink adds what a look at the new name tells. NFS repeats a call whose answer was lost, and then answers that the
// new name exists. If the file has got it during this call, that was done by this call or by another with the same two
// names, which may be about to succeed. So this is no success, nothing may be undone, and it is not fs.ErrExist either, by
// which a caller would conclude that the file is not there.
func (m *move) explainLink(err error) error {
	now, lookErr := m.sys.lstat(m.newdir, m.newleaf)
	switch {
	case lookErr == nil && now.id == m.old.id && now.links > m.old.links:
		return fmt.Errorf("%w: both names are those of one file, linked by this call, the answer to which was lost, or by another: %v",
			core.ErrUnavailable, err) //nolint:errorlint // it must not be fs.ErrExist
	case lookErr != nil && !errors.Is(lookErr, fs.ErrNotExist):
		return fmt.Errorf("%v; whose the new name is cannot be told: %w", err, lookErr) //nolint:errorlint // it must not be fs.ErrExist
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
