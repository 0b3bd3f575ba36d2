package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// scheduler runs actors so that one call on the file system is made at a time, in an order that a seed decides. Any actor
// may be held up for as long as all others need. It works in a bubble of synctest only.
type scheduler struct {
	random  *rand.Rand
	running int // the actor whose call is being made
	trace   []string
	over    atomic.Bool

	mu      sync.Mutex
	waiting []waitingCall
}

type waitingCall struct {
	actor int
	call  string
	allow chan struct{}
}

func newScheduler(seed uint64) *scheduler {
	return &scheduler{random: rand.New(rand.NewPCG(seed, 7))}
}

// run starts the actors, each on a wrapper of its own of fsys, and returns when all have ended.
func (s *scheduler) run(fsys core.FileSystem, actors ...func(fsys core.FileSystem)) {
	var alive atomic.Int32
	for i, act := range actors {
		alive.Add(1)
		wrapped := faultfs.Wrap(fsys, func(c faultfs.Call) faultfs.Fault {
			if s.over.Load() {
				return faultfs.Fault{}
			}
			allow := make(chan struct{})
			s.mu.Lock()
			s.waiting = append(s.waiting, waitingCall{i, fmt.Sprint(i, ": ", c.Op, " ", c.Name, " ", c.NewName), allow})
			s.mu.Unlock()
			<-allow
			return faultfs.Fault{}
		})
		go func() {
			defer alive.Add(-1)
			act(wrapped)
		}()
	}
	// A low chance of a switch holds actors up for long; a high one mixes them.
	switches := []int{5, 20, 60}[s.random.IntN(3)]
	for {
		synctest.Wait()
		if len(s.waiting) > 0 {
			s.allowOne(switches)
			continue
		}
		if alive.Load() == 0 {
			s.over.Store(true)
			return
		}
		time.Sleep(time.Millisecond) // of the bubble's time: an actor waits for its timer
	}
}

func (s *scheduler) allowOne(switches int) {
	slices.SortStableFunc(s.waiting, func(a, b waitingCall) int { return strings.Compare(a.call, b.call) })
	next := slices.IndexFunc(s.waiting, func(w waitingCall) bool { return w.actor == s.running })
	if next < 0 || s.random.IntN(100) < switches {
		next = s.random.IntN(len(s.waiting))
	}
	w := s.waiting[next]
	s.waiting = slices.Delete(s.waiting, next, next+1)
	s.running = w.actor
	s.trace = append(s.trace, w.call)
	close(w.allow)
}

// coordinatorActor is an owner of a job in the interleaving tests.
type coordinatorActor struct {
	name   int
	random *rand.Rand
	owner  *core.Owner
	errs   []error
	acked  []*checkpoint
	gone   map[string]bool // directories of checkpoints that it meant to dispose of or to take back
}

// live claims the job, sweeps, restores the newest checkpoint and commits, aborts and disposes for a while. It ends at the
// first error.
func (a *coordinatorActor) live(t *testing.T, r *jobRig, claimed func(*core.Owner)) func(core.FileSystem) {
	store := func(fsys core.FileSystem) *core.Storage { return storageOn(t, fsys, core.Options{}) }
	return func(fsys core.FileSystem) {
		err := func() error {
			ctx := context.Background()
			var err error
			if a.owner, err = store(fsys).Claim(ctx); err != nil {
				return err
			}
			claimed(a.owner)
			if _, err = a.owner.Sweep(ctx, readMeta); err != nil {
				return err
			}
			for range 3 {
				if err := a.step(ctx, r, fsys); err != nil {
					return err
				}
			}
			return nil
		}()
		if err != nil {
			a.errs = append(a.errs, err)
		}
	}
}

