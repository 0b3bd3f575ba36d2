package core_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestDiscardRemovesTheFileAndNothingElse(t *testing.T) {
	// Flink: FileStateHandleTest.testDisposeDoesNotDeleteParentDirectory
	for name, handle := range map[string]core.StreamHandle{
		"file":          &core.FileHandle{Path: "mem:/a/b/state", Size: 1},
		"relative file": &core.RelativeFileHandle{Dir: "mem:/a/b", Name: "state", Size: 1},
		"no scheme":     &core.FileHandle{Path: "/a/b/state", Size: -1},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			require.NoError(t, mem.MkdirAll(t.Context(), "/a/b"))
			putAtomic(t, mem, "/a/b/state", noise(1))
			faults := faultfs.Wrap(mem, nil)
			require.NoError(t, core.Discard(t.Context(), core.OnlyOn(faults), handle))
			require.Equal(t, []string{"/a/", "/a/b/"}, mem.Tree())
			require.Equal(t, []faultfs.Call{{Op: faultfs.OpRemove, Name: "/a/b/state"}}, faults.Calls(), "one call, of the path")
			require.NoError(t, core.Discard(t.Context(), core.OnlyOn(faults), handle), "again")
			require.Equal(t, []string{"/a/", "/a/b/"}, mem.Tree())
		})
	}
}

func TestDiscardOfAFileThatIsGoneIsSuccess(t *testing.T) {
	for name, tt := range map[string]struct {
		there  bool
		remove faultfs.Fault
		want   error
		calls  int
	}{
		// Flink: FileStateHandleTest.testDiscardStateForNonExistingFileWithoutAnErrorBeingExposedByTheFileSystem
		"gone, well answered": {false, faultfs.Fault{}, nil, 1},
		// Flink: FileStateHandleTest.testDiscardStateForNonExistingFileWithDeleteCallReturningFalse
		// Flink: FileStateHandleTest.testDiscardStateForNonExistingFileWithEDeleteCallFailing
		"gone, answered as failed": {false, faultfs.Fault{Err: core.ErrUnavailable}, nil, 2},
		"removed, but reply lost":  {true, faultfs.Fault{Err: core.ErrUnavailable, After: true}, nil, 2},
		// Flink: FileStateHandleTest.testDiscardStateWithDeletionFailureThroughException
		// Flink: FileStateHandleTest.testDiscardStateWithDeletionFailureThroughReturnValue
		"still there, failed":        {true, faultfs.Fault{Err: core.ErrUnavailable}, core.ErrUnavailable, 2},
		"still there, not permitted": {true, faultfs.Fault{Err: fs.ErrPermission}, fs.ErrPermission, 2},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			if tt.there {
				putAtomic(t, mem, "/state", noise(1))
			}
			faults := faultfs.Wrap(mem, faultfs.OnOp(faultfs.OpRemove, tt.remove))
			err := core.Discard(t.Context(), core.OnlyOn(faults), &core.FileHandle{Path: "mem:/state"})
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, tt.calls, faults.Count())
			if tt.want != nil {
				require.ErrorContains(t, err, "/state")
				require.Equal(t, []string{"/state"}, filesOf(mem))
			}
		})
	}
	t.Run("neither call answers", func(t *testing.T) {
		faults := faultfs.Wrap(memfs.New(memfs.Options{}), faultfs.From(0, faultfs.Fault{Err: core.ErrUnavailable}))
		err := core.Discard(t.Context(), core.OnlyOn(faults), &core.FileHandle{Path: "mem:/state"})
		require.ErrorIs(t, err, core.ErrUnavailable, "never success on doubt")
	})
}

