package core_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// errPassing is a failure that the storage forgets at once: only the stream itself can remember it.
var errPassing = errors.New("passing failure")

// streamCalls are the calls whose outcome an earlier one decides.
var streamCalls = map[string]func(*core.StateStream) error{
	"Write":             func(s *core.StateStream) error { _, err := s.Write([]byte("late")); return err },
	"Write of nothing":  func(s *core.StateStream) error { _, err := s.Write(nil); return err },
	"WriteByte":         func(s *core.StateStream) error { return s.WriteByte(1) },
	"Flush":             (*core.StateStream).Flush,
	"Sync":              (*core.StateStream).Sync,
	"CloseAndGetHandle": func(s *core.StateStream) error { _, err := s.CloseAndGetHandle(); return err },
}

// streamOutcomes are first outcomes. Each makes a stream and leads it there.
var streamOutcomes = map[string]struct {
	reach func(t *testing.T, hooks *hookFS, r *streamRig) *core.StateStream
	want  error // of every later call but Close
	keeps bool  // a file
	open  bool  // IsClosed is still false
}{
	"kept nothing": {want: fs.ErrClosed, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		return kept(t, r.exclusive(t.Context()), 0)
	}},
	"kept inline": {want: fs.ErrClosed, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		return kept(t, r.exclusive(t.Context()), 10)
	}},
	"kept a file": {want: fs.ErrClosed, keeps: true, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		return kept(t, r.exclusive(t.Context()), 1000)
	}},
	// Flink: FsCheckpointStateOutputStreamTest.testWriteFailsFastWhenClosed
	// Better: Flush and a write of nothing fail too.
	"discarded inline": {want: fs.ErrClosed, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		s := written(t, r.exclusive(t.Context()), 10)
		require.False(t, s.IsClosed())
		require.NoError(t, s.Close())
		return s
	}},
	// Flink: FsCheckpointStateOutputStreamTest.testCleanupWhenClosingStream
	"discarded a file": {want: fs.ErrClosed, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		s := written(t, r.exclusive(t.Context()), 1000)
		require.Len(t, r.files(), 1)
		require.NoError(t, s.Close())
		return s
	}},
	// Flink: FsCheckpointStateOutputStreamTest.testCleanupWhenFailingCloseAndGetHandle
	"failed to close the file": {want: errPassing, reach: func(t *testing.T, hooks *hookFS, r *streamRig) *core.StateStream {
		hooks.close = failOnce(errPassing)
		s := written(t, r.exclusive(t.Context()), 1000)
		handle, err := s.CloseAndGetHandle()
		require.ErrorIs(t, err, errPassing)
		require.Nil(t, handle)
		return s
	}},
	"failed to create": {want: errPassing, open: true, reach: func(t *testing.T, hooks *hookFS, r *streamRig) *core.StateStream {
		hooks.create = func(context.Context, string, func() (core.Writer, error)) (core.Writer, error) {
			hooks.create = nil
			return nil, errPassing
		}
		s := r.exclusive(t.Context())
		_, err := s.Write(noise(1000))
		require.ErrorIs(t, err, errPassing)
		return s
	}},
	"failed to write": {want: errPassing, open: true, reach: func(t *testing.T, hooks *hookFS, r *streamRig) *core.StateStream {
		s := written(t, r.exclusive(t.Context()), 1000)
		hooks.write = func([]byte, func([]byte) (int, error)) (int, error) {
			hooks.write = nil
			return 0, errPassing
		}
		_, err := s.Write(noise(1000))
		require.ErrorIs(t, err, errPassing)
		return s
	}},
	// A failed fsync has no second chance: the bytes may be gone although the next one succeeds.
	"failed to sync": {want: errPassing, open: true, reach: func(t *testing.T, hooks *hookFS, r *streamRig) *core.StateStream {
		hooks.sync = failOnce(errPassing)
		s := written(t, r.exclusive(t.Context()), 1000)
		require.ErrorIs(t, s.Sync(), errPassing)
		return s
	}},
	"cancelled while inline": {want: context.Canceled, open: true, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		ctx, cancel := context.WithCancel(t.Context())
		s := written(t, r.exclusive(ctx), 10)
		cancel()
		return s
	}},
	"cancelled with a file": {want: context.Canceled, open: true, reach: func(t *testing.T, _ *hookFS, r *streamRig) *core.StateStream {
		ctx, cancel := context.WithCancel(t.Context())
		s := written(t, r.exclusive(ctx), 1000)
		cancel()
		return s
	}},
}

func written(t *testing.T, s *core.StateStream, n int) *core.StateStream {
	t.Helper()
	_, err := s.Write(noise(n))
	require.NoError(t, err)
	return s
}

func kept(t *testing.T, s *core.StateStream, n int) *core.StateStream {
	t.Helper()
	_, err := written(t, s, n).CloseAndGetHandle()
	require.NoError(t, err)
	return s
}

func newHookedRig(t *testing.T) (*hookFS, *streamRig) {
	t.Helper()
	hooks := &hookFS{}
	return hooks, newStreamRigOn(t, memfs.New(memfs.Options{}), core.Options{InlineThreshold: 100, WriteBuffer: 100}, func(inner core.FileSystem) core.FileSystem {
		hooks.FileSystem = inner
		return hooks
	})
}

