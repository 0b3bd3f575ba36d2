package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

const (
	atomicTemp  = "/d/tmp/new"
	atomicFinal = "/d/final"
)

// newAtomicFS is a file system with the directories of atomicTemp and atomicFinal.
func newAtomicFS(t testing.TB) (*memfs.FS, *faultfs.FS) {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	require.NoError(t, mem.MkdirAll(context.Background(), "/d/tmp"))
	return mem, faultfs.Wrap(mem, nil)
}

// putAtomic writes a whole file.
func putAtomic(t testing.TB, fsys core.FileSystem, name string, content []byte) {
	t.Helper()
	w, err := fsys.Create(context.Background(), name, core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

// bytesOf is the content of a file, nil if there is none.
func bytesOf(t testing.TB, fsys core.FileSystem, name string) []byte {
	t.Helper()
	if _, err := fsys.Stat(context.Background(), name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return stateOf(t, fsys, &core.FileHandle{Path: name, Size: -1})
}

// atomicLife writes content in pieces, with a sync in between, and commits.
func atomicLife(ctx context.Context, fsys core.FileSystem, mode core.RenameMode, content []byte) (err error) {
	file, err := core.CreateAtomic(ctx, fsys, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal, Mode: mode})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Abort()) }()
	for i, piece := range slices.Collect(slices.Chunk(content, 1+len(content)/3)) {
		if _, err := file.Write(piece); err != nil {
			return err
		}
		if i == 1 {
			if err := file.Sync(); err != nil {
				return err
			}
		}
	}
	return file.Commit()
}

var renameModes = []struct {
	name string
	mode core.RenameMode
}{{"no replace", core.RenameNoReplace}, {"replace", core.RenameReplace}}

func TestAtomicFileIsPublishedCompleteAndDurable(t *testing.T) {
	for _, mode := range renameModes {
		for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
			t.Run(fmt.Sprintf("%s/%d bytes", mode.name, size), func(t *testing.T) {
				mem, _ := newAtomicFS(t)
				content := noise(size)
				require.NoError(t, atomicLife(t.Context(), mem, mode.mode, content))
				require.Equal(t, []string{atomicFinal}, filesOf(mem))
				clone := mem.CrashClone(memfs.CrashConfig{})
				require.Equal(t, []string{atomicFinal}, filesOf(clone))
				require.True(t, bytes.Equal(content, bytesOf(t, clone, atomicFinal)))
				require.Empty(t, mem.OpenFiles())
			})
		}
	}
}

