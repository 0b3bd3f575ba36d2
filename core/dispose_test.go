package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// disposer is one of the two ways to dispose of a checkpoint of the rig's job.
type disposer struct {
	name    string
	dispose func(r *jobRig, owner *core.Owner, fsys core.FileSystem, id int64, opts core.DisposeOptions) (*core.DisposalReport, error)
}

var disposers = []disposer{
	{"the function", func(r *jobRig, _ *core.Owner, fsys core.FileSystem, id int64, opts core.DisposeOptions) (*core.DisposalReport, error) {
		return core.Dispose(context.Background(), fsys, r.chk(id), opts)
	}},
	{"the owner", func(_ *jobRig, owner *core.Owner, _ core.FileSystem, id int64, opts core.DisposeOptions) (*core.DisposalReport, error) {
		return owner.Dispose(context.Background(), id, opts)
	}},
}

// disposeRig is a job with two checkpoints that share a file, foreign files, and state of tasks.
type disposeRig struct {
	*jobRig
	flaky         *faultfs.FS
	owner         *core.Owner
	first, second *checkpoint
	common        string // the shared file of both
	alone         string // the shared file of the first
	foreign       []string
}

func newDisposeRig(t *testing.T) *disposeRig {
	t.Helper()
	r := newJobRig(t)
	d := &disposeRig{jobRig: r, flaky: faultfs.Wrap(r.mem, nil)}
	var err error
	d.owner, err = storageOn(t, d.flaky, core.Options{}).Claim(context.Background())
	require.NoError(t, err)
	d.first = r.commit(t, d.owner, 1, 3, 2, nil)
	reuse := onlyOne(d.first.sharedOf())
	d.second = r.commit(t, d.owner, 2, 2, 1, reuse)
	for _, name := range d.first.shared {
		if _, common := reuse[name]; common {
			d.common = name
		} else {
			d.alone = name
		}
	}
	d.foreign = []string{r.dir() + "/shared/README", r.dir() + "/taskowned/" + uuid.NewString(), r.dir() + "/notes", "/elsewhere/file"}
	for _, name := range d.foreign {
		put(t, r.mem, name, "foreign")
	}
	return d
}

// requireOthersIntact says that everything but the first checkpoint is as it was.
func (d *disposeRig) requireOthersIntact(t *testing.T, fsys core.FileSystem) {
	t.Helper()
	requireIntact(t, fsys, d.second)
	for _, name := range d.foreign {
		require.Equal(t, "foreign", string(contentOf(t, fsys, name)), name)
	}
}

func forBothDisposers(t *testing.T, test func(t *testing.T, d *disposeRig, dispose func(id int64, opts core.DisposeOptions) (*core.DisposalReport, error))) {
	t.Helper()
	for _, way := range disposers {
		t.Run("by "+way.name, func(t *testing.T) {
			d := newDisposeRig(t)
			test(t, d, func(id int64, opts core.DisposeOptions) (*core.DisposalReport, error) {
				return way.dispose(d.jobRig, d.owner, d.flaky, id, opts)
			})
		})
	}
}

func TestDisposeRemovesWhatTheCheckpointAloneOwns(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		late := d.chk(1) + "/" + uuid.NewString()
		put(t, d.mem, late, "of a late worker")
		report, err := dispose(1, readAll)
		require.NoError(t, err)
		require.Equal(t, "mem:"+d.chk(1), report.Pointer)
		want := []string{late, d.alone}
		for name := range d.first.files {
			if strings.HasPrefix(name, d.chk(1)) && !strings.HasSuffix(name, core.MetadataName) {
				want = append(want, name)
			}
		}
		require.ElementsMatch(t, want, report.Removed)
		require.Equal(t, []core.KeptObject{{Path: d.common, Reason: "another checkpoint needs it"}}, report.Kept)
		require.False(t, exists(t, d.mem, d.chk(1)))
		require.False(t, exists(t, d.mem, d.alone))
		d.requireOthersIntact(t, d.mem)
	})
}