// TestStateStreamFirstOutcomeIsFinal makes every pair of calls after every first outcome.
func TestStateStreamFirstOutcomeIsFinal(t *testing.T) {
	for outcome, o := range streamOutcomes {
		for name1, call1 := range streamCalls {
			for name2, call2 := range streamCalls {
				for _, closeBetween := range []bool{false, true} {
					t.Run(outcome+"/"+name1+"/"+name2, func(t *testing.T) {
						hooks, r := newHookedRig(t)
						s := o.reach(t, hooks, r)
						require.Equal(t, o.open, !s.IsClosed())
						position, files := s.Pos(), r.files()
						require.ErrorIs(t, call1(s), o.want)
						if closeBetween {
							require.NoError(t, s.Close())
							require.True(t, s.IsClosed())
						}
						require.ErrorIs(t, call2(s), o.want)
						require.NoError(t, s.Close())
						require.NoError(t, s.Close())
						require.True(t, s.IsClosed())
						require.Equal(t, position, s.Pos())
						if o.keeps {
							require.Equal(t, files, r.files())
							require.Len(t, files, 1)
							require.Empty(t, r.mem.OpenFiles())
							return
						}
						r.requireNothingLeft(t)
					})
				}
			}
		}
	}
}

func TestStateStreamDeferredCloseKeepsWhatWasKept(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: 100})
	keep := func(content []byte) core.StreamHandle {
		s := r.exclusive(t.Context())
		defer func() { require.NoError(t, s.Close()) }()
		_, err := s.Write(content)
		require.NoError(t, err)
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, err)
		return handle
	}
	for _, size := range []int{0, 10, 10000} {
		requireState(t, r.mem, noise(size), keep(noise(size)))
	}
}

func TestStateStreamFailedKeepRemovesTheFileWithoutClose(t *testing.T) {
	// Better than Flink, which neither closes nor aborts the file when flush or sync fails.
	for _, op := range []faultfs.Op{faultfs.OpCreate, faultfs.OpWrite, faultfs.OpClose} {
		for _, after := range []bool{false, true} {
			t.Run(string(op), func(t *testing.T) {
				r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 1000})
				r.faults.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: faultfs.ErrInjected, After: after}))
				s := written(t, r.exclusive(t.Context()), 500)
				_, err := s.CloseAndGetHandle()
				require.ErrorIs(t, err, faultfs.ErrInjected)
				r.requireNothingLeft(t)
				require.True(t, s.IsClosed())
			})
		}
	}
	t.Run("an earlier failure", func(t *testing.T) {
		r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 100})
		r.faults.SetInjector(faultfs.OnOp(faultfs.OpSync, faultfs.Fault{Err: faultfs.ErrInjected}))
		s := written(t, r.exclusive(t.Context()), 500)
		require.ErrorIs(t, s.Sync(), faultfs.ErrInjected)
		require.Len(t, r.files(), 1)
		_, err := s.CloseAndGetHandle()
		require.ErrorIs(t, err, faultfs.ErrInjected)
		r.requireNothingLeft(t)
	})
}

func TestStateStreamShortWriteWithoutAnErrorIsAFailure(t *testing.T) {
	hooks, r := newHookedRig(t)
	hooks.write = func(p []byte, next func([]byte) (int, error)) (int, error) { return next(p[:len(p)-1]) }
	s := r.exclusive(t.Context())
	_, err := s.Write(noise(1000))
	require.ErrorContains(t, err, "short write")
	_, err = s.CloseAndGetHandle()
	require.ErrorContains(t, err, "short write")
	r.requireNothingLeft(t)
}

func TestStateStreamPositionAfterAFailureIsWhatWritesReturned(t *testing.T) {
	for _, sizes := range [][]int{{50, 60}, {50, 10, 60}, {100, 1}, {50, 500}, {500}, {99, 500, 20}} {
		for _, tear := range []int{0, 1, 30} {
			r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 100})
			r.faults.SetInjector(faultfs.OnOp(faultfs.OpWrite, faultfs.Fault{Err: core.ErrNoSpace, Tear: tear}))
			s := r.exclusive(t.Context())
			accepted := 0
			for _, size := range sizes {
				n, err := s.Write(noise(size))
				require.True(t, n == size && err == nil || n < size && errors.Is(err, core.ErrNoSpace), "%v: n = %d, err = %v", sizes, n, err)
				accepted += n
				require.Equal(t, int64(accepted), s.Pos(), "%v", sizes)
			}
			require.NoError(t, s.Close())
			require.Equal(t, int64(accepted), s.Pos())
		}
	}
}

func TestStateStreamCloseReportsAFileThatItCannotRemove(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: 100, WriteBuffer: 100})
	s := written(t, r.exclusive(t.Context()), 500)
	r.faults.SetInjector(faultfs.OnOp(faultfs.OpAbort, faultfs.Fault{Err: core.ErrUnavailable}))
	err := s.Close()
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.Len(t, r.files(), 1)
	r.requireLeftoversNamed(t, err)
}
