package fstest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// refusal is a call that must fail and have no effect.
type refusal struct {
	name string
	// do makes the call and returns the path that its error must have.
	do func(s *subject) (string, error)
	// causes of which the error must be one.
	causes []error
	// needs says that the call is about a capability: without it the cause must be errors.ErrUnsupported.
	needs func(core.Capabilities) bool
}

// refusalRules are the rules of the form "this call fails for this cause". Each runs on a tree of the files "file" and
// "other", the empty directory "empty" and the directory "dir", which has the file "child" and the directory "sub".
func refusalRules() []rule {
	var rules []rule
	for _, list := range [][]refusal{
		createRefusals(), lookupRefusals(), renameFileRefusals(), renameDirRefusals(), renameReplaceRefusals(), removeRefusals(),
	} {
		for _, r := range list {
			rules = append(rules, rule{r.name, r.check})
		}
	}
	return rules
}

func (r refusal) check(t testing.TB, s *subject) {
	s.plant(t)
	before := s.snapshot(t)
	name, err := r.do(s)
	causes := r.causes
	if r.needs != nil && !r.needs(s.caps) {
		causes = []error{errors.ErrUnsupported}
	}
	requireError(t, err, name, causes...)
	require.Equal(t, before, s.snapshot(t), "a refused call had an effect")
}

// plant makes the tree that the refusals work on.
func (s *subject) plant(t testing.TB) {
	t.Helper()
	s.mkdir(t, s.path("dir", "sub"))
	s.mkdir(t, s.path("empty"))
	s.write(t, s.path("file"), []byte("content of file"))
	s.write(t, s.path("other"), []byte("content of the other file"))
	s.write(t, s.path("dir", "child"), []byte("content of child"))
}

func noReplaceFiles(c core.Capabilities) bool { return c.NoReplaceFiles }
func noReplaceDirs(c core.Capabilities) bool  { return c.NoReplaceDirs }

func (s *subject) tryCreate(name string, opts core.CreateOptions) error {
	w, err := s.FS.Create(s.ctx, name, opts)
	if err == nil {
		_ = w.Abort() // the rule fails by the missing error
	}
	return err
}

func (s *subject) tryOpen(name string) error {
	r, err := s.FS.Open(s.ctx, name)
	if err == nil {
		_ = r.Close() // the rule fails by the missing error
	}
	return err
}

func createRefusals() []refusal {
	create := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			name := s.path(parts...)
			return name, s.tryCreate(name, core.CreateOptions{})
		}
	}
	return []refusal{
		{name: "Create over a file is ErrExist", causes: []error{fs.ErrExist}, do: create("file")},
		{name: "Create over a directory is ErrExist", causes: []error{fs.ErrExist}, do: create("empty")},
		{name: "Create of the root directory is ErrExist", causes: []error{fs.ErrExist}, do: create()},
		{name: "Create without parent is ErrNotExist", causes: []error{fs.ErrNotExist}, do: create("missing", "file")},
		{name: "Create below a file is ErrInvalid", causes: []error{fs.ErrInvalid}, do: create("file", "below")},
	}
}

func lookupRefusals() []refusal {
	open := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			return s.path(parts...), s.tryOpen(s.path(parts...))
		}
	}
	stat := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			_, err := s.FS.Stat(s.ctx, s.path(parts...))
			return s.path(parts...), err
		}
	}
	listing := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			_, err := list(s.ctx, s.FS, s.path(parts...))
			return s.path(parts...), err
		}
	}
	mkdir := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			return s.path(parts...), s.FS.MkdirAll(s.ctx, s.path(parts...))
		}
	}
	// A name below a file does not exist, and it is also a file where a directory is needed: either may be said.
	belowFile := []error{fs.ErrNotExist, fs.ErrInvalid}
	return []refusal{
		{name: "Open of a missing file is ErrNotExist", causes: []error{fs.ErrNotExist}, do: open("missing")},
		{name: "Open without parent is ErrNotExist", causes: []error{fs.ErrNotExist}, do: open("missing", "file")},
		{name: "Open of a directory is ErrInvalid", causes: []error{fs.ErrInvalid}, do: open("dir")},
		{name: "Open below a file is refused", causes: belowFile, do: open("file", "below")},
		{name: "Stat of a missing file is ErrNotExist", causes: []error{fs.ErrNotExist}, do: stat("missing")},
		{name: "Stat without parent is ErrNotExist", causes: []error{fs.ErrNotExist}, do: stat("missing", "file")},
		{name: "Stat below a file is refused", causes: belowFile, do: stat("file", "below")},
		{name: "List of a missing directory is ErrNotExist", causes: []error{fs.ErrNotExist}, do: listing("missing")},
		{name: "List of a file is ErrInvalid", causes: []error{fs.ErrInvalid}, do: listing("file")},
		{name: "MkdirAll of a file is ErrInvalid", causes: []error{fs.ErrInvalid}, do: mkdir("file")},
		{name: "MkdirAll below a file is ErrInvalid", causes: []error{fs.ErrInvalid}, do: mkdir("file", "a", "b")},
	}
}

// renaming returns a call of Rename between two names below the root.
func renaming(oldname, newname string, mode core.RenameMode) func(s *subject) (string, error) {
	return func(s *subject) (string, error) {
		return s.path(oldname), s.FS.Rename(s.ctx, s.path(oldname), s.path(newname), mode)
	}
}

