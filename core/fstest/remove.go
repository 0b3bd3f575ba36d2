package fstest

import (
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

func removeRules() []rule {
	return []rule{
		{"Remove removes a file or an empty directory and nothing else", func(t testing.TB, s *subject) {
			s.plant(t)
			require.NoError(t, s.FS.Remove(s.ctx, s.path("file")))
			require.NoError(t, s.FS.Remove(s.ctx, s.path("empty")))
			require.NoError(t, s.FS.Remove(s.ctx, s.path("dir", "sub")))
			names, err := list(s.ctx, s.Second(t), s.Root)
			require.NoError(t, err)
			require.Equal(t, []string{"dir", "other"}, names)
			requireContent(t, s.ctx, s.FS, s.path("dir", "child"), []byte("content of child"))
			requireContent(t, s.ctx, s.FS, s.path("other"), []byte("content of the other file"))
		}},
		{"Remove has exactly one winner", func(t testing.TB, s *subject) {
			for round := range s.rounds {
				name := s.path(fmt.Sprintf("file-%d", round))
				s.write(t, name, nil)
				errs := race(4, func(int) error { return s.FS.Remove(s.ctx, name) })
				requireOneWinner(t, errs, func(int) string { return name }, fs.ErrNotExist)
			}
		}},
		{"RemoveAll removes a tree and nothing beside it", func(t testing.TB, s *subject) {
			s.plant(t)
			s.mkdir(t, s.path("dir-beside"))
			s.mkdir(t, s.path("dir", "sub", "a", "b"))
			for i := range 50 {
				s.write(t, s.path("dir", "sub", "a", fmt.Sprintf("file-%d", i)), []byte("x"))
			}
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("dir")))
			names, err := list(s.ctx, s.Second(t), s.Root)
			require.NoError(t, err)
			require.Equal(t, []string{"dir-beside", "empty", "file", "other"}, names)
		}},
		{"RemoveAll removes a file or an empty directory", func(t testing.TB, s *subject) {
			s.plant(t)
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("file")))
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("empty")))
			names, err := list(s.ctx, s.FS, s.Root)
			require.NoError(t, err)
			require.Equal(t, []string{"dir", "other"}, names)
		}},
		{"RemoveAll of a missing name succeeds", func(t testing.TB, s *subject) {
			s.plant(t)
			before := s.snapshot(t)
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("missing")))
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("missing", "a", "b")))
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("fil")))
			require.Equal(t, before, s.snapshot(t))
		}},
		{"RemoveAll by several callers at once succeeds for all", func(t testing.TB, s *subject) {
			for round := range max(1, s.rounds/10) {
				dir := s.path(fmt.Sprintf("dir-%d", round))
				for i := range 10 {
					s.mkdir(t, path.Join(dir, fmt.Sprint(i), "sub"))
				}
				for _, err := range race(4, func(int) error { return s.FS.RemoveAll(s.ctx, dir) }) {
					require.NoError(t, err)
				}
				requireMissing(t, s.ctx, s.FS, dir)
			}
		}},
		{"RemoveAll of the base is ErrInvalid", func(t testing.TB, s *subject) {
			if s.Base == "" {
				t.Skip("the base of the file system is not known")
			}
			s.plant(t)
			before := s.snapshot(t)
			requireError(t, s.FS.RemoveAll(s.ctx, s.Base), s.Base, fs.ErrInvalid)
			require.Equal(t, before, s.snapshot(t))
		}},
		{"Remove and RemoveAll take a symbolic link and never its target", checkRemoveSymlink},
	}
}

func checkRemoveSymlink(t testing.TB, s *subject) {
	if s.Symlink == nil {
		t.Skip("no symbolic links here")
	}
	s.plant(t)
	s.mkdir(t, s.path("doomed", "deep"))
	before := len(s.snapshot(t))
	s.Symlink(t, s.path("file"), s.path("link-to-file"))
	s.Symlink(t, s.path("dir"), s.path("link-to-dir"))
	s.Symlink(t, s.path("missing"), s.path("dangling"))
	for _, name := range []string{"link-to-file", "link-to-dir", "dangling"} {
		require.NoError(t, s.FS.Remove(s.ctx, s.path(name)), name)
	}
	require.Len(t, s.snapshot(t), before)
	s.Symlink(t, s.path("dir"), s.path("link-to-dir"))
	require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("link-to-dir")))
	require.Len(t, s.snapshot(t), before)
	s.Symlink(t, s.path("dir"), s.path("doomed", "deep", "link-to-dir"))
	s.Symlink(t, s.path("file"), s.path("doomed", "link-to-file"))
	require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("doomed")))
	require.Len(t, s.snapshot(t), before-2)
	requireContent(t, s.ctx, s.FS, s.path("dir", "child"), []byte("content of child"))
	requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content of file"))
}
