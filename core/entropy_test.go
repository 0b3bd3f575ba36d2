package core_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func newEntropy(t testing.TB, fsys core.FileSystem, length int) *core.EntropyFS {
	t.Helper()
	e, err := core.WithEntropy(fsys, "_entropy_", length)
	require.NoError(t, err)
	return e
}

func TestEntropyReplacesAndRemovesItsMarker(t *testing.T) {
	e := newEntropy(t, memfs.New(memfs.Options{}), 4)
	for _, tt := range []struct {
		name            string
		injected, clean string // injected is a pattern
		has             bool
	}{
		// Flink: EntropyInjectorTest.testEmptyPath
		{"", "^$", "", false},
		// Flink: EntropyInjectorTest.testFullUriNonMatching
		// Flink: EntropyInjectorTest.testPathOnlyNonMatching
		{"/path/file", "^/path/file$", "/path/file", false},
		// Flink: EntropyInjectorTest.testFullUriMatching
		// Flink: EntropyInjectorTest.testPathOnlyMatching
		{"/path/_entropy_/file", "^/path/[0-9a-f]{4}/file$", "/path/file", true},
		{"/_entropy_/file", "^/[0-9a-f]{4}/file$", "/file", true},
		{"/path/_entropy_", "^/path/[0-9a-f]{4}$", "/path", true},
		{"/_entropy_", "^/[0-9a-f]{4}$", "/", true},
		// Flink: EntropyInjectorTest.testEntropyNotFullSegment
		{"/path/a_entropy_b/file", "^/path/a[0-9a-f]{4}b/file$", "/path/ab/file", true},
		{"/entropy-_entropy_-suffix/file", "^/entropy-[0-9a-f]{4}-suffix/file$", "/entropy--suffix/file", true},
		// The first occurrence counts.
		{"/_entropy_/_entropy_", "^/[0-9a-f]{4}/_entropy_$", "/_entropy_", true},
	} {
		require.Equal(t, tt.has, e.HasEntropy(tt.name), tt.name)
		require.Regexp(t, tt.injected, e.Inject(tt.name))
		require.Equal(t, tt.clean, e.RemoveMarker(tt.name))
	}
}

func TestEntropyIsRandomAndOfTheAskedLength(t *testing.T) {
	for length := 1; length <= 32; length++ {
		e := newEntropy(t, memfs.New(memfs.Options{}), length)
		require.Len(t, e.Inject("/_entropy_"), 1+length)
	}
	e := newEntropy(t, memfs.New(memfs.Options{}), 0)
	seen := map[string]bool{}
	for range 100 {
		seen[e.Inject("/_entropy_")] = true
	}
	require.Len(t, e.Inject("/_entropy_"), 5, "four characters by default")
	require.Greater(t, len(seen), 90)
}

func TestEntropyRefusesAMarkerThatCannotBeOne(t *testing.T) {
	for _, marker := range []string{"", "/", "a/b", ".", "..", "a:b", "abc", "-4", "chk-", "shared", "_metadata", "owned", "meta", "sync."} {
		_, err := core.WithEntropy(memfs.New(memfs.Options{}), marker, 4)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", marker)
	}
	for _, length := range []int{-1, 33} {
		_, err := core.WithEntropy(memfs.New(memfs.Options{}), "_entropy_", length)
		require.ErrorIs(t, err, fs.ErrInvalid, "%d", length)
	}
}

func TestEntropyCreatePlacesFilesAndLeavesOtherNamesAlone(t *testing.T) {
	// Flink: EntropyInjectorTest.testCreateEntropyAwarePlainFs
	// Flink: EntropyInjectorTest.testCreateEntropyAwareEntropyFs
	mem := memfs.New(memfs.Options{})
	e := newEntropy(t, mem, 4)
	create := func(fsys core.FileSystem, name string) error {
		w, err := fsys.Create(t.Context(), name, core.CreateOptions{})
		if err != nil {
			return err
		}
		return w.Close()
	}
	require.NoError(t, mem.MkdirAll(t.Context(), "/_entropy_"))
	require.NoError(t, create(mem, "/_entropy_/plain"), "without the decorator the marker is nothing special")
	require.NoError(t, create(e, "/other"))
	require.NoError(t, create(e, "/_entropy_/a"))
	require.ErrorIs(t, create(e, "/_entropy_/_entropy_/a"), fs.ErrInvalid)
	require.ErrorIs(t, create(e, "/missing/a"), fs.ErrNotExist, "only the random directory is made")

	names := filesOf(mem)
	require.Len(t, names, 3)
	require.Contains(t, names, "/_entropy_/plain")
	require.Contains(t, names, "/other")
	require.Regexp(t, `(^|\s)/[0-9a-f]{4}/a(\s|$)`, strings.Join(names, " "))
}

// decorator is a wrapper such as users put around file systems.
type decorator struct{ core.FileSystem }

func (d decorator) Unwrap() core.FileSystem { return d.FileSystem }

// closedDecorator does not show what it wraps.
type closedDecorator struct{ core.FileSystem }

