package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// nameNodeCalls is what a call costs on HDFS, in calls to the NameNode, for files of one block and listings of one page: a file
// is created, gets its block and is completed; the rest is one call each. Reads and writes of data go to DataNodes.
var nameNodeCalls = map[faultfs.Op]int{
	faultfs.OpCreate: 3, faultfs.OpOpen: 1, faultfs.OpStat: 1, faultfs.OpList: 1, faultfs.OpMkdirAll: 1, faultfs.OpRename: 1,
	faultfs.OpRemove: 1, faultfs.OpRemoveAll: 1,
}

func costOf(calls []faultfs.Call) int {
	cost := 0
	for _, c := range calls {
		cost += nameNodeCalls[c.Op]
	}
	return cost
}

// packingJob is a job whose workers have many states each.
type packingJob struct {
	storage *core.Storage
	c       *Coordinator
	packers []*core.Packer
	uploads []*Uploads
	states  int  // of each worker and scope
	shared  bool // with shared states, half of which each checkpoint replaces
}

func newPackingJob(tb testing.TB, fsys core.FileSystem, workers, states int, shared bool, change func(*Options)) *packingJob {
	tb.Helper()
	return newPackingJobAt(tb, fsys, base, workers, states, shared, change)
}

func newPackingJobAt(
	tb testing.TB, fsys core.FileSystem, dir string, workers, states int, shared bool, change func(*Options),
) *packingJob {
	tb.Helper()
	storage, err := core.NewStorage(fsys, dir, jobID, core.Options{InlineThreshold: core.NeverInline})
	require.NoError(tb, err)
	j := &packingJob{storage: storage, states: states, shared: shared}
	for i := range workers {
		packer, err := storage.NewPacker(core.PackOptions{Worker: fmt.Sprint("worker-", i)})
		require.NoError(tb, err)
		j.packers, j.uploads = append(j.packers, packer), append(j.uploads, &Uploads{})
	}
	opts := Options{
		Storage: storage, Send: j.send, Operators: []Operator{{UID: "packed", Parallelism: workers}},
		Notify: func(_ context.Context, n Notice) {
			for _, u := range j.uploads {
				u.Notice(n)
			}
		},
	}
	if change != nil {
		change(&opts)
	}
	j.c, err = New(opts)
	require.NoError(tb, err)
	_, err = j.c.Start(tb.Context())
	require.NoError(tb, err)
	return j
}

func (j *packingJob) send(ctx context.Context, t Trigger) error {
	for i := range j.packers {
		if err := j.work(ctx, t, i); err != nil {
			return err
		}
	}
	return nil
}

// work is what worker i does with a trigger.
func (j *packingJob) work(ctx context.Context, t Trigger, i int) (err error) {
	pack, err := t.BeginPack(ctx, j.packers[i])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	write := func(scope core.Scope, k int) (metadata.NamedFile, error) {
		name := fmt.Sprintf("%d of checkpoint %d", k, t.CheckpointID)
		handle, err := WritePacked(ctx, pack, scope, func(w io.Writer) error {
			_, err := io.WriteString(w, name)
			return err
		})
		return metadata.NamedFile{LocalPath: name, Handle: handle}, err
	}
	op := j.c.Operators()[0]
	groups, err := metadata.KeyGroupsOfSubtask(i, op.Parallelism, op.MaxParallelism)
	if err != nil {
		return err
	}
	keyed := &metadata.IncrementalHandle{
		CheckpointID: t.CheckpointID, BackendID: "7d8f4b5e-0000-4000-8000-000000000000", Range: groups,
		ID: "a6c3a1c2-0000-4000-8000-000000000000",
	}
	for k := range j.states {
		file, err := write(core.Exclusive, k)
		if err != nil {
			return err
		}
		keyed.Private = append(keyed.Private, file)
	}
	files, err := j.sharedFiles(ctx, t, i, pack, write)
	if err != nil {
		return err
	}
	if err := pack.Commit(); err != nil {
		return err
	}
	keyed.Meta, keyed.Private, keyed.Shared = keyed.Private[0].Handle, keyed.Private[1:], files
	j.uploads[i].Record(t.CheckpointID, files)
	state := &metadata.SubtaskState{ManagedKeyed: keyed, ManagedOperator: PackedOperator(pack, nil, nil)}
	return j.c.Acknowledge(ctx, t.Ack(Task{op.ID, i}, state))
}

// sharedFiles goes on using half of what the base has, and writes as many anew.
func (j *packingJob) sharedFiles(
	ctx context.Context, t Trigger, i int, pack *core.Pack, write func(core.Scope, int) (metadata.NamedFile, error),
) ([]metadata.NamedFile, error) {
	if !j.shared {
		return nil, nil
	}
	var local []string
	for id := t.Base; id > 0 && id > t.Base-2; id-- {
		for k := range j.states / 2 {
			local = append(local, fmt.Sprintf("%d of checkpoint %d", k, id))
		}
	}
	reused, _ := j.uploads[i].Plan(t.Base, local[:min(len(local), j.states/2)])
	handles := make([]core.StreamHandle, len(reused))
	for k := range reused {
		handles[k] = reused[k].Handle
	}
	handles, err := pack.Reuse(ctx, handles)
	if err != nil {
		return nil, err
	}
	for k := range reused {
		reused[k].Handle = handles[k]
	}
	for k := range j.states / 2 {
		file, err := write(core.Shared, k)
		if err != nil {
			return nil, err
		}
		reused = append(reused, file)
	}
	return reused, nil
}

