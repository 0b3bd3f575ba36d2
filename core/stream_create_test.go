package core_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestStateStreamTriesAnotherNameOnlyIfOneIsTaken(t *testing.T) {
	taken := faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: fs.ErrExist})
	for _, tt := range []struct {
		name    string
		inject  faultfs.Injector
		creates int
		want    error
	}{
		{"taken twice", faultfs.Window(0, 2, taken), 3, nil},
		{"taken nine times", faultfs.Window(0, 9, taken), 10, nil},
		{"taken always", taken, 10, fs.ErrExist},
		{"taken, then refused", faultfs.Any(faultfs.Window(0, 1, taken), faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: fs.ErrPermission})), 2, fs.ErrPermission},
		{"permission denied", faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: fs.ErrPermission}), 1, fs.ErrPermission},
		{"no space", faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: core.ErrNoSpace}), 1, core.ErrNoSpace},
		{"name quota", faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: core.ErrQuota}), 1, core.ErrQuota},
		{"unavailable", faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: core.ErrUnavailable}), 1, core.ErrUnavailable},
		{"unknown failure", faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: faultfs.ErrInjected}), 1, faultfs.ErrInjected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
			r.faults.SetInjector(tt.inject)
			s := written(t, r.exclusive(t.Context()), 100)
			handle, err := s.CloseAndGetHandle()
			require.Equal(t, tt.creates, r.count(faultfs.OpCreate))
			names := map[string]bool{}
			for _, c := range r.faults.Calls() {
				if c.Op == faultfs.OpCreate {
					names[c.Name] = true
				}
			}
			require.Len(t, names, tt.creates, "each try has a fresh name")
			if tt.want == nil {
				require.NoError(t, err)
				requireState(t, r.mem, noise(100), handle)
				require.Len(t, r.files(), 1)
				return
			}
			require.ErrorIs(t, err, tt.want)
			r.requireNothingLeft(t)
		})
	}
}

func TestStateStreamNeverTouchesAFileWhoseNameItDraws(t *testing.T) {
	ids := []uuid.UUID{{1}, {1}, {1}, {2}}
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, NewUUID: func() (uuid.UUID, error) {
		id := ids[0]
		ids = ids[1:]
		return id, nil
	}})
	first, err := written(t, r.exclusive(t.Context()), 10).CloseAndGetHandle()
	require.NoError(t, err)
	second, err := written(t, r.exclusive(t.Context()), 20).CloseAndGetHandle()
	require.NoError(t, err)
	requireState(t, r.mem, noise(10), first)
	requireState(t, r.mem, noise(20), second)
	require.Empty(t, ids)
}

func TestStateStreamReportsThatNoNameCouldBeMade(t *testing.T) {
	broken := errors.New("no randomness")
	for name, size := range map[string]int{"inline": 10, "file": 1000} {
		t.Run(name, func(t *testing.T) {
			r := newStreamRig(t, core.Options{InlineThreshold: 100, NewUUID: func() (uuid.UUID, error) { return uuid.UUID{}, broken }})
			s := written(t, r.exclusive(t.Context()), size)
			for range 2 {
				_, err := s.CloseAndGetHandle()
				require.ErrorIs(t, err, broken)
				require.ErrorContains(t, err, r.location.CheckpointDir())
			}
			require.Zero(t, r.faults.Count())
		})
	}
}

func TestStateStreamInADirectoryThatItMayNotWriteDeletesNothing(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testStreamDoesNotTryToCleanUpParentOnError
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
	r.faults.SetInjector(faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: fs.ErrPermission}))
	failing, closing := written(t, r.exclusive(t.Context()), 100), written(t, r.exclusive(t.Context()), 100)
	_, err := failing.CloseAndGetHandle()
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NoError(t, closing.Close())
	for _, c := range r.faults.Calls() {
		require.Equal(t, faultfs.OpCreate, c.Op)
	}
	info, err := r.mem.Stat(t.Context(), r.location.CheckpointDir())
	require.NoError(t, err)
	require.True(t, info.IsDir())
}

func TestStateStreamThatFailsLeavesItsNeighbourAlone(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
	for range 100 {
		failing, neighbour := r.exclusive(t.Context()), r.exclusive(t.Context())
		_, err := failing.Write(noise(50))
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- failing.Close() }()
		handle, err := written(t, neighbour, 60).CloseAndGetHandle()
		require.NoError(t, err)
		require.NoError(t, <-done)
		requireState(t, r.mem, noise(60), handle)
		require.Len(t, r.files(), 1)
		require.NoError(t, core.Discard(t.Context(), core.OnlyOn(r.mem), handle))
	}
}

