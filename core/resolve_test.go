package core_test

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func resolveRig(t *testing.T) *memfs.FS {
	t.Helper()
	mem := memfs.New(memfs.Options{URI: "file://"})
	put(t, mem, "/d/good/_metadata", "123")
	put(t, mem, "/d/good/renamed.bin", "1234")
	put(t, mem, "/d/metaisdir/_metadata/x", "x")
	require.NoError(t, mem.MkdirAll(context.Background(), "/d/nometa"))
	return mem
}

// Flink: FsCheckpointStorageAccessTest.testPointerPathResolution. Every way to name a checkpoint that Flink accepts leads
// to the same one, relative paths excepted: a library has no working directory.
func TestPointerResolution(t *testing.T) {
	ctx := context.Background()
	mem := resolveRig(t)
	for _, pointer := range []string{
		"file:///d/good", "file:///d/good/", "file:///d/good//", "/d/good", "/d/good/_metadata", "file:/d/good/_metadata",
		"/d/good/_metadata/", "/d/good/../good", "/d//good", "file:/d/good", "file:///d/./good/_metadata//",
	} {
		completed, err := core.ResolvePointer(ctx, core.OnlyOn(mem), pointer)
		require.NoError(t, err, pointer)
		require.Equal(t, "file:/d/good", completed.Pointer, pointer)
		require.Equal(t, "/d/good", completed.Dir())
		require.Equal(t, core.FileHandle{Path: "file:/d/good/_metadata", Size: 3}, completed.Metadata)
		require.Same(t, core.FileSystem(mem), completed.FileSystem())
		data, err := completed.ReadMetadata(ctx)
		require.NoError(t, err)
		require.Equal(t, "123", string(data))
	}
	completed, err := core.ResolvePointer(ctx, core.OnlyOn(mem), "/d/good/renamed.bin")
	require.NoError(t, err, "the metadata may have any name")
	require.Equal(t, "file:/d/good", completed.Pointer)
	require.Equal(t, core.FileHandle{Path: "file:/d/good/renamed.bin", Size: 4}, completed.Metadata)
	data, err := completed.ReadMetadata(ctx)
	require.NoError(t, err)
	require.Equal(t, "1234", string(data))
}

// Flink: FsCheckpointStorageAccessTest.testFailingPointerPathResolution. A `_metadata` that is a directory is accepted by
// Flink and fails when it is read; here it is refused.
func TestPointerThatLeadsNowhere(t *testing.T) {
	ctx := context.Background()
	mem := resolveRig(t)
	for pointer, want := range map[string]error{
		"/d/nometa": fs.ErrNotExist, "/d/missing": fs.ErrNotExist, "/d/missing/": fs.ErrNotExist, "/": fs.ErrNotExist, "/d": fs.ErrNotExist,
		"/d/good/_metadata/x": fs.ErrInvalid, "/d/metaisdir": fs.ErrInvalid,
		"": fs.ErrInvalid, " ": fs.ErrInvalid, "relative/missing": fs.ErrInvalid, "nosuchscheme:///x": fs.ErrInvalid,
		"nosuchscheme://h/x": fs.ErrInvalid, "hdfs:///x": fs.ErrInvalid, "://": fs.ErrInvalid, "file://": fs.ErrInvalid,
		"a:b:c": fs.ErrInvalid, "\x00": fs.ErrInvalid, "/d/good\x00": fs.ErrInvalid, "/../d/missing": fs.ErrNotExist,
	} {
		completed, err := core.ResolvePointer(ctx, core.OnlyOn(mem), pointer)
		require.Nil(t, completed, "%q", pointer)
		require.ErrorIs(t, err, want, "%q", pointer)
		if text := strings.TrimRight(strings.TrimPrefix(pointer, "/.."), "/ "); text != "" && !strings.Contains(text, "\x00") {
			require.ErrorContains(t, err, text, "the error names the pointer")
		}
	}
	_, err := core.ResolvePointer(ctx, core.OnlyOn(mem), "/d/nometa")
	require.ErrorContains(t, err, "can also be named directly")
}

