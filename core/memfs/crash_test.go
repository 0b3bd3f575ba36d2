package memfs_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// script drives a file system and fails the test on an error.
type script struct {
	*memfs.FS
	t   testing.TB
	ctx context.Context // of the test
}

func newScript(t testing.TB) script {
	t.Helper()
	return script{memfs.New(memfs.Options{}), t, t.Context()}
}

func (s script) create(name, content string, d core.Durability) core.Writer {
	s.t.Helper()
	w, err := s.Create(s.ctx, name, core.CreateOptions{Durability: d})
	require.NoError(s.t, err)
	_, err = io.WriteString(w, content)
	require.NoError(s.t, err)
	return w
}

func (s script) write(name, content string, d core.Durability) {
	s.t.Helper()
	require.NoError(s.t, s.create(name, content, d).Close())
}

func (s script) mkdir(dir string) {
	s.t.Helper()
	require.NoError(s.t, s.MkdirAll(s.ctx, dir))
}

func (s script) rename(oldname, newname string, mode core.RenameMode) {
	s.t.Helper()
	require.NoError(s.t, s.Rename(s.ctx, oldname, newname, mode))
}

func (s script) removeAll(name string) {
	s.t.Helper()
	require.NoError(s.t, s.RemoveAll(s.ctx, name))
}

func read(t testing.TB, f *memfs.FS, name string) string {
	t.Helper()
	r, err := f.Open(t.Context(), name)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(data)
}

// contents is Tree with what is in the files.
func contents(t testing.TB, f *memfs.FS) []string {
	t.Helper()
	lines := f.Tree()
	for i, line := range lines {
		if name, _, isFile := strings.Cut(line, " "); isFile {
			lines[i] = name + "=" + read(t, f, name)
		}
	}
	return lines
}

func TestACrashTakesExactlyWhatIsNotDurable(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s script)
		want []string
	}{
		{"a closed file stays", func(s script) { s.write("/a", "abc", core.Synced) }, []string{"/a=abc"}},
		{"a file that is written goes", func(s script) { s.create("/a", "abc", core.Synced) }, nil},
		{"an unsynced file goes", func(s script) { s.write("/a", "abc", core.Unsynced) }, nil},
		{"Sync keeps what was written before it", func(s script) {
			w := s.create("/a", "abc", core.Synced)
			require.NoError(s.t, w.Sync())
			_, err := io.WriteString(w, "def")
			require.NoError(s.t, err)
		}, []string{"/a=abc"}},
		{"Sync of an unsynced file keeps nothing", func(s script) {
			require.NoError(s.t, s.create("/a", "abc", core.Unsynced).Sync())
		}, nil},
		{"an entry becomes durable with another of its directory, the bytes do not", func(s script) {
			s.write("/a", "abc", core.Unsynced)
			s.write("/b", "def", core.Synced)
		}, []string{"/a=", "/b=def"}},
		{"a durable entry in one directory does nothing for another", func(s script) {
			s.mkdir("/x")
			s.write("/x/a", "abc", core.Unsynced)
			s.write("/b", "def", core.Synced)
		}, []string{"/b=def", "/x/"}},
		{"a removed file is back", func(s script) {
			s.write("/a", "abc", core.Synced)
			require.NoError(s.t, s.Remove(s.ctx, "/a"))
		}, []string{"/a=abc"}},
		{"a removal becomes durable with another change of its directory", func(s script) {
			s.write("/a", "abc", core.Synced)
			require.NoError(s.t, s.Remove(s.ctx, "/a"))
			s.mkdir("/x")
		}, []string{"/x/"}},
		{"a removed tree is back", func(s script) {
			s.mkdir("/x/y")
			s.write("/x/y/a", "abc", core.Synced)
			s.removeAll("/x")
		}, []string{"/x/", "/x/y/", "/x/y/a=abc"}},
		{"an aborted file is gone", func(s script) { require.NoError(s.t, s.create("/a", "abc", core.Synced).Abort()) }, nil},
		{"an aborted file that was synced is back", func(s script) {
			w := s.create("/a", "abc", core.Synced)
			require.NoError(s.t, w.Sync())
			require.NoError(s.t, w.Abort())
		}, []string{"/a=abc"}},
		{"a file that was made again after a removal is the new one", func(s script) {
			s.write("/a", "old", core.Synced)
			s.removeAll("/a")
			s.write("/a", "new", core.Synced)
		}, []string{"/a=new"}},
		{"a file that is being made again is the old one", func(s script) {
			s.write("/a", "old", core.Synced)
			s.removeAll("/a")
			s.create("/a", "new", core.Synced)
		}, []string{"/a=old"}},
		{"made directories stay", func(s script) { s.mkdir("/x/y/z") }, []string{"/x/", "/x/y/", "/x/y/z/"}},
		{"a renamed file stays under its new name", func(s script) {
			s.mkdir("/x")
			s.write("/a", "abc", core.Synced)
			s.rename("/a", "/x/b", core.RenameNoReplace)
		}, []string{"/x/", "/x/b=abc"}},
		{"Rename does not sync the bytes", func(s script) {
			s.write("/a", "abc", core.Unsynced)
			s.rename("/a", "/b", core.RenameNoReplace)
		}, []string{"/b="}},
		{"Rename syncs the rest of both directories", func(s script) {
			s.mkdir("/x")
			s.mkdir("/y")
			s.write("/x/a", "abc", core.Synced)
			s.write("/x/old", "1", core.Unsynced)
			s.write("/y/old", "2", core.Unsynced)
			s.write("/other", "3", core.Unsynced)
			s.rename("/x/a", "/y/a", core.RenameNoReplace)
		}, []string{"/x/", "/x/old=", "/y/", "/y/a=abc", "/y/old="}},
		{"a replaced file is the new one", func(s script) {
			s.write("/a", "old", core.Synced)
			s.write("/b", "new", core.Synced)
			s.rename("/b", "/a", core.RenameReplace)
		}, []string{"/a=new"}},
		{"Close in a directory that was moved meanwhile", func(s script) {
			s.mkdir("/x")
			w := s.create("/x/a", "abc", core.Synced)
			s.rename("/x", "/y", core.RenameNoReplace)
			require.NoError(s.t, w.Close())
		}, []string{"/y/", "/y/a=abc"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			test.do(s)
			require.ElementsMatch(t, test.want, contents(t, s.CrashClone(memfs.CrashConfig{})))
			require.Equal(t, contents(t, s.FS), contents(t, s.CrashClone(memfs.CrashConfig{UnsyncedPercent: 100})))
		})
	}
}