func TestDisposeOfADryRunChangesNothing(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		require.NoError(t, d.mem.MkdirAll(context.Background(), d.chk(9)))
		before, steps := snapshot(t, d.mem, "/"), d.mem.Mutations()
		planned, err := dispose(1, core.DisposeOptions{Read: readMeta, DryRun: true})
		require.NoError(t, err)
		_, err = dispose(9, core.DisposeOptions{Read: readMeta, DryRun: true})
		require.NoError(t, err, "an empty directory")
		require.Equal(t, steps, d.mem.Mutations())
		require.Equal(t, before, snapshot(t, d.mem, "/"))
		for _, c := range d.flaky.Calls() {
			if strings.Contains(c.Name+c.NewName, "disposed") {
				require.NotEqual(t, faultfs.OpRename, c.Op)
			}
		}
		done, err := dispose(1, readAll)
		require.NoError(t, err)
		require.ElementsMatch(t, planned.Removed, done.Removed)
		require.Equal(t, planned.Kept, done.Kept)
	})
}

// On HDFS a create makes missing parents unless it is told not to: a late task then brings a disposed directory back.
func TestDisposeIsNotUndoneByALateTask(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		ctx := context.Background()
		location, err := d.store.ResolveLocation(ctx, 1, nil)
		require.NoError(t, err)
		begun, late := location.CreateStateStream(ctx, core.Exclusive), location.CreateStateStream(ctx, core.Exclusive)
		_, err = begun.Write(make([]byte, 64<<10))
		require.NoError(t, err)
		_, err = dispose(1, readAll)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.chk(1)), "the file that was being written went too")
		_, err = late.Write(make([]byte, 64<<10))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, errors.Join(begun.Close(), late.Close()))
		require.False(t, exists(t, d.mem, d.chk(1)))
	})
}

func TestDisposeTwiceIsSuccess(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		_, err := dispose(1, readAll)
		require.NoError(t, err)
		for range 2 {
			report, err := dispose(1, readAll)
			require.NoError(t, err)
			require.Empty(t, report.Removed)
		}
		require.NoError(t, d.mem.MkdirAll(context.Background(), d.chk(1)))
		_, err = dispose(1, readAll)
		require.NoError(t, err, "an empty directory is what a crash may leave of it")
		require.False(t, exists(t, d.mem, d.chk(1)))
		_, err = dispose(77, readAll)
		require.NoError(t, err, "one that never was")
		d.requireOthersIntact(t, d.mem)
	})
}

func TestDisposeKeepsForeignFilesAndNamesThem(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		foreign := []string{d.chk(1) + "/.nfs0001", d.chk(1) + "/README", d.chk(1) + "/sub/" + uuidA}
		for _, name := range foreign {
			put(t, d.mem, name, "foreign")
		}
		report, err := dispose(1, readAll)
		require.NoError(t, err)
		var kept []string
		for _, k := range report.Kept {
			kept = append(kept, k.Path)
		}
		require.ElementsMatch(t, []string{d.common, d.chk(1) + "/.nfs0001", d.chk(1) + "/README", d.chk(1) + "/sub"}, kept)
		left := slices.Concat([]string{d.chk(1) + "/._metadata.emptied"}, slices.Sorted(slices.Values(foreign)))
		require.Equal(t, left, filesIn(snapshot(t, d.mem, d.chk(1))), "the mark stays with them")
		d.requireOthersIntact(t, d.mem)

		for range 2 {
			again, err := dispose(1, readAll)
			require.NoError(t, err, "it may be repeated")
			require.ElementsMatch(t, report.Kept, again.Kept)
			require.Equal(t, left, filesIn(snapshot(t, d.mem, d.chk(1))))
		}
		for _, name := range []string{".nfs0001", "README", "sub"} {
			require.NoError(t, d.mem.RemoveAll(context.Background(), d.chk(1)+"/"+name))
		}
		_, err = dispose(1, readAll)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.chk(1)), "without them the directory goes")
	})
}

