package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// streamLife is a stream's whole life: buffered, spilled and direct writes, flush, sync, keep and the deferred Close.
func streamLife(s *core.StateStream) (handle core.StreamHandle, content []byte, err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	for i, size := range []int{30, 40, 60, 500, 10} {
		piece := noise(size)
		if _, err := s.Write(piece); err != nil {
			return nil, nil, err
		}
		content = append(content, piece...)
		switch i {
		case 2:
			err = s.Flush()
		case 3:
			err = s.Sync()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	handle, err = s.CloseAndGetHandle()
	return handle, content, err
}

func sweepOptions() core.Options { return core.Options{InlineThreshold: 50, WriteBuffer: 100} }

// sweepErrors are failures of each kind that the code tells apart.
var sweepErrors = []error{
	faultfs.ErrInjected, core.ErrUnavailable, core.ErrNoSpace, context.DeadlineExceeded,
}

// TestStateStreamSurvivesAFaultInEveryCall fails the i-th call, before and after it happened, for every i until a life has no
// such call.
func TestStateStreamSurvivesAFaultInEveryCall(t *testing.T) {
	for _, cause := range sweepErrors {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/after %v", cause, after), func(t *testing.T) {
				for i := 0; ; i++ {
					r := newStreamRig(t, sweepOptions())
					r.faults.SetInjector(faultfs.Nth(i, faultfs.Fault{Err: cause, After: after}))
					handle, content, err := streamLife(r.exclusive(t.Context()))
					if r.faults.Count() <= i {
						require.NoError(t, err)
						requireState(t, r.mem, content, handle)
						require.Greater(t, i, 6, "the sweep has reached every call")
						return
					}
					call := r.faults.Calls()[i]
					require.ErrorIs(t, err, cause, "%v", call)
					require.Nil(t, handle)
					r.requireNothingLeft(t)
				}
			})
		}
	}
}

// TestStateStreamNamesWhatItCouldNotRemove fails the i-th call and every later one: the storage is gone.
func TestStateStreamNamesWhatItCouldNotRemove(t *testing.T) {
	for _, after := range []bool{false, true} {
		for i := 0; ; i++ {
			r := newStreamRig(t, sweepOptions())
			r.faults.SetInjector(faultfs.From(i, faultfs.Fault{Err: core.ErrUnavailable, After: after}))
			handle, _, err := streamLife(r.exclusive(t.Context()))
			if r.faults.Count() <= i {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.Nil(t, handle)
			r.requireLeftoversNamed(t, err)
		}
	}
}

func TestStateStreamSurvivesATornWrite(t *testing.T) {
	for i := 0; ; i++ {
		r := newStreamRig(t, sweepOptions())
		tear := faultfs.Window(i, 1, faultfs.OnOp(faultfs.OpWrite, faultfs.Fault{Tear: 7}))
		r.faults.SetInjector(tear)
		handle, content, err := streamLife(r.exclusive(t.Context()))
		if r.count(faultfs.OpWrite) <= i {
			require.NoError(t, err)
			requireState(t, r.mem, content, handle)
			require.Greater(t, i, 2)
			return
		}
		require.ErrorIs(t, err, faultfs.ErrInjected)
		require.Nil(t, handle)
		r.requireNothingLeft(t)
	}
}

// TestStateStreamDamageOnTheWayIsFoundByTheReader flips a bit in each write: the checksums are those of what was given to the
// stream.
func TestStateStreamDamageOnTheWayIsFoundByTheReader(t *testing.T) {
	for i := 0; ; i++ {
		r := newStreamRig(t, sweepOptions())
		r.faults.SetInjector(faultfs.Window(i, 1, faultfs.OnOp(faultfs.OpWrite, faultfs.Fault{Flip: true, Bit: 13 * i})))
		handle, _, err := streamLife(r.exclusive(t.Context()))
		require.NoError(t, err)
		if r.count(faultfs.OpWrite) <= i {
			require.Greater(t, i, 2)
			return
		}
		reader, err := core.OpenState(t.Context(), core.OnlyOn(r.mem), handle)
		require.NoError(t, err)
		p := make([]byte, reader.Size())
		_, err = reader.ReadAt(p, 0)
		require.ErrorIs(t, err, core.ErrCorrupt)
		require.Equal(t, make([]byte, len(p)), p)
		require.NoError(t, reader.Close())
	}
}

// TestStateStreamHandlesSurviveAPowerCut cuts the power after each step of several streams' lives. A handle that was returned
// before must lead to its bytes afterwards, however much of what was not durable survives.
func TestStateStreamHandlesSurviveAPowerCut(t *testing.T) {
	seeds := loggedRand(t)
	r := newStreamRig(t, sweepOptions())
	type keptState struct {
		handle  core.StreamHandle
		content []byte
	}
	var states []keptState
	steps := 0
	check := func() {
		for _, percent := range []int{0, 50, 100} {
			seed := seeds.Uint64()
			clone := r.mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(seed, 1))})
			for _, s := range states {
				reader, err := core.OpenState(t.Context(), core.OnlyOn(clone), s.handle)
				require.NoError(t, err, "%d %%, seed %d", percent, seed)
				got := make([]byte, reader.Size())
				_, err = reader.ReadAt(got, 0)
				require.NoError(t, err)
				require.True(t, bytes.Equal(s.content, got), "%d %%, seed %d", percent, seed)
				require.NoError(t, reader.Close())
			}
		}
	}
	r.mem.OnMutation(func(memfs.Mutation) { steps++; check() })
	for i := range 6 {
		scope := scopes[i%2].scope
		discarded := written(t, r.location.CreateStateStream(t.Context(), scope), 300)
		handle, content, err := streamLife(r.location.CreateStateStream(t.Context(), scope))
		require.NoError(t, err)
		states = append(states, keptState{handle, content})
		check()
		require.NoError(t, discarded.Close())
	}
	require.Greater(t, steps, 50)
}
