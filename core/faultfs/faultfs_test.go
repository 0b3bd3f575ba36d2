package faultfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

var errDisk = errors.New("the disk is on fire")

// newFS returns a wrapped file system with the file "/old" ("content of old") and the directory "/dir" ("/dir/a", "/dir/b",
// "/dir/c"), whose calls are not counted.
func newFS(t testing.TB) (*faultfs.FS, *memfs.FS) {
	t.Helper()
	inner := memfs.New(memfs.Options{})
	require.NoError(t, inner.MkdirAll(t.Context(), "/dir"))
	for name, content := range map[string]string{"/old": "content of old", "/dir/a": "", "/dir/b": "", "/dir/c": ""} {
		w, err := inner.Create(t.Context(), name, core.CreateOptions{})
		require.NoError(t, err)
		_, err = io.WriteString(w, content)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return faultfs.Wrap(inner, nil), inner
}

// nameCalls are the calls of the file system itself, each with what it changes in a tree of newFS.
func nameCalls() map[faultfs.Op]func(ctx context.Context, f core.FileSystem) error {
	return map[faultfs.Op]func(ctx context.Context, f core.FileSystem) error{
		faultfs.OpCreate: func(ctx context.Context, f core.FileSystem) error {
			w, err := f.Create(ctx, "/new", core.CreateOptions{})
			if err == nil {
				err = w.Close()
			}
			return err
		},
		faultfs.OpOpen: func(ctx context.Context, f core.FileSystem) error {
			r, err := f.Open(ctx, "/old")
			if err == nil {
				err = r.Close()
			}
			return err
		},
		faultfs.OpStat: func(ctx context.Context, f core.FileSystem) error {
			info, err := f.Stat(ctx, "/old")
			if err != nil && info != (core.FileInfo{}) {
				return errors.New("an error comes with a zero FileInfo")
			}
			return err
		},
		faultfs.OpList: func(ctx context.Context, f core.FileSystem) error {
			var last error
			for _, err := range f.List(ctx, "/dir") {
				last = err
			}
			return last
		},
		faultfs.OpMkdirAll:  func(ctx context.Context, f core.FileSystem) error { return f.MkdirAll(ctx, "/new") },
		faultfs.OpRemove:    func(ctx context.Context, f core.FileSystem) error { return f.Remove(ctx, "/old") },
		faultfs.OpRemoveAll: func(ctx context.Context, f core.FileSystem) error { return f.RemoveAll(ctx, "/dir") },
		faultfs.OpRename: func(ctx context.Context, f core.FileSystem) error {
			return f.Rename(ctx, "/old", "/new", core.RenameNoReplace)
		},
	}
}

func requireInjected(t testing.TB, err, cause error) {
	t.Helper()
	require.Equal(t, reflect.TypeFor[*fs.PathError](), reflect.TypeOf(err))
	require.ErrorIs(t, err, cause)
}

func TestACallFailsWithoutEffect(t *testing.T) {
	for op, call := range nameCalls() {
		t.Run(string(op), func(t *testing.T) {
			f, inner := newFS(t)
			before := inner.Tree()
			f.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: errDisk}))
			requireInjected(t, call(t.Context(), f), errDisk)
			require.Equal(t, before, inner.Tree())
			require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
			f.SetInjector(nil)
			require.NoError(t, call(t.Context(), f))
		})
	}
}

func TestACallHappensAndItsReplyIsLost(t *testing.T) {
	for op, call := range nameCalls() {
		t.Run(string(op), func(t *testing.T) {
			want, inner := newFS(t)
			require.NoError(t, call(t.Context(), want))
			tree := inner.Tree()

			f, inner := newFS(t)
			f.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: errDisk, After: true}))
			requireInjected(t, call(t.Context(), f), errDisk)
			require.Equal(t, tree, inner.Tree())
			require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
		})
	}
}

