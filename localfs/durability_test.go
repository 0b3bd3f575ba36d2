package localfs

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

func TestCallsAreMadeInTheOrderThatDurabilityNeeds(t *testing.T) {
	ctx := context.Background()
	createFile := func(opts core.CreateOptions) func(t *testing.T, f *FS, top string) {
		return func(t *testing.T, f *FS, top string) { putWith(t, f, join(top, "a", "file"), []byte("content"), opts) }
	}
	rename := func(oldname, newname string, mode core.RenameMode) func(t *testing.T, f *FS, top string) {
		return func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.Rename(ctx, join(top, oldname), join(top, newname), mode))
		}
	}
	for _, c := range []struct {
		name string
		opts Options
		old  bool // the kernel cannot rename without replacing
		run  func(t *testing.T, f *FS, top string)
		want []string
	}{
		{
			name: "a synced file", run: createFile(core.CreateOptions{}),
			want: []string{"create ./a/file", "write ./a/file", "fsync ./a/file", "lstat ./a/file", "close ./a/file", "fsync ./a"},
		},
		{
			name: "an unsynced file", run: createFile(core.CreateOptions{Durability: core.Unsynced}),
			want: []string{"create ./a/file", "write ./a/file", "lstat ./a/file", "close ./a/file"},
		},
		{
			name: "a file without fsync", opts: Options{UnsafeNoFsync: true}, run: createFile(core.CreateOptions{}),
			want: []string{"create ./a/file", "write ./a/file", "lstat ./a/file", "close ./a/file"},
		},
		{name: "Sync", run: func(t *testing.T, f *FS, top string) {
			w, err := f.Create(ctx, join(top, "a", "file"), core.CreateOptions{})
			require.NoError(t, err)
			_, err = w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, w.Sync())
			require.NoError(t, w.Close())
		}, want: []string{
			"create ./a/file", "write ./a/file", "fsync ./a/file", "fsync ./a",
			"fsync ./a/file", "lstat ./a/file", "close ./a/file", "fsync ./a",
		}},
		{
			name: "rename in one directory", run: rename("a/old", "a/new", core.RenameNoReplace),
			want: []string{"renameNoReplace ./a/old -> ./a/new", "fsync ./a"},
		},
		{
			name: "rename to another directory: the new name first", run: rename("a/old", "b/new", core.RenameNoReplace),
			want: []string{"renameNoReplace ./a/old -> ./b/new", "fsync ./b", "fsync ./a"},
		},
		{
			name: "rename that replaces", run: rename("a/old", "b/taken", core.RenameReplace),
			want: []string{"rename ./a/old -> ./b/taken", "fsync ./b", "fsync ./a"},
		},
		{
			name: "rename of a directory", run: rename("a", "b/new", core.RenameReplace),
			want: []string{"renameNoReplace ./a -> ./b/new", "fsync ./b", "fsync ."},
		},
		{
			name: "rename without fsync", opts: Options{UnsafeNoFsync: true}, run: rename("a/old", "b/new", core.RenameNoReplace),
			want: []string{"renameNoReplace ./a/old -> ./b/new"},
		},
		{
			name: "link and unlink: the new name is durable before the old one goes", old: true,
			run:  rename("a/old", "b/new", core.RenameNoReplace),
			want: []string{"link ./a/old -> ./b/new", "fsync ./b", "rename ./a/old -> ./a/<claim>", "unlink ./a/<claim>", "fsync ./b", "fsync ./a"},
		},
		{name: "MkdirAll: the parent of each directory", run: func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.MkdirAll(ctx, join(top, "a", "x", "y", "z")))
		}, want: []string{
			"fsync .", "mkdir ./a/x", "fsync ./a", "mkdir ./a/x/y", "fsync ./a/x", "mkdir ./a/x/y/z", "fsync ./a/x/y",
		}},
		{name: "MkdirAll of a directory that somebody else has made: in every call", run: func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.MkdirAll(ctx, join(top, "a", "sub")))
			require.NoError(t, f.MkdirAll(ctx, join(top, "a", "sub")))
		}, want: []string{"fsync .", "fsync ./a", "fsync .", "fsync ./a"}},
		{name: "MkdirAll without fsync", opts: Options{UnsafeNoFsync: true}, run: func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.MkdirAll(ctx, join(top, "a", "x", "y")))
		}, want: []string{"mkdir ./a/x", "mkdir ./a/x/y"}},
		{name: "Abort makes nothing durable", run: func(t *testing.T, f *FS, top string) {
			w, err := f.Create(ctx, join(top, "a", "file"), core.CreateOptions{})
			require.NoError(t, err)
			_, err = w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, w.Abort())
		}, want: []string{"create ./a/file", "close ./a/file", "unlink ./a/file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, sys, top := tapped(t, c.opts)
			if c.old {
				sys.system = oldKernel{kernel{}}
			}
			for _, dir := range []string{"a/sub", "b"} {
				require.NoError(t, os.MkdirAll(join(top, dir), 0o700))
			}
			for _, name := range []string{"a/old", "b/taken"} {
				require.NoError(t, os.WriteFile(join(top, name), []byte(name), 0o600))
			}
			c.run(t, f, top)
			require.Equal(t, c.want, essential(sys, top))
		})
	}
}

