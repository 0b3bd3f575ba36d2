package fstest

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// abortLimit is how long Abort may take.
const abortLimit = 10 * time.Second

func abortRules() []rule {
	return []rule{
		{"Abort removes the file and frees the name", func(t testing.TB, s *subject) {
			for _, size := range []int{0, 1, 100_000, 2 << 20} {
				w := s.create(t, s.ctx, s.path("file"))
				_, err := w.Write(pattern(1, size))
				require.NoError(t, err)
				require.NoError(t, w.Abort())
				requireMissing(t, s.ctx, s.FS, s.path("file"))
				requireMissing(t, s.ctx, s.Second(t), s.path("file"))
			}
			s.write(t, s.path("file"), []byte("new"))
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("new"))
		}},
		{"Abort after Close returns nil and leaves the file", func(t testing.TB, s *subject) {
			w := s.committed(t, "content")
			require.NoError(t, w.Abort())
			require.NoError(t, w.Abort())
			require.NoError(t, w.Close(), "Abort does not change the outcome of Close")
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content"))
		}},
		{"Close, Write and Sync after Abort are ErrClosed", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			_, err := w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, w.Abort())
			requireError(t, w.Close(), s.path("file"), fs.ErrClosed)
			_, err = w.Write([]byte("more"))
			requireError(t, err, s.path("file"), fs.ErrClosed)
			requireError(t, w.Sync(), s.path("file"), fs.ErrClosed, errors.ErrUnsupported)
			requireError(t, w.Close(), s.path("file"), fs.ErrClosed)
			requireMissing(t, s.ctx, s.FS, s.path("file"))
		}},
		{"A second Abort is harmless", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			require.NoError(t, w.Abort())
			s.write(t, s.path("file"), []byte("new"))
			require.NoError(t, w.Abort())
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("new"))
		}},
		{"Abort works after the end of the context", func(t testing.TB, s *subject) {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			w := s.create(t, ctx, s.path("file"))
			_, err := w.Write(pattern(1, 100_000))
			require.NoError(t, err)
			cancel()
			require.NoError(t, w.Abort())
			requireMissing(t, s.ctx, s.FS, s.path("file"))
		}},
		{"Abort never removes another file that took the name", func(t testing.TB, s *subject) {
			w := s.usurped(t)
			require.NoError(t, w.Abort())
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("of another"))
		}},
		{"Abort from another goroutine breaks a Writer at work", checkAbortElsewhere},
		{"Abort and Close from two goroutines agree on the outcome", checkAbortCloseRace},
	}
}

func checkAbortElsewhere(t testing.TB, s *subject) {
	w := s.create(t, s.ctx, s.path("file"))
	var aborted atomic.Bool
	writing, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- writeUntilRefused(w, writing, &aborted)
	}()
	<-writing
	start := time.Now()
	err := w.Abort()
	aborted.Store(true)
	require.NoError(t, err)
	require.Less(t, time.Since(start), abortLimit)
	select {
	case err := <-result:
		requireError(t, err, s.path("file"))
	case <-time.After(abortLimit):
		require.FailNow(t, "Abort did not break the Writer")
	}
	requireError(t, w.Close(), s.path("file"), fs.ErrClosed)
	requireMissing(t, s.ctx, s.FS, s.path("file"))
}

// writeUntilRefused writes until an error, and stops at the first success of a Write that began after Abort had returned.
func writeUntilRefused(w core.Writer, writing chan<- struct{}, aborted *atomic.Bool) error {
	piece := pattern(1, 1000)
	for i := 0; ; i++ {
		last := aborted.Load()
		_, err := w.Write(piece)
		if i == 0 {
			close(writing)
		}
		if err != nil || last {
			return err
		}
	}
}

// checkAbortCloseRace: the one that comes second must know what the first has done.
func checkAbortCloseRace(t testing.TB, s *subject) {
	for range s.rounds {
		w := s.create(t, s.ctx, s.path("file"))
		_, err := w.Write([]byte("content"))
		require.NoError(t, err)
		errs := race(2, func(i int) error {
			if i == 0 {
				return w.Close()
			}
			return w.Abort()
		})
		require.NoError(t, errs[1], "Abort")
		require.NoError(t, w.Abort())
		if errs[0] == nil {
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content"))
			require.NoError(t, s.FS.Remove(s.ctx, s.path("file")))
			continue
		}
		requireError(t, errs[0], s.path("file"))
		requireMissing(t, s.ctx, s.FS, s.path("file"))
	}
}
