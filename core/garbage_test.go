package core_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

func TestPlanGarbage(t *testing.T) {
	const job = "/job"
	for _, c := range []struct {
		name      string
		dirs      map[string][]core.FileInfo
		needed    core.NeededNames
		blocked   string
		resume    []int64
		abandoned []int64
		remove    []string
		epochs    []uint64
		kept      []string
	}{
		{name: "nothing", dirs: map[string][]core.FileInfo{job: nil}},
		{
			name: "a clean job",
			dirs: map[string][]core.FileInfo{
				job:               {dirEntry(".epoch-5"), dirEntry("chk-7"), dirEntry("shared"), dirEntry("taskowned")},
				job + "/chk-7":    {fileEntry("_metadata"), fileEntry(uuidA)},
				job + "/shared":   {fileEntry(uuidB)},
				job + "/.epoch-5": {fileEntry("owner")},
			},
			needed: needed("/job/chk-7/"+uuidA, "/job/shared/"+uuidB),
		},
		{
			name: "state that nothing needs",
			dirs: map[string][]core.FileInfo{
				job:             {dirEntry("chk-7"), dirEntry("shared"), dirEntry("taskowned")},
				job + "/chk-7":  {fileEntry("_metadata"), fileEntry(uuidA), fileEntry(uuidB), fileEntry("._metadata.inprogress." + uuidC), fileEntry("._sync." + uuidC)},
				job + "/shared": {fileEntry(uuidA), fileEntry(uuidB)},
			},
			needed: needed("/job/chk-7/"+uuidA, "/job/shared/"+uuidB),
			remove: []string{"/job/chk-7/" + uuidB, "/job/chk-7/._metadata.inprogress." + uuidC, "/job/chk-7/._sync." + uuidC, "/job/shared/" + uuidA},
		},
		{
			name: "the same while something cannot be read",
			dirs: map[string][]core.FileInfo{
				job:             {dirEntry("chk-7"), dirEntry("chk-8"), dirEntry("chk-9"), dirEntry("shared")},
				job + "/chk-7":  {fileEntry("_metadata"), fileEntry(uuidB)},
				job + "/chk-8":  {fileEntry(uuidC)},
				job + "/chk-9":  {fileEntry("._metadata.disposed")},
				job + "/shared": {fileEntry(uuidA)},
			},
			blocked:   "chk-7 cannot be read, and may need it",
			resume:    []int64{9},
			abandoned: []int64{8},
			kept:      []string{"/job/chk-7/" + uuidB + " (cannot be read)", "/job/shared/" + uuidA + " (cannot be read)"},
		},
		{
			name: "foreign things",
			dirs: map[string][]core.FileInfo{
				job: {
					fileEntry("README"), dirEntry("chk-abc"), dirEntry("chk-013"), fileEntry("chk-20"), linkEntry("chk-21"), dirEntry("savepoint-0a1b2c-0123456789ab"),
					fileEntry(".epoch-9"), dirEntry(".epoch-09"), linkEntry("shared"), fileEntry("taskowned"), dirEntry("chk-7"), dirEntry("chk-8"),
				},
				job + "/chk-7": {fileEntry("_metadata"), fileEntry("x"), dirEntry(uuidA), fileEntry(uuidB + ".crc")},
				job + "/chk-8": {fileEntry("x"), fileEntry(uuidB)},
			},
			remove: []string{"/job/chk-8/" + uuidB},
			kept: []string{
				"/job/README (not a part)", "/job/chk-abc (not a part)", "/job/chk-013 (not a part)", "/job/chk-20 (not a part)", "/job/chk-21 (not a part)",
				"/job/savepoint-0a1b2c-0123456789ab (not a part)", "/job/.epoch-9 (not a part)", "/job/.epoch-09 (not a part)", "/job/shared (not a part)", "/job/taskowned (not a part)",
				"/job/chk-7/x (foreign)", "/job/chk-7/" + uuidA + " (foreign)", "/job/chk-7/" + uuidB + ".crc (foreign)", "/job/chk-8/x (foreign)",
			},
		},
		{
			name: "checkpoints on their way out or given up, by number",
			dirs: map[string][]core.FileInfo{
				job:             {dirEntry("chk-10"), dirEntry("chk-11"), dirEntry("chk-12"), dirEntry("chk-9")},
				job + "/chk-10": {},
				job + "/chk-9":  {fileEntry(uuidA), fileEntry("._metadata.inprogress." + uuidB)},
				job + "/chk-11": {fileEntry("._metadata.disposed"), fileEntry("x")},
				job + "/chk-12": {fileEntry("._metadata.emptied")},
			},
			resume:    []int64{11, 12},
			abandoned: []int64{9, 10},
		},
		{
			name: "a file of a checkpoint given up that another job needs",
			dirs: map[string][]core.FileInfo{
				job:            {dirEntry("chk-9")},
				job + "/chk-9": {fileEntry(uuidA), fileEntry(uuidB)},
			},
			needed: needed("/job/chk-9/" + uuidA),
			remove: []string{"/job/chk-9/" + uuidB},
		},
		{
			name: "task-owned state is the tasks'",
			dirs: map[string][]core.FileInfo{
				job: {dirEntry("taskowned")}, job + "/taskowned": {fileEntry(uuidA)},
			},
		},
		{
			name:   "epochs",
			dirs:   map[string][]core.FileInfo{job: {dirEntry(".epoch-1"), dirEntry(".epoch-10"), dirEntry(".epoch-4"), dirEntry(".epoch-5")}},
			epochs: []uint64{1, 4},
			kept:   []string{"/job/.epoch-10 (newer claim)"},
		},
		{
			name: "symbolic links with names of state files are unlinked",
			dirs: map[string][]core.FileInfo{
				job: {dirEntry("chk-7"), dirEntry("shared")}, job + "/chk-7": {fileEntry("_metadata"), linkEntry(uuidA)}, job + "/shared": {linkEntry(uuidB), linkEntry("x")},
			},
			remove: []string{"/job/chk-7/" + uuidA, "/job/shared/" + uuidB},
			kept:   []string{"/job/shared/x (foreign)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := core.PlanGarbage(core.GarbageFacts{JobDir: job, Epoch: 5, Dirs: c.dirs, Needed: c.needed, Blocked: c.blocked})
			_, kept := planned(core.DisposalPlan{Kept: plan.Kept})
			require.Equal(t, c.resume, plan.Resume)
			require.Equal(t, c.abandoned, plan.Abandoned)
			require.Equal(t, c.remove, plan.Remove)
			require.Equal(t, c.epochs, plan.Epochs)
			require.Equal(t, c.kept, kept)
		})
	}
}

