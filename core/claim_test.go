package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestClaimMakesTheJobsDirectoriesAndSaysWhoOwnsThem(t *testing.T) {
	r := newJobRig(t)
	store := storageOn(t, r.mem, core.Options{OwnerName: "worker-3:4711"})
	owner, err := store.Claim(context.Background())
	require.NoError(t, err)
	require.Equal(t, uint64(1), owner.Epoch())
	require.Same(t, store, owner.Storage())
	require.NoError(t, owner.Check(context.Background()))
	for _, name := range []string{"/shared/", "/taskowned/"} {
		require.Contains(t, snapshot(t, r.mem, r.dir()), r.dir()+name)
	}
	var record map[string]any
	require.NoError(t, json.Unmarshal(contentOf(t, r.mem, r.dir()+"/.epoch-1/owner"), &record))
	require.Equal(t, "worker-3:4711", record["owner"])
	require.Equal(t, float64(1), record["epoch"])
	require.True(t, exists(t, r.mem, r.dir()+"/.epoch-1/"+record["claim"].(string))) //nolint:forcetypeassert // a wrong type is a failed test
}

func TestClaimFencesTheOwnerBefore(t *testing.T) {
	r := newJobRig(t)
	ctx := context.Background()
	older := r.claim(t)
	newer := r.claim(t)
	require.Greater(t, newer.Epoch(), older.Epoch())
	require.ErrorIs(t, older.Check(ctx), core.ErrFenced)
	require.NoError(t, newer.Check(ctx))

	_, err := older.Begin(ctx, 1)
	require.ErrorIs(t, err, core.ErrFenced)
	_, err = older.Sweep(ctx, readMeta)
	require.ErrorIs(t, err, core.ErrFenced)
	var pathError *fs.PathError
	require.ErrorAs(t, older.Check(ctx), &pathError)
	require.Equal(t, r.dir()+"/.epoch-1", pathError.Path)
}

func TestClaimLeavesOneEpochDirectory(t *testing.T) {
	r := newJobRig(t)
	for range 5 {
		r.claim(t)
	}
	var epochs []string
	for name := range snapshot(t, r.mem, r.dir()) {
		if strings.Contains(name, "/.epoch-") && strings.Count(name, "/") == strings.Count(r.dir(), "/")+2 && strings.HasSuffix(name, "/") {
			epochs = append(epochs, name)
		}
	}
	require.Equal(t, []string{r.dir() + "/.epoch-5/"}, epochs)
}

func TestClaimGoesAroundNamesThatAreNotItsOwn(t *testing.T) {
	r := newJobRig(t)
	for _, name := range []string{".epoch-1", ".epoch-2", ".epoch-abc", ".epoch-007", ".epoch-", ".epoch--3", ".epoch-99999999999999999999"} {
		put(t, r.mem, r.dir()+"/"+name, "foreign")
	}
	require.NoError(t, r.mem.MkdirAll(context.Background(), r.dir()+"/.epoch-0"))
	require.NoError(t, r.mem.MkdirAll(context.Background(), r.dir()+"/.epoch-09/x"))
	before := filesIn(snapshot(t, r.mem, r.dir()))

	require.Equal(t, uint64(3), r.claim(t).Epoch())
	require.Equal(t, uint64(4), r.claim(t).Epoch())
	require.Subset(t, filesIn(snapshot(t, r.mem, r.dir())), before)
	require.True(t, exists(t, r.mem, r.dir()+"/.epoch-09/x"))
}

func TestClaimSaysWhenTheEpochsAreUsedUp(t *testing.T) {
	r := newJobRig(t)
	require.NoError(t, r.mem.MkdirAll(context.Background(), r.dir()+"/.epoch-18446744073709551615"))
	_, err := r.store.Claim(context.Background())
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, r.dir())
}

func TestClaimersThatRaceLeaveExactlyOneOwner(t *testing.T) {
	const claimers, rounds = 16, 40
	generator := loggedRand(t)
	for round := range rounds {
		r := newJobRig(t)
		for range generator.IntN(3) {
			r.claim(t)
		}
		owners, failures := raceClaims(t, r, claimers)
		require.NotEmpty(t, owners, "round %d: %v", round, failures)
		for _, err := range failures {
			require.ErrorIs(t, err, core.ErrFenced, "round %d", round)
		}
		epochs := map[uint64]bool{}
		var valid []*core.Owner
		for _, owner := range owners {
			require.False(t, epochs[owner.Epoch()], "round %d: epoch %d twice", round, owner.Epoch())
			epochs[owner.Epoch()] = true
			if err := owner.Check(context.Background()); err == nil {
				valid = append(valid, owner)
			} else {
				require.ErrorIs(t, err, core.ErrFenced, "round %d", round)
			}
		}
		require.Len(t, valid, 1, "round %d", round)
		r.commit(t, valid[0], 1, 1, 1, nil)
		for _, owner := range owners {
			if owner != valid[0] {
				_, err := r.write(owner, 2, 1, 1, nil)
				require.ErrorIs(t, err, core.ErrFenced)
				_, err = owner.Dispose(context.Background(), 1, readAll)
				require.ErrorIs(t, err, core.ErrFenced)
			}
		}
		require.Equal(t, []int64{1}, completeIDs(t, r.mem, r.dir()))
	}
}

