package cli

import (
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/statestore/storetest"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// upload copies a directory to a file system.
func upload(t *testing.T, from string, fsys core.FileSystem, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rest, err := filepath.Rel(from, file)
		require.NoError(t, err)
		name := path.Join(to, filepath.ToSlash(rest))
		require.NoError(t, fsys.MkdirAll(t.Context(), path.Dir(name)))
		w, err := fsys.Create(t.Context(), name, core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write(must(os.ReadFile(file)))
		require.NoError(t, err)
		return w.Close()
	}))
}

func TestTheVerbsOfStateWorkOnARealHDFS(t *testing.T) {
	c := testenv.Require(t, testenv.Options{DataNodes: 1})
	r := newRig(t)
	local := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	url := "hdfs://" + c.NameNode() + c.TempDir(t) + "/query"
	fsys, name, err := fsurl.Open(t.Context(), url, fsurl.Options{HDFS: hdfsfs.Options{ConfDir: c.ConfDir(), User: "alice"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	upload(t, local, fsys, name)

	r.adjust = func(p *Program) { p.Connect = connect }
	state := func(dir, verb string, args ...string) result {
		flags := []string{"--conf-dir", c.ConfDir(), "--user", "alice", "--partition", "1", "--store", joinStore}
		return r.run(append(append([]string{"state", verb, dir}, flags...), args...)...)
	}
	want := []string{state(local, "dump", "--raw", "--version", "6").stdout, state(local, "dump", "--raw", "--version", "7").stdout}
	require.NotEmpty(t, want[1])
	compare := func() {
		t.Helper()
		for i, version := range []string{"6", "7"} {
			got := state(url, "dump", "--raw", "--version", version)
			require.Equal(t, 0, got.code, got.stderr)
			require.Equal(t, want[i], got.stdout)
		}
	}
	compare()
	require.Equal(t, 0, state(url, "verify").code)
	r.adjust = func(p *Program) { p.Connect, p.Now = connect, time.Now }
	got := state(url, "compact", "--retain", "2", "--yes")
	require.Equal(t, 1, got.code, "it was uploaded just now")
	require.Contains(t, got.stderr, "a query may be running")
	got = state(url, "compact", "--retain", "2", "--yes", "--offline")
	require.Equal(t, 0, got.code, got.stderr)
	compare()
	require.NoError(t, fsys.Remove(t.Context(), path.Join(name, "state", "0", "1", joinStore, "7.delta")))
	compare()
	got = state(url, "rollback", "--version", "6", "--below-commit", "--yes", "--offline")
	require.Equal(t, 0, got.code, got.stderr)
	require.NotEqual(t, 0, state(url, "dump", "--raw", "--version", "7").code)
}

// Beside the verbs, the store that they work with: its promises, on the file system that URLs of HDFS open.
func TestTheStateStoreKeepsItsPromisesOnARealHDFS(t *testing.T) {
	c := testenv.Require(t, testenv.Options{DataNodes: 1})
	storetest.Run(t, storetest.Config{Rounds: 3, New: func(t testing.TB) storetest.Instance {
		root := c.TempDir(t)
		open := func() fsurl.FileSystem {
			fsys, _, err := fsurl.Open(t.Context(), "hdfs://"+c.NameNode()+root, fsurl.Options{HDFS: hdfsfs.Options{ConfDir: c.ConfDir(), User: "alice"}})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, fsys.Close()) })
			return fsys
		}
		return storetest.Instance{FS: open(), Second: open(), Root: root}
	}})
}