func TestEveryStepShowsItsOwnCrash(t *testing.T) {
	steps := func(t *testing.T, prepare, do func(s script)) []string {
		s := newScript(t)
		prepare(s)
		var got []string
		s.OnMutation(func(m memfs.Mutation) {
			got = append(got, fmt.Sprintf("%s, %s: %v", m.Op, m.Step, contents(t, s.CrashClone(memfs.CrashConfig{}))))
		})
		do(s)
		return got
	}
	nothing := func(script) {}
	for _, test := range []struct {
		name        string
		prepare, do func(s script)
		want        []string
	}{
		{"Create and Close", nothing, func(s script) { s.write("/a", "abc", core.Synced) }, []string{
			"create, applied: []", "write, applied: []", "close, data durable: []", "close, entry durable: [/a=abc]",
		}},
		{"Create and Close of an unsynced file", nothing, func(s script) { s.write("/a", "abc", core.Unsynced) }, []string{
			"create, applied: []", "write, applied: []", "close, applied: []",
		}},
		{"Sync and Abort", nothing, func(s script) {
			w := s.create("/a", "abc", core.Synced)
			require.NoError(s.t, w.Sync())
			require.NoError(s.t, w.Abort())
		}, []string{
			"create, applied: []", "write, applied: []", "sync, data durable: []", "sync, entry durable: [/a=abc]",
			"abort, applied: [/a=abc]",
		}},
		{"MkdirAll", nothing, func(s script) { s.mkdir("/x/y") }, []string{
			"mkdir, applied: []", "mkdir, entry durable: [/x/]",
			"mkdir, applied: [/x/]", "mkdir, entry durable: [/x/ /x/y/]",
		}},
		{"Rename", func(s script) {
			s.write("/a", "new", core.Synced)
			s.write("/b", "old", core.Synced)
		}, func(s script) { s.rename("/a", "/b", core.RenameReplace) }, []string{
			"rename, applied: [/a=new /b=old]", "rename, entry durable: [/b=new]",
		}},
		{"RemoveAll", func(s script) {
			s.mkdir("/x")
			s.write("/x/a", "1", core.Synced)
		}, func(s script) { s.removeAll("/x") }, []string{
			"remove, applied: [/x/ /x/a=1]", "remove, applied: [/x/ /x/a=1]",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, steps(t, test.prepare, test.do))
		})
	}
}