func TestStateStreamOfADisposedCheckpointDoesNotBringItsDirectoryBack(t *testing.T) {
	// Better than Flink on HDFS, where a late task makes the directory of an aborted checkpoint again.
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
	before, after := written(t, r.exclusive(t.Context()), 100), written(t, r.exclusive(t.Context()), 100)
	require.NoError(t, before.Flush())
	require.NoError(t, r.mem.RemoveAll(t.Context(), r.location.CheckpointDir()))
	for name, s := range map[string]*core.StateStream{"with a file": before, "without a file": after} {
		t.Run(name, func(t *testing.T) {
			handle, err := s.CloseAndGetHandle()
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.Nil(t, handle)
			if name == "without a file" {
				require.ErrorContains(t, err, "the checkpoint's directory is gone")
			}
			_, err = r.mem.Stat(t.Context(), r.location.CheckpointDir())
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
	require.Empty(t, r.mem.OpenFiles())
}

// TestStateStreamRemovesAFileWhoseCreationGotNoAnswer is the empty file that a lost reply leaves: nobody else knows its name.
func TestStateStreamRemovesAFileWhoseCreationGotNoAnswer(t *testing.T) {
	lost := faultfs.OnOp(faultfs.OpCreate, faultfs.Fault{Err: core.ErrUnavailable, After: true})
	endings := map[string]func(s *core.StateStream) error{
		"Close": func(s *core.StateStream) error { return s.Close() },
		"CloseAndGetHandle": func(s *core.StateStream) error {
			_, err := s.CloseAndGetHandle()
			if errors.Is(err, core.ErrUnavailable) {
				return nil
			}
			return errors.Join(errors.New("want the error of Create"), err)
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
			r.faults.SetInjector(lost)
			s := r.exclusive(t.Context())
			_, err := s.Write(noise(100))
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.Len(t, r.files(), 1)
			require.NoError(t, end(s))
			r.requireNothingLeft(t)
		})
	}
	t.Run("after the context has ended", func(t *testing.T) {
		r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
		r.faults.SetInjector(lost)
		ctx, cancel := context.WithCancel(t.Context())
		s := r.exclusive(ctx)
		_, err := s.Write(noise(100))
		require.ErrorIs(t, err, core.ErrUnavailable)
		cancel()
		require.NoError(t, s.Close())
		r.requireNothingLeft(t)
	})
	t.Run("and neither does the removal", func(t *testing.T) {
		r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
		r.faults.SetInjector(faultfs.Any(lost, faultfs.OnOp(faultfs.OpRemove, faultfs.Fault{Err: core.ErrUnavailable})))
		s := r.exclusive(t.Context())
		_, err := s.Write(noise(100))
		require.ErrorIs(t, err, core.ErrUnavailable)
		err = s.Close()
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.Len(t, r.files(), 1)
		r.requireLeftoversNamed(t, err)
	})
}

func TestStateStreamWithEntropyHasAbsoluteHandlesToTheDrawnDirectory(t *testing.T) {
	for _, scope := range scopes {
		t.Run(scope.name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			entropy, err := core.WithEntropy(mem, "_entropy_", 6)
			require.NoError(t, err)
			storage, err := core.NewStorage(entropy, "/a/_entropy_/b", rigJob, core.Options{InlineThreshold: core.NeverInline})
			require.NoError(t, err)
			location, err := storage.ResolveLocation(t.Context(), 7, nil)
			require.NoError(t, err)

			// Flink: FsCheckpointStreamFactoryTest.testEntropyMakesExclusiveStateAbsolutePaths
			s := written(t, location.CreateStateStream(t.Context(), scope.scope), 100)
			handle, err := s.CloseAndGetHandle()
			require.NoError(t, err)
			file, ok := handle.(*core.FileHandle)
			require.True(t, ok)
			require.Regexp(t, `^mem:/a/[0-9a-f]{6}/b/`+rigJob.String()+`/(chk-7|shared)/[0-9a-f-]{36}$`, file.Path)
			requireState(t, entropy, noise(100), handle)

			// Flink: FsCheckpointStreamFactoryTest.testFSWithDisabledEntropyHasRelativePaths
			// Better: the handle is relative exactly if the location's own path holds no marker.
			plain, err := core.NewStorage(entropy, "/a/plain", rigJob, core.Options{InlineThreshold: core.NeverInline})
			require.NoError(t, err)
			location, err = plain.ResolveLocation(t.Context(), 7, nil)
			require.NoError(t, err)
			require.NoError(t, mem.MkdirAll(t.Context(), location.CheckpointDir()))
			require.NoError(t, mem.MkdirAll(t.Context(), location.SharedDir()))
			handle, err = written(t, location.CreateStateStream(t.Context(), scope.scope), 100).CloseAndGetHandle()
			require.NoError(t, err)
			require.Equal(t, scope.scope == core.Shared, isAbsolute(t, handle))
			requireState(t, entropy, noise(100), handle)
		})
	}
}

func TestStateStreamWithEntropyDiscardsItsFile(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	entropy, err := core.WithEntropy(mem, "_entropy_", 0)
	require.NoError(t, err)
	storage, err := core.NewStorage(entropy, "/a/_entropy_/b", rigJob, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 10})
	require.NoError(t, err)
	s := written(t, storage.CreateTaskOwnedStream(t.Context()), 100)
	require.Len(t, filesOf(mem), 1)
	require.Equal(t, core.TaskOwnedDirName, path.Base(path.Dir(filesOf(mem)[0])))
	require.NoError(t, s.Close())
	require.Empty(t, filesOf(mem))
}
