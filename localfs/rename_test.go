package localfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestARenameWhoseAnswerIsLostIsLookedUp(t *testing.T) {
	for _, mode := range []core.RenameMode{core.RenameNoReplace, core.RenameReplace} {
		for _, happened := range []bool{true, false} {
			f, sys, top := tapped(t, Options{})
			require.NoError(t, os.WriteFile(join(top, "old"), nil, 0o600))
			sys.hook = func(e event) (bool, error) {
				if e.op != "rename" && e.op != "renameNoReplace" {
					return false, nil
				}
				if happened {
					_ = os.Rename(join(top, "old"), join(top, "new"))
				}
				return true, syscall.ETIMEDOUT
			}
			err := f.Rename(context.Background(), join(top, "old"), join(top, "new"), mode)
			if happened {
				require.NoError(t, err)
				require.Equal(t, []string{"new"}, children(t, top))
				require.Equal(t, []string{"fsync ."}, sys.record(top, "fsync"), "it is made durable all the same")
			} else {
				require.ErrorIs(t, err, core.ErrUnavailable)
				require.Equal(t, []string{"old"}, children(t, top))
			}
		}
	}
}

func TestADirectoryIsNotRenamedWhereThatIsNotDeclaredOrNotPossible(t *testing.T) {
	for _, declared := range []bool{false, true} {
		for _, known := range []bool{false, true} {
			f, sys, top := tapped(t, Options{})
			f.caps.NoReplaceDirs = declared
			sys.system = knowing{kernel{}, known}
			require.NoError(t, os.Mkdir(join(top, "old"), 0o700))
			sys.hook = func(e event) (bool, error) { return e.op == "renameNoReplace", syscall.EINVAL }
			err := noReplace(f, top)
			want := errors.ErrUnsupported
			if declared && known {
				want = fs.ErrInvalid // then the flag is not what is invalid
			}
			require.ErrorIs(t, err, want)
			require.Equal(t, []string{"old"}, children(t, top))
			if !declared {
				require.Empty(t, sys.record(top, "renameNoReplace"))
			}
			// To a name that nobody uses it can be moved all the same.
			require.NoError(t, f.Rename(context.Background(), join(top, "old"), join(top, "new"), core.RenameReplace))
			require.Equal(t, []string{"new"}, children(t, top))
		}
	}
}

func TestADirectoryIsNeverReplacedNorReplaces(t *testing.T) {
	for _, sys := range []system{kernel{}, oldKernel{kernel{}}} {
		top := memoryDir(t)
		f := openFor(t, sys, top, Options{})
		for _, dir := range []string{"dir", "empty", "full/sub"} {
			require.NoError(t, os.MkdirAll(join(top, dir), 0o700))
		}
		require.NoError(t, os.WriteFile(join(top, "file"), nil, 0o600))
		for _, names := range [][2]string{{"dir", "empty"}, {"dir", "full"}, {"dir", "file"}, {"file", "empty"}, {"file", "full"}, {"dir", "dir"}} {
			err := f.Rename(context.Background(), join(top, names[0]), join(top, names[1]), core.RenameReplace)
			require.ErrorIs(t, err, fs.ErrExist, "%v", names)
		}
		require.Equal(t, []string{"dir", "empty", "file", "full"}, children(t, top))
	}
}

func TestARenameToAnotherDeviceIsAnErrorAndNeverACopy(t *testing.T) {
	from, to := diskDir(t), memoryDir(t)
	require.NoError(t, os.WriteFile(join(from, "file"), []byte("content"), 0o600))
	require.NoError(t, os.Mkdir(join(from, "dir"), 0o700))
	if err := os.Rename(join(from, "file"), join(to, "file")); !errors.Is(err, syscall.EXDEV) {
		t.Skipf("there are not two devices: %v", err)
	}
	for _, sys := range []system{kernel{}, oldKernel{kernel{}}} {
		f := openFor(t, sys, "/", Options{})
		for _, mode := range []core.RenameMode{core.RenameNoReplace, core.RenameReplace} {
			err := f.Rename(context.Background(), join(from, "file"), join(to, "file"), mode)
			require.ErrorIs(t, err, syscall.EXDEV)
			require.ErrorContains(t, err, join(from, "file"))
			require.ErrorContains(t, err, join(to, "file"))
		}
		require.ErrorIs(t, f.Rename(context.Background(), join(from, "dir"), join(to, "dir"), core.RenameReplace), syscall.EXDEV)
	}
	require.Equal(t, []string{"dir", "file"}, children(t, from))
	require.Empty(t, children(t, to))
}