var claimName = regexp.MustCompile(`\._metadata\.inprogress\.[0-9a-f-]{36}`)

// essential leaves out what only looks, except the check of the name before a file is kept, and the handling of directories.
func essential(sys *tap, top string) []string {
	var lines []string
	file := top + "/a/file"
	for _, e := range sys.events {
		switch e.op {
		case "create", "mkdir", "unlink", "rmdir", "link", "rename", "write", "fsync":
		case "renameNoReplace":
			if _, old := sys.system.(oldKernel); old {
				continue
			}
		case "lstat", "close":
			if e.path != file || len(lines) > 0 && lines[len(lines)-1] == "close ./a/file" {
				continue
			}
		default:
			continue
		}
		lines = append(lines, claimName.ReplaceAllString(strings.ReplaceAll(e.String(), top, "."), "<claim>"))
	}
	return lines
}

// TestAcknowledgedWorkSurvivesACrashAfterEveryCall runs a checkpoint's life on a model of the disk that keeps the least that
// it may, and looks at it after every single call.
func TestAcknowledgedWorkSurvivesACrashAfterEveryCall(t *testing.T) {
	for _, c := range []struct {
		name string
		sys  system
	}{{"renameat2", kernel{}}, {"link and unlink", oldKernel{kernel{}}}} {
		t.Run(c.name, func(t *testing.T) {
			f, sys, top := tapped(t, Options{})
			sys.system = c.sys
			model, root := newDisk(t, top)
			sys.disk = model

			// Each acknowledged content must be under one of its names, whenever the power fails.
			kept := map[string][]string{}
			looks := 0
			model.after = func(e event) {
				looks++
				for content, names := range kept {
					found := false
					for _, name := range names {
						n := root.find(name)
						found = found || n != nil && bytes.Equal(n.durably, []byte(content))
					}
					require.True(t, found, "%q is at none of %v after %v", content, names, e)
				}
			}
			ctx := context.Background()
			rename := func(content, oldname, newname string, mode core.RenameMode) {
				kept[content] = []string{oldname, newname}
				require.NoError(t, f.Rename(ctx, join(top, oldname), join(top, newname), mode))
				kept[content] = []string{newname}
			}
			write := func(name, content string) {
				putWith(t, f, join(top, name), []byte(content), core.CreateOptions{})
				kept[content] = []string{name}
			}
			require.NoError(t, f.MkdirAll(ctx, join(top, "job", "chk-1")))
			require.NoError(t, f.MkdirAll(ctx, join(top, "job", "epoch")))
			write("job/chk-1/state", "state 1")
			write("job/epoch/tmp-1", "metadata 1")
			rename("metadata 1", "job/epoch/tmp-1", "job/chk-1/_metadata", core.RenameNoReplace)
			write("job/epoch/tmp-2", "metadata 2")
			delete(kept, "metadata 1") // from here on either is right
			kept["metadata 2"] = []string{"job/epoch/tmp-2"}
			rename("metadata 2", "job/epoch/tmp-2", "job/chk-1/_metadata", core.RenameReplace)
			kept["state 1"] = []string{"job/chk-1/state", "job/old/state"}
			kept["metadata 2"] = []string{"job/chk-1/_metadata", "job/old/_metadata"}
			require.NoError(t, f.Rename(ctx, join(top, "job/chk-1"), join(top, "job/old"), core.RenameReplace))
			delete(kept, "state 1")
			delete(kept, "metadata 2")
			require.NoError(t, f.RemoveAll(ctx, join(top, "job/old")))
			require.Greater(t, looks, 20)
		})
	}
}