func TestDisposeWithAFileGoneAlready(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		require.NoError(t, d.mem.Remove(context.Background(), d.alone))
		for name := range d.first.files {
			if strings.HasPrefix(name, d.chk(1)) && !strings.HasSuffix(name, core.MetadataName) {
				require.NoError(t, d.mem.Remove(context.Background(), name))
			}
		}
		_, err := dispose(1, readAll)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.chk(1)))
		d.requireOthersIntact(t, d.mem)
	})
}

func TestDisposeThatCannotReadItsMetadataDeletesNothing(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		ctx := context.Background()
		require.NoError(t, d.mem.Remove(ctx, d.chk(1)+"/_metadata"))
		put(t, d.mem, d.chk(1)+"/_metadata", "garbage")
		put(t, d.mem, d.chk(1)+"/README", "foreign")
		before := snapshot(t, d.mem, d.dir())
		_, err := dispose(1, readAll)
		require.ErrorIs(t, err, core.ErrCorrupt)
		require.ErrorContains(t, err, "nothing was deleted")
		require.Equal(t, before, snapshot(t, d.mem, d.dir()))

		// The way out: what is named like a state file in its own directory, nothing else.
		report, err := dispose(1, core.DisposeOptions{Read: readMeta, IgnoreMetadata: true})
		require.NoError(t, err)
		require.Len(t, report.Removed, 3)
		left := []string{d.chk(1) + "/._metadata.emptied", d.chk(1) + "/README"}
		require.Equal(t, left, filesIn(snapshot(t, d.mem, d.chk(1))))
		require.True(t, exists(t, d.mem, d.alone), "a shared file is garbage for a sweep now")
		report, err = dispose(1, readAll)
		require.NoError(t, err, "an emptied directory needs its list no more")
		require.Equal(t, []core.KeptObject{{Path: d.chk(1) + "/README", Reason: "a foreign file"}}, report.Kept)
		require.Equal(t, left, filesIn(snapshot(t, d.mem, d.chk(1))))
		d.requireOthersIntact(t, d.mem)
	})
}

func TestDisposeKeepsSharedFilesWhileASiblingCannotBeRead(t *testing.T) {
	for _, broken := range []struct {
		name  string
		apply func(t *testing.T, d *disposeRig)
	}{
		{"damaged metadata", func(t *testing.T, d *disposeRig) { put(t, d.mem, d.chk(3)+"/_metadata", "garbage") }},
		{"an object without a path", func(t *testing.T, d *disposeRig) {
			put(t, d.mem, d.chk(3)+"/_metadata", string(encodeMeta(metaEntry{Path: "no/path"})))
		}},
		{"no permission", func(t *testing.T, d *disposeRig) {
			put(t, d.mem, d.chk(3)+"/_metadata", "[]")
			d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool { return strings.HasPrefix(c.Name, d.chk(3)) }, faultfs.Fault{Err: fs.ErrPermission}))
		}},
		{"a damaged neighbour", func(t *testing.T, d *disposeRig) {
			put(t, d.mem, jobBase+"/"+core.JobIDOf("neighbour").String()+"/chk-9/_metadata", "garbage")
		}},
		{"a neighbour without permission", func(t *testing.T, d *disposeRig) {
			neighbour := jobBase + "/" + core.JobIDOf("neighbour").String()
			put(t, d.mem, neighbour+"/chk-9/_metadata", "[]")
			d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool { return strings.HasPrefix(c.Name, neighbour) }, faultfs.Fault{Err: fs.ErrPermission}))
		}},
		{"a base that may not be listed", func(_ *testing.T, d *disposeRig) {
			d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool { return c.Op == faultfs.OpList && c.Name == jobBase }, faultfs.Fault{Err: fs.ErrPermission}))
		}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
				broken.apply(t, d)
				report, err := dispose(1, readAll)
				require.NoError(t, err)
				require.False(t, exists(t, d.mem, d.chk(1)))
				require.True(t, exists(t, d.mem, d.alone))
				found := false
				for _, k := range report.Kept {
					found = found || k.Path == d.alone && strings.Contains(k.Reason, "cannot be read")
				}
				require.True(t, found, "%+v", report.Kept)
				d.requireOthersIntact(t, d.mem)
			})
		})
	}
}