func TestMutationsAreNumberedFromZero(t *testing.T) {
	s := newScript(t)
	var seen []string
	s.OnMutation(func(m memfs.Mutation) {
		require.Equal(t, len(seen), m.Number)
		require.Equal(t, m.Number+1, s.Mutations(), "the hook runs outside of the locks")
		seen = append(seen, m.String())
	})
	s.write("/a", "x", core.Unsynced)
	s.rename("/a", "/b", core.RenameNoReplace)
	require.Equal(t, []string{
		"#0 create /a: applied", "#1 write /a: applied", "#2 close /a: applied",
		"#3 rename /a to /b: applied", "#4 rename /a to /b: entry durable",
	}, seen)
	s.OnMutation(nil)
	s.removeAll("/b")
	require.Len(t, seen, 5)
	require.Equal(t, 6, s.Mutations())
}

func TestAPercentageOfUnsyncedDataSurvives(t *testing.T) {
	const runs = 300
	s := newScript(t)
	s.write("/removed", "r", core.Synced)
	s.write("/old", "moved", core.Synced)
	content := strings.Repeat("x", 100)
	w := s.create("/file", content[:40], core.Synced)
	require.NoError(t, w.Sync())
	_, err := io.WriteString(w, content[40:])
	require.NoError(t, err)
	s.create("/created", content, core.Synced)
	s.removeAll("/removed")

	count := map[string]int{}
	for seed := range uint64(runs) {
		clone := func() *memfs.FS {
			return s.CrashClone(memfs.CrashConfig{UnsyncedPercent: 50, Rand: rand.New(rand.NewPCG(seed, 0))})
		}
		crashed := clone()
		require.Equal(t, contents(t, crashed), contents(t, clone()), "seed %d", seed)
		got := read(t, crashed, "/file")
		require.Equal(t, content[:40], got[:40], "what was synced, seed %d", seed)
		rest := strings.TrimRight(got[40:], "\x00")
		require.True(t, strings.HasPrefix(content[40:], rest), "seed %d: %q", seed, rest)
		switch {
		case len(got) == 40:
			count["nothing"]++
		case len(rest) < len(got)-40:
			count["torn"]++
		default:
			count["prefix"]++
		}
		for _, name := range []string{"/created", "/removed"} {
			if _, err := crashed.Stat(t.Context(), name); err == nil {
				count[name]++
			}
		}
	}
	t.Logf("%v", count)
	for _, kind := range []string{"nothing", "torn", "prefix", "/created", "/removed"} {
		require.Greater(t, count[kind], runs/20, "%s: %v", kind, count)
		require.Less(t, count[kind], runs*19/20, "%s: %v", kind, count)
	}
}

func TestACloneIsIndependent(t *testing.T) {
	s := newScript(t)
	s.write("/a", "abc", core.Synced)
	w := s.create("/b", "open", core.Synced)
	require.NoError(t, w.Sync())
	crashed := script{s.CrashClone(memfs.CrashConfig{}), t, t.Context()}
	require.Empty(t, crashed.OpenFiles())
	require.Zero(t, crashed.Mutations())
	_, err := io.WriteString(w, " and more")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	s.write("/c", "new", core.Synced)
	crashed.rename("/a", "/moved", core.RenameNoReplace)
	crashed.write("/d", "of the clone", core.Synced)
	require.Equal(t, []string{"/a=abc", "/b=open and more", "/c=new"}, contents(t, s.FS))
	require.Equal(t, []string{"/b=open", "/d=of the clone", "/moved=abc"}, contents(t, crashed.FS))
	require.Equal(t, contents(t, crashed.FS), contents(t, crashed.CrashClone(memfs.CrashConfig{})))
}
