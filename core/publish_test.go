package core_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// TestAtomicFileTellsItsOwnFileFromAnother has its temporary taken away at the moment of the rename, and something else under
// the final name.
func TestAtomicFileTellsItsOwnFileFromAnother(t *testing.T) {
	ours := noise(1000)
	otherBytes := noise(1000)
	otherBytes[999]++
	for _, mode := range renameModes {
		for _, reply := range []error{fs.ErrNotExist, core.ErrUnavailable, context.DeadlineExceeded, faultfs.ErrInjected} {
			for name, final := range map[string]func(t *testing.T, mem *memfs.FS){
				"nothing":               func(*testing.T, *memfs.FS) {},
				"a longer file":         func(t *testing.T, mem *memfs.FS) { putAtomic(t, mem, atomicFinal, append(noise(1000), 1)) },
				"a shorter file":        func(t *testing.T, mem *memfs.FS) { putAtomic(t, mem, atomicFinal, ours[:999]) },
				"as many other bytes":   func(t *testing.T, mem *memfs.FS) { putAtomic(t, mem, atomicFinal, otherBytes) },
				"a directory":           func(t *testing.T, mem *memfs.FS) { require.NoError(t, mem.MkdirAll(t.Context(), atomicFinal)) },
				"a file as its parent":  func(t *testing.T, mem *memfs.FS) { replaceDirByFile(t, mem) },
				"no directory any more": func(t *testing.T, mem *memfs.FS) { require.NoError(t, mem.RemoveAll(t.Context(), "/d")) },
			} {
				t.Run(fmt.Sprintf("%s/%v/%s", mode.name, reply, name), func(t *testing.T) {
					mem, _ := newAtomicFS(t)
					hooks := &hookFS{FileSystem: mem}
					var tree []string
					hooks.rename = func(_, _ string, _ func() error) error {
						require.NoError(t, mem.Remove(t.Context(), atomicTemp))
						final(t, mem)
						tree = mem.Tree()
						return core.RenameError(atomicTemp, atomicFinal, reply)
					}
					err := atomicLife(t.Context(), hooks, mode.mode, ours)
					require.ErrorIs(t, err, reply)
					require.False(t, isOutcomeUnknown(err), "%v", err)
					require.Equal(t, tree, mem.Tree(), "nothing of another is touched")
				})
			}
		}
	}
}

// secondName makes rename a link without its removal: it copies the bytes, and the file system's clock stands still, so that
// both names are those of one file as far as can be seen.
func secondName(t *testing.T, reply error) (*memfs.FS, *faultfs.FS, *hookFS) {
	t.Helper()
	clock := time.Unix(1_700_000_000, 0)
	mem := memfs.New(memfs.Options{Now: func() time.Time { return clock }})
	require.NoError(t, mem.MkdirAll(t.Context(), "/d/tmp"))
	faults := faultfs.Wrap(mem, nil)
	hooks := &hookFS{FileSystem: faults}
	hooks.rename = func(oldname, newname string, next func() error) error {
		if oldname != atomicTemp {
			return next()
		}
		content := bytesOf(t, mem, oldname)
		if bytesOf(t, mem, newname) != nil {
			require.NoError(t, mem.Remove(t.Context(), newname))
		}
		putAtomic(t, mem, newname, content)
		return core.RenameError(oldname, newname, reply)
	}
	return mem, faults, hooks
}

// TestAtomicFileLooksForASecondNameOfItsTemporary has a rename made of link and removal stop in between.
func TestAtomicFileLooksForASecondNameOfItsTemporary(t *testing.T) {
	for _, mode := range renameModes {
		for _, tt := range []struct {
			reply     error
			published bool
		}{
			{fs.ErrExist, true},
			{fs.ErrNotExist, true},
			{core.ErrUnavailable, true},
			{faultfs.ErrInjected, false},
			{core.ErrNoSpace, false},
			{context.Canceled, false},
			{context.DeadlineExceeded, false},
		} {
			t.Run(fmt.Sprintf("%s/%v", mode.name, tt.reply), func(t *testing.T) {
				mem, _, hooks := secondName(t, tt.reply)
				err := atomicLife(t.Context(), hooks, mode.mode, newContent)
				if tt.published {
					require.NoError(t, err)
					require.Equal(t, newContent, bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
					require.Equal(t, []string{atomicFinal}, filesOf(mem))
					return
				}
				require.ErrorIs(t, err, tt.reply)
				require.Equal(t, mode.mode == core.RenameReplace, isOutcomeUnknown(err), "%v", err)
				if !isOutcomeUnknown(err) {
					require.Empty(t, filesOf(mem))
					require.Nil(t, bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
				}
			})
		}
	}
}

// TestAtomicFileWithASecondNameTellsTheTruthWhenAnotherCallFails fails each call that finds out what the rename did.
func TestAtomicFileWithASecondNameTellsTheTruthWhenAnotherCallFails(t *testing.T) {
	for _, reply := range []error{fs.ErrExist, core.ErrUnavailable, faultfs.ErrInjected, context.Canceled} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/after %v", reply, after), func(t *testing.T) {
				for n := 0; ; n++ {
					mem, faults, hooks := secondName(t, reply)
					failing, rename := 0, hooks.rename
					hooks.rename = func(oldname, newname string, next func() error) error {
						if oldname == atomicTemp {
							failing = faults.Count() + n
							faults.SetInjector(faultfs.Nth(failing, faultfs.Fault{Err: core.ErrQuota, After: after}))
						}
						return rename(oldname, newname, next)
					}
					err := atomicLife(t.Context(), hooks, core.RenameNoReplace, newContent)
					final := bytesOf(t, mem, atomicFinal)
					switch {
					case err == nil:
						require.Equal(t, newContent, final)
						require.Equal(t, newContent, bytesOf(t, mem.CrashClone(memfs.CrashConfig{}), atomicFinal))
					case !isOutcomeUnknown(err):
						require.Nil(t, final, "%v: %v", faults.Calls(), err)
					}
					if faults.Count() <= failing {
						require.Greater(t, n, 4)
						return
					}
				}
			})
		}
	}
}