func TestEntropyIsFoundBelowOtherDecorators(t *testing.T) {
	// Flink: EntropyInjectorTest.testWithSafetyNet
	// Flink: EntropyInjectorTest.testClassLoaderFixingFsWithSafetyNet
	// Flink: EntropyInjectorTest.testClassLoaderFixingFsWithoutSafeyNet
	// Flink: EntropyInjectorTest.testIsEntropyFs
	// Flink: EntropyInjectorTest.testIsEntropyFsWithNullEntropyKey
	// Flink: EntropyInjectorTest.testIsEntropyFsPathDoesNotIncludeEntropyKey
	for name, tt := range map[string]struct {
		wrap    func(core.FileSystem) core.FileSystem
		base    string
		entropy bool
	}{
		"bare":              {func(f core.FileSystem) core.FileSystem { return newEntropy(t, f, 4) }, "/_entropy_", true},
		"decorated":         {func(f core.FileSystem) core.FileSystem { return decorator{newEntropy(t, f, 4)} }, "/_entropy_", true},
		"decorated twice":   {func(f core.FileSystem) core.FileSystem { return decorator{decorator{newEntropy(t, f, 4)}} }, "/_entropy_", true},
		"no marker in path": {func(f core.FileSystem) core.FileSystem { return newEntropy(t, f, 4) }, "/plain", false},
		"no entropy at all": {func(f core.FileSystem) core.FileSystem { return f }, "/plain", false},
		"decorated plain":   {func(f core.FileSystem) core.FileSystem { return decorator{closedDecorator{f}} }, "/plain", false},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			fsys := tt.wrap(mem)
			storage, err := core.NewStorage(fsys, tt.base, rigJob, core.Options{InlineThreshold: core.NeverInline})
			require.NoError(t, err)
			owner, err := storage.Claim(t.Context())
			require.NoError(t, err)
			pending, err := owner.Begin(t.Context(), 7)
			require.NoError(t, err)
			handle, err := written(t, pending.CreateStateStream(t.Context(), core.Exclusive), 10).CloseAndGetHandle()
			require.NoError(t, err)
			require.Equal(t, tt.entropy, isAbsolute(t, handle))
			requireState(t, mem, noise(10), handle)
		})
	}
}

func TestEntropyOfAWholeCheckpoint(t *testing.T) {
	// Flink: FsStorageEntropyTest.testEntropyInjection
	mem := memfs.New(memfs.Options{})
	e := newEntropy(t, mem, 4)
	storage, err := core.NewStorage(e, "/ckpt/_entropy_/x", rigJob, core.Options{InlineThreshold: core.NeverInline})
	require.NoError(t, err)
	job := "/ckpt/x/" + rigJob.String()
	require.Equal(t, job, storage.JobDir())
	owner, err := storage.Claim(t.Context())
	require.NoError(t, err)
	pending, err := owner.Begin(t.Context(), 7)
	require.NoError(t, err)

	marked := "/ckpt/_entropy_/x/" + rigJob.String()
	require.Equal(t, marked+"/chk-7", pending.CheckpointDir())
	require.Equal(t, marked+"/shared", pending.SharedDir())
	require.Equal(t, marked+"/taskowned", pending.TaskOwnedDir())
	require.Equal(t, job+"/chk-7/_metadata", pending.MetadataName())

	for name, s := range map[string]*core.StateStream{
		"chk-7":     pending.CreateStateStream(t.Context(), core.Exclusive),
		"shared":    pending.CreateStateStream(t.Context(), core.Shared),
		"taskowned": storage.CreateTaskOwnedStream(t.Context()),
	} {
		handle, err := written(t, s, 10).CloseAndGetHandle()
		require.NoError(t, err)
		file, ok := handle.(*core.FileHandle)
		require.True(t, ok)
		require.Regexp(t, "^mem:/ckpt/[0-9a-f]{4}/x/"+rigJob.String()+"/"+name+"/[0-9a-f-]{36}$", file.Path)
		requireState(t, e, noise(10), handle)
	}
	m, err := pending.CreateMetadataStream(t.Context())
	require.NoError(t, err)
	_, err = m.Write(noise(10))
	require.NoError(t, err)
	done, err := m.CloseAndFinalize()
	require.NoError(t, err)
	require.Equal(t, "mem:"+job+"/chk-7", done.Pointer)
	require.Equal(t, path.Dir(done.Metadata.Path), done.Pointer)
	require.Equal(t, noise(10), bytesOf(t, mem, job+"/chk-7/_metadata"))
	for _, line := range mem.Tree() {
		require.NotContains(t, line, "_entropy_")
	}
}

func TestEntropyTwiceInTheBaseIsRefusedByTheFirstStream(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	faults := faultfs.Wrap(mem, nil)
	storage, err := core.NewStorage(newEntropy(t, faults, 4), "/_entropy_/_entropy_", rigJob, core.Options{InlineThreshold: core.NeverInline})
	if err != nil {
		require.ErrorIs(t, err, fs.ErrInvalid)
		return
	}
	s := written(t, storage.CreateTaskOwnedStream(t.Context()), 10)
	_, err = s.CloseAndGetHandle()
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Zero(t, faults.Count())
}
