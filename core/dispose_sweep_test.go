package core_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// requireWholeOrNone says that the first checkpoint, if it is one at all, has all its files.
func (d *disposeRig) requireWholeOrNone(t *testing.T, fsys core.FileSystem, at string) {
	t.Helper()
	_, err := core.ResolvePointer(context.Background(), core.OnlyOn(fsys), "mem:"+d.chk(1))
	if err == nil {
		requireIntact(t, fsys, d.first)
		return
	}
	require.ErrorIs(t, err, fs.ErrNotExist, at)
}

// The power goes at any step of a disposal: what is left is the whole checkpoint or none, and another run finishes it.
func TestDisposeAfterACrashAtEveryStep(t *testing.T) {
	ctx := context.Background()
	for _, way := range disposers {
		for _, foreign := range []bool{false, true} {
			name := "by " + way.name
			if foreign {
				name += " with a foreign file"
			}
			t.Run(name, func(t *testing.T) {
				d := newDisposeRig(t)
				var left []string
				if foreign {
					left = []string{d.chk(1) + "/._metadata.emptied", d.chk(1) + "/README"}
					put(t, d.mem, left[1], "foreign")
				}
				var clones []crashClone
				stop := collectClones(d.mem, &clones)
				_, err := way.dispose(d.jobRig, d.owner, d.flaky, 1, readAll)
				require.NoError(t, err)
				stop()
				require.GreaterOrEqual(t, len(clones), 3*8)
				for _, clone := range clones {
					d.requireWholeOrNone(t, clone.mem, clone.at)
					d.requireOthersIntact(t, clone.mem)
					listed := exists(t, clone.mem, d.chk(1)+"/_metadata") || exists(t, clone.mem, d.chk(1)+"/._metadata.disposed") || exists(t, clone.mem, d.chk(1)+"/._metadata.emptied")

					c := jobRigOn(t, clone.mem)
					if way.name == "the owner" {
						owner := c.claim(t)
						_, err := owner.Sweep(ctx, readMeta)
						require.NoError(t, err, clone.at)
						if slices.Contains(completeIDs(t, clone.mem, c.dir()), 1) {
							_, err = owner.Dispose(ctx, 1, readAll)
							require.NoError(t, err, clone.at)
						}
						listed = true
					} else if listed || !foreign {
						_, err := core.Dispose(ctx, clone.mem, c.chk(1), readAll)
						require.NoError(t, err, clone.at)
					}
					require.Equal(t, left, filesIn(snapshotIfThere(t, clone.mem, c.chk(1))), clone.at)
					require.Equal(t, foreign, exists(t, clone.mem, c.chk(1)), clone.at)
					if listed {
						require.False(t, exists(t, clone.mem, d.alone), clone.at)
					}
					d.requireOthersIntact(t, clone.mem)
				}
			})
		}
	}
}

func snapshotIfThere(t testing.TB, fsys core.FileSystem, dir string) map[string]string {
	t.Helper()
	if !exists(t, fsys, dir) {
		return nil
	}
	return snapshot(t, fsys, dir)
}

// Any call of a disposal fails, before or after it took effect. The error says so, nothing of others is touched, and the
// next run finishes.
func TestDisposeWithAFaultInAnyCall(t *testing.T) {
	for _, way := range disposers {
		t.Run("by "+way.name, func(t *testing.T) {
			clean := newDisposeRig(t)
			first := clean.flaky.Count()
			_, err := way.dispose(clean.jobRig, clean.owner, clean.flaky, 1, readAll)
			require.NoError(t, err)
			calls := clean.flaky.Count() - first
			require.Greater(t, calls, 12)
			surfaced := 0
			for i := range calls {
				for _, fault := range []faultfs.Fault{{Err: errors.New("broken cable")}, {Err: core.ErrUnavailable}, {Err: errors.New("reply lost"), After: true}} {
					d := newDisposeRig(t)
					number := d.flaky.Count() + i
					d.flaky.SetInjector(faultfs.Nth(number, fault))
					_, err := way.dispose(d.jobRig, d.owner, d.flaky, 1, readAll)
					call := d.flaky.Calls()[number]
					if errors.Is(err, fault.Err) {
						surfaced++
						require.ErrorContains(t, err, call.Name)
					} else {
						requireHarmless(t, d, call, fault, err)
					}
					d.requireWholeOrNone(t, d.mem, call.Name)
					d.requireOthersIntact(t, d.mem)

					d.flaky.SetInjector(nil)
					_, err = way.dispose(d.jobRig, d.owner, d.flaky, 1, readAll)
					require.NoError(t, err, "%v", call)
					require.False(t, exists(t, d.mem, d.chk(1)), "%v", call)
					d.requireOthersIntact(t, d.mem)
				}
			}
			require.Greater(t, surfaced, calls)
		})
	}
}

