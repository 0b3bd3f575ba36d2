package localfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestOpenRefusesWhatCannotBeABase(t *testing.T) {
	top := diskDir(t)
	require.NoError(t, os.WriteFile(join(top, "file"), nil, 0o600))
	for _, c := range []struct {
		base string
		opts Options
		want error
	}{
		{"", Options{}, fs.ErrInvalid},
		{join(top, "missing"), Options{}, fs.ErrNotExist},
		{join(top, "file"), Options{}, fs.ErrInvalid},
		{join(top, "file"), Options{CreateBase: true}, fs.ErrInvalid},
		{join(top, "file", "below"), Options{CreateBase: true}, fs.ErrInvalid},
		{join(top, "a:b"), Options{CreateBase: true}, fs.ErrInvalid},
		{join(top, "a\x00b"), Options{CreateBase: true}, fs.ErrInvalid},
		{top, Options{FileMode: 0o400}, fs.ErrInvalid},
	} {
		f, err := Open(c.base, c.opts)
		require.ErrorIs(t, err, c.want, c.base)
		require.Nil(t, f)
		var pathErr *fs.PathError
		require.ErrorAs(t, err, &pathErr)
		require.Equal(t, "open", pathErr.Op)
	}
	require.Equal(t, []string{"file"}, children(t, top))
}

func TestOptionsReportAllProblemsAtOnce(t *testing.T) {
	err := Options{FileMode: 0o070, DirMode: fs.ModeSticky | 0o700}.Validate()
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "FileMode")
	require.ErrorContains(t, err, "DirMode")
	require.NoError(t, Options{}.Validate())
	require.NoError(t, Options{FileMode: 0o640, DirMode: 0o750}.Validate())
}

func TestOpenMakesARelativeBaseAbsolute(t *testing.T) {
	top := diskDir(t)
	t.Chdir(top)
	f := openFor(t, kernel{}, "x/../base/", Options{CreateBase: true})
	require.NoError(t, f.MkdirAll(context.Background(), join(top, "base", "dir")))
	require.Equal(t, []string{"dir"}, children(t, join(top, "base")))
	_, err := f.Stat(context.Background(), join(top, "other"))
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestCreateBaseIsDurable(t *testing.T) {
	sys, top := newTap(), diskDir(t)
	openFor(t, sys, join(top, "a", "b"), Options{CreateBase: true, DirMode: 0o750})
	require.Subset(t, sys.record(top, "mkdir", "fsync"), []string{"mkdir ./a", "fsync .", "mkdir ./a/b", "fsync ./a"})
	info, err := os.Stat(join(top, "a", "b"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o750), info.Mode().Perm())
}

func TestBaseIsAbsoluteAndCleanWhateverOpenGot(t *testing.T) {
	top := diskDir(t)
	require.NoError(t, os.Mkdir(join(top, "base"), 0o700))
	require.NoError(t, os.Symlink("base", join(top, "link")))
	t.Chdir(top)
	for base, want := range map[string]string{
		"base": "base", "./base/": "base", "x/..//base/.": "base", join(top, "base") + "/": "base", ".": "", "link/": "link",
	} {
		f := openFor(t, kernel{}, base, Options{})
		require.Equal(t, join(top, want), f.Base(), base)
		require.NoError(t, f.MkdirAll(context.Background(), f.Base()+"/dir"))
	}
	require.Equal(t, "/", openFor(t, kernel{}, "//", Options{}).Base())
}

func TestOpenMakesDurableWhatLeadsToTheBaseAndWritesNothing(t *testing.T) {
	parts := func(top string) []string { // every directory above top, from "/"
		var lines []string
		for _, dir := range ancestors(top) {
			lines = append(lines, "fsync "+dir)
		}
		return lines
	}
	for _, c := range []struct {
		name, base string
		opts       Options
		want       func(top string) []string
	}{
		{name: "a directory that somebody has just made", base: "a/b", want: func(top string) []string {
			return append(parts(top), "fsync .", "fsync ./a", "fsync ./a/b")
		}},
		{name: "a link, for which the directory that it is counts as well", base: "link", want: func(top string) []string {
			return append(append(parts(top), "fsync ."), append(parts(top), "fsync .", "fsync ./a", "fsync ./link")...)
		}},
		{name: "without fsync", base: "a/b", opts: Options{UnsafeNoFsync: true}, want: func(string) []string { return nil }},
		{name: "the root", base: "/", want: func(string) []string { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sys, top := newTap(), diskDir(t)
			sys.system = knowing{kernel{}, true}
			require.NoError(t, os.MkdirAll(join(top, "a", "b"), 0o700))
			require.NoError(t, os.Symlink("a/b", join(top, "link")))
			base := c.base
			if base != "/" {
				base = join(top, base)
			}
			openFor(t, sys, base, c.opts)
			require.Equal(t, c.want(top), sys.record(top, "fsync"))
			require.Empty(t, sys.record(top, "create", "mkdir", "unlink", "rmdir", "link", "rename", "renameNoReplace", "write", "chmod"))
		})
	}
}

func TestOpenFailsIfTheBaseMayNotBeDurableAndExcusesWhatItMayNotFsync(t *testing.T) {
	for _, op := range []string{"open", "fsync"} {
		for _, dir := range []string{".", "a", "a/base"} {
			for cause, excused := range map[error]bool{
				syscall.EIO: false, syscall.ENOSPC: false, syscall.ESTALE: false,
				syscall.EACCES: true, syscall.EPERM: true,
				syscall.EINVAL: op == "fsync", syscall.ENOSYS: op == "fsync", syscall.EROFS: op == "fsync",
			} {
				if op == "open" && dir == "a/base" {
					continue // without that there is no file system
				}
				name := fmt.Sprintf("%s %s: %v", op, dir, cause)
				withoutLeaks(t, func(t *testing.T) {
					sys, top := newTap(), diskDir(t)
					base := join(top, "a", "base")
					require.NoError(t, os.MkdirAll(base, 0o700))
					sys.hook = func(e event) (bool, error) { return e.op == op && e.path == join(top, dir), cause }
					f, err := open(sys, base, Options{})
					if !excused {
						require.ErrorIs(t, err, cause, name)
						require.ErrorContains(t, err, base, name)
						return
					}
					require.NoError(t, err, name)
					require.NoError(t, f.Close())
				})
			}
		}
	}
}

func TestCapabilitiesAreFoundOutOnceAndTracesRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		known  bool
		rename func() error // nil: the real one
		mkdir  error
		want   bool
		calls  []string
	}{
		{name: "a well-known file system is not probed", known: true, want: true},
		{name: "another that can", want: true, calls: []string{"mkdir", "renameNoReplace", "rmdir", "rmdir"}},
		{name: "NFS", rename: func() error { return syscall.EINVAL }, calls: []string{"mkdir", "renameNoReplace", "rmdir", "rmdir"}},
		{name: "an old kernel", rename: func() error { return syscall.ENOSYS }, calls: []string{"mkdir", "renameNoReplace", "rmdir", "rmdir"}},
		{name: "a read-only base", mkdir: syscall.EROFS, calls: []string{"mkdir"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sys, top := newTap(), diskDir(t)
			sys.system = knowing{kernel{}, c.known}
			sys.hook = func(e event) (bool, error) {
				switch {
				case e.op == "mkdir" && c.mkdir != nil:
					return true, c.mkdir
				case e.op == "renameNoReplace" && c.rename != nil:
					return true, c.rename()
				}
				return false, nil
			}
			f := openFor(t, sys, top, Options{})
			require.Equal(t, core.Capabilities{
				Durabilities: []core.Durability{core.Unsynced, core.Synced}, NoReplaceFiles: true, NoReplaceDirs: c.want, Sync: true,
			}, f.Capabilities())
			var calls []string
			for _, line := range sys.record(top, "mkdir", "renameNoReplace", "rmdir", "create") {
				op, _, _ := strings.Cut(line, " ")
				calls = append(calls, op)
			}
			require.Equal(t, c.calls, calls)
			require.Empty(t, children(t, top))
		})
	}
}

