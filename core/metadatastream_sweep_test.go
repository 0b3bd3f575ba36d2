package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// sweepMetadata runs a metadata stream's life for every i with the fault at its i-th call.
func sweepMetadata(t *testing.T, savepoint bool, fault func(i int) faultfs.Injector, check func(t *testing.T, r *metadataRig, call faultfs.Call, done *core.Completed, err error)) {
	t.Helper()
	content := noise(1000)
	for i := 0; ; i++ {
		r := newMetadataRig(t, savepoint)
		r.faults.SetInjector(fault(r.start + i))
		done, err := r.metadataLife(t.Context(), content)
		r.requireTruth(t, content, done, err)
		if r.faults.Count() <= r.start+i {
			require.NoError(t, err)
			require.Greater(t, i, 5)
			return
		}
		check(t, r, r.faults.Calls()[r.start+i], done, err)
	}
}

// requireTruth says that a success is visible and durable, that after a failure nothing is visible and nothing is left but
// what the error names, and that only an unknown outcome may be either.
func (r *metadataRig) requireTruth(t testing.TB, content []byte, done *core.Completed, err error) {
	t.Helper()
	calls := r.faults.Calls()[r.start:]
	clone := bytesOf(t, r.mem.CrashClone(memfs.CrashConfig{}), r.pending.MetadataName())
	switch {
	case err == nil:
		require.NotNil(t, done)
		require.Equal(t, content, r.visible(t), "%v", calls)
		require.Equal(t, content, clone, "%v", calls)
		require.Empty(t, r.stray(), "%v", calls)
	case isOutcomeUnknown(err):
		require.Nil(t, done)
		require.Contains(t, [][]byte{nil, content}, r.visible(t), "%v", calls)
	default:
		require.Nil(t, done)
		require.Nil(t, r.visible(t), "%v: %v", calls, err)
		require.Nil(t, clone, "%v: %v", calls, err)
	}
	for _, name := range r.stray() {
		require.ErrorContains(t, err, name, "%v", calls)
	}
	require.Empty(t, r.faults.OpenFiles(), "%v", calls)
}

func TestMetadataStreamSurvivesAFaultInEveryCall(t *testing.T) {
	for _, location := range locations {
		for _, cause := range sweepErrors {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/after %v", location.name, cause, after), func(t *testing.T) {
					sweepMetadata(t, location.savepoint, func(i int) faultfs.Injector {
						return faultfs.Nth(i, faultfs.Fault{Err: cause, After: after})
					}, func(t *testing.T, r *metadataRig, call faultfs.Call, _ *core.Completed, err error) {
						if call.Op == faultfs.OpStat && after && call.Name == r.pending.MetadataName() {
							require.NoError(t, err, "that call itself finds nothing, and no reply is lost")
							return
						}
						if call.Op == faultfs.OpRemove && isSavepointMark(call.Name) {
							require.NoError(t, err, "a mark that stays does no harm")
							return
						}
						if call.Op == faultfs.OpStat && r.visible(t) != nil {
							require.ErrorIs(t, err, cause, "%v", call)
							require.True(t, isOutcomeUnknown(err), "a savepoint whose claim cannot be confirmed: %v", err)
							return
						}
						if call.Op == faultfs.OpRename && after && errors.Is(cause, core.ErrUnavailable) {
							require.NoError(t, err, "only the reply was lost")
							return
						}
						require.ErrorIs(t, err, cause, "%v", call)
						require.False(t, isOutcomeUnknown(err), "%v", err)
						require.Empty(t, r.stray(), "%v", call)
					})
				})
			}
		}
	}
}

func TestMetadataStreamTellsTheTruthWhenTheStorageGoesAway(t *testing.T) {
	for _, location := range locations {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after %v", location.name, after), func(t *testing.T) {
				sweepMetadata(t, location.savepoint, func(i int) faultfs.Injector {
					return faultfs.From(i, faultfs.Fault{Err: core.ErrUnavailable, After: after})
				}, func(t *testing.T, r *metadataRig, call faultfs.Call, _ *core.Completed, err error) {
					if call.Op == faultfs.OpRemove && isSavepointMark(call.Name) {
						require.NoError(t, err, "a mark that stays does no harm")
						return
					}
					require.ErrorIs(t, err, core.ErrUnavailable)
					// The way out of an unknown outcome.
					r.faults.SetInjector(nil)
					require.NoError(t, r.pending.DisposeOnFailure(t.Context()))
					require.Nil(t, r.visible(t), "%v", call)
				})
			})
		}
	}
}

func TestMetadataStreamIsCompleteOrAbsentAfterAPowerCut(t *testing.T) {
	seeds := loggedRand(t)
	for _, location := range locations {
		t.Run(location.name, func(t *testing.T) {
			r := newMetadataRig(t, location.savepoint)
			content := noise(200_000)
			seen := map[bool]int{}
			r.mem.OnMutation(func(m memfs.Mutation) {
				for _, percent := range []int{0, 50, 100} {
					seed := seeds.Uint64()
					clone := r.mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(seed, 1))})
					got := bytesOf(t, clone, r.pending.MetadataName())
					require.Contains(t, [][]byte{nil, content}, got, "%v, %d %%, seed %d", m, percent, seed)
					seen[got != nil]++
				}
			})
			_, err := r.metadataLife(t.Context(), content)
			require.NoError(t, err)
			require.NotZero(t, seen[true])
			require.NotZero(t, seen[false])
			require.Equal(t, content, bytesOf(t, r.mem.CrashClone(memfs.CrashConfig{}), r.pending.MetadataName()))
		})
	}
}

