package core_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// The tests of this package that name one of Flink's assert what that asserts, or more. FsCheckpointStorageAccessTest's
// testNotDuplicationCheckpointStateToolset and testDuplicationCheckpointStateToolset have no counterpart: state is never
// duplicated by the storage.

func TestNewStorageTouchesNoStorage(t *testing.T) {
	counted := faultfs.Wrap(memfs.New(memfs.Options{}), nil)
	s, err := core.NewStorage(counted, "/a/b", jobID, core.Options{})
	require.NoError(t, err)
	location, err := s.ResolveLocation(context.Background(), 7, nil)
	require.NoError(t, err)
	_ = location.CreateStateStream(context.Background(), core.Exclusive)
	require.NoError(t, s.CreateTaskOwnedStream(context.Background()).Close())
	require.Zero(t, counted.Count())
	require.Same(t, counted, s.FileSystem())
	require.Equal(t, jobID, s.JobID())
	require.NotNil(t, s.Opener())
	require.Equal(t, core.Synced, s.Durability())
}

// Flink: FsCheckpointStorageAccessTest.testCreateCheckpointSubDirs.
func TestStorageHasAJobDirectoryUnlessItIsToHaveNone(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	s, err := core.NewStorage(mem, "/a/b", jobID, core.Options{})
	require.NoError(t, err)
	require.Equal(t, "/a/b/"+jobID.String(), s.JobDir())

	s, err = core.NewStorage(mem, "/a/b", jobID, core.Options{NoJobDir: true})
	require.NoError(t, err)
	require.Equal(t, "/a/b", s.JobDir())
	location, err := s.ResolveLocation(context.Background(), 7, nil)
	require.NoError(t, err)
	require.Equal(t, "/a/b/chk-7", location.CheckpointDir())
	require.Equal(t, "/a/b/shared", location.SharedDir())
	require.Equal(t, "/a/b/taskowned", location.TaskOwnedDir())
	_, err = s.Claim(context.Background())
	require.NoError(t, err)
	require.Contains(t, mem.Tree(), "/a/b/shared/")
	require.NotContains(t, strings.Join(mem.Tree(), "\n"), jobID.String())
}

func TestStorageAtTheRootHasCleanNames(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	s, err := core.NewStorage(mem, "/", jobID, core.Options{NoJobDir: true})
	require.NoError(t, err)
	owner, err := s.Claim(context.Background())
	require.NoError(t, err)
	pending, err := owner.Begin(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, "/chk-1/_metadata", pending.MetadataName())
	require.Contains(t, mem.Tree(), "/chk-1/")
}

// Flink: FsCheckpointStorageAccessTest.testPersistMultipleMetadataOnlyCheckpoints.
func TestStoragesOfTwoJobsDoNotDisturbEachOther(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	contents := map[core.JobID]string{core.JobIDOf("one"): "metadata of one", core.JobIDOf("two"): "another"}
	pointers := map[core.JobID]string{}
	for job, content := range contents {
		s, err := core.NewStorage(mem, "/a", job, core.Options{})
		require.NoError(t, err)
		owner, err := s.Claim(ctx)
		require.NoError(t, err)
		pending, err := owner.Begin(ctx, 177)
		require.NoError(t, err)
		stream, err := pending.CreateMetadataStream(ctx)
		require.NoError(t, err)
		_, err = stream.Write([]byte(content))
		require.NoError(t, err)
		completed, err := stream.CloseAndFinalize()
		require.NoError(t, err)
		pointers[job] = completed.Pointer
	}
	for job, pointer := range pointers {
		completed, err := core.ResolvePointer(ctx, core.OnlyOn(mem), pointer)
		require.NoError(t, err)
		data, err := completed.ReadMetadata(ctx)
		require.NoError(t, err)
		require.Equal(t, contents[job], string(data))
		require.Equal(t, int64(len(data)), completed.Metadata.Size)
	}
}

