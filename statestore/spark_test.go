package statestore_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// A store is passed to and fro between this package and Spark, in one directory. What the store makes there beside
// versions must not disturb Spark: an owner's directory, a quarantine. Spark's own maintenance must go on, which an odd name
// would end in silence.
func TestSparkAndAStoreGoOnInOneDirectory(t *testing.T) {
	for _, version := range []string{"3.5.7", "4.1.3", testenv.SparkVersion} {
		t.Run(version, func(t *testing.T) {
			spark := testenv.RequireSpark(t, version, testenv.EngineSettings{})
			for _, compression := range []codec.Compression{codec.LZ4, codec.Zstd} {
				passToAndFro(t, spark, compression)
			}
		})
	}
}

func passToAndFro(t *testing.T, spark *testenv.Engine, compression codec.Compression) {
	t.Helper()
	root := t.TempDir()
	fsys, err := localfs.Open(root, localfs.Options{UnsafeNoFsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	dir := root + "/0/0"
	open := func() *statestore.Store {
		s, err := statestore.Open(t.Context(), fsys, dir, statestore.Options{
			Compression: compression, Snapshots: statestore.SnapshotPolicy{MinDeltas: 4}, Cleanup: statestore.CleanupPolicy{Retain: 3},
		})
		require.NoError(t, err)
		return s
	}
	name := filepath.Base(root)
	asked := func(verb string, args ...string) string {
		return string(spark.Call(t, verb, append([]string{name}, args...)...))
	}
	openSpark := func() {
		asked("open", "file://"+root, "0", "0", "default", "stateStore.compression.codec="+compression.String(), "stateStore.minDeltasForSnapshot=1")
	}

	// Ours: commits, a snapshot, a repair, a clean-up.
	s := open()
	states := []state{{}}
	for v := range int64(8) {
		next := states[v].with(fmt.Sprintf("%08d", v), "12345678", "common--", fmt.Sprintf("%016d", v))
		commit(t, s, v, next)
		states = append(states, next)
	}
	require.NoError(t, s.Snapshot(t.Context(), 5))
	damage(t, fsys, dir+"/5.snapshot")
	repaired, err := s.Repair(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{5}, repaired)
	require.NoError(t, s.Maintain(t.Context()))
	require.NoError(t, s.Close())
	openSpark()
	for v := 5; v <= 8; v++ {
		require.Equal(t, hexDump(states[v]), asked("dump", fmt.Sprint(v)))
	}

	// Spark's: commits and maintenance.
	for v := 8; v < 14; v++ {
		next := states[v].with("by Spark", fmt.Sprintf("%08d", v))
		require.Equal(t, fmt.Sprint(v+1), asked("apply", fmt.Sprint(v), fmt.Sprintf("put %x %x", "by Spark", next["by Spark"])))
		states = append(states, next)
		asked("maintain")
	}
	asked("close")
	for _, v := range []int64{9, 11, 13} { // each second version, by its setting
		require.FileExists(t, filepath.Join(dir, statestore.FileName(v, codec.Snapshot)), "Spark's maintenance goes on")
	}
	require.DirExists(t, filepath.Join(dir, "_quarantine"))

	// Ours again: what Spark wrote, a repetition, a rollback, another branch.
	s = open()
	for v := 9; v <= 14; v++ {
		require.Equal(t, states[v], load(t, s, int64(v)))
	}
	require.NoError(t, tryCommit(t, s, 13, states[14]))
	require.NoError(t, s.Rollback(t.Context(), 12))
	branch := states[12].with("branch--", "87654321")
	commit(t, s, 12, branch)
	require.NoError(t, s.Maintain(t.Context()))
	require.NoError(t, s.Close())
	openSpark()
	require.Equal(t, hexDump(branch), asked("dump", "13"))
	require.Equal(t, "14", asked("apply", "13", fmt.Sprintf("del %x", "branch--")))
	asked("close")
	require.Equal(t, states[12], load(t, open(), 14))
	requireNoTemporaries(t, fsys, dir)
}

// requireNoTemporaries: Spark leaves hidden checksum files on local disk, and nothing else is there but what has its place.
func requireNoTemporaries(t *testing.T, fsys core.FileSystem, dir string) {
	t.Helper()
	for _, name := range names(t, fsys, dir) {
		_, _, isVersion := statestore.ParseFileName(name)
		_, isCompanion := statestore.ParseCompanionName(name)
		_, isEpoch := statestore.ParseEpochName(name)
		require.True(t, isVersion || isCompanion || isEpoch || name == "_quarantine", name)
	}
}

func hexDump(s state) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%x %x\n", k, s[k])
	}
	return b.String()
}
