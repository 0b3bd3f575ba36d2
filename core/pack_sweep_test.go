package core_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// packedLife writes two packs with small and large states, one of which is given up, and goes on using the shared ones of the
// first in the second. It returns the handles of committed packs with their states.
func packedLife(t *testing.T, r *streamRig) (map[core.StreamHandle][]byte, error) {
	t.Helper()
	packer := newPacker(t, r, core.PackOptions{Memory: 8 << 10})
	durable := map[core.StreamHandle][]byte{}
	var problems error
	var reusable []core.StreamHandle
	for id := range int64(2) {
		pack := packer.Begin(t.Context(), id, r.location)
		handles := map[core.StreamHandle][]byte{}
		write := func(scope core.Scope, size int) error {
			handle, err := writePacked(pack, scope, noise(size))
			if err == nil {
				handles[handle] = noise(size)
			}
			return err
		}
		_, err := pack.Reuse(t.Context(), reusable)
		for i := 0; err == nil && i < 3; i++ {
			err = errors.Join(write(core.Exclusive, 100+i), write(core.Shared, 30_000+i))
		}
		if err == nil {
			given := pack.CreateStateStream(t.Context(), core.Shared)
			_, err = given.Write(noise(50_000))
			err = errors.Join(err, given.Close())
		}
		if err == nil {
			err = pack.Commit()
		}
		err = errors.Join(err, pack.Close())
		problems = errors.Join(problems, err)
		if err != nil {
			continue
		}
		for handle, state := range handles {
			durable[handle] = state
			if handle.(*core.SegmentHandle).Scope == core.Shared { //nolint:forcetypeassert // nothing else is packed
				reusable = append(reusable, handle)
			}
		}
	}
	return durable, problems
}

func makePackDirs(t *testing.T, r *streamRig) {
	t.Helper()
	packer := newPacker(t, r, core.PackOptions{})
	for _, dir := range []string{packer.TaskOwnedDir(), packer.SharedDir()} {
		_, name, err := core.SplitQualified(dir)
		require.NoError(t, err)
		require.NoError(t, r.mem.MkdirAll(t.Context(), name))
	}
}

func TestWhateverCallOfAPackFailsItSurfacesAndLeavesNothing(t *testing.T) {
	r := newStreamRig(t, neverInline)
	_, err := packedLife(t, r)
	require.NoError(t, err)
	counts := map[bool]int{false: r.faults.Count()}
	r = newStreamRig(t, neverInline)
	makePackDirs(t, r)
	_, err = packedLife(t, r)
	require.NoError(t, err)
	counts[true] = r.faults.Count()
	require.Greater(t, counts[true], 10)
	for after, count := range counts {
		for i := range count {
			r := newStreamRig(t, neverInline)
			if after { // a call that fails by itself has no reply that could be lost
				makePackDirs(t, r)
			}
			r.faults.SetInjector(faultfs.Nth(i, faultfs.Fault{Err: faultfs.ErrInjected, After: after}))
			durable, err := packedLife(t, r)
			require.ErrorIs(t, err, faultfs.ErrInjected, "call %d", i)
			r.faults.SetInjector(nil)
			needed := map[string]bool{}
			for handle, state := range durable {
				requireState(t, r.mem, state, handle)
				_, name, err := core.SplitQualified(handle.(*core.SegmentHandle).Path) //nolint:forcetypeassert // nothing else is packed
				require.NoError(t, err)
				needed[name] = true
			}
			for _, name := range r.files() {
				if !needed[name] {
					require.ErrorContains(t, err, name, "call %d", i)
				}
			}
			require.Empty(t, r.faults.OpenFiles())
		}
	}
}

func TestACommittedPackSurvivesACrashAtEveryPoint(t *testing.T) {
	r := newStreamRig(t, neverInline)
	type crash struct {
		fsys *memfs.FS
		told int
	}
	var crashes []crash
	var told []map[core.StreamHandle][]byte
	r.mem.OnMutation(func(memfs.Mutation) {
		crashes = append(crashes, crash{r.mem.CrashClone(memfs.CrashConfig{}), len(told)})
	})
	packer := newPacker(t, r, core.PackOptions{})
	for id := range int64(3) {
		pack := packer.Begin(t.Context(), id, r.location)
		handles := map[core.StreamHandle][]byte{}
		handle, err := writePacked(pack, core.Exclusive, noise(100+int(id)))
		require.NoError(t, err)
		handles[handle] = noise(100 + int(id))
		require.NoError(t, pack.Commit())
		told = append(told, handles)
	}
	r.mem.OnMutation(nil)
	crashes = append(crashes, crash{r.mem.CrashClone(memfs.CrashConfig{}), len(told)})
	require.Greater(t, len(crashes), 6)
	for _, c := range crashes {
		for _, handles := range told[:c.told] {
			for handle, state := range handles {
				requireState(t, c.fsys, state, handle)
			}
		}
	}
}