// raceClaims lets n claimers claim at once, through a file system that mixes their calls well.
func raceClaims(t *testing.T, r *jobRig, n int) (owners []*core.Owner, failures []error) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for range n {
		store := storageOn(t, r.mem, core.Options{})
		all.Go(func() {
			<-start
			owner, err := store.Claim(context.Background())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
			} else {
				owners = append(owners, owner)
			}
		})
	}
	close(start)
	all.Wait()
	return owners, failures
}

// A claimer that is held up between its listing and its own directory comes to an epoch that is over. It makes that epoch's
// directory once more, which must not give the epoch's owner its claim back.
func TestClaimLostStaysLostWhenALateClaimerMakesTheEpochAgain(t *testing.T) {
	ctx := context.Background()
	for _, stop := range []faultfs.Op{faultfs.OpMkdirAll, faultfs.OpCreate, faultfs.OpWrite, faultfs.OpClose, faultfs.OpList} {
		t.Run("held up again at "+string(stop), func(t *testing.T) {
			r := newJobRig(t)
			g := newGate(r.mem)
			late := make(chan error, 1)
			listed := g.stopAt(func(c faultfs.Call) bool {
				return c.Op == faultfs.OpMkdirAll && strings.Contains(c.Name, "/.epoch-")
			})
			lateStore := storageOn(t, g.fsys, core.Options{})
			go func() {
				_, err := lateStore.Claim(ctx)
				late <- err
			}()
			listed.wait()

			zombie := r.claim(t)
			require.Equal(t, uint64(1), zombie.Epoch())
			r.commit(t, zombie, 1, 2, 2, nil)
			pending, err := zombie.Begin(ctx, 2)
			require.NoError(t, err)
			successor := r.claim(t)
			kept := r.commit(t, successor, 3, 2, 1, nil)

			var again *stopPoint
			if stop == faultfs.OpMkdirAll {
				// Held up after the directory was made: at the next call.
				again = g.stopAt(func(c faultfs.Call) bool { return c.Op == faultfs.OpCreate })
			} else {
				again = g.stopAt(func(c faultfs.Call) bool { return c.Op == stop })
			}
			listed.release()
			again.wait()
			require.True(t, exists(t, r.mem, r.dir()+"/.epoch-1"), "the late claimer made the epoch again")
			requireFenced(t, r, zombie, pending, kept)

			again.release()
			require.ErrorIs(t, <-late, core.ErrFenced)
			require.NoError(t, successor.Check(ctx))
			requireFenced(t, r, zombie, pending, kept)
		})
	}
}

// requireFenced tries everything that an owner can do to a job, and says that nothing comes of it.
func requireFenced(t *testing.T, r *jobRig, zombie *core.Owner, pending *core.PendingLocation, kept *checkpoint) {
	t.Helper()
	ctx := context.Background()
	require.ErrorIs(t, zombie.Check(ctx), core.ErrFenced)
	before := filesIn(snapshot(t, r.mem, r.dir()))
	ids := completeIDs(t, r.mem, r.dir())

	_, err := pending.CreateMetadataStream(ctx)
	require.ErrorIs(t, err, core.ErrFenced)
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), core.ErrFenced)
	_, err = zombie.Begin(ctx, 3)
	require.Error(t, err)
	_, err = zombie.Begin(ctx, 9)
	require.ErrorIs(t, err, core.ErrFenced)
	for _, id := range ids {
		_, err = zombie.Dispose(ctx, id, readAll)
		require.ErrorIs(t, err, core.ErrFenced)
	}
	_, err = zombie.Sweep(ctx, readMeta)
	require.ErrorIs(t, err, core.ErrFenced)
	require.Equal(t, ids, completeIDs(t, r.mem, r.dir()))
	require.Equal(t, before, filesIn(snapshot(t, r.mem, r.dir())))
	requireIntact(t, r.mem, kept)
}

