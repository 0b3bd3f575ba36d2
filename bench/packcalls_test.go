package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// packedJob is a job whose workers pack all their states.
type packedJob struct {
	c       *coordinator.Coordinator
	packers []*core.Packer
	states  int // of each worker and scope
	scopes  []core.Scope
}

func newPackedJob(t *testing.T, fsys core.FileSystem, dir string, workers, states int, scopes ...core.Scope) *packedJob {
	t.Helper()
	storage, err := core.NewStorage(fsys, dir, core.JobIDOf(t.Name()), core.Options{InlineThreshold: core.NeverInline})
	require.NoError(t, err)
	j := &packedJob{states: states, scopes: scopes}
	for i := range workers {
		packer, err := storage.NewPacker(core.PackOptions{Worker: fmt.Sprint("worker-", i)})
		require.NoError(t, err)
		j.packers = append(j.packers, packer)
	}
	j.c, err = coordinator.New(coordinator.Options{
		Storage: storage, Send: j.send, Retain: 100,
		Operators: []coordinator.Operator{{UID: "packed", Parallelism: workers}},
	})
	require.NoError(t, err)
	_, err = j.c.Start(t.Context())
	require.NoError(t, err)
	return j
}

func (j *packedJob) send(ctx context.Context, t coordinator.Trigger) error {
	for i := range j.packers {
		if err := j.work(ctx, t, i); err != nil {
			return err
		}
	}
	return nil
}

func (j *packedJob) work(ctx context.Context, t coordinator.Trigger, i int) (err error) {
	pack, err := t.BeginPack(ctx, j.packers[i])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	op := j.c.Operators()[0]
	groups, err := metadata.KeyGroupsOfSubtask(i, op.Parallelism, op.MaxParallelism)
	if err != nil {
		return err
	}
	keyed := &metadata.IncrementalHandle{
		CheckpointID: t.CheckpointID, BackendID: "7d8f4b5e-0000-4000-8000-000000000000", Range: groups,
		Meta: core.EmptySegment{}, ID: "a6c3a1c2-0000-4000-8000-000000000000",
	}
	for _, scope := range j.scopes {
		for k := range j.states {
			handle, err := coordinator.WritePacked(ctx, pack, scope, func(w io.Writer) error {
				_, err := w.Write(patterned(1 << 10))
				return err
			})
			if err != nil {
				return err
			}
			keyed.Private = append(keyed.Private, metadata.NamedFile{LocalPath: fmt.Sprint(k), Handle: handle})
		}
	}
	if err := pack.Commit(); err != nil {
		return err
	}
	state := &metadata.SubtaskState{ManagedKeyed: keyed, ManagedOperator: coordinator.PackedOperator(pack, nil, nil)}
	return j.c.Acknowledge(ctx, t.Ack(coordinator.Task{Operator: op.ID, Subtask: i}, state))
}

// readBack reads all states of the newest checkpoint and returns their number.
func (j *packedJob) readBack(t *testing.T, fsys core.FileSystem) int {
	t.Helper()
	entries, err := core.ListCheckpoints(t.Context(), fsys, j.packers[0].Storage().JobDir())
	require.NoError(t, err)
	newest, found := core.Latest(entries)
	require.True(t, found)
	data, err := newest.Completed.ReadMetadata(t.Context())
	require.NoError(t, err)
	checkpoint, err := metadata.Parse(data, newest.Completed.Pointer)
	require.NoError(t, err)
	files := core.NewStateFiles(t.Context(), core.OnlyOn(fsys))
	defer func() { require.NoError(t, files.Close()) }()
	read := 0
	for _, subtask := range checkpoint.Operators[0].Subtasks {
		keyed, ok := subtask.State.ManagedKeyed.(*metadata.IncrementalHandle)
		require.True(t, ok)
		for _, file := range keyed.Private {
			r, err := files.Open(file.Handle)
			require.NoError(t, err)
			require.True(t, r.Verified())
			state, err := io.ReadAll(r)
			require.NoError(t, errors.Join(err, r.Close()))
			require.Equal(t, patterned(1<<10), state)
			read++
		}
	}
	return read
}

// The NameNode of a real cluster says how often it was called for a checkpoint. Asking again whether a file is complete, and
// keeping a lease alive, depend on how busy the cluster is, and are not counted.
//
// A file costs three calls: create, addBlock, complete. The client of the library github.com/colinmarc/hdfs, which is told by its
// UpdateBlockForPipeline, makes five of it, and looks at both ends of a rename and at the parents of a directory first.
func TestCallsToARealNameNodeGrowWithTheWorkersNotWithTheStates(t *testing.T) {
	c := testenv.Require(t, testenv.Options{DataNodes: 1, Exclusive: true})
	fsys, err := hdfsfs.Open(t.Context(), c.NameNode(), hdfsfs.Options{ConfDir: c.ConfDir(), User: c.Credentials("alice").User})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	const checkpoints = 5
	for _, scopes := range [][]core.Scope{{core.Exclusive}, {core.Exclusive, core.Shared}} {
		for _, workers := range []int{1, 4} {
			for _, states := range []int{10, 1000} {
				t.Run(fmt.Sprintf("scopes=%d/workers=%d/states=%d", len(scopes), workers, states), func(t *testing.T) {
					j := newPackedJob(t, fsys, c.TempDir(t), workers, states, scopes...)
					_, err := j.c.TriggerCheckpoint(t.Context()) // makes the workers' directories
					require.NoError(t, err)
					before, err := c.Calls(t.Context())
					require.NoError(t, err)
					for range checkpoints {
						_, err := j.c.TriggerCheckpoint(t.Context())
						require.NoError(t, err)
					}
					after, err := c.Calls(t.Context())
					require.NoError(t, err)
					calls := after.Since(before)
					repeated := max(0, calls["Complete"]-calls["Create"])
					once := calls.Total() - repeated - calls["RenewLease"]
					t.Logf("%.1f calls for each checkpoint: %v", float64(once)/checkpoints, calls)
					budget := 8 + 6*workers
					if calls["UpdateBlockForPipeline"] > 0 {
						budget = 15 + 5*len(scopes)*workers
					}
					require.LessOrEqual(t, once, checkpoints*budget)
					require.Equal(t, workers*states*len(scopes), j.readBack(t, fsys))
				})
			}
		}
	}
}
