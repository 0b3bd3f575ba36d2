package localfs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// sillyRename makes the tap behave like an NFS client on which somebody has the files open: removed files live on as
// ".nfs…" until release is called with the number of failed attempts to remove their directory.
func sillyRename(sys *tap, attempts int) {
	left, tries := []string{}, 0
	sys.hook = func(e event) (bool, error) {
		switch {
		case e.op == "unlink" && strings.HasPrefix(filepath.Base(e.path), nfsLeftover):
			return true, syscall.EBUSY
		case e.op == "unlink":
			name := filepath.Join(filepath.Dir(e.path), fmt.Sprintf("%s%08d", nfsLeftover, len(left)))
			left = append(left, name)
			return true, os.Rename(e.path, name)
		case e.op == "rmdir":
			if tries++; tries == attempts {
				for _, name := range left {
					_ = os.Remove(name)
				}
			}
		}
		return false, nil
	}
}

func TestLeftoversOfNFSAreWaitedForAndThenNamed(t *testing.T) {
	for _, c := range []struct {
		attempts int
		gone     bool
	}{{1, true}, {4, true}, {1000, false}} {
		f, sys, top := tapped(t, Options{})
		require.NoError(t, os.MkdirAll(join(top, "dir", "sub"), 0o700))
		require.NoError(t, os.WriteFile(join(top, "dir", "sub", "state"), nil, 0o600))
		sillyRename(sys, c.attempts)
		err := f.RemoveAll(context.Background(), join(top, "dir"))
		if c.gone {
			require.NoError(t, err)
			require.Empty(t, children(t, top))
			continue
		}
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, ".nfs00000000")
		require.ErrorContains(t, err, join(top, "dir", "sub"))
		require.Len(t, sys.record(top, "rmdir"), nfsAttempts, "the parent is left alone")

		err = f.Remove(context.Background(), join(top, "dir", "sub"))
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, ".nfs00000000")
	}
}

func TestTheWaitForLeftoversEndsWithTheContext(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
	require.NoError(t, os.WriteFile(join(top, "dir", nfsLeftover+"1"), nil, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sys.hook = func(e event) (bool, error) {
		if e.op == "rmdir" {
			cancel()
		}
		return e.op == "rmdir", syscall.ENOTEMPTY
	}
	require.ErrorIs(t, f.Remove(ctx, join(top, "dir")), context.Canceled)
	require.Len(t, sys.record(top, "rmdir"), 1)
}

func TestRemoveOfADirectoryThatIsNotEmptyDoesNotWait(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
	for _, name := range []string{nfsLeftover + "1", "state"} {
		require.NoError(t, os.WriteFile(join(top, "dir", name), nil, 0o600))
	}
	require.ErrorIs(t, f.Remove(context.Background(), join(top, "dir")), fs.ErrExist)
	require.Len(t, sys.record(top, "rmdir"), 1)
	require.Len(t, children(t, join(top, "dir")), 2)
}

func TestRemoveAllGoesOnAfterAFailureAndNamesWhatIsLeft(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	require.NoError(t, os.MkdirAll(join(top, "dir", "sub"), 0o700))
	for i := range 3 * maxNamed {
		require.NoError(t, os.WriteFile(join(top, "dir", fmt.Sprintf("file-%02d", i)), nil, 0o600))
		require.NoError(t, os.WriteFile(join(top, "dir", "sub", fmt.Sprintf("stuck-%02d", i)), nil, 0o600))
	}
	sys.hook = func(e event) (bool, error) {
		return e.op == "unlink" && strings.Contains(e.path, "stuck"), syscall.EACCES
	}
	err := f.RemoveAll(context.Background(), join(top, "dir"))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, join(top, "dir", "sub", "stuck-"))
	require.ErrorContains(t, err, fmt.Sprintf("and %d more", 2*maxNamed))
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, []string{"sub"}, children(t, join(top, "dir")))

	sys.hook = nil
	require.NoError(t, f.RemoveAll(context.Background(), join(top, "dir")), "a second call comes to the end")
	require.Empty(t, children(t, top))
}

func TestRemoveAllEmptiesADirectoryThatOthersFill(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
	made := 0
	sys.hook = func(e event) (bool, error) {
		if e.op == "rmdir" && made < 3 {
			made++
			_ = os.WriteFile(join(top, "dir", "late"), nil, 0o600)
		}
		return false, nil
	}
	require.NoError(t, f.RemoveAll(context.Background(), join(top, "dir")))
	require.Empty(t, children(t, top))

	require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
	made = -1000
	require.ErrorIs(t, f.RemoveAll(context.Background(), join(top, "dir")), fs.ErrExist, "but not for ever")
}

func TestTheBaseIsNotRemoved(t *testing.T) {
	f, _, top := tapped(t, Options{})
	require.ErrorIs(t, f.Remove(context.Background(), top), fs.ErrInvalid)
	require.ErrorIs(t, f.RemoveAll(context.Background(), top), fs.ErrInvalid)
	require.DirExists(t, top)
}