func TestAtomicFileMeetsAnExistingName(t *testing.T) {
	t.Run("no replace keeps it", func(t *testing.T) {
		mem, _ := newAtomicFS(t)
		putAtomic(t, mem, atomicFinal, []byte("old"))
		require.ErrorIs(t, atomicLife(t.Context(), mem, core.RenameNoReplace, []byte("new")), fs.ErrExist)
		require.Equal(t, []string{atomicFinal}, filesOf(mem))
		require.Equal(t, []byte("old"), bytesOf(t, mem, atomicFinal))
	})
	t.Run("no replace refuses equal bytes too", func(t *testing.T) {
		mem, _ := newAtomicFS(t)
		putAtomic(t, mem, atomicFinal, []byte("same"))
		require.ErrorIs(t, atomicLife(t.Context(), mem, core.RenameNoReplace, []byte("same")), fs.ErrExist)
		require.Equal(t, []string{atomicFinal}, filesOf(mem))
	})
	t.Run("replace replaces it", func(t *testing.T) {
		mem, _ := newAtomicFS(t)
		putAtomic(t, mem, atomicFinal, []byte("old"))
		require.NoError(t, atomicLife(t.Context(), mem, core.RenameReplace, []byte("new")))
		require.Equal(t, []string{atomicFinal}, filesOf(mem))
		require.Equal(t, []byte("new"), bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
	})
	for _, mode := range renameModes {
		t.Run(mode.name+" refuses a directory", func(t *testing.T) {
			mem, _ := newAtomicFS(t)
			require.NoError(t, mem.MkdirAll(t.Context(), atomicFinal))
			require.ErrorIs(t, atomicLife(t.Context(), mem, mode.mode, []byte("new")), fs.ErrExist)
			require.Empty(t, filesOf(mem))
		})
		t.Run(mode.name+" of a temporary that is taken touches nothing", func(t *testing.T) {
			mem, _ := newAtomicFS(t)
			putAtomic(t, mem, atomicTemp, []byte("of another"))
			require.ErrorIs(t, atomicLife(t.Context(), mem, mode.mode, []byte("new")), fs.ErrExist)
			require.Equal(t, []byte("of another"), bytesOf(t, mem, atomicTemp))
		})
	}
}

// TestAtomicFileHasOneWinner lets 16 finish at once under one name.
func TestAtomicFileHasOneWinner(t *testing.T) {
	const racers = 16
	for range 40 {
		mem, _ := newAtomicFS(t)
		outcomes := make([]error, racers)
		var start, group sync.WaitGroup
		start.Add(1)
		for i := range racers {
			file, err := core.CreateAtomic(t.Context(), mem, core.AtomicOptions{Temp: fmt.Sprintf("%s-%d", atomicTemp, i), Final: atomicFinal})
			require.NoError(t, err)
			_, err = file.Write(noise(100 + i))
			require.NoError(t, err)
			group.Go(func() {
				start.Wait()
				outcomes[i] = file.Commit()
			})
		}
		start.Done()
		group.Wait()
		var winners []int
		for i, err := range outcomes {
			if err == nil {
				winners = append(winners, i)
				continue
			}
			require.ErrorIs(t, err, fs.ErrExist)
		}
		require.Len(t, winners, 1)
		require.Equal(t, noise(100+winners[0]), bytesOf(t, mem, atomicFinal))
		require.Equal(t, []string{atomicFinal}, filesOf(mem))
		require.Empty(t, mem.OpenFiles())
	}
}

func TestAtomicFileReplacersLeaveOneWholeFile(t *testing.T) {
	const racers = 16
	for range 20 {
		mem, _ := newAtomicFS(t)
		putAtomic(t, mem, atomicFinal, noise(99))
		var group sync.WaitGroup
		for i := range racers {
			group.Go(func() {
				file, err := core.CreateAtomic(context.Background(), mem, core.AtomicOptions{
					Temp: fmt.Sprintf("%s-%d", atomicTemp, i), Final: atomicFinal, Mode: core.RenameReplace,
				})
				if err == nil {
					_, _ = file.Write(noise(100 + i)) // Commit fails if this does
					err = file.Commit()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		got := bytesOf(t, mem, atomicFinal)
		require.Equal(t, noise(len(got)), got)
		require.GreaterOrEqual(t, len(got), 100)
		require.Equal(t, []string{atomicFinal}, filesOf(mem))
	}
}

// atomicCalls are the calls whose outcome an earlier one decides.
var atomicCalls = map[string]func(*core.AtomicFile) error{
	"Write":  func(a *core.AtomicFile) error { _, err := a.Write([]byte("late")); return err },
	"Sync":   (*core.AtomicFile).Sync,
	"Commit": (*core.AtomicFile).Commit,
}

// atomicOutcomes are first outcomes, which reach leads a file of 100 bytes to.
var atomicOutcomes = map[string]struct {
	reach     func(t *testing.T, hooks *hookFS, file *core.AtomicFile, cancel context.CancelFunc)
	want      error // of every later call but Abort
	published bool
}{
	"committed": {want: fs.ErrClosed, published: true, reach: func(t *testing.T, _ *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		require.NoError(t, file.Commit())
	}},
	"aborted": {want: fs.ErrClosed, reach: func(t *testing.T, _ *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		require.NoError(t, file.Abort())
	}},
	"failed to write": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		hooks.write = func([]byte, func([]byte) (int, error)) (int, error) {
			hooks.write = nil
			return 0, errPassing
		}
		_, err := file.Write(noise(100_000))
		require.ErrorIs(t, err, errPassing)
	}},
	"failed to sync": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		hooks.sync = failOnce(errPassing)
		require.ErrorIs(t, file.Sync(), errPassing)
	}},
	"failed to flush": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		hooks.write = func([]byte, func([]byte) (int, error)) (int, error) {
			hooks.write = nil
			return 0, errPassing
		}
		require.ErrorIs(t, file.Commit(), errPassing)
	}},
	"failed to close": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		hooks.close = failOnce(errPassing)
		require.ErrorIs(t, file.Commit(), errPassing)
	}},
	"failed to rename": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, file *core.AtomicFile, _ context.CancelFunc) {
		once := failOnce(errPassing)
		hooks.rename = func(_, _ string, next func() error) error { return once(next) }
		require.ErrorIs(t, file.Commit(), errPassing)
	}},
	"cancelled": {want: context.Canceled, reach: func(_ *testing.T, _ *hookFS, _ *core.AtomicFile, cancel context.CancelFunc) {
		cancel()
	}},
}

