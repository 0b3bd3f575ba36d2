package cli

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// jobWithAllStates has chk-9 whose disposal has begun, chk-10 that is damaged, chk-11 that is complete and chk-12 in progress.
func jobWithAllStates(r *rig) *job {
	j := r.newJob("jobs", jobID)
	for id := range int64(3) {
		j.checkpoint(9 + id)
	}
	j.begin(12)
	damage(r.t, path.Join(j.dir(), "chk-10", core.MetadataName), 40)
	require.NoError(r.t, os.Rename(path.Join(j.dir(), "chk-9", core.MetadataName), path.Join(j.dir(), "chk-9", core.DisposedName)))
	r.age()
	return j
}

func TestLsShowsEveryStateOfAJob(t *testing.T) {
	r := newRig(t)
	j := jobWithAllStates(r)
	r.golden("ls-job.txt", "ls", j.dir())
	r.golden("ls-job.json", "ls", "--json", j.dir())
	r.golden("ls-quick.txt", "ls", "--quick", j.dir())
}

func TestLsShowsTheJobsOfABaseDirectoryAndPassesOverForeignNames(t *testing.T) {
	r := newRig(t)
	r.newJob("base", core.JobIDOf("a")).checkpoint(1)
	b := r.newJob("base", core.JobIDOf("b"))
	b.checkpoint(2)
	b.checkpoint(10)
	for _, dir := range []string{
		"lost+found", "chk-013", "chk-abc", "chk--1", "chk-99999999999999999999", "savepoint-1", "0123456789ABCDEF0123456789ABCDEF",
	} {
		require.NoError(t, os.MkdirAll(r.path("base", dir), 0o700))
		require.NoError(t, os.MkdirAll(path.Join(b.dir(), dir), 0o700))
	}
	for _, file := range []string{".DS_Store", ".nfs000000001", "chk-20", "._1.delta", "savepoint-123456-123456789012"} {
		require.NoError(t, os.WriteFile(path.Join(b.dir(), file), nil, 0o600))
	}
	r.age()
	fsys := r.inject(denies(faultfs.OpList, "lost+found"))
	r.golden("ls-base.txt", "ls", r.path("base"))
	onlyReads(r, fsys, "lost+found", "chk-013", "chk-abc", "chk-20", ".nfs000000001")
}

func TestLsShowsADirectoryOfSavepoints(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.savepoint("savepoints", 4)
	j.savepoint("savepoints", 5)
	r.golden("ls-savepoints.txt", "ls", "savepoints")
	r.golden("ls-savepoints.json", "ls", "--json", "savepoints")
}

func TestLsShowsACheckpointItself(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(3)
	j.begin(4)
	for dir, want := range map[string]report.State{"chk-3": report.Complete, "chk-4": report.InProgress} {
		var l report.Listing
		r.json(&l, "ls", path.Join(j.dir(), dir))
		require.Len(t, l.Entries, 1)
		require.Equal(t, want, l.Entries[0].State)
		require.Equal(t, jobID.String(), l.Entries[0].Job)
		require.Equal(t, dir, l.Entries[0].Name())
	}
}

func TestLsShowsTreesOfFlink(t *testing.T) {
	r := newRig(t)
	r.copyFlink("f23-merging-within-hashmap")
	r.copyFlink("f23-rocksdb-incremental")
	r.golden("ls-flink-merged.txt", "ls", r.path("f23-merging-within-hashmap/checkpoints"))
	r.golden("ls-flink-incremental.txt", "ls", r.path("f23-rocksdb-incremental/checkpoints"))
	r.golden("ls-flink-savepoints.txt", "ls", r.path("f23-merging-within-hashmap/savepoints"))
}

func TestLsOfNothingSaysSo(t *testing.T) {
	r := newRig(t)
	r.golden("ls-empty.txt", "ls", r.root)
	r.golden("ls-empty.json", "ls", "--json", r.root)
	r.golden("ls-missing.txt", "ls", r.path("nowhere"))
	r.golden("ls-missing.json", "ls", "--json", r.path("nowhere"))
}

func TestQuickLsReadsNoMetadata(t *testing.T) {
	r := newRig(t)
	j := jobWithAllStates(r)
	fsys := r.inject(nil)
	require.Equal(t, 0, r.run("ls", "--quick", j.dir()).code)
	for _, call := range fsys.Calls() {
		require.NotEqual(t, faultfs.OpOpen, call.Op)
	}
}

