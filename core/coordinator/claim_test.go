package coordinator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestWhoseARestoredCheckpointIs(t *testing.T) {
	for _, c := range []struct {
		mode        ClaimMode
		own, marked bool
		want        ClaimMode
		base        int64
	}{
		{ClaimByPlace, true, false, Claim, 7},
		{ClaimByPlace, true, true, NoClaim, 0},
		{ClaimByPlace, false, false, NoClaim, 0},
		{ClaimByPlace, false, true, NoClaim, 0},
		{Claim, true, false, Claim, 7},
		{Claim, true, true, Claim, 7},
		{Claim, false, false, Claim, 0},
		{NoClaim, true, false, NoClaim, 0},
		{NoClaim, false, true, NoClaim, 0},
	} {
		got := planClaim(c.mode, c.own, c.marked)
		require.Equal(t, c.want, got, "%+v", c)
		require.Equal(t, c.base, planBase(got, c.own, 7), "%+v", c)
	}
}

// snapshotOf is every file with its content.
func snapshotOf(t *testing.T, fsys core.FileSystem, names []string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		r, err := fsys.Open(t.Context(), name)
		require.NoError(t, err, name)
		data := make([]byte, r.Size())
		_, err = r.ReadAt(data, 0)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		files[name] = string(data)
	}
	return files
}

// otherJob takes two checkpoints, of which the second refers to shared files of the first, and returns its directory.
func otherJob(t *testing.T, fsys core.FileSystem) string {
	t.Helper()
	storage, err := core.NewStorage(fsys, base, core.JobIDOf("another job"), core.Options{InlineThreshold: testInline})
	require.NoError(t, err)
	w := newWorld(t, fsys, func(o *Options) { o.Storage = storage })
	w.storage = storage
	w.tasks = newTasks(storage)
	_, err = w.c.Start(t.Context())
	require.NoError(t, err)
	w.checkpoint()
	w.checkpoint()
	return storage.JobDir()
}

func restoreFrom(pointer string, claim ClaimMode) func(*Options) {
	return func(o *Options) { o.Restore = Restore{Pointer: pointer, Claim: claim} }
}

func TestNothingOfACheckpointThatIsNotClaimedIsEverDeleted(t *testing.T) {
	t.Run("of another job", func(t *testing.T) {
		fsys := newFS(t)
		other := otherJob(t, fsys)
		before := snapshotOf(t, fsys, tree(t, fsys, other))
		w := startWorld(t, fsys, restoreFrom("mem:"+other+"/chk-2", NoClaim))
		first := w.checkpoint()
		require.Zero(t, w.lastTrigger().Base, "the first checkpoint is full")
		w.checkpoint()
		require.Equal(t, first.ID, w.lastTrigger().Base)
		startWorld(t, fsys, nil).checkpoint()
		require.Equal(t, before, snapshotOf(t, fsys, tree(t, fsys, other)))
	})
	t.Run("of the job itself", func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
		w.checkpoint()
		w.checkpoint()
		w.checkpoint()
		dir := jobDir + "/chk-2"
		before := snapshotOf(t, fsys, requireRestorable(t, fsys, dir))
		w = startWorld(t, fsys, restoreFrom("mem:"+dir, NoClaim))
		w.checkpoint()
		require.Zero(t, w.lastTrigger().Base)
		for range 3 {
			w.checkpoint()
		}
		require.Equal(t, []int64{2, 7}, completeIDs(t, fsys))
		for range 2 { // also when nobody says it again
			w = startWorld(t, fsys, nil)
			w.checkpoint()
			w.checkpoint()
		}
		require.Equal(t, []int64{2, 11}, completeIDs(t, fsys))
		require.Equal(t, before, snapshotOf(t, fsys, requireRestorable(t, fsys, dir)))

		// Restored once more without a word, it is still somebody else's; until it is claimed.
		w = startWorld(t, fsys, restoreFrom("mem:"+dir, ClaimByPlace))
		w.checkpoint()
		require.Zero(t, w.lastTrigger().Base)
		w = startWorld(t, fsys, restoreFrom("mem:"+dir, Claim))
		last := w.checkpoint()
		require.Equal(t, int64(2), w.lastTrigger().Base)
		w.checkpoint()
		requireTidy(t, fsys, []int64{last.ID + 1})
	})
}