// requireHarmless says why a fault need not surface: the file was gone after all, or nothing but the deletion of shared
// files depended on the answer.
func requireHarmless(t *testing.T, d *disposeRig, call faultfs.Call, fault faultfs.Fault, err error) {
	t.Helper()
	require.NoError(t, err, "%v", call)
	switch {
	case call.Op == faultfs.OpRemove && (fault.After || !exists(t, d.mem, call.Name)):
	case fault.After: // the call failed by itself, as it does without a fault
	case call.Name == jobBase || strings.HasPrefix(call.Name, d.chk(2)):
		require.True(t, exists(t, d.mem, d.alone), "kept, since what others need was not known")
	default:
		require.Fail(t, "the fault is lost", "%v", call)
	}
}

// Removal of some files fails for good: all others go, and the error names what is left.
func TestDisposeNamesWhatItCouldNotRemove(t *testing.T) {
	forBothDisposers(t, func(t *testing.T, d *disposeRig, dispose func(int64, core.DisposeOptions) (*core.DisposalReport, error)) {
		var stuck []string
		for name := range d.first.files {
			if name == d.alone || strings.HasPrefix(name, d.chk(1)) && !strings.HasSuffix(name, core.MetadataName) && len(stuck) < 2 {
				stuck = append(stuck, name)
			}
		}
		d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool {
			return c.Op == faultfs.OpRemove && slices.Contains(stuck, c.Name)
		}, faultfs.Fault{Err: fs.ErrPermission}))
		report, err := dispose(1, readAll)
		require.ErrorIs(t, err, fs.ErrPermission)
		require.ErrorContains(t, err, "run it again")
		for _, name := range stuck {
			require.ErrorContains(t, err, name)
			require.NotContains(t, report.Removed, name)
			require.True(t, exists(t, d.mem, name))
		}
		require.Len(t, report.Removed, 4-len(stuck))
		require.Equal(t, []int64{2}, completeIDs(t, d.mem, d.dir()))

		d.flaky.SetInjector(nil)
		_, err = dispose(1, readAll)
		require.NoError(t, err)
		for _, name := range stuck {
			require.False(t, exists(t, d.mem, name))
		}
		require.False(t, exists(t, d.mem, d.chk(1)))
		d.requireOthersIntact(t, d.mem)
	})
}

func TestDisposeOfACancelledContext(t *testing.T) {
	d := newDisposeRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := snapshot(t, d.mem, "/")
	_, err := d.owner.Dispose(ctx, 1, readAll)
	require.ErrorIs(t, err, context.Canceled)
	_, err = core.Dispose(ctx, d.mem, d.chk(1), readAll)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, snapshot(t, d.mem, "/"))
}

