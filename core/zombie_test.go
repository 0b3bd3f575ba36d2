package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// zombieRig is a job with something of every kind, owned by an owner that will be held up in the middle of an act:
//
//	chk-1   complete                chk-4   given up, with a state file
//	chk-2   its disposal has begun  chk-5   in progress
//	chk-3   complete, the newest    shared  also a file that nothing needs
type zombieRig struct {
	*jobRig
	flaky         *faultfs.FS
	zombie        *core.Owner
	pending       *core.PendingLocation
	oldest, newer *checkpoint
	inProgress    string // a state file of the successor's checkpoint in progress, if it has one
}

const pendingID = 5

func newZombieRig(t *testing.T) *zombieRig {
	t.Helper()
	ctx := context.Background()
	r := newJobRig(t)
	z := &zombieRig{jobRig: r, flaky: faultfs.Wrap(r.mem, nil)}
	var err error
	z.zombie, err = storageOn(t, z.flaky, core.Options{}).Claim(ctx)
	require.NoError(t, err)
	z.oldest = r.commit(t, z.zombie, 1, 2, 2, nil)
	second := r.commit(t, z.zombie, 2, 1, 1, nil)
	z.newer = r.commit(t, z.zombie, 3, 2, 1, onlyOne(z.oldest.sharedOf()))
	require.NoError(t, r.mem.Rename(ctx, second.dir+"/"+core.MetadataName, second.dir+"/"+core.DisposedName, core.RenameNoReplace))
	put(t, r.mem, r.chk(3)+"/"+uuid.NewString(), "late")
	put(t, r.mem, r.chk(4)+"/"+uuid.NewString(), "given up")
	put(t, r.mem, r.dir()+"/shared/"+uuid.NewString(), "of no checkpoint")
	z.pending, err = z.zombie.Begin(ctx, pendingID)
	require.NoError(t, err)
	put(t, r.mem, r.chk(pendingID)+"/"+uuid.NewString(), "in progress")
	return z
}

func onlyOne(files map[string][]byte) map[string][]byte {
	name := slices.Min(slices.Collect(maps.Keys(files)))
	return map[string][]byte{name: files[name]}
}

// zombieActs are what an owner does, each with its calls on the file system.
var zombieActs = []struct {
	name    string
	prepare func(t *testing.T, z *zombieRig) (act func() error)
}{
	{"claims", func(t *testing.T, z *zombieRig) func() error {
		store := storageOn(t, z.flaky, core.Options{})
		return func() error {
			_, err := store.Claim(context.Background())
			return err
		}
	}},
	{"begins a new checkpoint", func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			_, err := z.zombie.Begin(context.Background(), 6)
			return err
		}
	}},
	{"begins the successor's checkpoint", func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			_, err := z.zombie.Begin(context.Background(), pendingID)
			return err
		}
	}},
	{"writes exclusive state", writesState(core.Exclusive)},
	{"writes shared state", writesState(core.Shared)},
	{"gives a state up", func(_ *testing.T, z *zombieRig) func() error {
		stream := z.pending.CreateStateStream(context.Background(), core.Exclusive)
		return func() error {
			if _, err := stream.Write(make([]byte, 64<<10)); err != nil {
				return errors.Join(err, stream.Close())
			}
			return stream.Close()
		}
	}},
	{"writes and publishes metadata", func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			stream, err := z.pending.CreateMetadataStream(context.Background())
			if err != nil {
				return err
			}
			if _, err := stream.Write(encodeMeta(metaEntry{Path: "mem:/zombie"})); err != nil {
				return errors.Join(err, stream.Close())
			}
			_, err = stream.CloseAndFinalize()
			return err
		}
	}},
	{"gives its metadata up", func(t *testing.T, z *zombieRig) func() error {
		stream, err := z.pending.CreateMetadataStream(context.Background())
		require.NoError(t, err)
		return stream.Close
	}},
	{"takes its checkpoint back", func(_ *testing.T, z *zombieRig) func() error {
		return func() error { return z.pending.DisposeOnFailure(context.Background()) }
	}},
	{"disposes of the oldest", disposesOf(1)},
	{"resumes a disposal", disposesOf(2)},
	{"disposes of the newest", disposesOf(3)},
	{"sweeps", func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			_, err := z.zombie.Sweep(context.Background(), readMeta)
			return err
		}
	}},
}

func writesState(scope core.Scope) func(*testing.T, *zombieRig) func() error {
	return func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			stream := z.pending.CreateStateStream(context.Background(), scope)
			if _, err := stream.Write([]byte("late state")); err != nil {
				return errors.Join(err, stream.Close())
			}
			_, err := stream.CloseAndGetHandle()
			return err
		}
	}
}