func TestStateThatRefersToACheckpointThatIsNotClaimedIsRefused(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	dir := jobDir + "/chk-1"
	before := snapshotOf(t, fsys, requireRestorable(t, fsys, dir))
	w = startWorld(t, fsys, restoreFrom("mem:"+dir, NoClaim))
	for _, shorten := range []func([]metadata.NamedFile) []metadata.NamedFile{
		func(files []metadata.NamedFile) []metadata.NamedFile { return files },
		Placeholders,
	} {
		w.setSend(func(ctx context.Context, tr Trigger) error {
			for _, task := range allTasks() { // against the rule
				w.tasks.remember(task, tr.Base, shorten(w.tasks.known(task, 1)))
			}
			return w.ackAll(ctx, tr)
		})
		_, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, ErrDeclined)
		require.ErrorContains(t, err, "write it again")
	}
	require.Equal(t, before, snapshotOf(t, fsys, requireRestorable(t, fsys, dir)))
}

func TestAClaimedCheckpointElsewhereIsDeletedWhenItIsNotRetained(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *memfs.FS) string{
		"checkpoint of another job": func(t *testing.T, fsys *memfs.FS) string { return otherJob(t, fsys) + "/chk-2" },
		"savepoint": func(t *testing.T, fsys *memfs.FS) string {
			t.Helper()
			w := startWorld(t, fsys, nil)
			s, err := w.c.TriggerSavepoint(t.Context(), "")
			require.NoError(t, err)
			return nameOf(t, s.Pointer)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			dir := prepare(t, fsys)
			change := func(o *Options) {
				restoreFrom("mem:"+dir, Claim)(o)
				o.Retain = 2
			}
			w := startWorld(t, fsys, change)
			w.checkpoint()
			require.Zero(t, w.lastTrigger().Base)
			requireRestorable(t, fsys, dir)

			// The next coordinator knows without being told.
			w = startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
			last := w.checkpoint()
			require.Empty(t, tree(t, fsys, dir))
			require.Empty(t, tree(t, fsys, path.Dir(dir)+"/shared"))
			requireTidy(t, fsys, []int64{last.ID - 1, last.ID})
		})
	}
}

func TestADeletionOfAClaimedCheckpointIsTriedAgain(t *testing.T) {
	mem := newFS(t)
	other := otherJob(t, mem)
	fsys := faultfs.Wrap(mem, nil)
	w := startWorld(t, fsys, restoreFrom("mem:"+other+"/chk-2", Claim))
	fsys.SetInjector(faultfs.Match(func(c faultfs.Call) bool {
		return c.Op == faultfs.OpRemove && strings.HasPrefix(c.Name, other+"/shared/")
	}, faultfs.Fault{Err: core.ErrUnavailable}))
	w.checkpoint()
	require.Equal(t, int64(1), w.counts.Count(EventLeftBehind))
	fsys.SetInjector(nil)
	w = startWorld(t, fsys, nil)
	last := w.checkpoint()
	require.Empty(t, tree(t, mem, other+"/shared"))
	require.Empty(t, tree(t, mem, other+"/chk-2"))
	requireTidy(t, mem, []int64{last.ID})
}

func TestAClaimedCheckpointThatIsGoneIsForgotten(t *testing.T) {
	fsys := newFS(t)
	other := otherJob(t, fsys)
	startWorld(t, fsys, restoreFrom("mem:"+other+"/chk-2", Claim))
	require.NoError(t, fsys.RemoveAll(t.Context(), other))
	w := startWorld(t, fsys, nil)
	requireTidy(t, fsys, []int64{w.checkpoint().ID})
}

// A job that is restored from elsewhere is killed at every step, and started again as before or without the pointer: what is not
// claimed stands, and what is claimed stands or is gone as a whole. (A removal need not be durable: what it leaves of another
// job's shared files after a crash of the machine is garbage for the sweep of that job.)
func TestWhateverPointAJobIsKilledAtItsClaimHolds(t *testing.T) {
	for _, mode := range []ClaimMode{Claim, NoClaim} {
		for _, percent := range []int{0, 100} {
			t.Run(fmt.Sprintf("%v/unsynced=%d%%", mode, percent), func(t *testing.T) { claimSweep(t, mode, percent) })
		}
	}
}

