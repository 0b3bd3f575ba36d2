package core_test

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// An older owner, or a reader on NFS, may keep a directory from being empty for a moment.
func TestClaimTriesAgainToRemoveWhatOthersStillFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJobRig(t)
		r.claim(t)
		refusals := faultfs.Window(0, 3, faultfs.OnOp(faultfs.OpRemoveAll, faultfs.Fault{Err: fs.ErrExist}))
		begin := time.Now()
		owner, err := storageOn(t, faultfs.Wrap(r.mem, refusals), core.Options{}).Claim(context.Background())
		require.NoError(t, err)
		require.NoError(t, owner.Check(context.Background()))
		require.Equal(t, 30*time.Millisecond, time.Since(begin))

		stuck := faultfs.Wrap(r.mem, faultfs.OnOp(faultfs.OpRemoveAll, faultfs.Fault{Err: fs.ErrExist}))
		begin = time.Now()
		_, err = storageOn(t, stuck, core.Options{}).Claim(context.Background())
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, 200*time.Millisecond, time.Since(begin))
		require.ErrorIs(t, owner.Check(context.Background()), core.ErrFenced, "it is fenced all the same")

		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Millisecond)
		defer cancel()
		_, err = storageOn(t, stuck, core.Options{}).Claim(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r.claim(t)
	})
}

func TestClaimGivesUpAfterSoManyOthers(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	taken := faultfs.Wrap(r.mem, faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: fs.ErrExist}))
	_, err := storageOn(t, taken, core.Options{}).Claim(ctx)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorContains(t, err, r.dir())

	r = newJobRig(t)
	owner := r.claim(t)
	again := faultfs.Wrap(r.mem, nil)
	again.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpList && c.Name == r.dir() {
			return faultfs.Fault{Err: r.mem.MkdirAll(ctx, r.dir()+"/.epoch-1/"+uuid.NewString())}
		}
		return faultfs.Fault{}
	})
	_, err = storageOn(t, again, core.Options{}).Claim(ctx)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, owner.Check(ctx), core.ErrFenced)
}

// The older owner finishes a disposal while its successor's sweep is about to resume it; what a late worker left in the
// directory is garbage of the next sweep.
func TestSweepWhoseDisposalIsFinishedByTheOlderOwner(t *testing.T) {
	ctx := context.Background()
	z := newZombieRig(t)
	late := z.chk(2) + "/" + uuid.NewString()
	var once bool
	flaky := faultfs.Wrap(z.mem, func(c faultfs.Call) faultfs.Fault {
		if once || c.Op != faultfs.OpStat || c.Name != z.chk(2) {
			return faultfs.Fault{}
		}
		once = true
		_, err := core.Dispose(ctx, z.mem, z.chk(2), readAll)
		put(t, z.mem, late, "late")
		return faultfs.Fault{Err: err}
	})
	owner, err := storageOn(t, flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	report, err := owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.True(t, once)
	require.Empty(t, report.Resumed)
	require.True(t, exists(t, z.mem, late))
	report, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err)
	require.Equal(t, []int64{2}, report.Abandoned)
	require.False(t, exists(t, z.mem, late))
	requireIntact(t, z.mem, z.newer)
}

// An older owner that was itself still fencing goes on removing what it had moved into its directory, through a descriptor
// or because its call was under way, while the next owner settles the marks in there.
func TestAClaimGoesOnWhenWhatItFencesVanishes(t *testing.T) {
	ctx := context.Background()
	mem := memfs.New(memfs.Options{})
	markRigOwner(t, mem)
	vanished := 0
	faults := faultfs.Wrap(mem, func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpList && strings.Contains(path.Base(c.Name), "fenced-epoch-") {
			vanished++
			if err := mem.RemoveAll(ctx, c.Name); err != nil {
				t.Error(err)
			}
		}
		return faultfs.Fault{}
	})
	owner := markRigOwner(t, faults)
	require.Equal(t, 1, vanished)
	require.NoError(t, owner.Check(ctx))
}
