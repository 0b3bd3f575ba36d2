package core_test

import (
	"context"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// Whenever the power goes during a disposal, what is left must not look like a checkpoint in progress, which was never complete.
func TestADisposalNeverLeavesWhatLooksLikeACheckpointInProgress(t *testing.T) {
	ctx := context.Background()
	for _, way := range disposers {
		t.Run("by "+way.name, func(t *testing.T) {
			d := newDisposeRig(t)
			var clones []crashClone
			stop := collectClones(d.mem, &clones)
			_, err := way.dispose(d.jobRig, d.owner, d.flaky, 1, readAll)
			require.NoError(t, err)
			stop()
			for _, clone := range clones {
				c := jobRigOn(t, clone.mem)
				owner := c.claim(t)
				entries, err := core.ListCheckpoints(ctx, clone.mem, c.dir())
				require.NoError(t, err)
				for _, entry := range entries {
					require.NotEqual(t, core.InProgress, entry.State, clone.at)
				}
				_, err = core.Dispose(ctx, clone.mem, c.chk(1), readAll)
				require.NoError(t, err, clone.at)
				_, err = owner.Sweep(ctx, readMeta)
				require.NoError(t, err, clone.at)
				require.False(t, exists(t, clone.mem, c.dir()+"/.chk-1.emptied"), clone.at)
				d.requireOthersIntact(t, clone.mem)
			}
		})
	}
}

func TestSweepRemovesADirectoryThatADisposalMovedAside(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	put(t, r.mem, r.dir()+"/.chk-1.emptied/._metadata.emptied", "[]")
	put(t, r.mem, r.dir()+"/.chk-2.emptied/notes", "foreign")
	put(t, r.mem, r.chk(3)+"/._metadata.emptied", "[]")
	put(t, r.mem, r.chk(3)+"/notes", "foreign")
	owner := r.claim(t)
	for range 2 {
		report, err := owner.Sweep(ctx, readMeta)
		require.NoError(t, err)
		require.Empty(t, report.Resumed, "foreign content alone is no garbage")
		require.Contains(t, report.Kept, core.KeptObject{Path: r.chk(3) + "/notes", Reason: "a foreign file"})
		require.False(t, exists(t, r.mem, r.dir()+"/.chk-1.emptied"))
		require.True(t, exists(t, r.mem, r.dir()+"/.chk-2.emptied/notes"))
		require.True(t, exists(t, r.mem, r.chk(3)+"/._metadata.emptied"))
	}
}

// A published savepoint that is taken back loses its metadata before any of its state, whenever the process dies, and the next
// owner removes what is left.
func TestASavepointThatIsTakenBackIsNeverCompleteWithoutItsState(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	pending, err := markRigOwner(t, mem).BeginSavepoint(ctx, markRigTarget)
	require.NoError(t, err)
	dir := markRigTarget + "/" + path.Base(pending.CheckpointDir())
	put(t, mem, dir+"/"+uuidA, "state")
	put(t, mem, dir+"/"+core.MetadataName, "its outcome was unknown")
	put(t, mem, dir+"/zzz", "state that is removed after the metadata in the order of names")
	var clones []crashClone
	stop := collectClones(mem, &clones)
	require.NoError(t, pending.DisposeOnFailure(ctx))
	stop()
	require.NotEmpty(t, clones)
	for _, clone := range clones {
		if exists(t, clone.mem, dir+"/"+core.MetadataName) {
			require.True(t, exists(t, clone.mem, dir+"/"+uuidA), clone.at)
			require.True(t, exists(t, clone.mem, dir+"/zzz"), clone.at)
			continue
		}
		if len(marksIn(clone.mem)) == 0 {
			continue // a power cut may undo the removal, but it is no savepoint then
		}
		markRigOwner(t, clone.mem)
		require.Empty(t, savepointsIn(clone.mem), clone.at)
	}
}
