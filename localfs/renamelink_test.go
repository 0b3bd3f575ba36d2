package localfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// fallback is a file system without renameat2 in a new directory with the file "old".
func fallback(t *testing.T) (f *FS, sys *tap, top string) {
	t.Helper()
	f, sys, top = tapped(t, Options{})
	sys.system = oldKernel{kernel{}}
	require.NoError(t, os.WriteFile(join(top, "old"), []byte("content"), 0o600))
	return f, sys, top
}

func noReplace(f *FS, top string) error {
	return f.Rename(context.Background(), join(top, "old"), join(top, "new"), core.RenameNoReplace)
}

// settled is what is in the directory; a claim that is left over is "claim".
func settled(t *testing.T, top string) []string {
	t.Helper()
	names := children(t, top)
	for i, name := range names {
		names[i] = claimName.ReplaceAllString(name, "claim")
	}
	return names
}

func TestLinkAndUnlinkReportTheTruth(t *testing.T) {
	for _, c := range []struct {
		name string
		// hook answers one kind of call; it may do the call first, so that only the answer is wrong.
		op   string
		hook func(top string, e event) error
		want error  // nil: success
		text string // of the error
		left []string
	}{
		{
			"the new name cannot be made", "link", func(string, event) error { return syscall.EDQUOT },
			core.ErrNoSpace, "",
			[]string{"old"},
		},
		{"the new name is made and the answer lost", "link", func(_ string, e event) error {
			_ = os.Link(e.path, e.to)
			return syscall.EEXIST
		}, core.ErrUnavailable, "both names are those of one file", []string{"new", "old"}},
		{
			"the new name exists and goes again", "link", func(string, event) error { return syscall.EEXIST },
			fs.ErrExist, "",
			[]string{"old"},
		},
		{
			"the old name cannot be removed: the new one goes again", "rename", func(string, event) error { return syscall.EACCES },
			fs.ErrPermission, "",
			[]string{"old"},
		},
		{
			"the removal of the old name is not answered: no name is given up", "rename", func(string, event) error { return syscall.ETIMEDOUT },
			core.ErrUnavailable, "not answered",
			[]string{"new", "old"},
		},
		{"the old name is removed and the answer lost", "rename", func(_ string, e event) error {
			_ = os.Rename(e.path, e.to)
			return syscall.ETIMEDOUT
		}, nil, "", []string{"new"}},
		{"the old name is removed, and the call that is repeated does not find it", "rename", func(_ string, e event) error {
			_ = os.Rename(e.path, e.to)
			return syscall.ENOENT
		}, nil, "", []string{"new"}},
		{"somebody else takes the old name: theirs is the file", "rename", func(top string, e event) error {
			_ = os.Link(e.path, join(top, "theirs"))
			_ = os.Remove(e.path)
			return syscall.ENOENT
		}, fs.ErrNotExist, "", []string{"theirs"}},
		{"the removal of the last name but one is repeated", "unlink", func(_ string, e event) error {
			_ = os.Remove(e.path)
			return syscall.ENOENT
		}, nil, "", []string{"new"}},
		{
			"the last name but one cannot be removed", "unlink", func(string, event) error { return syscall.EIO },
			syscall.EIO, "a second one, ._metadata.inprogress.",
			[]string{"claim", "new"},
		},
		{
			"the new name cannot be made durable: that is no lost answer", "fsync", func(string, event) error { return syscall.ETIMEDOUT },
			errNotDurable, "both names",
			[]string{"new", "old"},
		},
		{
			"the new name cannot be made durable: the old one stays", "fsync", func(string, event) error { return syscall.EIO },
			syscall.EIO, "both names",
			[]string{"new", "old"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, sys, top := fallback(t)
			hit := false
			sys.hook = func(e event) (bool, error) {
				if e.op != c.op || e.op == "unlink" && path.Base(e.path) == "new" {
					return false, nil
				}
				hit = true
				return true, c.hook(top, e)
			}
			err := noReplace(f, top)
			require.True(t, hit)
			if !errors.Is(c.want, core.ErrUnavailable) {
				require.NotErrorIs(t, err, core.ErrUnavailable)
			}
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.text)
			}
			require.Equal(t, c.left, settled(t, top))
		})
	}
}

func TestTwoNamesThatCannotBeUndoneAreNotPassedOverInSilence(t *testing.T) {
	f, sys, top := fallback(t)
	sys.hook = func(e event) (bool, error) { return e.op == "unlink" || e.op == "rename", syscall.EACCES }
	err := noReplace(f, top)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "both names")
	require.Equal(t, []string{"new", "old"}, children(t, top))
}

// TestTheLoserOfAFileIsToldSoHoweverManyOthersComeAndGo has other callers link the file before, and undo that afterwards: the
// number of its names says nothing.
func TestTheLoserOfAFileIsToldSoHoweverManyOthersComeAndGo(t *testing.T) {
	f, sys, top := fallback(t)
	for _, name := range []string{"loser-1", "loser-2", "theirs"} {
		require.NoError(t, os.Link(join(top, "old"), join(top, name)))
	}
	sys.hook = func(e event) (bool, error) {
		if e.op != "rename" {
			return false, nil
		}
		for _, name := range []string{"old", "loser-1", "loser-2"} {
			require.NoError(t, os.Remove(join(top, name)))
		}
		return false, nil
	}
	require.ErrorIs(t, noReplace(f, top), fs.ErrNotExist)
	require.Equal(t, []string{"theirs"}, children(t, top))
}

// TestAFileThatComesToTheOldNameMeanwhileStays has another file replace the old one between the two steps: as if the move had
// come before it.
func TestAFileThatComesToTheOldNameMeanwhileStays(t *testing.T) {
	f, sys, top := fallback(t)
	require.NoError(t, os.WriteFile(join(top, "other"), []byte("other"), 0o600))
	sys.hook = func(e event) (bool, error) {
		if e.op == "rename" {
			require.NoError(t, os.Rename(join(top, "other"), join(top, "old")))
		}
		return false, nil
	}
	require.NoError(t, noReplace(f, top))
	require.Equal(t, []string{"new", "old"}, children(t, top))
	for name, want := range map[string]string{"new": "content", "old": "other"} {
		got, err := os.ReadFile(join(top, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// TestAFileThatCannotGoBackKeepsItsContent has a third file take the old name.
func TestAFileThatCannotGoBackKeepsItsContent(t *testing.T) {
	f, sys, top := fallback(t)
	require.NoError(t, os.WriteFile(join(top, "other"), []byte("other"), 0o600))
	links := 0
	sys.hook = func(e event) (bool, error) {
		switch e.op {
		case "rename":
			require.NoError(t, os.Rename(join(top, "other"), join(top, "old")))
		case "link":
			if links++; links == 2 {
				require.NoError(t, os.WriteFile(join(top, "old"), []byte("third"), 0o600))
			}
		}
		return false, nil
	}
	require.ErrorContains(t, noReplace(f, top), "is now ._metadata.inprogress.")
	require.Equal(t, []string{"claim", "new", "old"}, settled(t, top))
	for _, name := range children(t, top) {
		want := map[string]string{"new": "content", "old": "third"}[name]
		if want == "" {
			want = "other"
		}
		got, err := os.ReadFile(join(top, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
}