// An owner is interrupted between the two renames of a disposal: by an error, then it goes on itself; by a take-over, then
// its successor does.
func TestDisposeInterruptedBetweenItsRenames(t *testing.T) {
	ctx := context.Background()
	interrupted := func(t *testing.T) *disposeRig {
		d := newDisposeRig(t)
		d.flaky.SetInjector(faultfs.Match(func(c faultfs.Call) bool {
			return c.Op == faultfs.OpRename && strings.HasSuffix(c.NewName, core.DisposedName) && exists(t, d.mem, c.Name)
		}, faultfs.Fault{Err: core.ErrUnavailable}))
		_, err := d.owner.Dispose(ctx, 1, readAll)
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.ErrorContains(t, err, "nothing was deleted")
		require.Equal(t, []int64{2}, completeIDs(t, d.mem, d.dir()))
		require.False(t, exists(t, d.mem, d.chk(1)+"/"+core.DisposedName))
		return d
	}
	t.Run("by an error", func(t *testing.T) {
		d := interrupted(t)
		_, err := d.owner.Dispose(ctx, 1, readAll)
		require.ErrorIs(t, err, core.ErrUnavailable, "still")
		d.flaky.SetInjector(nil)
		report, err := d.owner.Dispose(ctx, 1, readAll)
		require.NoError(t, err)
		require.Len(t, report.Removed, 4)
		require.False(t, exists(t, d.mem, d.chk(1)))
		d.requireOthersIntact(t, d.mem)
	})
	t.Run("by a take-over", func(t *testing.T) {
		d := interrupted(t)
		successor := d.claim(t)
		require.Equal(t, string(d.first.metadata), string(contentOf(t, d.mem, d.chk(1)+"/"+core.DisposedName)))
		d.flaky.SetInjector(nil)
		_, err := d.owner.Dispose(ctx, 1, readAll)
		require.ErrorIs(t, err, core.ErrFenced)
		require.True(t, exists(t, d.mem, d.alone))
		_, err = successor.Sweep(ctx, readMeta)
		require.NoError(t, err)
		require.False(t, exists(t, d.mem, d.chk(1)))
		require.False(t, exists(t, d.mem, d.alone))
		d.requireOthersIntact(t, d.mem)
	})
}

// A fenced owner that resumes a disposal of its successor would plan without knowing what that has in progress.
func TestDisposeByAFencedOwnerRemovesNothingOfADisposalUnderWay(t *testing.T) {
	ctx := context.Background()
	d := newDisposeRig(t)
	successor := d.claim(t)
	require.NoError(t, d.mem.Rename(ctx, d.chk(1)+"/_metadata", d.chk(1)+"/"+core.DisposedName, core.RenameNoReplace))
	before := snapshot(t, d.mem, d.dir())
	_, err := d.owner.Dispose(ctx, 1, readAll)
	require.ErrorIs(t, err, core.ErrFenced)
	require.Equal(t, before, snapshot(t, d.mem, d.dir()))
	require.NoError(t, d.mem.MkdirAll(ctx, d.chk(7)))
	_, err = d.owner.Dispose(ctx, 7, readAll)
	require.ErrorIs(t, err, core.ErrFenced)
	require.True(t, exists(t, d.mem, d.chk(7)), "the successor may have begun it")
	_, err = successor.Dispose(ctx, 1, core.DisposeOptions{Read: readMeta, Protected: []core.Object{{Path: "mem:" + d.alone}}})
	require.NoError(t, err)
	require.True(t, exists(t, d.mem, d.alone))
}

func TestDisposeOfManyFilesRunsInParallelAndWaits(t *testing.T) {
	ctx := context.Background()
	r := newJobRig(t)
	var entries []metaEntry
	for i := range 200 {
		name := "file-" + core.CheckpointDirName(int64(i))
		put(t, r.mem, r.chk(1)+"/"+name, "x")
		entries = append(entries, metaEntry{Name: name})
	}
	put(t, r.mem, r.chk(1)+"/_metadata", string(encodeMeta(entries...)))
	removing := make(chan struct{}, 200)
	open := make(chan struct{})
	flaky := faultfs.Wrap(r.mem, func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpRemove {
			removing <- struct{}{}
			return faultfs.Fault{Block: open}
		}
		return faultfs.Fault{}
	})
	ended := make(chan error, 1)
	go func() {
		_, err := core.Dispose(ctx, flaky, r.chk(1), readAll)
		ended <- err
	}()
	for range 8 {
		<-removing
	}
	close(open)
	require.NoError(t, <-ended)
	require.False(t, exists(t, r.mem, r.chk(1)))
	require.Empty(t, r.mem.OpenFiles())
}