// TestMetadataStreamOfAFencedOwnerPublishesNothing fences the owner before each call of its stream's life.
func TestMetadataStreamOfAFencedOwnerPublishesNothing(t *testing.T) {
	content := noise(1000)
	for i := 0; ; i++ {
		r := newMetadataRig(t, false)
		fencedAt := r.start + i
		r.faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Index == fencedAt {
				r.claimBeside(t)
			}
			return faultfs.Fault{}
		})
		done, err := r.metadataLife(t.Context(), content)
		if r.faults.Count() <= fencedAt {
			require.NoError(t, err)
			require.Greater(t, i, 4)
			return
		}
		require.ErrorIs(t, err, core.ErrFenced, "%v", r.faults.Calls()[fencedAt])
		require.Nil(t, done)
		r.requireNothing(t)
	}
}

// claimBeside is another process that claims the job, past the fault injection.
func (r *metadataRig) claimBeside(t testing.TB) (*core.Owner, *core.PendingLocation) {
	t.Helper()
	_, owner, pending := beginOn(t, r.mem, false)
	return owner, pending
}

// TestMetadataStreamOfAFencedOwnerDoesNotTakeItsSuccessorsBytesForItsOwn has the successor finish the same checkpoint with the
// same bytes at the moment in which the fenced owner's rename fails.
func TestMetadataStreamOfAFencedOwnerDoesNotTakeItsSuccessorsBytesForItsOwn(t *testing.T) {
	for _, reply := range []error{nil, core.ErrUnavailable, context.DeadlineExceeded, faultfs.ErrInjected} {
		r := newMetadataRig(t, false)
		var succeed sync.Once
		r.faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Op != faultfs.OpRename || c.Name == r.pending.MetadataName() { // that is the attempt to take it back
				return faultfs.Fault{}
			}
			succeed.Do(func() {
				_, pending := r.claimBeside(t)
				m, err := pending.CreateMetadataStream(context.Background())
				require.NoError(t, err)
				_, err = m.Write([]byte("same"))
				require.NoError(t, err)
				_, err = m.CloseAndFinalize()
				require.NoError(t, err)
			})
			return faultfs.Fault{Err: reply}
		})
		done, err := r.metadataLife(t.Context(), []byte("same"))
		require.ErrorIs(t, err, core.ErrFenced)
		require.Nil(t, done)
		require.Equal(t, []byte("same"), r.visible(t), "the successor's checkpoint stands")
		require.Empty(t, r.stray())
	}
}

// TestMetadataStreamRacesWithAClaim lets another owner take over while a stream is finalised, and finish the same checkpoint
// if it finds none: exactly one of the two wins.
func TestMetadataStreamRacesWithAClaim(t *testing.T) {
	for round := range 80 {
		r := newMetadataRig(t, false)
		m, err := r.pending.CreateMetadataStream(t.Context())
		require.NoError(t, err)
		_, err = m.Write([]byte("first"))
		require.NoError(t, err)
		second := make(chan error, 1)
		go func() { second <- finishBeside(r.mem) }()
		for range round {
			_ = m.Pos() // shifts the moments against each other
		}
		_, err = m.CloseAndFinalize()
		secondErr := <-second
		switch {
		case err == nil:
			require.ErrorIs(t, secondErr, fs.ErrExist)
			require.Equal(t, []byte("first"), r.visible(t))
		case secondErr == nil:
			require.True(t, errors.Is(err, core.ErrFenced) || errors.Is(err, fs.ErrExist), "%v", err)
			require.Equal(t, []byte("second"), r.visible(t))
		default:
			require.Fail(t, "nobody won", "%v; %v", err, secondErr)
		}
		require.NoError(t, m.Close())
		require.Empty(t, r.stray())
	}
}

func finishBeside(fsys core.FileSystem) error {
	ctx := context.Background()
	storage, err := core.NewStorage(fsys, rigBase, rigJob, core.Options{})
	if err != nil {
		return err
	}
	owner, err := storage.Claim(ctx)
	if err != nil {
		return err
	}
	pending, err := owner.Begin(ctx, 7)
	if err != nil {
		return err
	}
	m, err := pending.CreateMetadataStream(ctx)
	if err != nil {
		return err
	}
	if _, err := m.Write([]byte("second")); err != nil {
		return err
	}
	_, err = m.CloseAndFinalize()
	return err
}

func TestMetadataStreamOfASavepointAsksForItsClaim(t *testing.T) {
	r := newMetadataRig(t, true)
	m, err := r.pending.CreateMetadataStream(t.Context())
	require.NoError(t, err)
	_, err = m.Write(noise(10))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(r.stray()[0], rigSavepoints), "the temporary is beside its target")
	r.claimBeside(t)
	for range 2 {
		_, err = m.CloseAndFinalize()
		require.ErrorIs(t, err, core.ErrFenced)
	}
	require.NoError(t, m.Close())
	r.requireNothing(t)
}