// An error that may pass is no reason to leave files behind for good: nothing is deleted, and the caller tries again.
func TestDisposeDeletesNothingForAPassingErrorOfASibling(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		before := snapshot(t, d.mem, d.dir())
		for _, cause := range []error{core.ErrUnavailable, context.DeadlineExceeded} {
			d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool {
				return c.Op == faultfs.OpOpen && strings.HasPrefix(c.Name, d.chk(2))
			}, faultfs.Fault{Err: cause}))
			_, err := dispose(1, readAll)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "nothing was deleted")
			require.Equal(t, before, snapshot(t, d.mem, d.dir()))
		}
		d.flaky.SetInjector(nil)
		_, err := dispose(1, readAll)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.alone))
	})
}

func TestDisposeSparesProtectedFiles(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		_, err := dispose(1, core.DisposeOptions{Read: readMeta, Protected: []core.Object{{Path: "not a path"}}})
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.Equal(t, []int64{1, 2}, completeIDs(t, d.mem, d.dir()))
		report, err := dispose(1, core.DisposeOptions{Read: readMeta, Protected: []core.Object{{Path: "mem:///" + d.alone}}})
		require.NoError(t, err)
		require.NotContains(t, report.Removed, d.alone)
		require.True(t, exists(t, d.mem, d.alone))
	})
}

func TestDisposeKeepsSharedFilesOnRequest(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		put(t, d.mem, d.chk(3)+"/_metadata", "garbage")
		report, err := dispose(1, core.DisposeOptions{Read: readMeta, KeepShared: true})
		require.NoError(t, err)
		require.True(t, exists(t, d.mem, d.alone))
		require.Contains(t, fmt.Sprint(report.Kept), "as asked")
		require.False(t, exists(t, d.mem, d.chk(1)))
	})
}

func TestDisposeRefusesWhatIsNoCheckpoint(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		put(t, d.mem, d.chk(3)+"/"+uuidA, "in progress")
		put(t, d.mem, d.chk(4)+"/_metadata/x", "a directory")
		put(t, d.mem, d.chk(5), "a file")
		put(t, d.mem, d.chk(6)+"/_metadata", "[]")
		put(t, d.mem, d.chk(6)+"/._metadata.disposed", "[]")
		before := snapshot(t, d.mem, "/")
		for _, id := range []int64{3, 4, 5, 6} {
			for _, opts := range []core.DisposeOptions{readAll, {Read: readMeta, IgnoreMetadata: true}, {Read: readMeta, DryRun: true}} {
				_, err := dispose(id, opts)
				require.ErrorIs(t, err, fs.ErrInvalid, "%d", id)
				require.ErrorContains(t, err, d.chk(id))
			}
		}
		_, err := dispose(1, core.DisposeOptions{})
		require.ErrorIs(t, err, fs.ErrInvalid, "without a reader")
		_, err = dispose(1, core.DisposeOptions{IgnoreMetadata: true})
		require.ErrorIs(t, err, fs.ErrInvalid, "siblings cannot be read without one either")
		_, err = dispose(-1, readAll)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrInvalid)
		}
		require.Equal(t, before, snapshot(t, d.mem, "/"))
	})
}

func TestDisposeOfASavepoint(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	kept := r.commit(t, owner, 1, 1, 1, nil)
	pending, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	other, err := owner.BeginSavepoint(ctx, "/save")
	require.NoError(t, err)
	dir := pending.CheckpointDir()
	put(t, r.mem, dir+"/"+uuidA, "state")
	put(t, r.mem, dir+"/_metadata", string(encodeMeta(metaEntry{Name: uuidA}, metaEntry{Path: "mem:" + kept.shared[0]})))
	report, err := core.Dispose(ctx, r.mem, dir, readAll)
	require.NoError(t, err)
	require.Equal(t, []string{dir + "/" + uuidA}, report.Removed)
	require.Equal(t, kept.shared[0], report.Kept[0].Path)
	require.False(t, exists(t, r.mem, dir))
	require.True(t, exists(t, r.mem, other.CheckpointDir()))
	requireIntact(t, r.mem, kept)
}