func TestAtomicFileFirstOutcomeIsFinal(t *testing.T) {
	for outcome, o := range atomicOutcomes {
		for name1, call1 := range atomicCalls {
			for name2, call2 := range atomicCalls {
				for _, abortBetween := range []bool{false, true} {
					t.Run(outcome+"/"+name1+"/"+name2, func(t *testing.T) {
						mem, _ := newAtomicFS(t)
						hooks := &hookFS{FileSystem: mem}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						file, err := core.CreateAtomic(ctx, hooks, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
						require.NoError(t, err)
						_, err = file.Write(noise(100))
						require.NoError(t, err)
						o.reach(t, hooks, file, cancel)
						require.ErrorIs(t, call1(file), o.want)
						if abortBetween {
							require.NoError(t, file.Abort())
						}
						require.ErrorIs(t, call2(file), o.want)
						require.NoError(t, file.Abort())
						require.NoError(t, file.Abort())
						if o.published {
							require.Equal(t, []string{atomicFinal}, filesOf(mem))
						} else {
							require.Empty(t, filesOf(mem))
						}
						require.Empty(t, mem.OpenFiles())
					})
				}
			}
		}
	}
}

func TestAtomicFileGoesOnWhereSyncIsNotOffered(t *testing.T) {
	mem := memfs.New(memfs.Options{Capabilities: &core.Capabilities{Durabilities: []core.Durability{core.Synced}, NoReplaceFiles: true}})
	file, err := core.CreateAtomic(t.Context(), mem, core.AtomicOptions{Temp: "/temp", Final: "/final"})
	require.NoError(t, err)
	require.ErrorIs(t, file.Sync(), errors.ErrUnsupported)
	_, err = file.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, file.Commit())
	require.Equal(t, []byte("x"), bytesOf(t, mem, "/final"))
}

func TestAtomicFileAbortBreaksACallThatHangs(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpSync, faultfs.OpClose, faultfs.OpRename} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after %v", op, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, faults := newAtomicFS(t)
					release := make(chan struct{})
					faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
						if c.Op != op || op == faultfs.OpRename && c.Name == atomicFinal { // the withdrawal does not hang
							return faultfs.Fault{}
						}
						return faultfs.Fault{Block: release, After: after}
					})
					file, err := core.CreateAtomic(t.Context(), faults, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
					require.NoError(t, err)
					_, err = file.Write(noise(100))
					require.NoError(t, err)
					outcome := make(chan error, 1)
					go func() {
						if op == faultfs.OpSync {
							outcome <- file.Sync()
						} else {
							outcome <- file.Commit()
						}
					}()
					synctest.Wait()
					require.Empty(t, outcome)
					start := time.Now()
					require.NoError(t, file.Abort())
					require.Zero(t, time.Since(start))
					err = <-outcome
					close(release)
					synctest.Wait()
					require.ErrorIs(t, err, fs.ErrClosed)
					require.False(t, isOutcomeUnknown(err), "%v", err)
					require.Empty(t, filesOf(mem))
					require.Empty(t, mem.OpenFiles())
				})
			})
		}
	}
}

func TestAtomicFileFailedCommitRemovesTheTemporaryWithoutAbort(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpSync, faultfs.OpClose, faultfs.OpRename} {
		t.Run(string(op), func(t *testing.T) {
			mem, faults := newAtomicFS(t)
			faults.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: faultfs.ErrInjected}))
			file, err := core.CreateAtomic(t.Context(), faults, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
			require.NoError(t, err)
			_, _ = file.Write(noise(100_000)) // fails for some, and Commit has to tell
			_ = file.Sync()
			require.ErrorIs(t, file.Commit(), faultfs.ErrInjected)
			require.Empty(t, filesOf(mem))
			require.Empty(t, faults.OpenFiles())
		})
	}
}

func TestAtomicFileSyncIncludesTheBuffer(t *testing.T) {
	mem, _ := newAtomicFS(t)
	file, err := core.CreateAtomic(t.Context(), mem, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
	require.NoError(t, err)
	_, err = file.Write(noise(100))
	require.NoError(t, err)
	require.Equal(t, int64(100), file.Size())
	require.NoError(t, file.Sync())
	require.Equal(t, noise(100), bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicTemp))
	require.NoError(t, file.Abort())
	require.Equal(t, int64(100), file.Size())
}