func TestDiscardTouchesNoStorageWithoutAFile(t *testing.T) {
	faults := faultfs.Wrap(memfs.New(memfs.Options{}), nil)
	for name, tt := range map[string]struct {
		handle core.StreamHandle
		want   error
	}{
		"no state":          {nil, nil},
		"inline":            {&core.BytesHandle{Name: "mem:/looks/like/a/file", Data: noise(1)}, nil},
		"relative, upwards": {&core.RelativeFileHandle{Dir: "mem:/a", Name: "../b"}, core.ErrCorrupt},
		"other file system": {&core.FileHandle{Path: "hdfs://ns1/a"}, fs.ErrInvalid},
		"foreign type":      {foreignHandle{}, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, core.Discard(t.Context(), core.OnlyOn(faults), tt.handle), tt.want)
			require.Zero(t, faults.Count())
		})
	}
}

// pointerTree holds a complete checkpoint, one without metadata, a disposed one, and metadata under another name.
func pointerTree(t *testing.T) *memfs.FS {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	for _, dir := range []string{"/j/chk-7", "/j/chk-8", "/j/chk-9", "/j/moved", "/j/odd/_metadata"} {
		require.NoError(t, mem.MkdirAll(t.Context(), dir))
	}
	putAtomic(t, mem, "/j/chk-7/_metadata", []byte("seven"))
	putAtomic(t, mem, "/j/moved/any name", []byte("moved"))
	putAtomic(t, mem, "/j/chk-8/._metadata.inprogress.1", []byte("half"))
	putAtomic(t, mem, "/j/chk-9/"+core.DisposedName, []byte("nine"))
	return mem
}

func TestResolvePointerFindsACompleteCheckpoint(t *testing.T) {
	// Flink: AbstractFileCheckpointStorageAccessTestBase.testPointerPathResolution
	mem := pointerTree(t)
	for _, tt := range []struct {
		pointer, dir, content string
	}{
		{"mem:/j/chk-7", "/j/chk-7", "seven"},
		{"mem:/j/chk-7/", "/j/chk-7", "seven"},
		{"mem:///j//chk-7///", "/j/chk-7", "seven"},
		{"/j/chk-7", "/j/chk-7", "seven"},
		{"/j/chk-8/../chk-7", "/j/chk-7", "seven"},
		{"mem:/j/chk-7/_metadata", "/j/chk-7", "seven"},
		{"mem:/j/chk-7/_metadata/", "/j/chk-7", "seven"},
		{"mem:/j/moved/any name", "/j/moved", "moved"},
	} {
		t.Run(tt.pointer, func(t *testing.T) {
			done, err := core.ResolvePointer(t.Context(), core.OnlyOn(mem), tt.pointer)
			require.NoError(t, err)
			require.Equal(t, tt.dir, done.Dir())
			require.Equal(t, "mem:"+tt.dir, done.Pointer)
			require.Equal(t, "mem:"+tt.dir, path.Dir(done.Metadata.Path))
			require.Equal(t, int64(len(tt.content)), done.Metadata.Size)
			data, err := done.ReadMetadata(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.content, string(data))
			requireState(t, mem, data, &done.Metadata)
			id, ok := done.ID()
			require.Equal(t, strings.HasPrefix(path.Base(tt.dir), "chk-"), ok)
			require.True(t, !ok || id == 7)
			again, err := core.ResolvePointer(t.Context(), core.OnlyOn(mem), done.Metadata.Path)
			require.NoError(t, err)
			require.Equal(t, done, again)
			require.Empty(t, mem.OpenFiles())
		})
	}
}