// knowing decides what is known of the type of a file system.
type knowing struct {
	system
	known bool
}

func (k knowing) knownNoReplace(*os.File) bool { return k.known }

func TestWithoutFsyncOnlyUnsyncedIsDeclared(t *testing.T) {
	f, _, top := tapped(t, Options{UnsafeNoFsync: true})
	require.Equal(t, []core.Durability{core.Unsynced}, f.Capabilities().Durabilities)
	_, err := f.Create(context.Background(), join(top, "file"), core.CreateOptions{Durability: core.Synced})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, children(t, top))
}

func TestABaseThatMayBeCleanedUpGivesAWarning(t *testing.T) {
	top := diskDir(t)
	t.Setenv("TMPDIR", top)
	for base, want := range map[string]int{join(top, "base"): 1, top: 1, "/": 0} {
		var log bytes.Buffer
		openFor(t, kernel{}, base, Options{CreateBase: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.Equal(t, want, strings.Count(log.String(), "level=WARN"), "%s: %s", base, log.String())
	}
}

func TestAfterCloseEverythingIsErrClosedAndStreamsCanBeEnded(t *testing.T) {
	f, _, top := tapped(t, Options{})
	ctx := context.Background()
	putWith(t, f, join(top, "file"), []byte("content"), core.CreateOptions{})
	r, err := f.Open(ctx, join(top, "file"))
	require.NoError(t, err)
	w, err := f.Create(ctx, join(top, "new"), core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())

	_, err = f.Stat(ctx, join(top, "file"))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.MkdirAll(ctx, join(top, "dir")), fs.ErrClosed)
	_, err = r.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.NoError(t, r.Close())
	_, err = w.Write([]byte("x"))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
	require.NoError(t, w.Abort())
	require.Equal(t, []string{"file"}, children(t, top))
	require.Zero(t, f.Background())
}