func TestTheErrorOfTheFileSystemGoesBeforeALostReply(t *testing.T) {
	f, _ := newFS(t)
	f.SetInjector(faultfs.From(0, faultfs.Fault{Err: errDisk, After: true}))
	require.ErrorIs(t, f.Remove(t.Context(), "/missing"), fs.ErrNotExist)
	_, err := f.Open(t.Context(), "/dir")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = f.Create(t.Context(), "/old", core.CreateOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestARenameErrorNamesBothPaths(t *testing.T) {
	f, _ := newFS(t)
	f.SetInjector(faultfs.OnOp(faultfs.OpRename, faultfs.Fault{Err: errDisk}))
	err := f.Rename(t.Context(), "/old", "/new", core.RenameReplace)
	var pathError *fs.PathError
	require.ErrorAs(t, err, &pathError)
	require.Equal(t, "/old", pathError.Path)
	require.ErrorContains(t, err, "/new")
}

func TestAListingIsTorn(t *testing.T) {
	for tear, want := range map[int][]string{0: nil, 1: {"a"}, 2: {"a", "b"}, 3: {"a", "b", "c"}, 9: {"a", "b", "c"}} {
		f, _ := newFS(t)
		f.SetInjector(faultfs.OnOp(faultfs.OpList, faultfs.Fault{Err: errDisk, Tear: tear}))
		var names []string
		var failure error
		for info, err := range f.List(t.Context(), "/dir") {
			require.NoError(t, failure, "nothing follows an error")
			if failure = err; err == nil {
				names = append(names, info.Name)
			} else {
				require.Zero(t, info)
			}
		}
		require.Equal(t, want, names)
		requireInjected(t, failure, errDisk)
	}
}

func TestCallsAreNumberedInOrder(t *testing.T) {
	f, _ := newFS(t)
	ctx := t.Context()
	w, err := f.Create(ctx, "/file", core.CreateOptions{})
	require.NoError(t, err)
	for _, piece := range []string{"abc", "defgh"} {
		_, err = io.WriteString(w, piece)
		require.NoError(t, err)
	}
	require.NoError(t, w.Sync())
	require.NoError(t, w.Close())
	r, err := f.Open(ctx, "/file")
	require.NoError(t, err)
	_, err = r.Seek(2, io.SeekStart)
	require.NoError(t, err)
	for range 2 {
		_, err = r.Read(make([]byte, 4))
		require.NoError(t, err)
	}
	_, err = r.ReadAt(make([]byte, 3), 1)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	aborted, err := f.Create(ctx, "/aborted", core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, aborted.Abort())
	require.NoError(t, f.Rename(ctx, "/file", "/new", core.RenameReplace))
	want := []faultfs.Call{
		{Op: faultfs.OpCreate, Name: "/file"},
		{Op: faultfs.OpWrite, Name: "/file", Size: 3},
		{Op: faultfs.OpWrite, Name: "/file", Offset: 3, Size: 5},
		{Op: faultfs.OpSync, Name: "/file", Offset: 8},
		{Op: faultfs.OpClose, Name: "/file", Offset: 8},
		{Op: faultfs.OpOpen, Name: "/file"},
		{Op: faultfs.OpRead, Name: "/file", Offset: 2, Size: 4},
		{Op: faultfs.OpRead, Name: "/file", Offset: 6, Size: 4},
		{Op: faultfs.OpReadAt, Name: "/file", Offset: 1, Size: 3},
		{Op: faultfs.OpCreate, Name: "/aborted"},
		{Op: faultfs.OpAbort, Name: "/aborted"},
		{Op: faultfs.OpRename, Name: "/file", NewName: "/new"},
	}
	for i := range want {
		want[i].Index = i
	}
	require.Equal(t, want, f.Calls())
	require.Equal(t, len(want), f.Count())
}

func TestACallThatReachesNoStorageIsNotCounted(t *testing.T) {
	f, _ := newFS(t)
	w, err := f.Create(t.Context(), "/file", core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := f.Open(t.Context(), "/file")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	count := f.Count()
	f.SetInjector(faultfs.From(0, faultfs.Fault{Err: errDisk}))
	require.NoError(t, w.Close())
	require.NoError(t, w.Abort(), "a deferred Abort cannot fail")
	_, err = w.Write([]byte("x"))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, w.Sync(), fs.ErrClosed)
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.NoError(t, r.Close())
	require.Equal(t, count, f.Count())
}

func TestOpenFilesListsWhatItsUserHasNotEnded(t *testing.T) {
	f, inner := newFS(t)
	r, err := f.Open(t.Context(), "/old")
	require.NoError(t, err)
	var writers []core.Writer
	for _, name := range []string{"/a", "/b", "/c"} {
		w, err := f.Create(t.Context(), name, core.CreateOptions{})
		require.NoError(t, err)
		writers = append(writers, w)
	}
	require.Equal(t, []string{"read /old", "write /a", "write /b", "write /c"}, f.OpenFiles())
	f.SetInjector(faultfs.From(0, faultfs.Fault{Err: errDisk}))
	require.Error(t, writers[0].Close())
	require.Error(t, writers[1].Abort())
	require.NoError(t, r.Close())
	require.Equal(t, []string{"write /c"}, f.OpenFiles(), "a user who called Close or Abort has done his part")
	f.SetInjector(nil)
	require.NoError(t, writers[0].Abort())
	require.NoError(t, writers[2].Abort())
	require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
}

// publish writes a file and renames it, the way that careful users do, and cleans up after a failure.
func publish(ctx context.Context, f core.FileSystem) (err error) {
	if err := f.MkdirAll(ctx, "/job"); err != nil {
		return err
	}
	w, err := f.Create(ctx, "/job/temporary", core.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	for i := range 3 {
		if _, err := fmt.Fprintf(w, "piece %d", i); err != nil {
			return err
		}
	}
	if err := w.Sync(); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Rename(ctx, "/job/temporary", "/job/final", core.RenameNoReplace)
}

func TestEveryFaultOfASweepSurfaces(t *testing.T) {
	f, _ := newFS(t)
	require.NoError(t, publish(t.Context(), f))
	calls := f.Calls()
	require.Len(t, calls, 8)
	for _, after := range []bool{false, true} {
		for i, call := range calls {
			f, inner := newFS(t)
			f.SetInjector(faultfs.Nth(i, faultfs.Fault{Err: errDisk, After: after}))
			require.ErrorIs(t, publish(t.Context(), f), errDisk, "%+v", call)
			require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...), "%+v", call)
			_, err := inner.Stat(t.Context(), "/job/final")
			require.Equal(t, after && call.Op == faultfs.OpRename, err == nil, "%+v", call)
			_, err = inner.Stat(t.Context(), "/job/temporary")
			left := call.Op == faultfs.OpCreate && after || call.Op == faultfs.OpRename && !after
			require.Equal(t, left, err == nil, "after %v: %+v", after, call)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	f, inner := newFS(t)
	f.SetInjector(func(c faultfs.Call) faultfs.Fault {
		f.Count() // an injector may use the FS
		return faultfs.Fault{}
	})
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			dir := fmt.Sprintf("/worker-%d", worker)
			if err := f.MkdirAll(t.Context(), dir); err != nil {
				t.Error(err)
			}
			for i := range 20 {
				w, err := f.Create(t.Context(), fmt.Sprintf("%s/%d", dir, i), core.CreateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	calls := f.Calls()
	require.Len(t, calls, 8*(1+20*2))
	for i, c := range calls {
		require.Equal(t, i, c.Index)
	}
	require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
}
