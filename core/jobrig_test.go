package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

const jobBase = "/ckpt"

var jobID = core.JobIDOf("word count")

// jobRig is a job directory on a file system in memory, with metadata that is a JSON list of entries.
type jobRig struct {
	mem   *memfs.FS
	store *core.Storage
}

func newJobRig(t testing.TB) *jobRig {
	t.Helper()
	return jobRigOn(t, memfs.New(memfs.Options{}))
}

// jobRigOn is the rig of the same job on a file system that may hold it already.
func jobRigOn(t testing.TB, mem *memfs.FS) *jobRig {
	t.Helper()
	return &jobRig{mem: mem, store: storageOn(t, mem, core.Options{})}
}

// storageOn makes the storage of the rig's job, in which every state is a file, on any wrapper of its file system.
func storageOn(t testing.TB, fsys core.FileSystem, opts core.Options) *core.Storage {
	t.Helper()
	if opts.InlineThreshold == 0 {
		opts.InlineThreshold = core.NeverInline
	}
	s, err := core.NewStorage(fsys, jobBase, jobID, opts)
	require.NoError(t, err)
	return s
}

func (r *jobRig) dir() string { return r.store.JobDir() }

func (r *jobRig) chk(id int64) string { return r.dir() + "/" + core.CheckpointDirName(id) }

func (r *jobRig) claim(t testing.TB) *core.Owner {
	t.Helper()
	owner, err := r.store.Claim(context.Background())
	require.NoError(t, err)
	return owner
}

// metaEntry is one object of the metadata of these tests. Name is that of a relative file, Path a qualified path.
type metaEntry struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
	Dir  bool   `json:"dir,omitempty"`
}

func encodeMeta(entries ...metaEntry) []byte {
	data, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return data
}

// readMeta is the core.ReadObjects of these tests.
func readMeta(data []byte, dir string) ([]core.Object, error) {
	var entries []metaEntry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrCorrupt, err)
	}
	objects := []core.Object{}
	for _, e := range entries {
		object := core.Object{Path: e.Path, Size: -1, Directory: e.Dir}
		if e.Name != "" {
			object.Path, object.Relative = dir+"/"+e.Name, true
		}
		objects = append(objects, object)
	}
	return objects, nil
}

var readAll = core.DisposeOptions{Read: readMeta}

// checkpoint is what a test knows of a checkpoint that it wrote.
type checkpoint struct {
	id        int64
	dir       string
	completed *core.Completed
	metadata  []byte
	files     map[string][]byte // by name on the file system: own, shared and reused ones
	shared    []string          // names of the shared files, new and reused
}

// stateNumber makes all states of a test run different.
var stateNumber atomic.Int64

