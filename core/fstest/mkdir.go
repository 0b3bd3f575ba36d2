package fstest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func mkdirRules() []rule {
	return []rule{
		{"MkdirAll makes missing parents, seen by another client", func(t testing.TB, s *subject) {
			second := s.Second(t)
			s.mkdir(t, s.path("a", "b", "c"))
			for _, dir := range []string{"a", "a/b", "a/b/c"} {
				info, err := second.Stat(s.ctx, s.path(dir))
				require.NoError(t, err)
				require.True(t, info.IsDir())
			}
		}},
		{"MkdirAll of an existing directory succeeds and leaves it as it is", func(t testing.TB, s *subject) {
			s.plant(t)
			before := s.snapshot(t)
			s.mkdir(t, s.path("dir"))
			s.mkdir(t, s.path("dir", "sub"))
			s.mkdir(t, s.Root)
			require.Equal(t, before, s.snapshot(t))
		}},
		{"MkdirAll by 16 callers on two clients succeeds for all", func(t testing.TB, s *subject) {
			clients := []core.FileSystem{s.FS, s.Second(t)}
			for round := range s.rounds {
				dir := s.path(fmt.Sprintf("dir-%d", round%7), fmt.Sprintf("dir-%d", round), "c")
				for _, err := range race(racers, func(i int) error { return clients[i%2].MkdirAll(s.ctx, dir) }) {
					require.NoError(t, err)
				}
				info, err := s.FS.Stat(s.ctx, dir)
				require.NoError(t, err)
				require.True(t, info.IsDir())
			}
		}},
		{"MkdirAll of siblings at once keeps them all", func(t testing.TB, s *subject) {
			for _, err := range race(racers, func(i int) error { return s.FS.MkdirAll(s.ctx, s.path("a", "b", fmt.Sprint(i))) }) {
				require.NoError(t, err)
			}
			names, err := list(s.ctx, s.FS, s.path("a", "b"))
			require.NoError(t, err)
			require.Len(t, names, racers)
		}},
	}
}