func TestPointerToACheckpointInDisposalIsRefused(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	for _, name := range []string{core.DisposedName, "._metadata.emptied"} {
		put(t, mem, "/chk-1/"+name, "x")
		for _, pointer := range []string{"/chk-1", "/chk-1/" + name} {
			_, err := core.ResolvePointer(ctx, core.OnlyOn(mem), pointer)
			require.ErrorIs(t, err, fs.ErrNotExist, pointer)
		}
	}
}

func TestPointerResolutionReportsAPassingErrorAsWhatItIs(t *testing.T) {
	ctx := context.Background()
	mem := resolveRig(t)
	for _, pointer := range []string{"/d/good", "/d/good/_metadata"} {
		clean := faultfs.Wrap(mem, nil)
		_, err := core.ResolvePointer(ctx, core.OnlyOn(clean), pointer)
		require.NoError(t, err)
		for i := range clean.Count() {
			flaky := faultfs.Wrap(mem, faultfs.Nth(i, faultfs.Fault{Err: core.ErrUnavailable}))
			_, err := core.ResolvePointer(ctx, core.OnlyOn(flaky), pointer)
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.NotErrorIs(t, err, fs.ErrNotExist)
		}
	}
}

func TestReadMetadataTellsDamageFromTrouble(t *testing.T) {
	ctx := context.Background()
	mem := resolveRig(t)
	flaky := faultfs.Wrap(mem, nil)
	completed, err := core.ResolvePointer(ctx, core.OnlyOn(flaky), "/d/good")
	require.NoError(t, err)
	flaky.SetInjector(faultfs.OnOp(faultfs.OpRead, faultfs.Fault{Err: core.ErrUnavailable}))
	_, err = completed.ReadMetadata(ctx)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.NotErrorIs(t, err, core.ErrCorrupt)
	require.Empty(t, flaky.OpenFiles())
	flaky.SetInjector(faultfs.OnOp(faultfs.OpRead, faultfs.Fault{Tear: 1, Err: io.EOF}))
	_, err = completed.ReadMetadata(ctx)
	require.ErrorIs(t, err, core.ErrCorrupt, "the file ends before its size")
	require.ErrorContains(t, err, "/d/good/_metadata")
	require.Empty(t, flaky.OpenFiles())
	require.NoError(t, mem.Remove(ctx, "/d/good/_metadata"))
	flaky.SetInjector(nil)
	_, err = completed.ReadMetadata(ctx)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A checkpoint is copied elsewhere and the original deleted: its own files move with it, those outside do not, and its
// disposal takes the own ones only.
func TestMovedCheckpointHasItsOwnFilesWithIt(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	c := r.commit(t, owner, 1, 2, 1, nil)
	for name, content := range c.files {
		if rest, ok := strings.CutPrefix(name, c.dir); ok {
			put(t, r.mem, "/moved/here"+rest, string(content))
		}
	}
	_, err := owner.Dispose(ctx, 1, core.DisposeOptions{Read: readMeta, KeepShared: true})
	require.NoError(t, err)

	completed, err := core.ResolvePointer(ctx, core.OnlyOn(r.mem), "mem:/moved/here")
	require.NoError(t, err)
	_, ok := completed.ID()
	require.False(t, ok)
	data, err := completed.ReadMetadata(ctx)
	require.NoError(t, err)
	objects, err := readMeta(data, completed.Pointer)
	require.NoError(t, err)
	require.Len(t, objects, 3)
	for _, o := range objects {
		_, name, err := core.SplitQualified(o.Path)
		require.NoError(t, err)
		require.Equal(t, o.Relative, strings.HasPrefix(name, "/moved/here/"), name)
		require.True(t, exists(t, r.mem, name), name)
	}

	report, err := core.Dispose(ctx, r.mem, "/moved/here", readAll)
	require.NoError(t, err)
	require.Len(t, report.Removed, 2)
	require.Len(t, report.Kept, 1)
	require.Equal(t, c.shared[0], report.Kept[0].Path)
	require.True(t, exists(t, r.mem, c.shared[0]))
	require.False(t, exists(t, r.mem, "/moved/here"))
}
