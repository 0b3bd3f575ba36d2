package fstest

import (
	"io/fs"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func statRules() []rule {
	return []rule{
		{"Stat describes a file", func(t testing.TB, s *subject) {
			before := time.Now()
			s.write(t, s.path("file"), []byte("content"))
			info, err := s.FS.Stat(s.ctx, s.path("file"))
			require.NoError(t, err)
			require.Equal(t, "file", info.Name)
			require.EqualValues(t, 7, info.Size)
			require.True(t, info.IsRegular())
			require.False(t, info.IsDir())
			require.NotZero(t, info.Mode.Perm())
			// The clock of a server may differ; hours say that the unit or the epoch is wrong.
			require.WithinDuration(t, before, info.ModTime, time.Hour)
		}},
		{"Stat describes a directory", func(t testing.TB, s *subject) {
			s.mkdir(t, s.path("dir"))
			info, err := s.FS.Stat(s.ctx, s.path("dir"))
			require.NoError(t, err)
			require.Equal(t, "dir", info.Name)
			require.True(t, info.IsDir())
			require.False(t, info.IsRegular())
			require.NotZero(t, info.Mode.Perm())
		}},
		{"Stat describes the directory of the subtest by its base name", func(t testing.TB, s *subject) {
			info, err := s.FS.Stat(s.ctx, s.Root)
			require.NoError(t, err)
			require.Equal(t, path.Base(s.Root), info.Name)
			require.True(t, info.IsDir())
		}},
		{"Stat and List agree", func(t testing.TB, s *subject) {
			s.plant(t)
			seen := 0
			for listed, err := range s.FS.List(s.ctx, s.Root) {
				require.NoError(t, err)
				stated, err := s.FS.Stat(s.ctx, s.path(listed.Name))
				require.NoError(t, err)
				require.Equal(t, stated.Name, listed.Name)
				require.Equal(t, stated.Mode, listed.Mode, listed.Name)
				require.True(t, stated.ModTime.Equal(listed.ModTime), listed.Name)
				if listed.IsRegular() {
					require.Equal(t, stated.Size, listed.Size, listed.Name)
				}
				seen++
			}
			require.Equal(t, 4, seen)
		}},
		{"A symbolic link is described and not followed", func(t testing.TB, s *subject) {
			if s.Symlink == nil {
				t.Skip("no symbolic links here")
			}
			s.write(t, s.path("file"), []byte("content"))
			for name, target := range map[string]string{"to-file": s.path("file"), "to-root": s.Root, "dangling": s.path("missing")} {
				s.Symlink(t, target, s.path(name))
				info, err := s.FS.Stat(s.ctx, s.path(name))
				require.NoError(t, err)
				require.Equal(t, fs.ModeSymlink, info.Mode.Type())
				require.False(t, info.IsRegular() || info.IsDir())
			}
			for info, err := range s.FS.List(s.ctx, s.Root) {
				require.NoError(t, err)
				require.Equal(t, info.Name != "file", info.Mode.Type() == fs.ModeSymlink, info.Name)
			}
		}},
	}
}