func replaceDirByFile(t *testing.T, mem *memfs.FS) {
	t.Helper()
	require.NoError(t, mem.RemoveAll(t.Context(), "/d"))
	putAtomic(t, mem, "/d", noise(10))
}

// TestAtomicFileSaysWhatItDoesNotKnow cannot remove its temporary after a failed rename. If the rename got no answer, it may
// still happen.
func TestAtomicFileSaysWhatItDoesNotKnow(t *testing.T) {
	for name, tt := range map[string]struct {
		rename  error
		blind   bool // Stat fails too
		unknown bool
	}{
		"refused, temporary seen":        {fs.ErrExist, false, false},
		"broke, temporary seen":          {faultfs.ErrInjected, false, false},
		"no answer, temporary seen":      {core.ErrUnavailable, false, true},
		"cut off, temporary seen":        {context.DeadlineExceeded, false, true},
		"refused, temporary not seen":    {fs.ErrExist, true, true},
		"no answer, temporary not seen":  {core.ErrUnavailable, true, true},
		"broke, temporary not seen":      {faultfs.ErrInjected, true, true},
		"not permitted, temporary seen":  {fs.ErrPermission, false, false},
		"target missing, temporary seen": {fs.ErrNotExist, false, false},
	} {
		for _, mode := range renameModes {
			t.Run(name+"/"+mode.name, func(t *testing.T) {
				mem, faults := newAtomicFS(t)
				faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
					switch {
					case c.Op == faultfs.OpRename:
						return faultfs.Fault{Err: tt.rename}
					case c.Op == faultfs.OpRemove, tt.blind && c.Op == faultfs.OpStat:
						return faultfs.Fault{Err: core.ErrQuota}
					}
					return faultfs.Fault{}
				})
				err := atomicLife(t.Context(), faults, mode.mode, noise(10))
				require.ErrorIs(t, err, tt.rename)
				require.ErrorIs(t, err, core.ErrQuota, "the failed removal is told too")
				require.ErrorContains(t, err, "temporary left behind")
				require.Equal(t, tt.unknown, isOutcomeUnknown(err), "%v", err)
				require.Equal(t, []string{atomicTemp}, filesOf(mem))
			})
		}
	}
}

// TestAtomicFileCreationReturnsWithItsContext has a storage that answers nothing any more: an empty temporary is left rather
// than the caller held up, and the error names it.
func TestAtomicFileCreationReturnsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, faults := newAtomicFS(t)
		faults.SetInjector(faultfs.From(0, faultfs.Fault{Block: make(chan struct{}), After: true}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := core.CreateAtomic(ctx, faults, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, []string{atomicTemp}, filesOf(mem))
		require.ErrorContains(t, err, atomicTemp)
	})
}

// TestAtomicFileCommitIsBoundedWhenNothingAnswers is cut off by its context while nothing answers any more.
func TestAtomicFileCommitIsBoundedWhenNothingAnswers(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpClose, faultfs.OpRename} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after %v", op, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, faults := newAtomicFS(t)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					file, err := core.CreateAtomic(ctx, faults, core.AtomicOptions{Temp: atomicTemp, Final: atomicFinal})
					require.NoError(t, err)
					_, err = file.Write(noise(10))
					require.NoError(t, err)
					dead := false
					faults.SetInjector(func(c faultfs.Call) faultfs.Fault {
						if dead = dead || c.Op == op; dead {
							return faultfs.Fault{Block: make(chan struct{}), After: after && c.Op == op}
						}
						return faultfs.Fault{}
					})
					start := time.Now()
					err = file.Commit()
					require.LessOrEqual(t, time.Since(start), time.Minute+10*time.Second)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, op == faultfs.OpRename, isOutcomeUnknown(err), "%v", err)
					for _, name := range filesOf(mem) {
						require.ErrorContains(t, err, name)
					}
					require.NoError(t, file.Abort())
				})
			})
		}
	}
}
