package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

var oldContent, newContent = noise(70), noise(100_000)

// sweepAtomic runs atomicLife for every i with the fault at the i-th call, until a life has no such call, and hands each run
// to check. With replace there is an old file.
func sweepAtomic(t *testing.T, mode core.RenameMode, fault func(i int) faultfs.Injector, check func(t *testing.T, mem *memfs.FS, faults *faultfs.FS, i int, err error)) {
	t.Helper()
	for i := 0; ; i++ {
		mem, faults := newAtomicFS(t)
		if mode == core.RenameReplace {
			putAtomic(t, mem, atomicFinal, oldContent)
		}
		faults.SetInjector(fault(i))
		err := atomicLife(t.Context(), faults, mode, newContent)
		if faults.Count() <= i {
			require.NoError(t, err)
			require.Equal(t, newContent, bytesOf(t, mem, atomicFinal))
			require.Greater(t, i, 5)
			return
		}
		check(t, mem, faults, i, err)
		require.Empty(t, faults.OpenFiles(), "call %v", faults.Calls()[i])
	}
}

// before is what a file that was not published leaves under the final name.
func before(mode core.RenameMode) []byte {
	if mode == core.RenameReplace {
		return oldContent
	}
	return nil
}

// requireSettled says that a failed or rescued Commit told the truth: success means durable, failure means not published and
// nothing left but what the error names, and "outcome unknown" means old or new.
func requireSettled(t *testing.T, mem *memfs.FS, mode core.RenameMode, err error, what any) {
	t.Helper()
	final := bytesOf(t, mem, atomicFinal)
	durable := bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal)
	if err == nil {
		require.Equal(t, newContent, final, "%v", what)
		require.Equal(t, newContent, durable, "%v", what)
		require.Equal(t, []string{atomicFinal}, filesOf(mem), "%v", what)
		return
	}
	if isOutcomeUnknown(err) {
		require.Contains(t, [][]byte{before(mode), newContent}, final, "%v", what)
		require.Contains(t, [][]byte{before(mode), newContent}, durable, "%v", what)
	} else {
		require.Equal(t, before(mode), final, "%v: %v", what, err)
		require.Equal(t, before(mode), durable, "%v: %v", what, err)
	}
	for _, name := range filesOf(mem) {
		if name != atomicFinal {
			require.ErrorContains(t, err, name, "%v", what)
		}
	}
}

func isOutcomeUnknown(err error) bool { return errors.Is(err, core.ErrOutcomeUnknown) }

func TestAtomicFileSurvivesAFaultInEveryCall(t *testing.T) {
	for _, mode := range renameModes {
		for _, cause := range append(sweepErrors, fs.ErrNotExist) {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/after %v", mode.name, cause, after), func(t *testing.T) {
					sweepAtomic(t, mode.mode, func(i int) faultfs.Injector {
						return faultfs.Nth(i, faultfs.Fault{Err: cause, After: after})
					}, func(t *testing.T, mem *memfs.FS, faults *faultfs.FS, i int, err error) {
						call := faults.Calls()[i]
						if errors.Is(cause, fs.ErrNotExist) && call.Op != faultfs.OpRename {
							return // what a retried rename answers; elsewhere it is a refusal, which has no effect
						}
						requireSettled(t, mem, mode.mode, err, call)
						lost := errors.Is(cause, core.ErrUnavailable) || errors.Is(cause, fs.ErrNotExist)
						if call.Op == faultfs.OpRename && after && lost {
							require.NoError(t, err, "only the reply was lost")
							return
						}
						require.ErrorIs(t, err, cause, "%v", call)
						unknown := call.Op == faultfs.OpRename && after && mode.mode == core.RenameReplace
						require.Equal(t, unknown, isOutcomeUnknown(err), "%v: %v", call, err)
						if !unknown {
							require.Empty(t, withoutName(filesOf(mem), atomicFinal), "%v", call)
						}
					})
				})
			}
		}
	}
}