// Flink: FsCheckpointStorageAccessTest.writeToAlreadyExistingCheckpointFails. Flink accepts the directory and refuses the
// second metadata stream; here both are refused.
func TestStorageRefusesACheckpointThatIsComplete(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	pending, err := owner.Begin(ctx, 177)
	require.NoError(t, err)
	again, err := owner.Begin(ctx, 177)
	require.NoError(t, err)
	c, err := r.writeTo(pending, 177, 1, 1, nil)
	require.NoError(t, err)

	_, err = owner.Begin(ctx, 177)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, r.chk(177))
	stream, err := again.CreateMetadataStream(ctx) // it has seen that there was none
	require.NoError(t, err)
	_, err = stream.CloseAndFinalize()
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = again.CreateMetadataStream(ctx)
	require.ErrorIs(t, err, fs.ErrExist)
	requireIntact(t, r.mem, c)
}

// Flink: FsCheckpointStorageAccessTest.testTaskOwnedStateStream.
func TestTaskOwnedStateIsAFileInTheTaskOwnedDirectory(t *testing.T) {
	ctx := context.Background()
	for name, opts := range map[string]core.Options{
		"with the defaults":                {},
		"buffer smaller than threshold":    {InlineThreshold: 1024, WriteBuffer: 4},
		"never inline, buffer of one":      {InlineThreshold: core.NeverInline, WriteBuffer: 1},
		"threshold at its largest, no buf": {InlineThreshold: core.MaxInlineThreshold},
	} {
		t.Run(name, func(t *testing.T) {
			r := newJobRig(t)
			s := storageOn(t, r.mem, opts)
			_, err := s.Claim(ctx)
			require.NoError(t, err)
			want := noise(core.MaxInlineThreshold + 1)
			stream := s.CreateTaskOwnedStream(ctx)
			_, err = stream.Write(want)
			require.NoError(t, err)
			handle, err := stream.CloseAndGetHandle()
			require.NoError(t, err)
			file, ok := handle.(*core.FileHandle)
			require.True(t, ok, "%T", handle)
			require.True(t, strings.HasPrefix(file.Path, "mem:"+s.JobDir()+"/taskowned/"), file.Path)
			requireState(t, r.mem, want, handle)
		})
	}
}