func TestSweepRemovesWhatNoCheckpointNeeds(t *testing.T) {
	ctx := context.Background()
	z := newZombieRig(t)
	foreign := map[string]string{}
	for _, name := range []string{"/notes", "/shared/README", "/chk-3/README", "/chk-4/README", "/taskowned/" + uuid.NewString(), "/chk-013/" + uuid.NewString(), "/savepoint-0a1b2c-0123456789ab/" + uuid.NewString()} {
		put(t, z.mem, z.dir()+name, "foreign")
		foreign[z.dir()+name] = "foreign"
	}
	owner := z.claim(t)
	report, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []int64{2}, report.Resumed)
	require.Equal(t, []int64{5}, report.Abandoned)
	require.Len(t, report.Removed, 4, "late in chk-3, given up in chk-4, in shared of no checkpoint and of the disposed one")

	want := map[string]bool{}
	for _, c := range []*checkpoint{z.oldest, z.newer} {
		requireIntact(t, z.mem, c)
		for name := range c.files {
			want[name] = true
		}
	}
	for name := range foreign {
		want[name] = true
	}
	after := filesIn(snapshot(t, z.mem, z.dir()))
	require.Equal(t, slices.Sorted(keysOf(want)), withoutEpochs(after))
	require.Len(t, after, len(want)+1, "and the owner's claim")

	again, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Empty(t, again.Resumed)
	require.Empty(t, again.Abandoned)
	require.Empty(t, again.Removed)
	require.Equal(t, after, filesIn(snapshot(t, z.mem, z.dir())))
}