// A worker goes on using some of its shared states from checkpoint to checkpoint and drops others: no file is ever longer than
// twice what the checkpoint needs of it, and nothing is lost.
func TestTheSpaceOfSharedSegmentsIsBounded(t *testing.T) {
	random := loggedRand(t)
	r := newStreamRig(t, neverInline)
	packer := newPacker(t, r, core.PackOptions{})
	type live struct {
		handle core.StreamHandle
		state  []byte
	}
	var states []live
	rewritten := 0
	for id := range int64(60) {
		if id == 30 { // a worker that is restarted knows no lengths
			packer = newPacker(t, r, core.PackOptions{})
		}
		pack := packer.Begin(t.Context(), id, r.location)
		random.Shuffle(len(states), func(i, k int) { states[i], states[k] = states[k], states[i] })
		states = states[random.IntN(len(states)+1):]
		handles := make([]core.StreamHandle, len(states))
		for i := range states {
			handles[i] = states[i].handle
		}
		reused, err := pack.Reuse(t.Context(), handles)
		require.NoError(t, err)
		for i := range states {
			if states[i].handle != reused[i] {
				rewritten++
			}
			states[i].handle = reused[i]
		}
		for range 1 + random.IntN(10) {
			state := noise(1 + random.IntN(2000))
			handle, err := writePacked(pack, core.Shared, state)
			require.NoError(t, err)
			states = append(states, live{handle, state})
		}
		require.NoError(t, pack.Commit())
		needed := map[string]int64{}
		for _, s := range states {
			requireState(t, r.mem, s.state, s.handle)
			needed[s.handle.(*core.SegmentHandle).Path] += s.handle.StateSize() //nolint:forcetypeassert // nothing else is packed
		}
		for qualified, bytes := range needed {
			_, name, err := core.SplitQualified(qualified)
			require.NoError(t, err)
			info, err := r.mem.Stat(t.Context(), name)
			require.NoError(t, err)
			require.LessOrEqual(t, info.Size, 2*bytes, "checkpoint %d", id)
		}
	}
	require.Positive(t, rewritten)
}

func TestReuseCopiesNoDamage(t *testing.T) {
	r, handles := damagedSegments(t, func(data []byte) []byte {
		data[0] ^= 1
		return data
	})
	pack := r.pack(t, core.PackOptions{})
	exclusive, err := writePacked(pack, core.Exclusive, noise(3))
	require.NoError(t, err)
	require.NoError(t, pack.Commit())
	pack = r.pack(t, core.PackOptions{})
	_, err = pack.Reuse(t.Context(), []core.StreamHandle{handles[0]})
	require.ErrorIs(t, err, core.ErrCorrupt)
	_, err = pack.Reuse(t.Context(), []core.StreamHandle{exclusive})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, pack.Close())
}

func TestAHangingFileIsBrokenByTheClosingOfItsPack(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	_, err := writePacked(pack, core.Exclusive, noise(10))
	require.NoError(t, err)
	hanging := make(chan struct{})
	r.faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op != faultfs.OpClose {
			return faultfs.Fault{}
		}
		close(hanging)
		return faultfs.Fault{Block: make(chan struct{})}
	})
	committed := make(chan error)
	go func() { committed <- pack.Commit() }()
	<-hanging
	require.NoError(t, pack.Close())
	require.Error(t, <-committed)
	r.requireNothingLeft(t)
}

func TestAStreamWhoseContextEndsDuringAWriteBreaksItsPackAndReturns(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	r.faults.SetInjector(faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Block: make(chan struct{})}))
	stream := pack.CreateStateStream(ctx, core.Exclusive)
	_, err := io.Copy(stream, bytes.NewReader(noise(100)))
	require.NoError(t, err)
	go cancel()
	_, err = stream.CloseAndGetHandle()
	require.ErrorIs(t, err, context.Canceled)
	r.faults.SetInjector(nil)
	require.ErrorIs(t, pack.Commit(), context.Canceled)
	r.requireNothingLeft(t)
}