func TestClaimKeepsDisposalsThatWereCutOff(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	first := r.commit(t, owner, 1, 2, 1, nil)
	second := r.commit(t, owner, 2, 1, 1, first.sharedOf())
	// The second rename of the disposal fails: the metadata stays in the claim's directory.
	flaky.SetInjector(faultfs.Window(0, 1, faultfs.Match(func(c faultfs.Call) bool {
		return c.Op == faultfs.OpRename && strings.HasSuffix(c.NewName, core.DisposedName) && strings.Contains(c.Name, "/.epoch-")
	}, faultfs.Fault{Err: core.ErrUnavailable})))
	_, err = owner.Dispose(ctx, 1, readAll)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.Equal(t, []int64{2}, completeIDs(t, r.mem, r.dir()))
	require.False(t, exists(t, r.mem, r.chk(1)+"/"+core.DisposedName))

	// Two claims, of which the first fails in the middle: the metadata lies two epochs deep.
	_, err = storageOn(t, faultfs.Wrap(r.mem, faultfs.Match(func(c faultfs.Call) bool {
		return c.Op == faultfs.OpList && strings.Contains(c.Name, "fenced-")
	}, faultfs.Fault{Err: core.ErrUnavailable})), core.Options{}).Claim(ctx)
	require.ErrorIs(t, err, core.ErrUnavailable)
	successor := r.claim(t)
	require.Equal(t, string(first.metadata), string(contentOf(t, r.mem, r.chk(1)+"/"+core.DisposedName)))

	report, err := successor.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, report.Resumed)
	require.False(t, exists(t, r.mem, r.chk(1)))
	requireIntact(t, r.mem, second)
}

// A claimer may die at every step, or the machine lose its power there: the next one claims all the same, and what the older
// owner had under way is neither lost nor finished twice.
func TestClaimAfterACrashOfAClaimAtEveryStep(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	disposing := r.commit(t, owner, 1, 2, 1, nil)
	complete := r.commit(t, owner, 2, 2, 1, disposing.sharedOf())
	pending, err := owner.Begin(ctx, 3)
	require.NoError(t, err)
	stream, err := pending.CreateMetadataStream(ctx)
	require.NoError(t, err)
	_, err = stream.Write(make([]byte, 100<<10))
	require.NoError(t, err)
	cutOff := markDisposal(t, r, owner, 1)
	require.True(t, strings.HasPrefix(cutOff, r.dir()+"/.epoch-1/"))

	var clones []crashClone
	stop := collectClones(r.mem, &clones)
	r.claim(t)
	stop()
	require.Greater(t, len(clones), 10)
	for _, clone := range clones {
		c := jobRigOn(t, clone.mem)
		successor, err := c.store.Claim(ctx)
		require.NoError(t, err, "after %s", clone.at)
		require.NoError(t, successor.Check(ctx))
		require.Equal(t, []int64{2}, completeIDs(t, clone.mem, c.dir()), "after %s", clone.at)
		requireIntact(t, clone.mem, complete)
		require.Equal(t, string(disposing.metadata), string(contentOf(t, clone.mem, c.chk(1)+"/"+core.DisposedName)), "after %s", clone.at)
		report, err := successor.Sweep(ctx, readMeta)
		require.NoError(t, err, "after %s", clone.at)
		require.Equal(t, []int64{1}, report.Resumed, "after %s", clone.at)
		require.Equal(t, slices.Sorted(keysOf(complete.files)), withoutEpochs(filesIn(snapshot(t, clone.mem, c.dir()))), "after %s", clone.at)
	}
}

