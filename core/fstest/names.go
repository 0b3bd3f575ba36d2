package fstest

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// naming is a method with one name, everything else about it being right.
type naming struct {
	method string
	call   func(ctx context.Context, s *subject, name string) error
	// source is the path of the error where it is not the name.
	source func(s *subject) string
}

func namings() []naming {
	return []naming{
		{method: "Create", call: func(ctx context.Context, s *subject, name string) error {
			w, err := s.FS.Create(ctx, name, core.CreateOptions{})
			if err == nil {
				_ = w.Abort() // the rule fails by the missing error
			}
			return err
		}},
		{method: "Open", call: func(ctx context.Context, s *subject, name string) error {
			r, err := s.FS.Open(ctx, name)
			if err == nil {
				_ = r.Close() // the rule fails by the missing error
			}
			return err
		}},
		{method: "Stat", call: func(ctx context.Context, s *subject, name string) error {
			_, err := s.FS.Stat(ctx, name)
			return err
		}},
		{method: "List", call: func(ctx context.Context, s *subject, name string) error {
			_, err := list(ctx, s.FS, name)
			return err
		}},
		{method: "MkdirAll", call: func(ctx context.Context, s *subject, name string) error {
			return s.FS.MkdirAll(ctx, name)
		}},
		{method: "Rename from", call: func(ctx context.Context, s *subject, name string) error {
			return s.FS.Rename(ctx, name, s.path("new"), core.RenameReplace)
		}},
		{
			method: "Rename to",
			call: func(ctx context.Context, s *subject, name string) error {
				return s.FS.Rename(ctx, s.path("file"), name, core.RenameReplace)
			},
			source: func(s *subject) string { return s.path("file") },
		},
		{method: "Remove", call: func(ctx context.Context, s *subject, name string) error {
			return s.FS.Remove(ctx, name)
		}},
		{method: "RemoveAll", call: func(ctx context.Context, s *subject, name string) error {
			return s.FS.RemoveAll(ctx, name)
		}},
	}
}

// badNames are names that every method must refuse. The parts of them that exist after plant are there to be found by a
// file system that forgives.
func badNames() []struct {
	what string
	name func(s *subject) string
} {
	below := func(suffix string) func(s *subject) string {
		return func(s *subject) string { return strings.TrimSuffix(s.Root, "/") + suffix }
	}
	return []struct {
		what string
		name func(s *subject) string
	}{
		{"An empty name", func(*subject) string { return "" }},
		{"A relative name", func(s *subject) string { return strings.TrimPrefix(s.path("file"), "/") }},
		{"A bare name", func(*subject) string { return "file" }},
		{"A name with a trailing slash", below("/empty/")},
		{"A name with an empty component", below("//empty")},
		{"A name with a dot component", below("/./empty")},
		{"A name that ends in a dot component", below("/empty/.")},
		{"A name with a dot-dot component", below("/dir/../empty")},
		{"A name that ends in a dot-dot component", below("/dir/sub/..")},
		{"A name with NUL", below("/fi\x00le")},
		{"A name with a colon", below("/fi:le")},
		{"A name with a component of 256 bytes", below("/" + strings.Repeat("x", 256))},
		{"A name with 256 bytes in fewer characters", below("/" + strings.Repeat("ü", 128))},
		{"A name below a component of 256 bytes", below("/" + strings.Repeat("x", 256) + "/file")},
	}
}

// goodNames are components that look special to some layer and must not be: to URLs, shells, globs, Unicode, sorting.
func goodNames() []string {
	return []string{
		"a b", " leading", "trailing ", "100%", "%41", "%2F", "%", "a+b", "a&b=c?d#e", "semi;colon", "tilde~", "~", "-rf",
		"*", "[a-z]?", "{a,b}", "$HOME", "`id`", "it's", `quo"te`, `back\slash`, "@", "!", "^", "|", "<in>", "_", "__",
		"...", "..a", "a..", ".hidden", "_metadata", "chk-0", "x.crc", "CON", "ünïcödé", "日本語", "Ελλάδα", "עברית", "emoji 😀",
		"\ufffd", "\u00a0", "\u200b", "tab\tbed", "new\nline",
		strings.Repeat("x", 255), strings.Repeat("ü", 127) + "x", strings.Repeat("😀", 63) + "xyz",
	}
}

func nameRules() []rule {
	var rules []rule
	for _, bad := range badNames() {
		rules = append(rules, rule{bad.what + " is ErrInvalid for every method", func(t testing.TB, s *subject) {
			s.plant(t)
			s.requireRefusedName(t, bad.name(s))
		}})
	}
	return append(rules,
		rule{"A name outside the base is ErrInvalid for every method", func(t testing.TB, s *subject) {
			if s.Base == "" {
				t.Skip("the base of the file system is not known")
			}
			s.plant(t)
			for _, name := range []string{path.Dir(s.Base), s.Base + "-sibling", "/elsewhere"} {
				s.requireRefusedName(t, name)
			}
		}},
		rule{"Any other name works for files and directories", checkGoodNames},
		rule{"Deep names work", func(t testing.TB, s *subject) {
			dir := s.path(strings.Split(strings.Repeat("level/", 40), "/")...)
			s.mkdir(t, dir)
			s.write(t, path.Join(dir, "file"), []byte("deep"))
			requireContent(t, s.ctx, s.FS, path.Join(dir, "file"), []byte("deep"))
		}},
	)
}

func (s *subject) requireRefusedName(t testing.TB, name string) {
	t.Helper()
	before := s.snapshot(t)
	for _, n := range namings() {
		want := name
		if n.source != nil {
			want = n.source(s)
		}
		err := n.call(s.ctx, s, name)
		require.NoError(t, checkError(err, want, fs.ErrInvalid), "%s %q", n.method, short(name))
		if n.source != nil {
			require.True(t, mentions(err, name), "%s: the new name is not in the text: %v", n.method, err)
		}
		require.Equal(t, before, s.snapshot(t), "%s %q had an effect", n.method, short(name))
	}
}

// mentions reports whether the text of err contains the name, as it is or quoted.
func mentions(err error, name string) bool {
	quoted := strconv.Quote(name)
	return strings.Contains(err.Error(), name) || strings.Contains(err.Error(), quoted[1:len(quoted)-1])
}

func checkGoodNames(t testing.TB, s *subject) {
	for _, kind := range []string{"file", "dir"} {
		s.mkdir(t, s.path(kind))
		var want []string
		for _, component := range goodNames() {
			name := s.path(kind, component)
			if kind == "file" {
				s.write(t, name, []byte(component))
			} else {
				s.mkdir(t, name)
				s.write(t, path.Join(name, component), []byte(component))
			}
			want = append(want, component)
			info, err := s.FS.Stat(s.ctx, name)
			require.NoError(t, err, "%q", component)
			require.Equal(t, component, info.Name)
		}
		got, err := list(s.ctx, s.FS, s.path(kind))
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
		for _, component := range want {
			name, moved := s.path(kind, component), s.path(component)
			mode := s.fileMode()
			if kind == "dir" {
				mode = s.dirMode()
			}
			require.NoError(t, s.FS.Rename(s.ctx, name, moved, mode), "%q", component)
			content := moved
			if kind == "dir" {
				content = path.Join(moved, component)
			}
			requireContent(t, s.ctx, s.FS, content, []byte(component))
			require.NoError(t, s.FS.RemoveAll(s.ctx, moved), "%q", component)
		}
		got, err = list(s.ctx, s.FS, s.path(kind))
		require.NoError(t, err)
		require.Empty(t, got)
	}
}
