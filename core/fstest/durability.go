package fstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func durabilityRules() []rule {
	return []rule{
		{"Every declared durability makes files that another client sees", func(t testing.TB, s *subject) {
			second := s.Second(t)
			for _, d := range append([]core.Durability{core.DurabilityDefault}, s.caps.Durabilities...) {
				name := s.path("file-" + d.String())
				data := pattern(uint64(d), 100_000)
				require.NoError(t, writeFile(s.ctx, s.FS, name, data, core.CreateOptions{Durability: d}))
				requireContent(t, s.ctx, second, name, data)
			}
		}},
		{"A durability that is not declared is refused without effect", func(t testing.TB, s *subject) {
			for _, d := range []core.Durability{core.Unsynced, core.Replicated, core.Synced, core.Synced + 1, 255} {
				if _, declared := s.caps.Resolve(d); !declared {
					s.requireRefusedOptions(t, core.CreateOptions{Durability: d})
				}
			}
		}},
		{"MinReplicas has a meaning where there are replicas and is refused elsewhere", func(t testing.TB, s *subject) {
			for _, replicas := range []int{0, 1} {
				opts := core.CreateOptions{MinReplicas: replicas}
				require.NoError(t, writeFile(s.ctx, s.FS, s.path(fmt.Sprint(replicas)), nil, opts))
			}
			if !s.caps.Replicas {
				s.requireRefusedOptions(t, core.CreateOptions{MinReplicas: 2})
				s.requireRefusedOptions(t, core.CreateOptions{MinReplicas: 3})
			}
		}},
		{"A committed file survives a crash", crashRule(func(t testing.TB, s *subject) (check func(core.FileSystem)) {
			durabilities := []core.Durability{core.DurabilityDefault}
			for _, d := range s.caps.Durabilities {
				if d > core.Unsynced {
					durabilities = append(durabilities, d)
				}
			}
			for _, d := range durabilities {
				opts := core.CreateOptions{Durability: d}
				require.NoError(t, writeFile(s.ctx, s.FS, s.path("file-"+d.String()), pattern(uint64(d), 100_000), opts))
			}
			return func(crashed core.FileSystem) {
				for _, d := range durabilities {
					requireContent(t, s.ctx, crashed, s.path("file-"+d.String()), pattern(uint64(d), 100_000))
				}
			}
		})},
		{"Synced bytes of an open Writer survive a crash", crashRule(func(t testing.TB, s *subject) func(core.FileSystem) {
			w := s.create(t, s.ctx, s.path("file"))
			data := pattern(1, 100_000)
			_, err := w.Write(data[:60_000])
			require.NoError(t, err)
			if err := w.Sync(); !s.caps.Sync {
				requireError(t, err, s.path("file"), errors.ErrUnsupported)
				return func(core.FileSystem) {}
			}
			_, err = w.Write(data[60_000:])
			require.NoError(t, err)
			return func(crashed core.FileSystem) {
				got, err := readFile(s.ctx, crashed, s.path("file"))
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(got), 60_000)
				requirePrefix(t, got, data[:60_000], "the synced bytes")
			}
		})},
		{"A made directory survives a crash", crashRule(func(t testing.TB, s *subject) func(core.FileSystem) {
			s.mkdir(t, s.path("a", "b", "c"))
			return func(crashed core.FileSystem) {
				info, err := crashed.Stat(s.ctx, s.path("a", "b", "c"))
				require.NoError(t, err)
				require.True(t, info.IsDir())
			}
		})},
		{"A renamed file survives a crash under its new name only", crashRule(func(t testing.TB, s *subject) func(core.FileSystem) {
			s.plant(t)
			require.NoError(t, s.FS.Rename(s.ctx, s.path("file"), s.path("dir", "sub", "new"), s.fileMode()))
			return func(crashed core.FileSystem) {
				requireMissing(t, s.ctx, crashed, s.path("file"))
				requireContent(t, s.ctx, crashed, s.path("dir", "sub", "new"), []byte("content of file"))
			}
		})},
		{"A replaced file is the new one after a crash", crashRule(func(t testing.TB, s *subject) func(core.FileSystem) {
			s.plant(t)
			require.NoError(t, s.FS.Rename(s.ctx, s.path("dir", "child"), s.path("other"), core.RenameReplace))
			return func(crashed core.FileSystem) {
				requireMissing(t, s.ctx, crashed, s.path("dir", "child"))
				requireContent(t, s.ctx, crashed, s.path("other"), []byte("content of child"))
			}
		})},
		{"A renamed directory survives a crash under its new name only", crashRule(func(t testing.TB, s *subject) func(core.FileSystem) {
			s.plant(t)
			require.NoError(t, s.FS.Rename(s.ctx, s.path("dir"), s.path("empty", "moved"), s.dirMode()))
			return func(crashed core.FileSystem) {
				requireMissing(t, s.ctx, crashed, s.path("dir"))
				requireContent(t, s.ctx, crashed, s.path("empty", "moved", "child"), []byte("content of child"))
			}
		})},
	}
}

func (s *subject) requireRefusedOptions(t testing.TB, opts core.CreateOptions) {
	t.Helper()
	before := s.snapshot(t)
	requireError(t, s.tryCreate(s.path("refused"), opts), s.path("refused"), errors.ErrUnsupported)
	require.Equal(t, before, s.snapshot(t), "a refused Create had an effect")
}

// crashRule prepares, crashes and checks what the crash has left.
func crashRule(prepare func(t testing.TB, s *subject) (check func(crashed core.FileSystem))) func(testing.TB, *subject) {
	return func(t testing.TB, s *subject) {
		if s.Crash == nil {
			t.Skip("this file system cannot show what a crash leaves")
		}
		if s.caps.Strongest() == core.Unsynced {
			t.Skip("nothing here is promised to survive a crash of the machine")
		}
		check := prepare(t, s)
		check(s.Crash(t))
	}
}
