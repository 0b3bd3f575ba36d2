package core_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// life is a job that runs for a while, with what is known of it from outside: what was acknowledged, what it began to
// dispose of, and what others put there.
type life struct {
	*jobRig
	random  *rand.Rand
	owner   *core.Owner
	retain  []*checkpoint     // complete, oldest first
	acked   []*checkpoint     // all that were ever acknowledged
	ending  map[int64]bool    // ids whose disposal was begun
	foreign map[string]string // files of others, durable
}

// moment is what was known at one step of a life, and what a crash then left.
type moment struct {
	crashClone
	acked   []*checkpoint
	ending  map[int64]bool
	foreign map[string]string
}

// live claims, sweeps, commits, gives up, disposes of what is beyond two and restarts, n times.
func (l *life) live(t *testing.T, n int) {
	t.Helper()
	ctx := context.Background()
	l.restart(t)
	for range n {
		switch l.random.IntN(8) {
		case 0:
			l.restart(t)
		case 1:
			pending, err := l.owner.Begin(ctx, l.next(t))
			require.NoError(t, err)
			l.leaveState(t, pending, l.random.IntN(3))
			require.NoError(t, pending.DisposeOnFailure(ctx))
		case 2: // given up without a word, with a temporary and a state file
			pending, err := l.owner.Begin(ctx, l.next(t))
			require.NoError(t, err)
			l.leaveState(t, pending, l.random.IntN(3))
			stream, err := pending.CreateMetadataStream(ctx)
			require.NoError(t, err)
			_, err = stream.Write(make([]byte, 70<<10))
			require.NoError(t, err)
		case 3:
			l.putForeign(t)
		default:
			l.checkpoint(t)
		}
	}
}

func (l *life) next(t *testing.T) int64 {
	t.Helper()
	entries, err := core.ListCheckpoints(context.Background(), l.mem, l.dir())
	require.NoError(t, err)
	id, err := core.NextID(entries)
	require.NoError(t, err)
	return id
}

func (l *life) restart(t *testing.T) {
	t.Helper()
	l.owner = l.claim(t)
	_, err := l.owner.Sweep(context.Background(), readMeta)
	require.NoError(t, err)
}

// leaveState writes states of both scopes that no metadata will name.
func (l *life) leaveState(t *testing.T, pending *core.PendingLocation, n int) {
	t.Helper()
	for i := range n {
		stream := pending.CreateStateStream(context.Background(), core.Scope(i%2))
		_, err := stream.Write([]byte("left behind"))
		require.NoError(t, err)
		_, err = stream.CloseAndGetHandle()
		require.NoError(t, err)
	}
}

func (l *life) checkpoint(t *testing.T) {
	t.Helper()
	reuse := map[string][]byte{}
	if len(l.retain) > 0 {
		for name, content := range l.retain[len(l.retain)-1].sharedOf() {
			if l.random.IntN(3) > 0 {
				reuse[name] = content
			}
		}
	}
	c := l.commit(t, l.owner, l.next(t), l.random.IntN(3), l.random.IntN(3), reuse)
	l.acked = append(l.acked, c)
	l.retain = append(l.retain, c)
	if len(l.retain) > 2 {
		oldest := l.retain[0]
		l.retain = l.retain[1:]
		l.ending[oldest.id] = true
		_, err := l.owner.Dispose(context.Background(), oldest.id, readAll)
		require.NoError(t, err)
	}
}

func (l *life) putForeign(t *testing.T) {
	t.Helper()
	dirs := []string{"", "/shared", "/taskowned"}
	for _, c := range l.retain {
		dirs = append(dirs, "/"+core.CheckpointDirName(c.id))
	}
	dir := l.dir() + dirs[l.random.IntN(len(dirs))]
	name := dir + "/foreign-" + uuid.NewString()
	if strings.HasSuffix(dir, "/taskowned") {
		name = dir + "/" + uuid.NewString()
	}
	put(t, l.mem, name, name)
	l.foreign[name] = name
}

// A job is killed, or its machine loses its power, at every step of its life. The next owner finds every acknowledged
// checkpoint that was not being disposed of, byte for byte, and its sweep leaves exactly what complete checkpoints need and
// what is not ours.
func TestEveryMomentOfALifeLeavesExactlyWhatIsNeeded(t *testing.T) {
	seedSource := loggedRand(t)
	for range 2 {
		l := &life{jobRig: newJobRig(t), random: rand.New(rand.NewPCG(seedSource.Uint64(), 1)), ending: map[int64]bool{}, foreign: map[string]string{}}
		var mu sync.Mutex
		var moments []moment
		l.mem.OnMutation(func(m memfs.Mutation) {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50, 100} {
				clone := l.mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(uint64(m.Number), 3))})
				moments = append(moments, moment{crashClone{clone, m.String()}, slices.Clone(l.acked), maps.Clone(l.ending), maps.Clone(l.foreign)})
			}
		})
		l.live(t, 12)
		l.mem.OnMutation(nil)
		require.Greater(t, len(moments), 100)
		for _, m := range moments {
			requireExactlyTheNeeded(t, m)
		}
	}
}

func requireExactlyTheNeeded(t *testing.T, m moment) {
	t.Helper()
	ctx := context.Background()
	r := jobRigOn(t, m.mem)
	owner, err := r.store.Claim(ctx)
	require.NoError(t, err, m.at)
	_, err = owner.Sweep(ctx, readMeta)
	require.NoError(t, err, m.at)

	entries, err := core.ListCheckpoints(ctx, m.mem, r.dir())
	require.NoError(t, err)
	complete := map[int64]bool{}
	want := map[string]bool{}
	for _, e := range entries {
		if e.State != core.Complete {
			continue
		}
		complete[e.ID] = true
		want[e.Dir+"/"+core.MetadataName] = true
		data, err := e.Completed.ReadMetadata(ctx)
		require.NoError(t, err)
		objects, err := readMeta(data, e.Completed.Pointer)
		require.NoError(t, err)
		for _, o := range objects {
			_, name, err := core.SplitQualified(o.Path)
			require.NoError(t, err)
			want[name] = true
		}
	}
	for _, c := range m.acked {
		if !m.ending[c.id] {
			requireIntact(t, m.mem, c)
		}
		if complete[c.id] {
			requireIntact(t, m.mem, c)
		}
	}
	after := snapshot(t, m.mem, r.dir())
	for name, content := range m.foreign {
		require.Equal(t, content, after[name], m.at)
		want[name] = true
	}
	var got []string
	for _, name := range withoutEpochs(filesIn(after)) {
		if dir, isMark := strings.CutSuffix(name, "/._metadata.emptied"); isMark {
			foreign := func(other string) bool { return strings.HasPrefix(other, dir+"/foreign-") }
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(after)), foreign), "%s: the mark stays only with foreign files", m.at)
			continue
		}
		// Of a foreign file that is just being written the test does not know yet.
		if want[name] || !strings.Contains(name, "/foreign-") && !strings.Contains(name, "/taskowned/") {
			got = append(got, name)
		}
	}
	require.Equal(t, slices.Sorted(keysOf(want)), got, m.at)
	for name := range after {
		if rest, ok := strings.CutPrefix(name, r.dir()+"/.epoch-"); ok {
			require.Regexp(t, `^\d+/(owner|[0-9a-f-]{36}/)?$`, rest, "only the owner's own claim: %s", m.at)
		}
	}
}