func TestSweepWithUnreadableMetadataKeepsEveryStateFile(t *testing.T) {
	ctx := context.Background()
	z := newZombieRig(t)
	put(t, z.mem, z.chk(8)+"/_metadata", "garbage")
	owner := z.claim(t)
	before := filesIn(snapshot(t, z.mem, z.dir()))
	report, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Empty(t, report.Removed)
	require.Equal(t, []int64{4, 5}, report.Abandoned)
	require.Equal(t, []int64{2}, report.Resumed)
	var gone []string
	for _, name := range before {
		if !exists(t, z.mem, name) {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		require.True(t, strings.HasPrefix(name, z.chk(2)) || strings.HasPrefix(name, z.chk(4)) || strings.HasPrefix(name, z.chk(5)), name)
	}
	require.NotEmpty(t, report.Kept)
}

func TestSweepLooksAtNeighboursToo(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	wanted, unwanted := r.dir()+"/shared/"+uuid.NewString(), r.dir()+"/shared/"+uuid.NewString()
	put(t, r.mem, wanted, "x")
	put(t, r.mem, unwanted, "x")
	put(t, r.mem, jobBase+"/"+core.JobIDOf("neighbour").String()+"/chk-1/_metadata", string(encodeMeta(metaEntry{Path: "mem:" + wanted})))
	report, err := r.claim(t).Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []string{unwanted}, report.Removed)
	require.True(t, exists(t, r.mem, wanted))
}

func TestSweepRemovesEpochsThatCameBackAndSparesNewerOnes(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	for range 3 {
		r.claim(t)
	}
	owner := r.claim(t)
	put(t, r.mem, r.dir()+"/.epoch-2/owner", "{}")
	put(t, r.mem, r.dir()+"/.epoch-2/"+uuid.NewString()+"/chk-1.disposed", "[]")
	require.NoError(t, r.mem.MkdirAll(ctx, r.chk(1)))
	put(t, r.mem, r.dir()+"/.epoch-9/owner", "{}")
	report, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.False(t, exists(t, r.mem, r.dir()+"/.epoch-2"))
	require.True(t, exists(t, r.mem, r.dir()+"/.epoch-9/owner"), "a claim that has begun is not ours to end")
	require.Equal(t, []core.KeptObject{{Path: r.dir() + "/.epoch-9", Reason: "a newer claim has begun"}}, report.Kept)
	require.NoError(t, owner.Check(ctx))
}

// Any call of a sweep fails. It removes garbage only, says that it is incomplete, and the next one finishes.
func TestSweepWithAFaultInAnyCall(t *testing.T) {
	ctx := context.Background()
	clean := newZombieRig(t)
	first := clean.flaky.Count()
	_, err := clean.zombie.Sweep(ctx, readMeta)
	require.NoError(t, err)
	want := withoutEpochs(filesIn(snapshot(t, clean.mem, clean.dir())))
	calls := clean.flaky.Count() - first
	require.Greater(t, calls, 30)
	for i := range calls {
		for _, fault := range []faultfs.Fault{{Err: errors.New("broken cable")}, {Err: core.ErrUnavailable}, {Err: errors.New("reply lost"), After: true}, {Err: fs.ErrPermission}} {
			z := newZombieRig(t)
			number := z.flaky.Count() + i
			z.flaky.SetInjector(faultfs.Nth(number, fault))
			report, err := z.zombie.Sweep(ctx, readMeta)
			call := z.flaky.Calls()[number]
			requireIntact(t, z.mem, z.oldest)
			requireIntact(t, z.mem, z.newer)
			switch {
			case err != nil:
				require.ErrorIs(t, err, fault.Err, "%v", call)
			case call.Op == faultfs.OpRemove, fault.After: // the file is gone all the same, or the call failed by itself
			default:
				require.NotEmpty(t, report.Kept, "%v: what is needed is not known, so something was kept", call)
			}
			z.flaky.SetInjector(nil)
			_, err = z.zombie.Sweep(ctx, readMeta)
			require.NoError(t, err)
			requireIntact(t, z.mem, z.oldest)
			requireIntact(t, z.mem, z.newer)
			require.Len(t, withoutEpochs(filesIn(snapshot(t, z.mem, z.dir()))), len(want), "%v", call)
		}
	}
}

func TestSweepOfACancelledContext(t *testing.T) {
	z := newZombieRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := snapshot(t, z.mem, z.dir())
	_, err := z.zombie.Sweep(ctx, readMeta)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, snapshot(t, z.mem, z.dir()))
}
