package fstest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// leakRules look for what grows with the number of streams while the file system is in use; what is left after that is
// looked for at the end of every rule.
func leakRules() []rule {
	return []rule{
		leakRule("Committed Writers leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			require.NoError(t, writeFile(s.ctx, s.FS, s.path("new"), pattern(1, 5000), core.CreateOptions{}))
			require.NoError(t, s.FS.Remove(s.ctx, s.path("new")))
		}),
		leakRule("Aborted Writers leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			w, err := s.FS.Create(s.ctx, s.path("new"), core.CreateOptions{})
			require.NoError(t, err)
			_, err = w.Write(pattern(1, 5000))
			require.NoError(t, err)
			require.NoError(t, w.Abort())
		}),
		leakRule("Failed Writers leave no goroutine and no descriptor after Abort", func(t testing.TB, s *subject) {
			ctx, cancel := context.WithCancel(s.ctx)
			w, err := s.FS.Create(ctx, s.path("new"), core.CreateOptions{})
			require.NoError(t, err)
			cancel()
			require.Error(t, w.Close())
			require.NoError(t, w.Abort())
		}),
		leakRule("Refused Creates leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			require.Error(t, s.tryCreate(s.path("file"), core.CreateOptions{}))
			require.Error(t, s.tryCreate(s.path("missing", "new"), core.CreateOptions{}))
		}),
		leakRule("Closed Readers leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			r, err := s.FS.Open(ctx, s.path("file"))
			require.NoError(t, err)
			_, err = r.ReadAt(make([]byte, 5), 1)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}),
		leakRule("Refused Opens leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			require.Error(t, s.tryOpen(s.path("missing")))
			require.Error(t, s.tryOpen(s.path("dir")))
		}),
		leakRule("Listings that stop early leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			for _, err := range s.FS.List(s.ctx, s.Root) {
				require.NoError(t, err)
				break
			}
		}),
		leakRule("Other calls leave no goroutine and no descriptor", func(t testing.TB, s *subject) {
			s.mkdir(t, s.path("new", "a", "b"))
			require.NoError(t, s.FS.Rename(s.ctx, s.path("file"), s.path("new", "file"), core.RenameReplace))
			require.NoError(t, s.FS.Rename(s.ctx, s.path("new", "file"), s.path("file"), core.RenameReplace))
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("new")))
			_, err := s.FS.Stat(s.ctx, s.path("missing"))
			require.Error(t, err)
		}),
	}
}

// leakRule runs one round a few times, for what the file system sets up once, and then often.
func leakRule(name string, round func(t testing.TB, s *subject)) rule {
	return rule{name, func(t testing.TB, s *subject) {
		const rounds = 100
		s.plant(t)
		for range 10 {
			round(t, s)
		}
		goroutines, descriptors := countGoroutines(), countDescriptors()
		for range rounds {
			round(t, s)
		}
		// A pool may have grown a little; a leak is one a round.
		for deadline := time.Now().Add(s.leakWait); ; time.Sleep(time.Millisecond) {
			moreGoroutines, moreDescriptors := runtime.NumGoroutine()-goroutines, countDescriptors()-descriptors
			if moreGoroutines < rounds/2 && moreDescriptors < rounds/2 {
				return
			}
			if time.Now().After(deadline) {
				require.FailNow(t, "leak", "%d more goroutines and %d more descriptors after %d rounds",
					moreGoroutines, moreDescriptors, rounds)
			}
		}
	}}
}
