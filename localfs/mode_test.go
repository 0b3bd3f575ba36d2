package localfs

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func makeFIFO(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, unix.Mkfifo(name, 0o600))
}

// TestModesAreExactWhateverTheUmask changes the umask of the process, so it does not run beside others.
func TestModesAreExactWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o027, 0o077, 0o277} {
		for _, c := range []struct {
			opts      Options
			file, dir fs.FileMode
		}{
			{Options{}, 0o600, 0o700},
			{Options{FileMode: 0o664, DirMode: 0o775}, 0o664, 0o775},
			{Options{FileMode: 0o640, DirMode: 0o750}, 0o640, 0o750},
			{Options{FileMode: 0o666, DirMode: 0o777}, 0o666, 0o777},
		} {
			f, _, top := tapped(t, c.opts)
			ctx := context.Background()
			require.NoError(t, os.WriteFile(join(top, "taken"), nil, 0o604))
			func() {
				defer unix.Umask(unix.Umask(umask))
				require.NoError(t, f.MkdirAll(ctx, join(top, "a", "b")))
				putWith(t, f, join(top, "a", "tmp"), nil, core.CreateOptions{})
				require.NoError(t, f.Rename(ctx, join(top, "a", "tmp"), join(top, "taken"), core.RenameReplace))
			}()
			for name, want := range map[string]fs.FileMode{
				"a": fs.ModeDir | c.dir, "a/b": fs.ModeDir | c.dir, "taken": c.file,
			} {
				info, err := f.Stat(ctx, join(top, name))
				require.NoError(t, err)
				require.Equal(t, want, info.Mode, "%s under umask %#o", name, umask)
			}
		}
	}
}

func TestAnInheritedSetgidBitStays(t *testing.T) {
	f, _, top := tapped(t, Options{DirMode: 0o770})
	require.NoError(t, os.Chmod(top, fs.ModeSetgid|0o770))
	inherited := join(top, "by-mkdir")
	require.NoError(t, os.Mkdir(inherited, 0o700))
	info, err := os.Stat(inherited)
	require.NoError(t, err)
	if info.Mode()&fs.ModeSetgid == 0 {
		t.Skip("directories do not inherit the bit here")
	}
	defer unix.Umask(unix.Umask(0o077))
	require.NoError(t, f.MkdirAll(context.Background(), join(top, "dir")))
	made, err := f.Stat(context.Background(), join(top, "dir"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSetgid|0o770, made.Mode)
}