func TestAFailedFsyncIsNeverRepeated(t *testing.T) {
	for _, target := range []string{"file", "directory"} {
		t.Run(target, func(t *testing.T) {
			f, sys, top := tapped(t, Options{})
			name, failing := join(top, "file"), join(top, "file")
			if target == "directory" {
				failing = top
			}
			failures := 0
			sys.hook = func(e event) (bool, error) {
				if e.op != "fsync" || e.path != failing || failures > 0 {
					return false, nil
				}
				failures++
				return true, syscall.EIO
			}
			w, err := f.Create(context.Background(), name, core.CreateOptions{})
			require.NoError(t, err)
			_, err = w.Write([]byte("content"))
			require.NoError(t, err)
			require.ErrorIs(t, w.Close(), syscall.EIO)

			sys.reset()
			require.ErrorIs(t, w.Close(), syscall.EIO)
			require.ErrorIs(t, w.Sync(), syscall.EIO)
			_, err = w.Write([]byte("more"))
			require.ErrorIs(t, err, syscall.EIO)
			require.Empty(t, sys.record(top), "a failed file is not touched any more")
			require.NoError(t, w.Abort())
			require.Empty(t, children(t, top))
			require.ErrorIs(t, w.Close(), fs.ErrClosed)
		})
	}
}

func TestErrorsOfBufferedWritesAndOfCloseSurface(t *testing.T) {
	for _, c := range []struct {
		op       string
		err      error
		sentinel error
	}{
		{"write", syscall.ENOSPC, core.ErrNoSpace},
		{"write", syscall.EDQUOT, core.ErrNoSpace},
		{"write", io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"startWriteout", syscall.EIO, syscall.EIO},
		{"close", syscall.EDQUOT, core.ErrNoSpace},
		{"close", syscall.EIO, syscall.EIO},
		{"fsync", syscall.EIO, syscall.EIO},
	} {
		for _, size := range []int{10, writeoutStep + 1} {
			if c.op == "startWriteout" && size < writeoutStep {
				continue
			}
			f, sys, top := tapped(t, Options{})
			name := join(top, "file")
			sys.hook = func(e event) (bool, error) { return e.op == c.op && e.path == name, c.err }
			w, err := f.Create(context.Background(), name, core.CreateOptions{})
			require.NoError(t, err)
			_, writeErr := w.Write(make([]byte, size))
			closeErr := w.Close()
			require.ErrorIs(t, closeErr, c.sentinel, "%v", c)
			if writeErr != nil {
				require.ErrorIs(t, writeErr, c.sentinel)
			}
			sys.hook = nil
			require.NoError(t, w.Abort())
			require.Empty(t, children(t, top))
		}
	}
}

func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	failures := 0
	sys.hook = func(e event) (bool, error) {
		if e.op != "write" || failures > 0 {
			return false, nil
		}
		failures++
		return true, syscall.EIO
	}
	w, err := f.Create(context.Background(), join(top, "file"), core.CreateOptions{})
	require.NoError(t, err)
	for range 20 {
		if _, err = w.Write(make([]byte, blocks.Size)); err != nil {
			break
		}
	}
	require.ErrorIs(t, w.Close(), syscall.EIO)
	require.NoError(t, w.Abort())
	require.Equal(t, []string{"write ./file"}, sys.record(top, "write", "fsync"))
}

func TestRenameThatIsNotDurableSaysSo(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	putWith(t, f, join(top, "old"), nil, core.CreateOptions{})
	sys.hook = func(e event) (bool, error) { return e.op == "fsync", syscall.EIO }
	err := f.Rename(context.Background(), join(top, "old"), join(top, "new"), core.RenameNoReplace)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "renamed, but not durable")
	require.Equal(t, []string{"new"}, children(t, top))
}

func TestAFileSystemThatCannotFsyncDirectoriesIsNotTakenForARefusal(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	sys.hook = func(e event) (bool, error) { return e.op == "fsync" && e.path != join(top, "file"), syscall.EINVAL }
	w, err := f.Create(context.Background(), join(top, "file"), core.CreateOptions{})
	require.NoError(t, err)
	err = w.Close()
	require.ErrorIs(t, err, errNoDirFsync)
	require.NotErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, w.Abort())

	require.NoError(t, os.Mkdir(join(top, "found"), 0o700))
	require.NoError(t, f.MkdirAll(context.Background(), join(top, "found")), "whoever made it could not fsync either")
	require.ErrorIs(t, f.MkdirAll(context.Background(), join(top, "made")), errNoDirFsync)
}

// putWith writes a whole file.
func putWith(t testing.TB, f core.FileSystem, name string, data []byte, opts core.CreateOptions) {
	t.Helper()
	w, err := f.Create(context.Background(), name, opts)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