func renameFileRefusals() []refusal {
	const mode = core.RenameNoReplace
	exist, notExist, invalid := []error{fs.ErrExist}, []error{fs.ErrNotExist}, []error{fs.ErrInvalid}
	return []refusal{
		{
			name:   "RenameNoReplace of a missing file is ErrNotExist",
			causes: notExist, do: renaming("missing", "new", mode),
			needs: func(c core.Capabilities) bool { return c.NoReplaceFiles || c.NoReplaceDirs },
		},
		{
			name:   "RenameNoReplace of a file into a missing directory is ErrNotExist",
			causes: notExist, do: renaming("file", "missing/new", mode), needs: noReplaceFiles,
		},
		{
			name:   "RenameNoReplace of a file to below a file is ErrInvalid",
			causes: invalid, do: renaming("file", "other/new", mode), needs: noReplaceFiles,
		},
		{
			name:   "RenameNoReplace of a file over a file is ErrExist",
			causes: exist, do: renaming("file", "other", mode), needs: noReplaceFiles,
		},
		{
			name:   "RenameNoReplace of a file over an empty directory is ErrExist",
			causes: exist, do: renaming("file", "empty", mode), needs: noReplaceFiles,
		},
		{
			name:   "RenameNoReplace of a file over a directory is ErrExist",
			causes: exist, do: renaming("file", "dir", mode), needs: noReplaceFiles,
		},
		{
			name:   "RenameNoReplace of a file to itself is ErrExist",
			causes: exist, do: renaming("file", "file", mode), needs: noReplaceFiles,
		},
	}
}

func renameDirRefusals() []refusal {
	const mode = core.RenameNoReplace
	exist, notExist, invalid := []error{fs.ErrExist}, []error{fs.ErrNotExist}, []error{fs.ErrInvalid}
	return []refusal{
		{
			name:   "RenameNoReplace of a directory into a missing directory is ErrNotExist",
			causes: notExist, do: renaming("dir", "missing/new", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of a directory to below a file is ErrInvalid",
			causes: invalid, do: renaming("dir", "other/new", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of a directory over a file is ErrExist",
			causes: exist, do: renaming("dir", "other", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of a directory over an empty directory is ErrExist",
			causes: exist, do: renaming("dir", "empty", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of an empty directory over a full one is ErrExist",
			causes: exist, do: renaming("empty", "dir", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of a directory to itself is ErrExist",
			causes: exist, do: renaming("dir", "dir", mode), needs: noReplaceDirs,
		},
		{
			name:   "RenameNoReplace of a directory to below itself is ErrInvalid",
			causes: invalid, do: renaming("dir", "dir/sub/new", mode), needs: noReplaceDirs,
		},
	}
}

func renameReplaceRefusals() []refusal {
	const mode = core.RenameReplace
	exist, notExist, invalid := []error{fs.ErrExist}, []error{fs.ErrNotExist}, []error{fs.ErrInvalid}
	return []refusal{
		{name: "RenameReplace of a missing file is ErrNotExist", causes: notExist, do: renaming("missing", "other", mode)},
		{name: "RenameReplace of a missing file to itself is ErrNotExist", causes: notExist, do: renaming("missing", "missing", mode)},
		{name: "RenameReplace into a missing directory is ErrNotExist", causes: notExist, do: renaming("file", "missing/new", mode)},
		{name: "RenameReplace to below a file is ErrInvalid", causes: invalid, do: renaming("file", "other/new", mode)},
		{name: "RenameReplace of a file over an empty directory is ErrExist", causes: exist, do: renaming("file", "empty", mode)},
		{name: "RenameReplace of a file over a directory is ErrExist", causes: exist, do: renaming("file", "dir", mode)},
		{name: "RenameReplace of a directory over a file is ErrExist", causes: exist, do: renaming("dir", "other", mode)},
		{name: "RenameReplace of a directory over an empty directory is ErrExist", causes: exist, do: renaming("dir", "empty", mode)},
		{name: "RenameReplace of an empty directory over a full one is ErrExist", causes: exist, do: renaming("empty", "dir", mode)},
		{name: "RenameReplace of a directory to itself is ErrExist", causes: exist, do: renaming("dir", "dir", mode)},
		{name: "RenameReplace of a directory to below itself is ErrInvalid", causes: invalid, do: renaming("dir", "dir/sub/new", mode)},
		{name: "Rename with an unknown mode is ErrInvalid", causes: invalid, do: renaming("file", "new", core.RenameReplace+1)},
	}
}

func removeRefusals() []refusal {
	remove := func(parts ...string) func(s *subject) (string, error) {
		return func(s *subject) (string, error) {
			return s.path(parts...), s.FS.Remove(s.ctx, s.path(parts...))
		}
	}
	return []refusal{
		{name: "Remove of a missing file is ErrNotExist", causes: []error{fs.ErrNotExist}, do: remove("missing")},
		{name: "Remove without parent is ErrNotExist", causes: []error{fs.ErrNotExist}, do: remove("missing", "file")},
		{name: "Remove below a file is refused", causes: []error{fs.ErrNotExist, fs.ErrInvalid}, do: remove("file", "below")},
		{name: "Remove of a directory that is not empty is ErrExist", causes: []error{fs.ErrExist}, do: remove("dir")},
	}
}