func TestDisposeLeavesAnEmptyDirectoryThatIsNotOurs(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	require.NoError(t, mem.MkdirAll(ctx, "/some/empty"))
	_, err := core.Dispose(ctx, mem, "/some/empty", readAll)
	require.NoError(t, err)
	require.True(t, exists(t, mem, "/some/empty"))
}

func TestDisposeInALayoutWithoutJobDirectory(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	r.store = storageOn(t, r.mem, core.Options{NoJobDir: true})
	owner := r.claim(t)
	first := r.commit(t, owner, 1, 1, 2, nil)
	second := r.commit(t, owner, 2, 1, 1, onlyOne(first.sharedOf()))
	// A job that has a directory of its own in this one and was restored from the first checkpoint.
	guest := r.dir() + "/" + core.JobIDOf("guest").String()
	var needed string
	for _, name := range first.shared {
		if _, common := second.files[name]; !common {
			needed = name
		}
	}
	put(t, r.mem, guest+"/chk-1/_metadata", string(encodeMeta(metaEntry{Path: "mem:" + needed})))
	report, err := owner.Dispose(ctx, 1, readAll)
	require.NoError(t, err)
	require.Len(t, report.Kept, 2)
	require.True(t, exists(t, r.mem, needed))
	requireIntact(t, r.mem, second)

	require.NoError(t, r.mem.RemoveAll(ctx, guest))
	swept, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []string{needed}, swept.Removed)
	requireIntact(t, r.mem, second)
}

// A job that was restored from another one's checkpoint goes on using its shared files, in whatever layout the two are.
func TestDisposeSparesWhatANeighbourNeeds(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		// The neighbour names the same file system in another way.
		put(t, d.mem, jobBase+"/"+core.JobIDOf("neighbour").String()+"/chk-31/_metadata", string(encodeMeta(metaEntry{Path: "mem://alias:8020" + d.alone})))
		report, err := dispose(1, readAll)
		require.NoError(t, err)
		require.Contains(t, report.Kept, core.KeptObject{Path: d.alone, Reason: "another checkpoint needs it"})
		require.True(t, exists(t, d.mem, d.alone))
		d.requireOthersIntact(t, d.mem)
	})
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		put(t, d.mem, jobBase+"/chk-31/_metadata", string(encodeMeta(metaEntry{Path: "mem:" + d.alone})))
		_, err := dispose(1, readAll)
		require.NoError(t, err)
		require.True(t, exists(t, d.mem, d.alone), "needed by a job that runs without a directory of its own")
	})
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		neighbour := jobBase + "/" + core.JobIDOf("neighbour").String()
		put(t, d.mem, neighbour+"/chk-31/._metadata.disposed", string(encodeMeta(metaEntry{Path: "mem:" + d.alone})))
		put(t, d.mem, jobBase+"/not-a-job/chk-1/_metadata", "garbage")
		_, err := dispose(1, readAll)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.alone), "what is being disposed of needs nothing")
	})
}

// replaceOnly is a file system that refuses renames without replacing once it is told to.
type replaceOnly struct {
	core.FileSystem
	refuse bool
}

func (f *replaceOnly) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if f.refuse && mode == core.RenameNoReplace {
		return core.RenameError(oldname, newname, errors.ErrUnsupported)
	}
	return f.FileSystem.Rename(ctx, oldname, newname, mode)
}

// Where a rename without replacing is a link and a removal, an owner could be fenced between the two and still take the
// metadata away.
func TestDisposeMovesMetadataInOneStepOnEveryFileSystem(t *testing.T) {
	ctx := context.Background()
	d := newDisposeRig(t)
	strict := &replaceOnly{FileSystem: d.mem}
	owner, err := storageOn(t, strict, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	strict.refuse = true
	_, err = owner.Dispose(ctx, 1, readAll)
	require.NoError(t, err)
	_, err = core.Dispose(ctx, strict, d.chk(2), readAll)
	require.NoError(t, err)
	require.Empty(t, completeIDs(t, d.mem, d.dir()))
}