// Flink: FsCheckpointStorageAccessTest.testDirectoriesForExclusiveAndSharedState.
func TestStateOfEachScopeGoesToItsDirectory(t *testing.T) {
	r := newJobRig(t)
	c := r.commit(t, r.claim(t), 42, 1, 1, nil)
	tree := snapshot(t, r.mem, r.dir())
	inDir := func(dir string) (n int) {
		for _, name := range filesIn(tree) {
			if strings.HasPrefix(name, dir+"/") && !strings.HasSuffix(name, core.MetadataName) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, inDir(c.dir))
	require.Equal(t, 1, inDir(r.dir()+"/shared"))
	require.Zero(t, inDir(r.dir()+"/taskowned"))
}

// Flink: FsCheckpointStorageAccessTest.testStorageLocationMkdirs.
func TestOnlyTheOwnerMakesDirectories(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	require.Empty(t, r.mem.Tree(), "a new storage makes nothing")
	owner := r.claim(t)
	require.True(t, exists(t, r.mem, r.dir()+"/shared"))
	require.True(t, exists(t, r.mem, r.dir()+"/taskowned"))
	require.False(t, exists(t, r.mem, r.chk(177)))

	location, err := r.store.ResolveLocation(ctx, 177, nil)
	require.NoError(t, err)
	require.False(t, exists(t, r.mem, r.chk(177)), "resolving makes nothing")
	stream := location.CreateStateStream(ctx, core.Exclusive)
	_, err = stream.Write(make([]byte, 100<<10))
	require.ErrorIs(t, err, fs.ErrNotExist, "nor does writing")
	require.NoError(t, stream.Close())
	require.False(t, exists(t, r.mem, r.chk(177)))

	_, err = owner.Begin(ctx, 177)
	require.NoError(t, err)
	require.True(t, exists(t, r.mem, r.chk(177)))
}

// Flink: FsCheckpointStorageAccessTest.testResolveCheckpointStorageLocation.
func TestLocationIsOnItsOwnFileSystem(t *testing.T) {
	ctx := context.Background()
	here, there := memfs.New(memfs.Options{}), memfs.New(memfs.Options{URI: "other://nn"})
	opener := func(ctx context.Context, qualified string) (core.FileSystem, string, error) {
		if strings.HasPrefix(qualified, "other:") {
			return core.OnlyOn(there)(ctx, qualified)
		}
		return core.OnlyOn(here)(ctx, qualified)
	}
	s := storageOn(t, here, core.Options{Opener: opener})
	location, err := s.ResolveLocation(ctx, 1, nil)
	require.NoError(t, err)
	require.Same(t, here, location.FileSystem())
	require.True(t, location.Reference().IsDefault())
	require.Equal(t, "mem:"+s.JobDir()+"/chk-1", location.String())

	location, err = s.ResolveLocation(ctx, 2, core.EncodeReference("other://nn/save/point"))
	require.NoError(t, err)
	require.Same(t, there, location.FileSystem())
	for _, dir := range []string{location.CheckpointDir(), location.SharedDir(), location.TaskOwnedDir()} {
		require.Equal(t, "/save/point", dir)
	}
	require.Equal(t, "/save/point/_metadata", location.MetadataName())
	require.Equal(t, core.EncodeReference("other://nn/save/point"), location.Reference())
	require.NoError(t, there.MkdirAll(ctx, "/save/point"))
	for _, scope := range []core.Scope{core.Exclusive, core.Shared} {
		stream := location.CreateStateStream(ctx, scope)
		_, err = stream.Write([]byte("state"))
		require.NoError(t, err)
		handle, err := stream.CloseAndGetHandle()
		require.NoError(t, err)
		relative, ok := handle.(*core.RelativeFileHandle)
		require.True(t, ok, "%T", handle)
		require.Equal(t, "other://nn/save/point", relative.Dir)
	}
	require.Empty(t, here.Tree())
}

func TestResolveLocationRefusesWhatIsNoReference(t *testing.T) {
	s := newJobRig(t).store
	for name, reference := range map[string]core.LocationReference{
		"too short":          {5, 0x5f, 0x3f, 0x18},
		"other magic":        append(core.LocationReference{0x18, 0x3f, 0x5f, 5}, "mem:/a"...),
		"not UTF-8":          append(core.EncodeReference("mem:/a"), 0xff),
		"relative":           core.EncodeReference("a/b"),
		"other file system":  core.EncodeReference("hdfs://ns1/a"),
		"a name with colons": core.EncodeReference("mem:/a/b:c"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.ResolveLocation(context.Background(), 1, reference)
			require.ErrorIs(t, err, fs.ErrInvalid)
		})
	}
	_, err := s.ResolveLocation(context.Background(), -1, nil)
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestNewStorageRefusesAFileSystemThatCannotKeepThePromises(t *testing.T) {
	full := core.Capabilities{Durabilities: []core.Durability{core.Unsynced, core.Synced}, NoReplaceFiles: true, NoReplaceDirs: true, Sync: true}
	with := func(change func(*core.Capabilities)) core.Capabilities {
		caps := full
		change(&caps)
		return caps
	}
	for _, c := range []struct {
		name  string
		caps  core.Capabilities
		opts  core.Options
		texts []string
	}{
		{"no durability", with(func(c *core.Capabilities) { c.Durabilities = nil }), core.Options{}, []string{"durability"}},
		{"a weaker one", full, core.Options{Durability: core.Replicated}, []string{"durability replicated", "synced"}},
		{"rename replaces", with(func(c *core.Capabilities) { c.NoReplaceFiles = false }), core.Options{}, []string{"cannot rename without replacing"}},
		{"no replicas", full, core.Options{MinReplicas: 2}, []string{"MinReplicas is 2"}},
		{"all at once", core.Capabilities{}, core.Options{MinReplicas: 3, Durability: core.Synced}, []string{"durability synced", "cannot rename", "MinReplicas is 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			counted := faultfs.Wrap(memfs.New(memfs.Options{Capabilities: &c.caps}), nil)
			_, err := core.NewStorage(counted, "/a", jobID, c.opts)
			require.ErrorIs(t, err, errors.ErrUnsupported)
			for _, text := range c.texts {
				require.ErrorContains(t, err, text)
			}
			require.Zero(t, counted.Count())
		})
	}
	one := core.Options{MinReplicas: 1}
	_, err := core.NewStorage(memfs.New(memfs.Options{}), "/a", jobID, one)
	require.NoError(t, err, "one replica is what every file has")
}

func TestNewStorageReportsAllProblemsOfSettingsAndFileSystemAtOnce(t *testing.T) {
	caps := core.Capabilities{Durabilities: []core.Durability{core.Synced}}
	_, err := core.NewStorage(memfs.New(memfs.Options{Capabilities: &caps}), "not/absolute", jobID, core.Options{InlineThreshold: -7, WriteBuffer: -1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for _, text := range []string{"InlineThreshold is -7", "WriteBuffer is -1", "not/absolute", "cannot rename"} {
		require.ErrorContains(t, err, text)
	}
}

func TestClaimFailsWhereTheBaseCannotBeMade(t *testing.T) {
	ctx := context.Background()
	job := "/base/" + jobID.String()
	for _, c := range []struct {
		name    string
		file    string // in the way
		base    string
		refused error // by MkdirAll
		want    error
		path    string // in the error
	}{
		{name: "the base is a file", file: "/base", base: "/base", want: fs.ErrInvalid, path: job},
		{name: "a file lies above the base", file: "/base", base: "/base/deep", want: fs.ErrInvalid, path: "/base/deep/"},
		{name: "the job directory is a file", file: job, base: "/base", want: fs.ErrInvalid, path: job},
		{name: "shared is a file", file: job + "/shared", base: "/base", want: fs.ErrInvalid, path: job + "/shared"},
		{name: "taskowned is a file", file: job + "/taskowned", base: "/base", want: fs.ErrInvalid, path: job + "/taskowned"},
		{name: "no permission", base: "/base", refused: fs.ErrPermission, want: fs.ErrPermission, path: job},
		{name: "quota", base: "/base", refused: core.ErrQuota, want: core.ErrQuota, path: job},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			if c.file != "" {
				put(t, mem, c.file, "x")
			}
			before := filesIn(snapshot(t, mem, "/"))
			flaky := faultfs.Wrap(mem, faultfs.OnOp(faultfs.OpMkdirAll, faultfs.Fault{Err: c.refused}))
			s, err := core.NewStorage(flaky, c.base, jobID, core.Options{})
			require.NoError(t, err)
			owner, err := s.Claim(ctx)
			require.Nil(t, owner)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.path)
			var pathError *fs.PathError
			require.ErrorAs(t, err, &pathError)
			require.Equal(t, before, filesIn(snapshot(t, mem, "/")))
			require.NotContains(t, strings.Join(mem.Tree(), "\n"), ".epoch-")
		})
	}
}

func TestStorageTakesItsRandomNamesFromTheOptions(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("no entropy left")
	r := newJobRig(t)
	s := storageOn(t, r.mem, core.Options{NewUUID: func() (uuid.UUID, error) { return uuid.UUID{}, broken }})
	_, err := s.Claim(ctx)
	require.ErrorIs(t, err, broken)
	require.NotContains(t, strings.Join(r.mem.Tree(), "\n"), ".epoch-")

	calls := 0
	s = storageOn(t, r.mem, core.Options{SavepointDir: "mem:/save", NewUUID: func() (uuid.UUID, error) {
		if calls++; calls > 1 {
			return uuid.UUID{}, broken
		}
		return uuid.NewRandom()
	}})
	owner, err := s.Claim(ctx)
	require.NoError(t, err)
	_, err = owner.BeginSavepoint(ctx, "")
	require.ErrorIs(t, err, broken)
	pending, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	_, err = pending.CreateMetadataStream(ctx)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), broken)
}
