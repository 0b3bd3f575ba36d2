package core_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

const markRigTarget = "/save"

func markRigOwner(t *testing.T, fsys core.FileSystem) *core.Owner {
	t.Helper()
	storage, err := core.NewStorage(fsys, "/ckpt", core.JobIDOf("marks"), core.Options{})
	require.NoError(t, err)
	owner, err := storage.Claim(context.Background())
	require.NoError(t, err)
	return owner
}

func finishSavepoint(pending *core.PendingLocation) (*core.Completed, error) {
	m, err := pending.CreateMetadataStream(context.Background())
	if err != nil {
		return nil, err
	}
	if _, err := m.Write([]byte("metadata")); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m.CloseAndFinalize()
}

func savepointsIn(mem *memfs.FS) []string {
	found := map[string]bool{}
	var dirs []string
	for _, line := range mem.Tree() {
		name, below := strings.CutPrefix(line, markRigTarget+"/")
		if dir, _, _ := strings.Cut(name, "/"); below && dir != "" && !found[dir] {
			found[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func marksIn(mem *memfs.FS) []string {
	var marks []string
	for _, line := range mem.Tree() {
		if name, _, _ := strings.Cut(line, " "); strings.HasSuffix(name, ".begun") {
			marks = append(marks, name)
		}
	}
	return marks
}

func TestTheNextOwnerRemovesSavepointsThatAreNotFinished(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	owner := markRigOwner(t, mem)

	finished, err := owner.BeginSavepoint(ctx, markRigTarget)
	require.NoError(t, err)
	require.Len(t, marksIn(mem), 1)
	_, err = finishSavepoint(finished)
	require.NoError(t, err)
	require.Empty(t, marksIn(mem), "the mark goes with the outcome")

	takenBack, err := owner.BeginSavepoint(ctx, markRigTarget)
	require.NoError(t, err)
	require.NoError(t, takenBack.DisposeOnFailure(ctx))
	require.Empty(t, marksIn(mem), "the mark goes with the outcome")

	unfinished, err := owner.BeginSavepoint(ctx, markRigTarget)
	require.NoError(t, err)
	state := unfinished.CreateStateStream(ctx, core.Exclusive)
	_, err = state.Write(make([]byte, 100_000))
	require.NoError(t, err)
	_, err = state.CloseAndGetHandle()
	require.NoError(t, err)
	require.NoError(t, mem.MkdirAll(ctx, markRigTarget+"/savepoint-000000-000000000000")) // another job's

	markRigOwner(t, mem)
	require.ElementsMatch(t,
		[]string{path.Base(finished.CheckpointDir()), "savepoint-000000-000000000000"}, savepointsIn(mem))
	require.Empty(t, marksIn(mem))

	_, err = finishSavepoint(unfinished)
	require.ErrorIs(t, err, core.ErrFenced)
}

// Wherever the process dies, a savepoint is complete or gone once the next owner has taken over.
func TestASavepointThatACrashInterruptsIsCompleteOrGone(t *testing.T) {
	for _, percent := range []int{0, 100} {
		for k := 0; ; k++ {
			ctx := context.Background()
			mem := memfs.New(memfs.Options{})
			owner := markRigOwner(t, mem)
			var crashed *memfs.FS
			start := mem.Mutations()
			mem.OnMutation(func(memfs.Mutation) {
				if crashed == nil && mem.Mutations() > start+k {
					crashed = mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent})
				}
			})
			pending, err := owner.BeginSavepoint(ctx, markRigTarget)
			require.NoError(t, err)
			_, err = finishSavepoint(pending)
			require.NoError(t, err)
			mem.OnMutation(nil)
			if crashed == nil {
				require.Greater(t, k, 5, "the sweep has to meet some mutations")
				break
			}
			markRigOwner(t, crashed)
			require.Empty(t, marksIn(crashed))
			if len(savepointsIn(crashed)) > 0 {
				_, err := core.ResolvePointer(ctx, core.OnlyOn(crashed), pending.String())
				require.NoError(t, err, "mutation %d, %d %%", k, percent)
			}
		}
	}
}

// An owner that was fenced between the publication and the last look at its claim must not report the savepoint: the next
// owner may have seen it unfinished and removed it.
func TestASavepointOfAFencedOwnerIsNotReported(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	takeOver := false
	faults := faultfs.Wrap(mem, nil)
	owner := markRigOwner(t, faults)
	pending, err := owner.BeginSavepoint(context.Background(), markRigTarget)
	require.NoError(t, err)
	faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpRename && !takeOver {
			takeOver = true
			markRigOwner(t, mem) // finds no metadata yet
		}
		return faultfs.Fault{}
	})
	done, err := finishSavepoint(pending)
	require.True(t, takeOver)
	require.ErrorIs(t, err, core.ErrFenced)
	require.Nil(t, done)
	require.Empty(t, savepointsIn(mem))
}

// A mark must not make the next owner delete anything but a savepoint's directory.
func TestAMarkThatWasTamperedWithDeletesNothing(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	owner := markRigOwner(t, mem)
	_, err := owner.BeginSavepoint(ctx, markRigTarget)
	require.NoError(t, err)
	mark := marksIn(mem)[0]
	for _, content := range []string{"", "/ckpt", "mem:/save", "mem:/save/..", "hdfs://other/savepoint-000000-000000000000", "\x00"} {
		require.NoError(t, mem.Remove(ctx, mark))
		w, err := mem.Create(ctx, mark, core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write([]byte(content))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		clone := mem.CrashClone(memfs.CrashConfig{})
		before := savepointsIn(clone)
		markRigOwner(t, clone)
		require.Equal(t, before, savepointsIn(clone), "%q", content)
	}
}