func disposesOf(id int64) func(*testing.T, *zombieRig) func() error {
	return func(_ *testing.T, z *zombieRig) func() error {
		return func() error {
			_, err := z.zombie.Dispose(context.Background(), id, readAll)
			return err
		}
	}
}

// successors are what may happen while the zombie is held up. Each returns the owner and what it committed.
var successors = []struct {
	name    string
	succeed func(t *testing.T, z *zombieRig) (*core.Owner, []*checkpoint)
}{
	{"builds on the newest", func(t *testing.T, z *zombieRig) (*core.Owner, []*checkpoint) {
		owner := z.claimAndSweep(t)
		restored := z.restore(t, func(ids []int64) int64 { return slices.Max(ids) })
		c := z.commit(t, owner, z.nextID(t), 2, 1, restored.sharedOf())
		d := z.commit(t, owner, z.nextID(t), 1, 1, c.sharedOf())
		for _, id := range completeIDs(t, z.mem, z.dir()) {
			if id < c.id {
				_, err := owner.Dispose(context.Background(), id, readAll)
				require.NoError(t, err)
			}
		}
		return owner, []*checkpoint{c, d}
	}},
	{"goes back to the oldest", func(t *testing.T, z *zombieRig) (*core.Owner, []*checkpoint) {
		owner := z.claim(t)
		restored := z.restore(t, func(ids []int64) int64 { return slices.Min(ids) })
		c := z.commit(t, owner, z.nextID(t), 2, 1, restored.sharedOf())
		return owner, []*checkpoint{restored, c}
	}},
	{"takes the same id", func(t *testing.T, z *zombieRig) (*core.Owner, []*checkpoint) {
		owner := z.claimAndSweep(t)
		id := int64(pendingID)
		if slices.Contains(completeIDs(t, z.mem, z.dir()), id) {
			id++ // the zombie was faster
		}
		restored := z.restore(t, func(ids []int64) int64 { return slices.Max(ids) })
		return owner, []*checkpoint{restored, z.commit(t, owner, id, 1, 1, restored.sharedOf())}
	}},
	{"is itself in the middle of the same id", func(t *testing.T, z *zombieRig) (*core.Owner, []*checkpoint) {
		owner := z.claimAndSweep(t)
		restored := z.restore(t, func(ids []int64) int64 { return slices.Max(ids) })
		pending, err := owner.Begin(context.Background(), 6)
		require.NoError(t, err)
		z.inProgress = pending.CheckpointDir() + "/" + uuid.NewString()
		put(t, z.mem, z.inProgress, "the successor's state")
		return owner, []*checkpoint{restored}
	}},
}

func (z *zombieRig) claimAndSweep(t *testing.T) *core.Owner {
	t.Helper()
	owner := z.claim(t)
	_, err := owner.Sweep(context.Background(), readMeta)
	require.NoError(t, err)
	return owner
}

func (z *zombieRig) nextID(t *testing.T) int64 {
	t.Helper()
	entries, err := core.ListCheckpoints(context.Background(), z.mem, z.dir())
	require.NoError(t, err)
	id, err := core.NextID(entries)
	require.NoError(t, err)
	return id
}

// restore reads a complete checkpoint with all its files, as they are now.
func (z *zombieRig) restore(t *testing.T, choose func([]int64) int64) *checkpoint {
	t.Helper()
	ids := completeIDs(t, z.mem, z.dir())
	require.NotEmpty(t, ids)
	id := choose(ids)
	completed, err := core.ResolvePointer(context.Background(), core.OnlyOn(z.mem), "mem:"+z.chk(id))
	require.NoError(t, err)
	c := &checkpoint{id: id, dir: z.chk(id), completed: completed, files: map[string][]byte{}}
	c.metadata, err = completed.ReadMetadata(context.Background())
	require.NoError(t, err)
	objects, err := readMeta(c.metadata, completed.Pointer)
	require.NoError(t, err)
	for _, o := range objects {
		if o.Path == "mem:/zombie" {
			continue
		}
		_, name, err := core.SplitQualified(o.Path)
		require.NoError(t, err)
		c.files[name] = contentOf(t, z.mem, name)
		if strings.HasPrefix(name, z.dir()+"/shared/") {
			c.shared = append(c.shared, name)
		}
	}
	return c
}

// An owner is held up before each of its calls and after each of its steps. A successor takes over and goes on with its
// work; then the owner wakes up. Whatever it was doing ends in an error of the right kind, or was done before it was fenced;
// the successor misses nothing. All this also when a third claimer, late, makes the epoch of the zombie once more.
func TestZombieCannotDamageItsSuccessor(t *testing.T) {
	for _, act := range zombieActs {
		for _, successor := range successors {
			t.Run(act.name+"/"+successor.name, func(t *testing.T) {
				t.Parallel()
				calls, steps := measureAct(t, act.prepare)
				require.Positive(t, calls)
				for _, revived := range []bool{false, true} {
					for i := range calls {
						runZombie(t, act.prepare, successor.succeed, stopBeforeCall(i), revived)
					}
					for i := range steps {
						runZombie(t, act.prepare, successor.succeed, stopAfterStep(i), revived)
					}
				}
			})
		}
	}
}

