package core_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

const (
	planJob  = "/job"
	planPack = "job_0123456789abcdef0123456789abcdef_tm_hdfsckpt-w1"
)

func TestPlanDisposalOfPackedStates(t *testing.T) {
	const own, shared = planJob + "/taskowned/" + planPack, planJob + "/shared/" + planPack
	flink := planJob + "/taskowned/job_0123456789abcdef0123456789abcdef_tm_container_1"
	segment := func(name string) core.Object { return core.Object{Path: "hdfs://ns1" + name, Size: -1} }
	directory := func(name string) core.Object {
		return core.Object{Path: "hdfs://ns1" + name, Size: -1, Directory: true}
	}
	for _, c := range []struct {
		name    string
		objects []core.Object
		needed  core.NeededNames
		blocked string
		remove  []string
		kept    []string
	}{
		{
			name:    "files of the checkpoint alone, and the worker's directories",
			objects: []core.Object{directory(own), directory(shared), segment(own + "/" + uuidA), segment(shared + "/" + uuidB)},
			remove:  []string{own + "/" + uuidA, shared + "/" + uuidB},
		},
		{
			name:    "files that others need",
			objects: []core.Object{segment(own + "/" + uuidA), segment(shared + "/" + uuidB)},
			needed:  needed(own+"/"+uuidA, shared+"/"+uuidB),
			kept:    []string{own + "/" + uuidA + " (needs it)", shared + "/" + uuidB + " (needs it)"},
		},
		{
			name:    "while something cannot be read",
			objects: []core.Object{segment(own + "/" + uuidA), segment(shared + "/" + uuidB)},
			blocked: "/job/chk-4 cannot be read, and may need it",
			kept:    []string{own + "/" + uuidA + " (cannot be read)", shared + "/" + uuidB + " (cannot be read)"},
		},
		{
			name: "not of our making, or elsewhere",
			objects: []core.Object{
				segment(flink + "/" + uuidA), directory(flink), segment(own + "/data"), segment(own + "/sub/" + uuidA),
				segment(planJob + "/taskowned/" + uuidA), segment("/other/taskowned/" + planPack + "/" + uuidA),
			},
			kept: []string{
				flink + "/" + uuidA + " (outside)", flink + " (outside)", own + "/data (outside)", own + "/sub/" + uuidA + " (outside)",
				planJob + "/taskowned/" + uuidA + " (outside)", "/other/taskowned/" + planPack + "/" + uuidA + " (outside)",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := core.PlanDisposal(core.DisposalFacts{
				URI: "hdfs://ns1", Dir: planJob + "/chk-5", SharedDir: planJob + "/shared", TaskOwnedDir: planJob + "/taskowned",
				Objects: c.objects, Needed: c.needed, SharedBlocked: c.blocked,
			})
			remove, kept := planned(plan)
			require.Equal(t, c.remove, remove)
			require.Equal(t, c.kept, kept)
		})
	}
}

func TestADirectoryOfPackedStatesIsNotNeededAsAWhole(t *testing.T) {
	n := core.NeededNames{}
	require.NoError(t, n.Add([]core.Object{
		{Path: "hdfs://ns1/job/shared/" + planPack, Directory: true},
		{Path: "hdfs://ns1/job/shared/" + planPack + "/" + uuidA, Size: -1},
		{Path: "hdfs://ns1/job/shared/job_x_op_y_0_1", Directory: true},
	}))
	require.True(t, n.Cover("/job/shared/"+planPack+"/"+uuidA))
	require.False(t, n.Cover("/job/shared/"+planPack+"/"+uuidB))
	require.True(t, n.Cover("/job/shared/job_x_op_y_0_1/"+uuidB), "of Flink's all is needed")
}

func TestPlanGarbageOfPackedStates(t *testing.T) {
	const own, shared = planJob + "/taskowned/" + planPack, planJob + "/shared/" + planPack
	facts := core.GarbageFacts{
		JobDir: planJob,
		Dirs: map[string][]core.FileInfo{
			planJob:                {dirEntry("shared"), dirEntry("taskowned"), fileEntry(".restored." + uuidA)},
			planJob + "/shared":    {dirEntry(planPack), dirEntry(planPack + "2"), dirEntry("job_x_op_y_0_1")},
			planJob + "/taskowned": {dirEntry(planPack), dirEntry("sink"), fileEntry(uuidA)},
			shared:                 {fileEntry(uuidA), fileEntry(uuidB)},
			shared + "2":           {fileEntry(uuidA)},
			own:                    {fileEntry(uuidC), fileEntry("README"), dirEntry("sub")},
		},
		Needed: needed(shared + "/" + uuidA),
	}
	plan := core.PlanGarbage(facts)
	require.Equal(t, []string{shared + "/" + uuidB, shared + "2/" + uuidA, own + "/" + uuidC}, plan.Remove)
	require.Equal(t, []string{shared + "2"}, plan.EmptyPacks)
	_, kept := planned(core.DisposalPlan{Kept: plan.Kept})
	require.Equal(t, []string{planJob + "/shared/job_x_op_y_0_1 (foreign)", own + "/README (foreign)", own + "/sub (foreign)"}, kept)

	facts.Blocked = "/job/chk-4 cannot be read, and may need it"
	plan = core.PlanGarbage(facts)
	require.Empty(t, plan.Remove)
	require.Empty(t, plan.EmptyPacks)
}