// TestAtomicFileTellsTheTruthWhenASecondCallFails fails the rename and one call of those that find out what it did.
func TestAtomicFileTellsTheTruthWhenASecondCallFails(t *testing.T) {
	for _, mode := range renameModes {
		for _, cause := range sweepErrors {
			for _, after := range []bool{false, true} {
				for _, secondAfter := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%v/after %v/%v", mode.name, cause, after, secondAfter), func(t *testing.T) {
						second := faultfs.Fault{Err: faultfs.ErrInjected, After: secondAfter}
						for n := 0; ; n++ {
							mem, faults := newAtomicFS(t)
							if mode.mode == core.RenameReplace {
								putAtomic(t, mem, atomicFinal, oldContent)
							}
							var reached faultfs.Op
							faults.SetInjector(afterRename(faultfs.Fault{Err: cause, After: after}, n, second, &reached))
							err := atomicLife(t.Context(), faults, mode.mode, newContent)
							requireSettled(t, mem, mode.mode, err, faults.Calls())
							require.Empty(t, faults.OpenFiles())
							switch reached {
							case faultfs.OpCreate, faultfs.OpClose, faultfs.OpOpen, faultfs.OpReadAt, faultfs.OpRead:
								require.Empty(t, withoutName(filesOf(mem), atomicFinal), "%v", faults.Calls())
							}
							if reached == "" {
								require.NotZero(t, n)
								break
							}
						}
					})
				}
			}
		}
	}
}

// afterRename injects first into the first rename, and second into the n-th call after it.
func afterRename(first faultfs.Fault, n int, second faultfs.Fault, reached *faultfs.Op) faultfs.Injector {
	renamed := -1
	return func(c faultfs.Call) faultfs.Fault {
		if renamed < 0 && c.Op == faultfs.OpRename {
			renamed = c.Index
			return first
		}
		if renamed >= 0 && c.Index == renamed+1+n {
			*reached = c.Op
			return second
		}
		return faultfs.Fault{}
	}
}

// TestAtomicFileTellsTheTruthWhenTheStorageGoesAway fails the i-th call and every later one.
func TestAtomicFileTellsTheTruthWhenTheStorageGoesAway(t *testing.T) {
	for _, mode := range renameModes {
		for _, cause := range sweepErrors {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/after %v", mode.name, cause, after), func(t *testing.T) {
					sweepAtomic(t, mode.mode, func(i int) faultfs.Injector {
						return faultfs.From(i, faultfs.Fault{Err: cause, After: after})
					}, func(t *testing.T, mem *memfs.FS, faults *faultfs.FS, _ int, err error) {
						require.ErrorIs(t, err, cause)
						requireSettled(t, mem, mode.mode, err, faults.Calls())
					})
				})
			}
		}
	}
}

func TestAtomicFileSurvivesATornWrite(t *testing.T) {
	sweepAtomic(t, core.RenameNoReplace, func(i int) faultfs.Injector {
		return faultfs.Nth(i, faultfs.Fault{Tear: 1000})
	}, func(t *testing.T, mem *memfs.FS, faults *faultfs.FS, i int, err error) {
		if faults.Calls()[i].Op != faultfs.OpWrite {
			require.NoError(t, err, "only writes can be torn")
			return
		}
		require.ErrorIs(t, err, faultfs.ErrInjected)
		require.Empty(t, filesOf(mem))
	})
}

// TestAtomicFileIsOldOrNewAfterAPowerCut cuts the power after each step.
func TestAtomicFileIsOldOrNewAfterAPowerCut(t *testing.T) {
	seeds := loggedRand(t)
	for _, mode := range renameModes {
		t.Run(mode.name, func(t *testing.T) {
			mem, _ := newAtomicFS(t)
			if mode.mode == core.RenameReplace {
				putAtomic(t, mem, atomicFinal, oldContent)
			}
			seenOld, seenNew := false, false
			mem.OnMutation(func(m memfs.Mutation) {
				for _, percent := range []int{0, 50, 100} {
					seed := seeds.Uint64()
					clone := mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(seed, 1))})
					got := bytesOf(t, clone, atomicFinal)
					require.Contains(t, [][]byte{before(mode.mode), newContent}, got, "%v, %d %%, seed %d", m, percent, seed)
					seenNew = seenNew || len(got) == len(newContent)
					seenOld = seenOld || len(got) != len(newContent)
				}
			})
			require.NoError(t, atomicLife(t.Context(), mem, mode.mode, newContent))
			mem.OnMutation(nil)
			require.True(t, seenOld && seenNew)
			require.Equal(t, newContent, bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
		})
	}
}

