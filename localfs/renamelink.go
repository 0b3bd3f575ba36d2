package localfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// byLink moves a file where the kernel cannot rename without replacing.
//
//	link old to new      one winner of all that want the new name; a crash from here on leaves a name too many, never too few
//	fsync of new's directory
//	rename old to claim  one winner of all that want the old name
//	unlink claim
//
// The claim is a name that nobody else has. So whether the file has got it tells, after whatever error, who has taken the old
// name away: ENOENT may as well be the answer to a call that NFS repeats because the first answer was lost, and the number of
// the file's names changes with every other caller.
func (m *move) byLink() error {
	if _, err := m.sys.lstat(m.newdir, m.newleaf); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	claim, err := core.NewMetadataTempName()
	if err != nil {
		return err
	}
	if err := m.sys.link(m.olddir, m.oldleaf, m.newdir, m.newleaf); err != nil {
		return m.explainLink(err)
	}
	// Else a crash could leave the removal of the old name durable and the new name not.
	if err := m.fs.fsyncDir(m.newdir); err != nil {
		return notDurable("the file has both names, the new one is not durable", err)
	}
	err = m.sys.rename(m.olddir, m.oldleaf, m.olddir, claim)
	taken, lookErr := m.sys.lstat(m.olddir, claim)
	switch {
	case lookErr == nil:
		return m.dropClaim(claim, taken)
	case err == nil:
		return fmt.Errorf("the file has the new name, and perhaps a second one, %s: %w", claim, lookErr)
	case !errors.Is(lookErr, fs.ErrNotExist):
		return fmt.Errorf("the file has the new name, and perhaps the old one: removing that: %w; looking at it: %w", err, lookErr)
	case unanswered(err):
		// The call may yet be carried out, and to keep a name too many loses nothing.
		return fmt.Errorf("the file has the new name, and perhaps the old one, the removal of which was not answered: %w", err)
	}
	if undoErr := m.sys.unlink(m.newdir, m.newleaf); undoErr != nil && !errors.Is(undoErr, fs.ErrNotExist) {
		return fmt.Errorf("the file has both names: removing the old one: %w; removing the new one: %w", err, undoErr)
	}
	return err
}

// dropClaim removes the name by which the old one was taken away. If that was another file, which somebody has put there after
// the link, the move comes before theirs, and what they put there goes back.
func (m *move) dropClaim(claim string, taken entry) error {
	mine, err := m.sys.lstat(m.newdir, m.newleaf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file has the new name and a second one, %s: %w", claim, err)
	}
	if err != nil {
		mine = m.old // somebody has taken it further
	}
	if mine.id != taken.id {
		if err := m.sys.link(m.olddir, claim, m.olddir, m.oldleaf); err != nil {
			return fmt.Errorf("the file has the new name; another that came to the old one meanwhile is now %s: %w", claim, err)
		}
	}
	if err := m.sys.unlink(m.olddir, claim); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file has the new name and a second one, %s, which can be removed: %w", claim, err)
	}
	return nil
}

// explainLink adds what a look at the new name tells, which nobody had before. NFS repeats a call whose answer was lost, and
// then answers that the new name exists. If it is the file's, that was done by this call or by another with the same two
// names, which may be about to succeed. So this is no success, nothing may be undone, and it is not fs.ErrExist either, by
// which a caller would conclude that the file is not there.
func (m *move) explainLink(err error) error {
	now, lookErr := m.sys.lstat(m.newdir, m.newleaf)
	switch {
	case lookErr == nil && now.id == m.old.id:
		return fmt.Errorf("%w: both names are those of one file, linked by this call, the answer to which was lost, or by another: %v",
			core.ErrUnavailable, err) //nolint:errorlint // it must not be fs.ErrExist
	case lookErr != nil && !errors.Is(lookErr, fs.ErrNotExist):
		return fmt.Errorf("%v; whose the new name is cannot be told: %w", err, lookErr) //nolint:errorlint // it must not be fs.ErrExist
	}
	return err
}

// unanswered reports whether an error leaves open what has happened, as those of network mounts may.
func unanswered(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.ESTALE)
}