// TestOneEntryUnderTwoPathsIsNotLost moves a file to itself through a symbolic link.
func TestOneEntryUnderTwoPathsIsNotLost(t *testing.T) {
	for _, sys := range []system{kernel{}, oldKernel{kernel{}}} {
		top := memoryDir(t)
		f := openFor(t, sys, top, Options{})
		require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
		require.NoError(t, os.Symlink("dir", join(top, "link")))
		require.NoError(t, os.WriteFile(join(top, "dir", "file"), []byte("content"), 0o600))
		require.NoError(t, os.Link(join(top, "dir", "file"), join(top, "backup")))
		oldname, newname := join(top, "dir", "file"), join(top, "link", "file")
		require.ErrorIs(t, f.Rename(context.Background(), oldname, newname, core.RenameNoReplace), fs.ErrExist)
		require.NoError(t, f.Rename(context.Background(), oldname, newname, core.RenameReplace))
		require.ErrorIs(t, f.Rename(context.Background(), join(top, "dir"), join(top, "link", "below"), core.RenameReplace), fs.ErrInvalid)
		require.FileExists(t, oldname)
	}
}

// TestOfTwoLinksOfOneFileTheNewNameStays is what a crash between link and unlink leaves to be repaired.
func TestOfTwoLinksOfOneFileTheNewNameStays(t *testing.T) {
	for _, newname := range []string{"new", "dir/new"} {
		f, _, top := tapped(t, Options{})
		require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
		require.NoError(t, os.WriteFile(join(top, "old"), []byte("content"), 0o600))
		require.NoError(t, os.Link(join(top, "old"), join(top, newname)))
		require.ErrorIs(t, f.Rename(context.Background(), join(top, "old"), join(top, newname), core.RenameNoReplace), fs.ErrExist)
		require.NoError(t, f.Rename(context.Background(), join(top, "old"), join(top, newname), core.RenameReplace))
		require.NoFileExists(t, join(top, "old"))
		require.FileExists(t, join(top, newname))
	}
}

// TestARenameOutOfADirectoryThatWasRenamedAwayFails is what fencing by rename relies on.
func TestARenameOutOfADirectoryThatWasRenamedAwayFails(t *testing.T) {
	for _, sys := range []system{kernel{}, oldKernel{kernel{}}} {
		top := memoryDir(t)
		zombie, owner := openFor(t, sys, top, Options{}), openFor(t, sys, top, Options{})
		ctx := context.Background()
		require.NoError(t, zombie.MkdirAll(ctx, join(top, "epoch-1")))
		putWith(t, zombie, join(top, "epoch-1", "tmp"), nil, core.CreateOptions{})
		require.NoError(t, owner.MkdirAll(ctx, join(top, "epoch-2")))
		require.NoError(t, owner.Rename(ctx, join(top, "epoch-1"), join(top, "epoch-2", "epoch-1"), core.RenameReplace))
		for _, mode := range []core.RenameMode{core.RenameNoReplace, core.RenameReplace} {
			err := zombie.Rename(ctx, join(top, "epoch-1", "tmp"), join(top, "published"), mode)
			require.ErrorIs(t, err, fs.ErrNotExist)
			err = zombie.Rename(ctx, join(top, "epoch-2", "epoch-1", "tmp"), join(top, "epoch-1", "back"), mode)
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.Equal(t, []string{"epoch-2"}, children(t, top))
	}
}