func claimSweep(t *testing.T, mode ClaimMode, percent int) {
	t.Helper()
	fsys := newFS(t)
	other := otherJob(t, fsys)
	dir := other + "/chk-2"
	names := requireRestorable(t, fsys, dir)
	before := snapshotOf(t, fsys, names)
	var crashes []*memfs.FS
	var mu sync.Mutex // files are deleted in parallel
	fsys.OnMutation(func(memfs.Mutation) {
		mu.Lock()
		defer mu.Unlock()
		crashes = append(crashes, fsys.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(crashSeed, 1))}))
	})
	w := startWorld(t, fsys, restoreFrom("mem:"+dir, mode))
	w.checkpoint()
	w.checkpoint()
	fsys.OnMutation(nil)
	require.Greater(t, len(crashes), 30)
	for i := 0; i < len(crashes); i += stride {
		crash := crashes[i]
		_, err := restorable(t, crash, dir)
		gone := err != nil
		require.False(t, gone && mode == NoClaim, "crash %d", i)
		change := restoreFrom("mem:"+dir, mode)
		if _, err := crash.Stat(t.Context(), jobDir); gone || err == nil && len(completeIDs(t, crash)) > 0 {
			change = nil
		}
		w := startWorld(t, crash, change)
		w.checkpoint()
		last := w.checkpoint()
		requireTidy(t, crash, []int64{last.ID})
		if mode == NoClaim {
			require.Equal(t, before, snapshotOf(t, crash, names), "crash %d", i)
			continue
		}
		require.Empty(t, tree(t, crash, dir), "crash %d", i)
		if percent == 100 {
			require.Empty(t, tree(t, crash, other+"/shared"), "crash %d", i)
		}
	}
}

// Each single call fails once while a job is restored from elsewhere and takes two checkpoints; then it is started again.
func TestWhateverCallFailsAClaimHolds(t *testing.T) {
	for _, mode := range []ClaimMode{Claim, NoClaim} {
		for i, count := 0, 1; i < count; i += 3 * stride {
			mem := newFS(t)
			other := otherJob(t, mem)
			dir := other + "/chk-2"
			names := requireRestorable(t, mem, dir)
			before := snapshotOf(t, mem, names)
			fsys := faultfs.Wrap(mem, faultfs.Nth(i, faultfs.Fault{Err: errFault}))
			for range 2 { // the second time after a failure
				w := newWorld(t, fsys, restoreFrom("mem:"+dir, mode))
				restored, err := w.c.Start(t.Context())
				if err != nil {
					continue
				}
				if !restored.Empty() {
					if _, err := w.tasks.restore(t.Context(), restored); err != nil {
						continue
					}
				}
				for range 2 {
					_, _ = w.c.TriggerCheckpoint(t.Context()) // it may be the one that fails
				}
				break
			}
			count = max(count, fsys.Count())
			_, err := restorable(t, mem, dir)
			change := restoreFrom("mem:"+dir, mode)
			if err != nil || len(completeIDs(t, mem)) > 0 {
				change = nil
			}
			w := startWorld(t, mem, change)
			w.checkpoint()
			requireTidy(t, mem, []int64{w.checkpoint().ID})
			if mode == NoClaim {
				require.Equal(t, before, snapshotOf(t, mem, names), "call %d", i)
				continue
			}
			require.Empty(t, tree(t, mem, dir), "call %d", i)
			require.Empty(t, tree(t, mem, other+"/shared"), "call %d", i)
		}
	}
}

func TestADamagedMarkOfARestoredCheckpointStopsTheStart(t *testing.T) {
	fsys := newFS(t)
	writeFile(t, fsys, jobDir+"/.restored.0b7c1e52-0000-4000-8000-000000000000", "{")
	w := newWorld(t, fsys, nil)
	_, err := w.c.Start(t.Context())
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, ".restored.")
}

func TestWithoutBorrowersNoOtherCheckpointIsRead(t *testing.T) {
	for _, alone := range []bool{false, true} {
		fsys := faultfs.Wrap(newFS(t), nil)
		for _, name := range []string{"x", "y", "z"} {
			dir := base + "/" + core.JobIDOf(name).String()
			require.NoError(t, fsys.MkdirAll(t.Context(), dir))
		}
		w := startWorld(t, fsys, func(o *Options) { o.NoBorrowers = alone })
		w.checkpoint()
		before := fsys.Count()
		w.checkpoint()
		listed := 0
		for _, c := range fsys.Calls()[before:] {
			if c.Op == faultfs.OpList && path.Dir(c.Name) == base {
				listed++
			}
		}
		requireTidy(t, fsys, []int64{2})
		if alone {
			require.Zero(t, listed)
		} else {
			require.Greater(t, listed, 3)
		}
	}
}