// step makes one checkpoint on top of the newest and disposes of the oldest, or takes one back.
func (a *coordinatorActor) step(ctx context.Context, r *jobRig, fsys core.FileSystem) error {
	entries, err := core.ListCheckpoints(ctx, fsys, r.dir())
	if err != nil {
		return err
	}
	id, err := core.NextID(entries)
	if err != nil {
		return err
	}
	if a.random.IntN(4) == 0 {
		pending, err := a.owner.Begin(ctx, id)
		if err != nil {
			return err
		}
		a.gone[r.chk(id)] = true
		return pending.DisposeOnFailure(ctx)
	}
	reuse := map[string][]byte{}
	if latest, ok := core.Latest(entries); ok {
		if reuse, err = sharedFilesOf(ctx, fsys, r, latest.Completed, a.random); err != nil {
			return err
		}
	}
	c, err := r.write(a.owner, id, 1, 1, reuse)
	if err != nil {
		return err
	}
	a.acked = append(a.acked, c)
	for _, e := range entries {
		if e.State == core.Complete && e.ID < id-1 {
			a.gone[e.Dir] = true
			if _, err := a.owner.Dispose(ctx, e.ID, readAll); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedFilesOf reads some of the shared files that a checkpoint needs.
func sharedFilesOf(
	ctx context.Context, fsys core.FileSystem, r *jobRig, c *core.Completed, random *rand.Rand,
) (map[string][]byte, error) {
	data, err := c.ReadMetadata(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := readMeta(data, c.Pointer)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, o := range objects {
		_, name, err := core.SplitQualified(o.Path)
		if err != nil {
			return nil, err
		}
		if !core.Within(r.dir()+"/shared", name) || random.IntN(2) == 0 {
			continue
		}
		reader, err := fsys.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		content := make([]byte, reader.Size())
		_, err = reader.ReadAt(content, 0)
		if err := errors.Join(err, reader.Close()); err != nil {
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

// Four coordinators claim one job, each believes for a while to own it, and every one of them may be held up at each of its
// calls for as long as the others like.
func TestOwnersInEveryOrderDamageNothing(t *testing.T) {
	const schedules = 200
	first := uint64(time.Now().UnixNano())
	t.Logf("first seed %d", first)
	for seed := first; seed < first+schedules && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { runOwners(t, seed, 4) })
	}
}

func runOwners(t *testing.T, seed uint64, n int) {
	t.Helper()
	r := newJobRig(t)
	s := newScheduler(seed)
	report := func(format string, args ...any) {
		t.Helper()
		t.Errorf("seed %d: "+format+"\n%s", append(append([]any{seed}, args...), strings.Join(s.trace, "\n"))...)
	}
	actors := make([]*coordinatorActor, n)
	lives := make([]func(core.FileSystem), n)
	newest := uint64(0)
	for i := range actors {
		actors[i] = &coordinatorActor{name: i, random: rand.New(rand.NewPCG(seed, uint64(i))), gone: map[string]bool{}}
		lives[i] = actors[i].live(t, r, func(o *core.Owner) { newest = max(newest, o.Epoch()) })
	}
	r.mem.OnMutation(func(m memfs.Mutation) {
		if m.Step != memfs.Applied || t.Failed() {
			return
		}
		publishes := strings.HasSuffix(m.NewName, "/"+core.MetadataName)
		takes := m.Op == memfs.OpRename && (strings.HasSuffix(m.Name, "/"+core.MetadataName) || strings.Contains(m.NewName, "/.epoch-") && strings.Contains(m.Name, "/chk-"))
		actor := actors[s.running]
		if (publishes || takes) && (actor.owner == nil || actor.owner.Epoch() < newest) {
			report("actor %d is fenced by epoch %d and still did %v", actor.name, newest, m)
		}
		if m.Op == memfs.OpRename || m.Op == memfs.OpRemove {
			if missing := missingObjects(r); missing != "" {
				report("after %v a complete checkpoint misses %s", m, missing)
			}
		}
	})
	s.run(r.mem, lives...)
	r.mem.OnMutation(nil)

	valid := 0
	gone := map[string]bool{}
	for _, a := range actors {
		if a.owner != nil && a.owner.Check(context.Background()) == nil {
			valid++
		}
		for dir := range a.gone {
			gone[dir] = true
		}
		for _, err := range a.errs {
			if !errors.Is(err, core.ErrFenced) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
				report("actor %d ended with %v", a.name, err)
			}
		}
	}
	if valid != 1 {
		report("%d owners believe to be the one", valid)
	}
	for _, a := range actors {
		for _, c := range a.acked {
			if !gone[c.dir] {
				requireIntact(t, r.mem, c)
			}
		}
	}
}

// missingObjects names a file that a complete checkpoint needs and that is not there.
func missingObjects(r *jobRig) string {
	ctx := context.Background()
	entries, err := core.ListCheckpoints(ctx, r.mem, r.dir())
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if e.State != core.Complete {
			continue
		}
		data, err := e.Completed.ReadMetadata(ctx)
		if err != nil {
			return err.Error()
		}
		objects, err := readMeta(data, e.Completed.Pointer)
		if err != nil {
			return err.Error()
		}
		for _, o := range objects {
			_, name, err := core.SplitQualified(o.Path)
			if err != nil {
				return err.Error()
			}
			if _, err := r.mem.Stat(ctx, name); err != nil {
				return name
			}
		}
	}
	return ""
}

// Claimers alone, in many more orders.
func TestClaimersInEveryOrderLeaveOneOwner(t *testing.T) {
	const schedules = 400
	first := uint64(time.Now().UnixNano())
	t.Logf("first seed %d", first)
	for seed := first; seed < first+schedules && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { runClaimers(t, seed, 5) })
	}
}

func runClaimers(t *testing.T, seed uint64, n int) {
	t.Helper()
	r := newJobRig(t)
	s := newScheduler(seed)
	owners := make([]*core.Owner, n)
	errs := make([]error, n)
	lives := make([]func(core.FileSystem), n)
	for i := range lives {
		lives[i] = func(fsys core.FileSystem) {
			owners[i], errs[i] = storageOn(t, fsys, core.Options{}).Claim(context.Background())
		}
	}
	s.run(r.mem, lives...)
	valid := 0
	epochs := map[uint64]bool{}
	for i, owner := range owners {
		if errs[i] != nil {
			require.ErrorIs(t, errs[i], core.ErrFenced, "seed %d", seed)
			continue
		}
		require.False(t, epochs[owner.Epoch()], "seed %d: epoch %d twice\n%s", seed, owner.Epoch(), strings.Join(s.trace, "\n"))
		epochs[owner.Epoch()] = true
		if owner.Check(context.Background()) == nil {
			valid++
		}
	}
	require.Equal(t, 1, valid, "seed %d\n%s", seed, strings.Join(s.trace, "\n"))
}