func TestResolvePointerRefusesWhatIsNoCheckpoint(t *testing.T) {
	// Flink: AbstractFileCheckpointStorageAccessTestBase.testFailingPointerPathResolution
	mem := pointerTree(t)
	for pointer, want := range map[string]error{
		"":                             fs.ErrInvalid,
		"this-is-no/path\x00\x00":      fs.ErrInvalid,
		"relative/path":                fs.ErrInvalid,
		"://":                          fs.ErrInvalid,
		"mem:":                         fs.ErrInvalid,
		"unknown://authority/a":        fs.ErrInvalid,
		"/j/a:b":                       fs.ErrInvalid,
		"mem:/j/missing":               fs.ErrNotExist,
		"mem:/j/chk-8":                 fs.ErrNotExist,
		"mem:/j/chk-9":                 fs.ErrNotExist,
		"/j/chk-9/._metadata.disposed": fs.ErrNotExist,
		"mem:/j":                       fs.ErrNotExist,
		"/":                            fs.ErrNotExist,
		"mem:/j/odd":                   fs.ErrInvalid, // better: Flink takes a directory for the metadata file
		"mem:/j/chk-7/_metadata/sub":   fs.ErrInvalid,
	} {
		t.Run(pointer, func(t *testing.T) {
			done, err := core.ResolvePointer(t.Context(), core.OnlyOn(mem), pointer)
			require.ErrorIs(t, err, want)
			require.Nil(t, done)
		})
	}
	t.Run("a symbolic link", func(t *testing.T) {
		linked := &hookFS{FileSystem: mem, stat: func(name string, next func() (core.FileInfo, error)) (core.FileInfo, error) {
			info, err := next()
			if path.Base(name) == core.MetadataName {
				info.Mode = fs.ModeSymlink | 0o777
			}
			return info, err
		}}
		_, err := core.ResolvePointer(t.Context(), core.OnlyOn(linked), "/j/chk-7")
		require.ErrorIs(t, err, fs.ErrInvalid)
	})
}

// TestResolvePointerNeverTakesAPassingFailureForAnswer fails each call: an older checkpoint, or none, must not be the answer.
func TestResolvePointerNeverTakesAPassingFailureForAnswer(t *testing.T) {
	for i := range 2 {
		faults := faultfs.Wrap(pointerTree(t), faultfs.Nth(i, faultfs.Fault{Err: core.ErrUnavailable}))
		_, err := core.ResolvePointer(t.Context(), core.OnlyOn(faults), "/j/chk-7")
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestReadMetadataFindsAFileThatIsCutOrGone(t *testing.T) {
	mem := pointerTree(t)
	done, err := core.ResolvePointer(t.Context(), core.OnlyOn(mem), "/j/chk-7")
	require.NoError(t, err)
	require.NoError(t, mem.Remove(t.Context(), "/j/chk-7/_metadata"))
	_, err = done.ReadMetadata(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)

	cut, err := core.ResolvePointer(t.Context(), func(context.Context, string) (core.FileSystem, string, error) {
		return shorterFS{pointerTree(t)}, "/j/chk-7", nil
	}, "/j/chk-7")
	require.NoError(t, err)
	_, err = cut.ReadMetadata(t.Context())
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "/j/chk-7/_metadata")
}

// shorterFS has Readers that claim more bytes than there are.
type shorterFS struct{ core.FileSystem }

func (f shorterFS) Open(ctx context.Context, name string) (core.Reader, error) {
	r, err := f.FileSystem.Open(ctx, name)
	return shorterReader{r}, err
}

type shorterReader struct{ core.Reader }

func (r shorterReader) Size() int64 { return r.Reader.Size() + 1 }

func TestCheckRelative(t *testing.T) {
	for _, name := range []string{
		"a", "0b7c", "a/b", "..a", "a..", ".hidden", "a b", "ü", "a:b", "...", "_metadata",
	} {
		require.NoError(t, core.CheckRelative(name), "%q", name)
	}
	for _, name := range []string{
		"", ".", "..", "/", "/a", "../a", "a/..", "a/../b", "a/../../b", "./a", "a/", "a//b", "a/.", `a\b`, `..\a`, "a\x00b", "../", "//a",
	} {
		require.ErrorIs(t, core.CheckRelative(name), core.ErrCorrupt, "%q", name)
	}
}

// FuzzCheckRelative looks for an accepted name that leads out of the directory.
func FuzzCheckRelative(f *testing.F) {
	for _, seed := range []string{"a", "../a", "a/../b", "/a", "a//b", "", ".", `a\..\b`, "a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if core.CheckRelative(name) != nil {
			return
		}
		resolved := path.Join("/dir", name)
		require.True(t, strings.HasPrefix(resolved, "/dir/"), "%q", name)
		require.Equal(t, "/dir/"+name, resolved, "it is the one name of its file")
		require.NotContains(t, name, `\`)
	})
}