func TestClaimWithAFaultInAnyCallCanBeMadeAgain(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	disposing := r.commit(t, owner, 1, 2, 1, nil)
	complete := r.commit(t, owner, 2, 2, 1, disposing.sharedOf())
	markDisposal(t, r, owner, 1)
	prepared := fork(r.mem)

	clean := faultfs.Wrap(fork(prepared), nil)
	_, err := storageOn(t, clean, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	require.Greater(t, clean.Count(), 10)
	for i := range clean.Count() {
		for _, after := range []bool{false, true} {
			mem := fork(prepared)
			injected := errors.New("broken cable")
			flaky := faultfs.Wrap(mem, faultfs.Nth(i, faultfs.Fault{Err: injected, After: after}))
			first, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
			require.ErrorIs(t, err, injected, "call %d: %v", i, flaky.Calls()[i])
			require.Nil(t, first)

			c := jobRigOn(t, mem)
			successor := c.claim(t)
			require.NoError(t, successor.Check(ctx))
			requireIntact(t, mem, complete)
			report, err := successor.Sweep(ctx, readMeta)
			require.NoError(t, err)
			require.Equal(t, []int64{1}, report.Resumed)
			require.Equal(t, slices.Sorted(keysOf(complete.files)), withoutEpochs(filesIn(snapshot(t, mem, c.dir()))))
		}
	}
}

func TestClaimEndsWithItsContext(t *testing.T) {
	r := newJobRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.store.Claim(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.mem.Tree())
}

func TestCheckReportsAPassingErrorAsWhatItIs(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	flaky.SetInjector(faultfs.OnOp(faultfs.OpStat, faultfs.Fault{Err: core.ErrUnavailable}))
	err = owner.Check(ctx)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.NotErrorIs(t, err, core.ErrFenced)
}

// The job's directory is deleted by hand: nothing that its owner does afterwards is reported as kept.
func TestOwnerOfADeletedJobDirectoryIsFenced(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	owner := r.claim(t)
	pending, err := owner.Begin(ctx, 1)
	require.NoError(t, err)
	state := pending.CreateStateStream(ctx, core.Exclusive)
	_, err = state.Write([]byte("abc"))
	require.NoError(t, err)
	metadata, err := pending.CreateMetadataStream(ctx)
	require.NoError(t, err)
	require.NoError(t, r.mem.RemoveAll(ctx, r.dir()))

	_, err = metadata.CloseAndFinalize()
	require.ErrorIs(t, err, core.ErrFenced)
	require.ErrorIs(t, owner.Check(ctx), core.ErrFenced)
	_, err = state.CloseAndGetHandle()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, filesIn(snapshot(t, r.mem, jobBase)))
}

func TestClaimOnAFileSystemWithoutNoReplaceOfDirectories(t *testing.T) {
	caps := core.Capabilities{Durabilities: []core.Durability{core.Unsynced, core.Synced}, NoReplaceFiles: true, Sync: true}
	r := jobRigOn(t, memfs.New(memfs.Options{Capabilities: &caps}))
	ctx := context.Background()
	older := r.claim(t)
	pending, err := older.Begin(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, pending.DisposeOnFailure(ctx))
	require.False(t, exists(t, r.mem, r.chk(1)))
	newer := r.claim(t)
	require.ErrorIs(t, older.Check(ctx), core.ErrFenced)
	r.commit(t, newer, 1, 1, 1, nil)
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), core.ErrFenced)
	require.Equal(t, []int64{1}, completeIDs(t, r.mem, r.dir()))
}

// What a checkpoint that was taken back holds is on its way out, whatever its names look like.
func TestClaimTakesNothingOutOfCheckpointsThatWereTakenBack(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	flaky := faultfs.Wrap(r.mem, nil)
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	complete := r.commit(t, owner, 1, 1, 1, nil)
	pending, err := owner.Begin(ctx, 2)
	require.NoError(t, err)
	put(t, r.mem, r.chk(2)+"/chk-1.disposed", "foreign")
	flaky.SetInjector(faultfs.OnOp(faultfs.OpRemoveAll, faultfs.Fault{Err: core.ErrUnavailable}))
	require.ErrorIs(t, pending.DisposeOnFailure(ctx), core.ErrUnavailable)

	r.claim(t)
	require.False(t, exists(t, r.mem, r.chk(1)+"/"+core.DisposedName))
	requireIntact(t, r.mem, complete)
	require.Equal(t, slices.Sorted(keysOf(complete.files)), withoutEpochs(filesIn(snapshot(t, r.mem, r.dir()))))
}

func TestClaimEndsAtOnceWhenItsOwnDirectoryIsTakenAway(t *testing.T) {
	ctx := context.Background()
	for _, at := range []struct {
		op   faultfs.Op
		nth  int
		what string
	}{{faultfs.OpRename, 0, "before it fences an older epoch"}, {faultfs.OpList, 1, "before its last look"}} {
		t.Run(at.what, func(t *testing.T) {
			r := newJobRig(t)
			own := r.dir() + "/.epoch-1"
			if at.op == faultfs.OpRename {
				r.claim(t)
				own = r.dir() + "/.epoch-2"
			}
			seen := 0
			flaky := faultfs.Wrap(r.mem, func(c faultfs.Call) faultfs.Fault {
				if c.Op != at.op {
					return faultfs.Fault{}
				}
				if seen++; seen-1 != at.nth {
					return faultfs.Fault{}
				}
				return faultfs.Fault{Err: r.mem.RemoveAll(ctx, own)}
			})
			_, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
			require.ErrorIs(t, err, core.ErrFenced)
			require.Less(t, flaky.Count(), 20)
		})
	}
}