func TestCallsToTheNameNodeGrowWithTheWorkersNotWithTheStates(t *testing.T) {
	for _, workers := range []int{1, 3, 8} {
		for _, states := range []int{2, 300} {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("workers=%d/states=%d/shared=%v", workers, states, shared), func(t *testing.T) {
					fsys := faultfs.Wrap(newFS(t), nil)
					j := newPackingJob(t, fsys, workers, states, shared, func(o *Options) { o.Retain = 100 })
					for i := range 5 {
						before := fsys.Count()
						_, err := j.c.TriggerCheckpoint(t.Context())
						require.NoError(t, err)
						if i == 0 {
							continue // the workers' directories are made
						}
						require.LessOrEqual(t, costOf(fsys.Calls()[before:]), 8+6*workers)
					}
				})
			}
		}
	}
}

// What is on top of the budget: the deletion of the checkpoint that is subsumed, and of the files that only it needed.
func TestCallsToTheNameNodeThatASubsumedCheckpointCosts(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, workers := range []int{1, 3, 8} {
			fsys := faultfs.Wrap(newFS(t), nil)
			j := newPackingJob(t, fsys, workers, 200, shared, func(o *Options) { o.NoBorrowers = true })
			files := workers
			if shared {
				files *= 2
			}
			for i := range 6 {
				before := fsys.Count()
				_, err := j.c.TriggerCheckpoint(t.Context())
				require.NoError(t, err)
				if i > 0 {
					require.LessOrEqual(t, costOf(fsys.Calls()[before:]), 8+3*files+11+files, "%d workers", workers)
				}
			}
		}
	}
}

// Shared states that several checkpoints use are read back, and a file goes with the last checkpoint that needs it.
func TestPackedStatesLiveAsLongAsACheckpointRefersToThem(t *testing.T) {
	fsys := newFS(t)
	j := newPackingJob(t, fsys, 2, 10, true, func(o *Options) { o.Retain = 2 })
	for range 7 {
		_, err := j.c.TriggerCheckpoint(t.Context())
		require.NoError(t, err)
		needed := map[string]bool{}
		for _, id := range completeIDs(t, fsys) {
			for name := range requirePackedContent(t, j, fsys, id) {
				needed[name] = true
			}
		}
		for _, dir := range []string{"/shared", "/taskowned"} {
			for _, name := range tree(t, fsys, jobDir+dir) {
				require.True(t, needed[name], name)
			}
		}
	}
	// The next coordinator finds nothing to remove, and registers what is there.
	before := tree(t, fsys, jobDir+"/shared")
	newPackingJob(t, fsys, 2, 10, true, func(o *Options) { o.Retain = 2 })
	require.Equal(t, before, tree(t, fsys, jobDir+"/shared"))
}

// requirePackedContent reads every state of a checkpoint and returns the names of its files.
func requirePackedContent(t *testing.T, j *packingJob, fsys core.FileSystem, id int64) map[string]bool {
	t.Helper()
	completed, err := core.ResolvePointer(t.Context(), core.OnlyOn(fsys), "mem:"+jobDir+"/"+core.CheckpointDirName(id))
	require.NoError(t, err)
	f, err := j.c.read(t.Context(), completed)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, o := range f.objects {
		_, name, err := core.SplitQualified(o.Path)
		require.NoError(t, err)
		names[name] = true
		require.Equal(t, !o.Directory, o.Segments != nil)
	}
	states := 0
	for _, subtask := range f.Checkpoint.Operators[0].Subtasks {
		keyed, ok := subtask.State.ManagedKeyed.(*metadata.IncrementalHandle)
		require.True(t, ok)
		require.NotNil(t, subtask.State.ManagedOperator.Merging)
		for _, file := range append(keyed.Private, keyed.Shared...) {
			require.NoError(t, checkContent(t.Context(), &f.Restored, file.Handle, []byte(file.LocalPath)))
			require.NotNil(t, file.Handle.(*core.SegmentHandle).Checksums) //nolint:forcetypeassert // nothing else is packed
			states++
		}
	}
	require.Greater(t, states, 2*10)
	return names
}

func TestStatesOfAPackThatIsNotCommittedAreRefused(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.tasks.pack(t)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		pack, err := tr.BeginPack(ctx, w.tasks.packer)
		if err != nil {
			return err
		}
		handle, err := WritePacked(ctx, pack, core.Exclusive, func(out io.Writer) error {
			_, err := out.Write(content(1, 1, Task{}, "exclusive"))
			return err
		})
		if err != nil {
			return err
		}
		state := &metadata.SubtaskState{ManagedOperator: PackedOperator(pack, nil, handle)}
		_, err = tr.Ack(Task{feed.ID, 0}, state).MarshalBinary()
		require.ErrorIs(t, err, fs.ErrInvalid)
		return errors.Join(w.c.Acknowledge(ctx, tr.Ack(Task{feed.ID, 0}, state)), pack.Close())
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.ErrorContains(t, err, "names no file")
	require.Empty(t, completeIDs(t, fsys))
}
