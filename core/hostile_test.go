package core_test

import (
	"context"
	"io/fs"
	"iter"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// linkFS shows chosen names as symbolic links. Whoever goes through one is noted: what lies behind it, a directory or file
// of the same name in memory, stands for something outside of the base.
type linkFS struct {
	core.FileSystem

	mu       sync.Mutex
	links    map[string]bool
	followed []string
}

func (l *linkFS) isLink(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links[name]
}

// visit notes that name lies behind a link, or is one and itself says that it is opened as what it points to.
func (l *linkFS) visit(op, name string, itself bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for link := range l.links {
		if name != link && core.Within(link, name) || itself && name == link {
			l.followed = append(l.followed, op+" "+name)
		}
	}
}

func (l *linkFS) show(name string, info core.FileInfo) core.FileInfo {
	if l.isLink(name) {
		info.Mode = fs.ModeSymlink | 0o777
	}
	return info
}

func (l *linkFS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	l.visit("create", name, true)
	return l.FileSystem.Create(ctx, name, opts)
}

func (l *linkFS) Open(ctx context.Context, name string) (core.Reader, error) {
	l.visit("open", name, true)
	return l.FileSystem.Open(ctx, name)
}

func (l *linkFS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	l.visit("stat", name, false)
	info, err := l.FileSystem.Stat(ctx, name)
	return l.show(name, info), err
}

func (l *linkFS) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	l.visit("list", dir, true)
	return func(yield func(core.FileInfo, error) bool) {
		for info, err := range l.FileSystem.List(ctx, dir) {
			if err == nil {
				info = l.show(path.Join(dir, info.Name), info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func (l *linkFS) Remove(ctx context.Context, name string) error {
	l.visit("remove", name, false)
	if !l.isLink(name) {
		return l.FileSystem.Remove(ctx, name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, name)
	return l.FileSystem.Rename(ctx, name, "/behind/"+uuid.NewString(), core.RenameReplace)
}

func (l *linkFS) RemoveAll(ctx context.Context, name string) error {
	l.visit("removeall", name, false)
	return l.FileSystem.RemoveAll(ctx, name)
}

// linkRig is a job in which some names are symbolic links to things outside.
func linkRig(t *testing.T) (*jobRig, *linkFS, *core.Owner, *checkpoint) {
	t.Helper()
	r := newJobRig(t)
	links := &linkFS{FileSystem: r.mem, links: map[string]bool{}}
	owner, err := storageOn(t, links, core.Options{}).Claim(context.Background())
	require.NoError(t, err)
	c := r.commit(t, owner, 5, 1, 1, nil)
	put(t, r.mem, "/behind/keep", "x")
	for _, name := range []string{r.chk(5) + "/" + uuidA + "/inside", r.chk(5) + "/x/inside", r.chk(6) + "/_metadata", r.chk(6) + "/" + uuidB, r.dir() + "/shared/" + uuidC, r.dir() + "/.epoch-9/owner"} {
		put(t, r.mem, name, "outside")
	}
	for _, name := range []string{r.chk(5) + "/" + uuidA, r.chk(5) + "/x", r.chk(6), r.dir() + "/shared/" + uuidC, r.dir() + "/.epoch-9"} {
		links.links[name] = true
	}
	return r, links, owner, c
}

func TestSymbolicLinksAreUnlinkedAndNeverFollowed(t *testing.T) {
	ctx := context.Background()
	r, links, owner, c := linkRig(t)
	entries, err := core.ListCheckpoints(ctx, links, r.dir())
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, []int64{entries[0].ID, entries[1].ID})
	latest, _ := core.Latest(entries)
	require.Equal(t, int64(6), latest.ID, "it may stand for a checkpoint")
	_, err = latest.Completed.ReadMetadata(ctx)
	require.ErrorIs(t, err, core.ErrCorrupt)

	_, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.True(t, links.isLink(r.dir()+"/shared/"+uuidC), "what it needs is not known")
	require.True(t, links.isLink(r.chk(6)), "kept")
	requireIntact(t, r.mem, c)
	for _, opts := range []core.DisposeOptions{readAll, {Read: readMeta, IgnoreMetadata: true}} {
		_, err = owner.Dispose(ctx, 6, opts)
		require.ErrorIs(t, err, fs.ErrInvalid)
		_, err = core.Dispose(ctx, links, r.chk(6), opts)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	require.NoError(t, r.mem.RemoveAll(ctx, r.chk(6)))
	_, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.False(t, links.isLink(r.dir()+"/shared/"+uuidC), "unlinked")
	put(t, r.mem, r.chk(5)+"/"+uuidB+"/inside", "outside")
	links.links[r.chk(5)+"/"+uuidB] = true
	report, err := owner.Dispose(ctx, 5, readAll)
	require.NoError(t, err)
	require.Contains(t, report.Removed, r.chk(5)+"/"+uuidB)
	require.False(t, links.isLink(r.chk(5)+"/"+uuidB), "unlinked")
	require.True(t, links.isLink(r.chk(5)+"/x"), "a foreign link is kept")

	second, err := storageOn(t, links, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(2), second.Epoch())
	require.True(t, links.isLink(r.dir()+"/.epoch-9"))
	require.Empty(t, links.followed)
	outside := 0
	for _, content := range snapshot(t, r.mem, "/") {
		if content == "outside" {
			outside++
		}
	}
	require.Equal(t, 5, outside, "everything that a link points to is there")
}

// A `_metadata` that is a symbolic link is not followed; but it may well stand for a checkpoint, so nothing that one could
// need is removed.
func TestMetadataThatIsASymbolicLinkStopsDeletions(t *testing.T) {
	ctx := context.Background()
	r, links, owner, c := linkRig(t)
	put(t, r.mem, r.chk(8)+"/_metadata", "outside")
	put(t, r.mem, r.chk(8)+"/"+uuidA, "state")
	put(t, r.mem, r.dir()+"/shared/"+uuidB, "state")
	links.links[r.chk(8)+"/_metadata"] = true
	entries, err := core.ListCheckpoints(ctx, links, r.dir())
	require.NoError(t, err)
	latest, _ := core.Latest(entries)
	require.Equal(t, int64(8), latest.ID)
	_, err = latest.Completed.ReadMetadata(ctx)
	require.ErrorIs(t, err, core.ErrCorrupt)
	_, err = core.ResolvePointer(ctx, core.OnlyOn(links), "mem:"+r.chk(8))
	require.ErrorIs(t, err, fs.ErrInvalid)

	_, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.True(t, exists(t, r.mem, r.chk(8)+"/"+uuidA))
	require.True(t, exists(t, r.mem, r.dir()+"/shared/"+uuidB))
	_, err = owner.Dispose(ctx, 8, readAll)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = owner.Dispose(ctx, 5, readAll)
	require.NoError(t, err)
	require.True(t, exists(t, r.mem, c.shared[0]))
	require.Empty(t, links.followed)
}

var hostilePaths = []string{
	"", "..", "a/../../b", "relative", "./x", "../x", "/x/a:b", "/x/a\x00b", "/x/" + strings.Repeat("y", 300), "a:b", `C:\x`, "\x00",
}

func TestHostileNamesReachNoFileSystem(t *testing.T) {
	ctx := context.Background()
	counted := faultfs.Wrap(memfs.New(memfs.Options{}), nil)
	for _, base := range append([]string{"/x/../etc", "/x/", "//x", "/x/./y"}, hostilePaths...) {
		_, err := core.NewStorage(counted, base, jobID, core.Options{})
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", base)
	}
	for _, dir := range append([]string{"/x/../etc", "/x/", "//x"}, hostilePaths...) {
		_, err := core.Dispose(ctx, counted, dir, readAll)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", dir)
	}
	for _, pointer := range hostilePaths {
		_, err := core.ResolvePointer(ctx, core.OnlyOn(counted), pointer)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", pointer)
		s := storageOn(t, counted, core.Options{})
		if pointer != "" {
			_, err = s.ResolveLocation(ctx, 1, core.EncodeReference(pointer))
			require.ErrorIs(t, err, fs.ErrInvalid, "%q", pointer)
		}
	}
	require.Zero(t, counted.Count())
}

func TestHostileSavepointTargetsReachNoFileSystem(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	counted := faultfs.Wrap(r.mem, nil)
	anything := func(_ context.Context, qualified string) (core.FileSystem, string, error) {
		return counted, qualified, nil
	}
	for _, opener := range []core.Opener{nil, anything} {
		owner, err := storageOn(t, counted, core.Options{Opener: opener}).Claim(ctx)
		require.NoError(t, err)
		before := counted.Count()
		for _, target := range append([]string{"file:/elsewhere", "hdfs://ns1/x"}, hostilePaths...) {
			_, err := owner.BeginSavepoint(ctx, target)
			require.ErrorIs(t, err, fs.ErrInvalid, "%q", target)
		}
		require.Equal(t, before, counted.Count())
	}
}

// Metadata from elsewhere names files outside of the checkpoint: disposing touches none of them.
func TestDisposeTouchesNothingThatHostileMetadataNames(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	other := r.commit(t, owner, 6, 1, 1, nil)
	victims := []string{"/etc/passwd", "/other/dir/" + uuidA, r.dir() + "/taskowned/" + uuidA, r.dir() + "/" + uuidA, r.chk(6) + "/" + uuidB, jobBase + "/" + uuidA}
	var entries []metaEntry
	for _, name := range victims {
		put(t, r.mem, name, "victim")
		entries = append(entries, metaEntry{Path: "mem:" + name}, metaEntry{Path: name}, metaEntry{Path: "mem:" + r.chk(5) + "/../../.." + name})
	}
	for _, up := range []string{"../chk-6/_metadata", "../chk-6/" + uuidB, "../../../etc/passwd", "../shared", "..", ".", "/etc/passwd", "../.epoch-1/owner"} {
		entries = append(entries, metaEntry{Name: up})
	}
	for name := range other.files {
		entries = append(entries, metaEntry{Path: "mem:" + name})
	}
	put(t, r.mem, r.chk(5)+"/_metadata", string(encodeMeta(entries...)))
	report, err := core.Dispose(ctx, r.mem, r.chk(5), readAll)
	require.NoError(t, err)
	require.Empty(t, report.Removed)
	for _, name := range victims {
		require.Equal(t, "victim", string(contentOf(t, r.mem, name)), name)
	}
	requireIntact(t, r.mem, other)
	require.NoError(t, owner.Check(ctx))
	require.True(t, exists(t, r.mem, r.dir()+"/shared"))
}