// write begins checkpoint id and writes own and shared files of it and its metadata, which also names the reused files of
// earlier ones. It returns at the first error.
func (r *jobRig) write(owner *core.Owner, id int64, own, shared int, reuse map[string][]byte) (*checkpoint, error) {
	ctx := context.Background()
	pending, err := owner.Begin(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.writeTo(pending, id, own, shared, reuse)
}

func (r *jobRig) writeTo(pending *core.PendingLocation, id int64, own, shared int, reuse map[string][]byte) (*checkpoint, error) {
	ctx := context.Background()
	c := &checkpoint{id: id, dir: r.chk(id), files: maps.Clone(reuse), shared: slices.Collect(maps.Keys(reuse))}
	if c.files == nil {
		c.files = map[string][]byte{}
	}
	var entries []metaEntry
	for _, name := range slices.Sorted(maps.Keys(reuse)) {
		entries = append(entries, metaEntry{Path: core.Qualify(r.mem.URI(), name)})
	}
	for i := range own + shared {
		scope := core.Exclusive
		if i >= own {
			scope = core.Shared
		}
		content := fmt.Appendf(nil, "state %d of checkpoint %d, no two alike: %d", i, id, stateNumber.Add(1))
		stream := pending.CreateStateStream(ctx, scope)
		if _, err := stream.Write(content); err != nil {
			return nil, errors.Join(err, stream.Close())
		}
		handle, err := stream.CloseAndGetHandle()
		if err != nil {
			return nil, err
		}
		switch h := handle.(type) {
		case *core.RelativeFileHandle:
			entries = append(entries, metaEntry{Name: h.Name})
			c.files[c.dir+"/"+h.Name] = content
		case *core.FileHandle:
			_, name, err := core.SplitQualified(h.Path)
			if err != nil {
				return nil, err
			}
			entries = append(entries, metaEntry{Path: h.Path})
			c.files[name] = content
			c.shared = append(c.shared, name)
		}
	}
	c.metadata = encodeMeta(entries...)
	c.files[c.dir+"/"+core.MetadataName] = c.metadata
	stream, err := pending.CreateMetadataStream(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write(c.metadata); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	c.completed, err = stream.CloseAndFinalize()
	return c, err
}

// commit is write that must succeed.
func (r *jobRig) commit(t testing.TB, owner *core.Owner, id int64, own, shared int, reuse map[string][]byte) *checkpoint {
	t.Helper()
	c, err := r.write(owner, id, own, shared, reuse)
	require.NoError(t, err)
	return c
}

// sharedOf are the shared files of a checkpoint with their bytes, for the next one to reuse.
func (c *checkpoint) sharedOf() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range c.shared {
		files[name] = c.files[name]
	}
	return files
}

// requireIntact says that a checkpoint is complete and that all its files hold their bytes.
func requireIntact(t testing.TB, fsys core.FileSystem, c *checkpoint) {
	t.Helper()
	completed, err := core.ResolvePointer(context.Background(), core.OnlyOn(fsys), core.Qualify(fsys.URI(), c.dir))
	require.NoError(t, err, "checkpoint %d", c.id)
	data, err := completed.ReadMetadata(context.Background())
	require.NoError(t, err)
	require.Equal(t, string(c.metadata), string(data), "metadata of checkpoint %d", c.id)
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		require.Equal(t, string(c.files[name]), string(contentOf(t, fsys, name)), "file of checkpoint %d", c.id)
	}
}

func contentOf(t testing.TB, fsys core.FileSystem, name string) []byte {
	t.Helper()
	r, err := fsys.Open(context.Background(), name)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return data
}

// put writes a file durably, with its missing directories.
func put(t testing.TB, fsys core.FileSystem, name, content string) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, fsys.MkdirAll(ctx, path.Dir(name)))
	w, err := fsys.Create(ctx, name, core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func exists(t testing.TB, fsys core.FileSystem, name string) bool {
	t.Helper()
	_, err := fsys.Stat(context.Background(), name)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	return err == nil
}

// snapshot is everything below dir: files with their bytes, directories under a name that ends in a slash.
func snapshot(t testing.TB, fsys core.FileSystem, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		for info, err := range fsys.List(context.Background(), dir) {
			require.NoError(t, err)
			name := strings.TrimSuffix(dir, "/") + "/" + info.Name
			if info.IsDir() {
				found[name+"/"] = ""
				walk(name)
				continue
			}
			found[name] = string(contentOf(t, fsys, name))
		}
	}
	walk(dir)
	return found
}

// filesIn are the names of the files in a snapshot, sorted.
func filesIn(found map[string]string) []string {
	var names []string
	for name := range found {
		if !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// completeIDs lists the ids of the complete checkpoints.
func completeIDs(t testing.TB, fsys core.FileSystem, jobDir string) []int64 {
	t.Helper()
	entries, err := core.ListCheckpoints(context.Background(), fsys, jobDir)
	require.NoError(t, err)
	var ids []int64
	for _, e := range entries {
		if e.State == core.Complete {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// withoutEpochs leaves the epoch directories out of a list of names.
func withoutEpochs(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.Contains(name, "/.epoch-") })
}

// fork is an independent copy of a file system.
func fork(mem *memfs.FS) *memfs.FS { return mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: 100}) }