// A worker goes on after a sweep has removed its empty directory.
func TestASweepTakesWhatAWorkerPackedInVain(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	fsys := faultfs.Wrap(r.mem, nil)
	store := storageOn(t, fsys, core.Options{})
	owner, err := store.Claim(ctx)
	require.NoError(t, err)
	packer, err := store.NewPacker(core.PackOptions{Worker: "w1"})
	require.NoError(t, err)
	location, err := store.ResolveLocation(ctx, 1, nil)
	require.NoError(t, err)
	for range 2 {
		pack := packer.Begin(ctx, 1, location)
		for _, scope := range []core.Scope{core.Exclusive, core.Shared} {
			_, err := writePacked(pack, scope, noise(10))
			require.NoError(t, err)
		}
		require.NoError(t, pack.Commit())
		report, err := owner.Sweep(ctx, readMeta)
		require.NoError(t, err)
		require.Len(t, report.Removed, 2)
		require.Empty(t, report.Kept)
		for _, dir := range []string{packer.TaskOwnedDir(), packer.SharedDir()} {
			_, name, err := core.SplitQualified(dir)
			require.NoError(t, err)
			require.False(t, exists(t, r.mem, name))
		}
	}
}

func TestPlacesOfPackedStates(t *testing.T) {
	r := newJobRig(t)
	location, err := r.store.ResolveLocation(context.Background(), 1, nil)
	require.NoError(t, err)
	for name, want := range map[string]core.Place{
		"/taskowned/" + planPack + "/" + uuidA:          core.InPackDir,
		"/taskowned/" + planPack + "/data":              core.InTaskOwnedDir,
		"/taskowned/" + planPack:                        core.InTaskOwnedDir,
		"/taskowned/sub/" + planPack + "/" + uuidA:      core.InTaskOwnedDir,
		"/shared/" + planPack + "/" + uuid.NewString():  core.InSharedDir,
		"/chk-2/" + planPack + "/" + uuid.NewString():   core.Elsewhere,
		"/../x/taskowned/" + planPack + "/" + uuidA:     core.Elsewhere,
		"/taskowned/" + planPack + "/sub/" + uuidA + "": core.InTaskOwnedDir,
	} {
		require.Equal(t, want, location.Place(core.Qualify(r.mem.URI(), r.dir()+name)), name)
	}
}

func TestRestoredMarksSurviveAndAreFenced(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	for _, mark := range []core.RestoredMark{{Pointer: "hdfs://ns1/a/chk-1", Claimed: true}, {Pointer: "hdfs://ns1/b"}} {
		require.NoError(t, owner.MarkRestored(ctx, mark))
	}
	marks, err := r.store.RestoredMarks(ctx)
	require.NoError(t, err)
	claimed := map[string]bool{}
	for _, mark := range marks {
		claimed[mark.Pointer] = mark.Claimed
	}
	require.Equal(t, map[string]bool{"hdfs://ns1/a/chk-1": true, "hdfs://ns1/b": false}, claimed)
	report, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Empty(t, report.Kept)
	next := r.claim(t)
	require.ErrorIs(t, owner.MarkRestored(ctx, core.RestoredMark{Pointer: "hdfs://ns1/c"}), core.ErrFenced)
	require.ErrorIs(t, owner.ForgetRestored(ctx, marks[0]), core.ErrFenced)
	require.NoError(t, next.ForgetRestored(ctx, marks[0]))
	require.NoError(t, next.ForgetRestored(ctx, marks[0]))
	left, err := r.store.RestoredMarks(ctx)
	require.NoError(t, err)
	require.Equal(t, marks[1:], left)
	require.Error(t, next.ForgetRestored(ctx, core.RestoredMark{Pointer: "hdfs://ns1/b"}))
}