// TestAtomicFileRescuedFromALostReplyIsDurable has a file system that applies the rename, does not make it durable, and
// loses the reply.
func TestAtomicFileRescuedFromALostReplyIsDurable(t *testing.T) {
	mem, faults := newAtomicFS(t)
	// The contract makes a rename durable when it returns; one whose reply is lost may have come only to its first step.
	stopped := make(chan *memfs.FS, 1)
	mem.OnMutation(func(m memfs.Mutation) {
		if m.Op == memfs.OpRename && m.Step == memfs.Applied {
			stopped <- mem.CrashClone(memfs.CrashConfig{})
		}
	})
	faults.SetInjector(faultfs.OnOp(faultfs.OpRename, faultfs.Fault{Err: core.ErrUnavailable, After: true}))
	require.NoError(t, atomicLife(t.Context(), faults, core.RenameNoReplace, newContent))
	require.Nil(t, bytesOf(t, <-stopped, atomicFinal), "the rename alone was not durable yet")
	require.Equal(t, newContent, bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
	require.Equal(t, []string{atomicFinal}, filesOf(mem), "the file that made it durable is gone")
	ops := map[faultfs.Op]int{}
	for _, c := range faults.Calls() {
		ops[c.Op]++
	}
	require.Equal(t, 2, ops[faultfs.OpCreate], "a durable file beside it takes its entry along")
}

// TestAtomicFileFindsARenameThatHappensLate is cut off before the rename; it happens while Commit finds out what it did.
func TestAtomicFileFindsARenameThatHappensLate(t *testing.T) {
	for _, mode := range renameModes {
		t.Run(mode.name, func(t *testing.T) {
			mem, faults := newAtomicFS(t)
			if mode.mode == core.RenameReplace {
				putAtomic(t, mem, atomicFinal, oldContent)
			}
			late := false
			faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
				if c.Op == faultfs.OpRename && c.Name == atomicTemp {
					return faultfs.Fault{Err: context.DeadlineExceeded}
				}
				if c.Op == faultfs.OpRemove && !late {
					late = true
					if err := mem.Rename(context.Background(), atomicTemp, atomicFinal, mode.mode); err != nil {
						t.Error(err)
					}
				}
				return faultfs.Fault{}
			})
			err := atomicLife(t.Context(), faults, mode.mode, newContent)
			require.True(t, late)
			requireSettled(t, mem, mode.mode, err, faults.Calls())
			require.ErrorIs(t, err, context.DeadlineExceeded, "whether it became durable was not waited for")
			require.Equal(t, mode.mode == core.RenameReplace, isOutcomeUnknown(err), "%v", err)
		})
	}
}

// TestAtomicFileDoesNotSaveTheOldFileByLosingTheNew is a replacement whose reply was lost and whose durability cannot be
// confirmed: what it replaced is gone, so the new file must stay.
func TestAtomicFileDoesNotSaveTheOldFileByLosingTheNew(t *testing.T) {
	mem, faults := newAtomicFS(t)
	putAtomic(t, mem, atomicFinal, oldContent)
	faults.SetInjector(faultfs.Any(
		faultfs.OnOp(faultfs.OpRename, faultfs.Fault{Err: core.ErrUnavailable, After: true}),
		faultfs.Window(1, 100, faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: core.ErrNoSpace})),
	))
	err := atomicLife(t.Context(), faults, core.RenameReplace, newContent)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, err, core.ErrNoSpace)
	require.True(t, isOutcomeUnknown(err), "%v", err)
	requireSettled(t, mem, core.RenameReplace, err, faults.Calls())
	require.Equal(t, newContent, bytesOf(t, mem, atomicFinal))
}