func TestLsOfALiveDirectoryWritesNothing(t *testing.T) {
	r := newRig(t)
	j := jobWithAllStates(r)
	seen := r.snapshot()
	fsys := r.inject(nil)
	r.run("ls", r.path("jobs"))
	r.run("latest", j.dir())
	r.run("inspect", path.Join(j.dir(), "chk-11"))
	r.run("verify", "--deep", path.Join(j.dir(), "chk-11"), path.Join(j.dir(), "chk-10"))
	r.run("dispose", "--force", path.Join(j.dir(), "chk-11"), path.Join(j.dir(), "chk-10"))
	onlyReads(r, fsys)
	require.Equal(t, seen, r.snapshot())
}

func TestLsLeavesOutACheckpointThatVanishesMeanwhile(t *testing.T) {
	for name, at := range map[string]struct {
		op   faultfs.Op
		name string
	}{
		"before it is looked at":      {faultfs.OpStat, "chk-2/_metadata"},
		"before its metadata is read": {faultfs.OpOpen, "chk-2/_metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			j := r.newJob("jobs", jobID)
			for id := range int64(3) {
				j.checkpoint(1 + id)
			}
			r.inject(before(at.op, at.name, func() { require.NoError(t, os.RemoveAll(path.Join(j.dir(), "chk-2"))) }))
			var l report.Listing
			d := r.json(&l, "ls", j.dir())
			require.Equal(t, 0, d.ExitCode)
			require.Len(t, l.Entries, 2)
			require.Equal(t, "chk-1", l.Entries[0].Name())
			require.Equal(t, "chk-3", l.Entries[1].Name())
		})
	}
}

func TestLsShowsThatTheDisposalOfACheckpointBeganMeanwhile(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(1)
	dir := path.Join(j.dir(), "chk-1")
	r.inject(before(faultfs.OpOpen, "chk-1/_metadata", func() {
		require.NoError(t, os.Rename(path.Join(dir, core.MetadataName), path.Join(dir, core.DisposedName)))
	}))
	var l report.Listing
	require.Equal(t, 0, r.json(&l, "ls", j.dir()).ExitCode)
	require.Equal(t, report.Disposing, l.Entries[0].State)
}

func TestLsGoesOnBehindWhatItCannotRead(t *testing.T) {
	r := newRig(t)
	a, b := r.newJob("base", core.JobIDOf("a")), r.newJob("base", core.JobIDOf("b"))
	a.checkpoint(1)
	a.checkpoint(2)
	b.checkpoint(3)
	r.inject(faultfs.Any(denies(faultfs.OpOpen, "chk-1/_metadata"), denies(faultfs.OpList, b.dir())))
	var l report.Listing
	d := r.json(&l, "ls", r.path("base"))
	require.Equal(t, 3, d.ExitCode)
	require.Len(t, d.Errors, 2)
	for _, e := range d.Errors {
		require.Equal(t, report.Permission, e.Kind)
	}
	require.Len(t, l.Entries, 2)
	require.Equal(t, report.Broken, l.Entries[0].State)
	require.Equal(t, report.Permission, l.Entries[0].Problem.Kind)
	require.Equal(t, report.Complete, l.Entries[1].State)

	got := r.run("ls", r.path("base"))
	require.Equal(t, 3, got.code)
	require.Contains(t, got.stdout, "broken")
	require.Contains(t, got.stderr, "hdfsckpt: open /ckpt/base/"+core.JobIDOf("a").String()+"/chk-1/_metadata: permission denied\n")
}

func TestLsFollowsALinkThatTheUserNames(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(1)
	require.NoError(t, os.Symlink(j.dir(), r.path("current")))
	require.NoError(t, os.Symlink(path.Join(j.dir(), "chk-1"), r.path("newest")))
	var l report.Listing
	require.Equal(t, 0, r.json(&l, "ls", "current").ExitCode)
	require.Equal(t, jobID.String(), l.Entries[0].Job)
	require.Equal(t, 0, r.run("verify", "newest").code)
	require.Equal(t, 1, r.run("dispose", "--force", "newest").code, "a disposal follows no link")
}