func measureAct(t *testing.T, prepare func(*testing.T, *zombieRig) func() error) (calls, steps int) {
	t.Helper()
	z := newZombieRig(t)
	act := prepare(t, z)
	calls, steps = z.flaky.Count(), z.mem.Mutations()
	require.NoError(t, act())
	return z.flaky.Count() - calls, z.mem.Mutations() - steps
}

// stop arranges for an act to be held up once. It says where in the log of a failed test.
type stop func(z *zombieRig) (at func() string, reached, open chan struct{})

func stopBeforeCall(i int) stop {
	return func(z *zombieRig) (func() string, chan struct{}, chan struct{}) {
		reached, open := make(chan struct{}), make(chan struct{})
		var at atomic.Value
		first := z.flaky.Count()
		z.flaky.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Index != first+i {
				return faultfs.Fault{}
			}
			at.Store(fmt.Sprintf("before %s %s %s", c.Op, c.Name, c.NewName))
			close(reached)
			return faultfs.Fault{Block: open}
		})
		return func() string { return fmt.Sprint(at.Load()) }, reached, open
	}
}

func stopAfterStep(i int) stop {
	return func(z *zombieRig) (func() string, chan struct{}, chan struct{}) {
		reached, open := make(chan struct{}), make(chan struct{})
		var at atomic.Value
		number := z.mem.Mutations() + i
		z.mem.OnMutation(func(m memfs.Mutation) {
			if m.Number == number {
				at.Store("after " + m.String())
				close(reached)
				<-open
			}
		})
		return func() string { return fmt.Sprint(at.Load()) }, reached, open
	}
}

func runZombie(
	t *testing.T, prepare func(*testing.T, *zombieRig) func() error,
	succeed func(*testing.T, *zombieRig) (*core.Owner, []*checkpoint), hold stop, revived bool,
) {
	t.Helper()
	ctx := context.Background()
	z := newZombieRig(t)
	act := prepare(t, z)
	at, reached, open := hold(z)
	ended := make(chan error, 1)
	go func() { ended <- act() }()
	select {
	case <-reached:
	case err := <-ended: // the calls of one act may run in parallel, and one less may be made
		require.NoError(t, err)
		return
	}
	owner, kept := succeed(t, z)
	if revived {
		require.NoError(t, z.mem.MkdirAll(ctx, z.dir()+"/.epoch-1/"+uuid.NewString()))
		put(t, z.mem, z.dir()+"/.epoch-1/owner", "{}")
	}
	before, ids := z.ofSuccessor(t, kept), completeIDs(t, z.mem, z.dir())
	close(open)
	err := <-ended

	where := at()
	if err != nil && !errors.Is(err, core.ErrFenced) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err, where)
	}
	require.Equal(t, ids, completeIDs(t, z.mem, z.dir()), where)
	require.Equal(t, before, z.ofSuccessor(t, kept), where)
	require.ErrorIs(t, z.zombie.Check(ctx), core.ErrFenced, where)
	if z.zombieClaimed(t, owner) {
		return
	}
	require.NoError(t, owner.Check(ctx), where)
	before = z.committed(t, kept)
	again := z.commit(t, owner, z.nextID(t), 1, 1, kept[len(kept)-1].sharedOf())
	requireIntact(t, z.mem, again)
	_, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err, where)
	require.Equal(t, before, z.committed(t, kept), where)
}

// zombieClaimed reports whether the zombie's act was a claim that came after the successor's.
func (z *zombieRig) zombieClaimed(t *testing.T, owner *core.Owner) bool {
	t.Helper()
	return exists(t, z.mem, fmt.Sprintf("%s/.epoch-%d/owner", z.dir(), owner.Epoch()+1))
}

// ofSuccessor is the part of the job directory that the successor needs: what it committed, and what it has in progress.
// It looks at nothing else, since some of the zombie's removals may go on beside the one that is held up.
func (z *zombieRig) ofSuccessor(t *testing.T, kept []*checkpoint) map[string]string {
	t.Helper()
	part := z.committed(t, kept)
	if z.inProgress != "" {
		part[z.inProgress] = string(contentOf(t, z.mem, z.inProgress))
	}
	return part
}

func (z *zombieRig) committed(t *testing.T, kept []*checkpoint) map[string]string {
	t.Helper()
	part := map[string]string{}
	for _, c := range kept {
		for _, name := range append(slices.Collect(maps.Keys(c.files)), c.dir+"/"+core.MetadataName) {
			part[name] = string(contentOf(t, z.mem, name))
		}
	}
	return part
}
