package fstest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func renameRules() []rule {
	return []rule{
		{"RenameNoReplace moves a file to a free name, or is refused where it is not declared", func(t testing.TB, s *subject) {
			s.requireFileMoves(t, core.RenameNoReplace, s.caps.NoReplaceFiles)
		}},
		{"RenameReplace moves a file to a free name", func(t testing.TB, s *subject) {
			s.requireFileMoves(t, core.RenameReplace, true)
		}},
		{"RenameNoReplace moves a directory to a free name, or is refused where it is not declared", func(t testing.TB, s *subject) {
			s.requireDirMoves(t, core.RenameNoReplace, s.caps.NoReplaceDirs)
		}},
		{"RenameReplace moves a directory to a free name", func(t testing.TB, s *subject) {
			s.requireDirMoves(t, core.RenameReplace, true)
		}},
		{"RenameReplace replaces a file", func(t testing.TB, s *subject) {
			s.plant(t)
			second := s.Second(t)
			require.NoError(t, s.FS.Rename(s.ctx, s.path("file"), s.path("other"), core.RenameReplace))
			for _, fsys := range []core.FileSystem{s.FS, second} {
				requireMissing(t, s.ctx, fsys, s.path("file"))
				requireContent(t, s.ctx, fsys, s.path("other"), []byte("content of file"))
			}
			require.NoError(t, s.FS.Rename(s.ctx, s.path("other"), s.path("dir", "child"), core.RenameReplace))
			requireContent(t, s.ctx, second, s.path("dir", "child"), []byte("content of file"))
		}},
		{"RenameReplace of a file to itself does nothing", func(t testing.TB, s *subject) {
			s.plant(t)
			before := s.snapshot(t)
			require.NoError(t, s.FS.Rename(s.ctx, s.path("file"), s.path("file"), core.RenameReplace))
			require.Equal(t, before, s.snapshot(t))
		}},
		{"A failed Rename names the old path and mentions the new one", func(t testing.TB, s *subject) {
			s.plant(t)
			for _, names := range [][2]string{{"missing", "new"}, {"file", "dir"}, {"dir", "other"}} {
				err := s.FS.Rename(s.ctx, s.path(names[0]), s.path(names[1]), core.RenameReplace)
				requireError(t, err, s.path(names[0]))
				require.ErrorContains(t, err, s.path(names[1]))
			}
		}},
		{"A directory is moved below a sibling whose name it begins with", func(t testing.TB, s *subject) {
			s.mkdir(t, s.path("a"))
			s.mkdir(t, s.path("ab"))
			require.NoError(t, s.FS.Rename(s.ctx, s.path("a"), s.path("ab", "a"), s.dirMode()))
			info, err := s.FS.Stat(s.ctx, s.path("ab", "a"))
			require.NoError(t, err)
			require.True(t, info.IsDir())
		}},
		{"A name is free again after Rename", func(t testing.TB, s *subject) {
			for i := range 3 {
				s.write(t, s.path("temporary"), pattern(uint64(i), 100))
				require.NoError(t, s.FS.Rename(s.ctx, s.path("temporary"), s.path("final"), core.RenameReplace))
				requireContent(t, s.ctx, s.FS, s.path("final"), pattern(uint64(i), 100))
				requireMissing(t, s.ctx, s.FS, s.path("temporary"))
			}
		}},
	}
}

// requireRename makes a rename that must succeed or, where it is not declared, be refused without effect. It reports
// whether it was made.
func (s *subject) requireRename(t testing.TB, oldname, newname string, mode core.RenameMode, declared bool) bool {
	t.Helper()
	before := s.snapshot(t)
	err := s.FS.Rename(s.ctx, oldname, newname, mode)
	if declared {
		require.NoError(t, err)
		return true
	}
	requireError(t, err, oldname, errors.ErrUnsupported)
	require.Equal(t, before, s.snapshot(t), "a refused Rename had an effect")
	return false
}

func (s *subject) requireFileMoves(t testing.TB, mode core.RenameMode, declared bool) {
	t.Helper()
	s.plant(t)
	oldname := s.path("file")
	for _, newname := range []string{s.path("new"), s.path("dir", "sub", "moved")} {
		if !s.requireRename(t, oldname, newname, mode, declared) {
			return
		}
		for _, fsys := range []core.FileSystem{s.FS, s.Second(t)} {
			requireMissing(t, s.ctx, fsys, oldname)
			requireContent(t, s.ctx, fsys, newname, []byte("content of file"))
		}
		oldname = newname
	}
}

func (s *subject) requireDirMoves(t testing.TB, mode core.RenameMode, declared bool) {
	t.Helper()
	s.plant(t)
	oldname := s.path("dir")
	for _, newname := range []string{s.path("new"), s.path("empty", "moved")} {
		if !s.requireRename(t, oldname, newname, mode, declared) {
			return
		}
		for _, fsys := range []core.FileSystem{s.FS, s.Second(t)} {
			requireMissing(t, s.ctx, fsys, oldname)
			requireMissing(t, s.ctx, fsys, oldname+"/child")
			requireContent(t, s.ctx, fsys, newname+"/child", []byte("content of child"))
			names, err := list(s.ctx, fsys, newname)
			require.NoError(t, err)
			require.Equal(t, []string{"child", "sub"}, names)
		}
		_, err := readFile(s.ctx, s.FS, oldname+"/child")
		requireError(t, err, oldname+"/child", fs.ErrNotExist)
		oldname = newname
	}
}
