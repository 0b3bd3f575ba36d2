package sparkckpt_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// copyGolden copies a checkpoint to a directory on the local disk.
func copyGolden(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(dir, "q")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenDir, "generated", name, "checkpoint"))))
	return dir
}

// logProblems are those of opening a checkpoint and of reading its logs, with the paths below it.
func logProblems(t *testing.T, fsys core.FileSystem, dir string) map[string]error {
	t.Helper()
	c, err := sparkckpt.Open(t.Context(), fsys, dir)
	require.NoError(t, err)
	more, err := c.CheckLogs(t.Context())
	require.NoError(t, err)
	found := map[string]error{}
	for _, problem := range append(c.Problems, more...) {
		require.True(t, isFormatError(problem), "%v", problem)
		var at *fs.PathError
		require.ErrorAs(t, problem, &at)
		name := strings.TrimPrefix(strings.TrimPrefix(at.Path, dir), "/")
		require.NoError(t, found[name], "%s is reported once: %v", name, problem)
		found[name] = problem
	}
	return found
}

func TestLogsThatSparkWroteAreWhole(t *testing.T) {
	fsys := localFS(t)
	read := 0
	for _, root := range goldenRoots() {
		for _, c := range readTSV(t, filepath.Join(root, "MANIFEST.tsv")) {
			dir := filepath.Join(root, c["set"], c["name"], "checkpoint")
			if _, err := os.Stat(filepath.Join(dir, "state")); err != nil || c["name"] == "checkpoint-test-offsetId-commitId-inconsistent" {
				continue
			}
			require.Empty(t, logProblems(t, fsys, dir), c["name"])
			read++
		}
	}
	require.Greater(t, read, 30)
}

func TestDamagedOrContradictoryLogsAreNoticed(t *testing.T) {
	const damaged, missing = false, true
	put := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	edit := func(name string, change func(string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			changed := change(string(text))
			require.NotEqual(t, string(text), changed)
			put(name, changed)(t, dir)
		}
	}
	add := func(name, junk string) func(*testing.T, string) {
		return edit(name, func(text string) string { return text + junk })
	}
	swap := func(name, from, to string) func(*testing.T, string) {
		return edit(name, func(text string) string { return strings.Replace(text, from, to, 1) })
	}
	gone := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
	}
	instead := func(name string, make func(string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			require.NoError(t, make(filepath.Join(dir, name)))
		}
	}
	directory := func(name string) error { return os.Mkdir(name, 0o755) }
	pipe := func(name string) error { return syscall.Mkfifo(name, 0o644) }
	link := func(name string) error { return os.Symlink("3", name) }
	type damage struct {
		do      func(*testing.T, string)
		at      string
		missing bool
	}
	cases := map[string]damage{
		"an entry behind a gap":            {put("commits/9", "v1\n{}"), "commits/5", missing},
		"a commit that was not begun":      {gone("offsets/4"), "offsets/4", missing},
		"an offset log that is empty":      {gone("offsets/0", "offsets/1", "offsets/2", "offsets/3", "offsets/4"), "offsets/4", missing},
		"an offset log that is gone":       {gone("offsets"), "offsets/4", missing},
		"a batch in the middle is gone":    {gone("offsets/2"), "offsets/2", missing},
		"a commit in the middle is gone":   {gone("commits/2"), "commits/2", missing},
		"two commits at the end are gone":  {gone("commits/3", "commits/4"), "commits/3", missing},
		"a commit log that is gone":        {gone("commits"), "commits/3", missing},
		"a batch id without a version":     {put("commits/9223372036854775807", "v1\n{}"), "commits/9223372036854775807", damaged},
		"a number as Spark does not write": {put("commits/04", "v1\n{}"), "commits/04", damaged},
		"a log that is a file":             {instead("commits", func(name string) error { return os.WriteFile(name, nil, 0o644) }), "commits", damaged},
		"metadata that is a directory":     {instead("metadata", directory), "metadata", damaged},
		"metadata that is a pipe":          {instead("metadata", pipe), "metadata", damaged},
		"another codec than before":        {swap("offsets/4", `codec":"snappy"`, `codec":"lz4"`), "offsets/4", damaged},
		"a flipped bit in a pinned key":    {swap("offsets/4", "compression.codec", "compressioo.codec"), "offsets/4", damaged},
		"a flipped bit in a boolean":       {swap("offsets/4", `enabled":"true"`, `enabled":"trud"`), "offsets/4", damaged},
		"a number of partitions":           {swap("offsets/2", `partitions":"2"`, `partitions":"r"`), "offsets/2", damaged},
		"a flipped bit in the case":        {swap("offsets/2", "batchTimestampMs", "batchtimestampMs"), "offsets/2", damaged},
		"a flipped bit that is no UTF-8":   {swap("offsets/2", "stateStore", "st\xe1teStore"), "offsets/2", damaged},
		"an offset that is none":           {swap("offsets/2", "\n{", "\n{{"), "offsets/2", damaged},
		"one source more":                  {add("offsets/4", "\njunk"), "offsets/4", damaged},
		"a commit with an unknown field":   {swap("commits/2", "next", "nexu"), "commits/2", damaged},
		"a commit that is null":            {put("commits/2", "v1\nnull"), "commits/2", damaged},
		"sources that are cut off":         {edit("offsets/4", func(s string) string { return s[:strings.LastIndex(s, "}\n")+1] }), "offsets/4", damaged},
	}
	for _, batch := range []string{"2", "4"} {
		for _, log := range []string{"commits", "offsets"} {
			name := path.Join(log, batch)
			for what, do := range map[string]func(*testing.T, string){
				"empty": put(name, ""), "cut": put(name, "v1\n"), "of a later version": put(name, "v99\n{}"), "with junk": add(name, "junk"),
				"a directory": instead(name, directory), "a pipe": instead(name, pipe), "a link": instead(name, link), "zeros": put(name, "\x00\x00\x00\x00"),
			} {
				cases[name+" is "+what] = damage{do, name, damaged}
			}
		}
	}
	fsys := localFS(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := copyGolden(t, "query-agg-types-hdfs-snappy-sum")
			require.Empty(t, logProblems(t, fsys, dir))
			c.do(t, dir)
			found := logProblems(t, fsys, dir)
			require.Contains(t, found, c.at)
			require.Equal(t, c.missing, errors.Is(found[c.at], fs.ErrNotExist), "%v", found)
			require.NotContains(t, found[c.at].Error(), "-9223372036854775808")
		})
	}
}

func TestWatermarksThatGoBackAreNoticed(t *testing.T) {
	fsys := localFS(t)
	for name, want := range map[string]string{"offsets/4": "offsets/4", "commits/3": "commits/3"} {
		dir := copyGolden(t, "query-join-inner-hdfs-lz4")
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "WatermarkMs\":17")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(text), "WatermarkMs\":17", "WatermarkMs\":13", 1)), 0o644))
		require.Contains(t, logProblems(t, fsys, dir), want)
	}
}

func TestPartitionsAndOperatorsThatAreGoneAreMissed(t *testing.T) {
	fsys := localFS(t)
	for name, c := range map[string]struct {
		golden  string
		gone    []string
		missing int
	}{
		"nothing":                      {"query-agg-types-hdfs-snappy-sum", nil, 0},
		"all partitions but 0":         {"query-agg-types-hdfs-snappy-sum", []string{"state/0/1"}, 1},
		"partition 0":                  {"query-agg-types-hdfs-snappy-sum", []string{"state/0/0"}, 1},
		"all partitions":               {"query-agg-types-hdfs-snappy-sum", []string{"state/0/0", "state/0/1"}, 2},
		"partitions of all stores":     {"query-join-inner-hdfs-lz4", []string{"state/0/1"}, 4},
		"a partition and the metadata": {"query-agg-types-hdfs-snappy-sum", []string{"state/0/1", "state/0/_metadata"}, 1},
		"partition 0 and the metadata": {"query-agg-types-hdfs-snappy-sum", []string{"state/0/0", "state/0/_metadata"}, 1},
		"nothing of a limit":           {"query-limit-hdfs-lz4", nil, 0},
		"a limit's metadata":           {"query-limit-hdfs-lz4", []string{"state/0/_metadata"}, 0},
		"a partition in the first batch": {"query-agg-types-hdfs-snappy-sum", []string{
			"state/0/1", "commits", "offsets/1", "offsets/2", "offsets/3", "offsets/4",
		}, 0},
		"a limit's only partition":           {"query-limit-hdfs-lz4", []string{"state/0/0"}, 1},
		"the first operator":                 {"query-chain-hdfs-lz4", []string{"state/0"}, -1},
		"all operators of committed batches": {"query-agg-types-hdfs-snappy-sum", []string{"state/0"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyGolden(t, c.golden)
			for _, gone := range c.gone {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, gone)))
			}
			ckpt, err := sparkckpt.Open(t.Context(), fsys, dir)
			require.NoError(t, err)
			operators, problems, err := ckpt.Operators(t.Context())
			require.NoError(t, err)
			if c.missing < 0 {
				require.Len(t, problems, 1)
				require.ErrorIs(t, problems[0], fs.ErrNotExist)
				require.ErrorIs(t, problems[0], core.ErrCorrupt)
				return
			}
			require.Empty(t, problems)
			_, missing, err := ckpt.StoreIDs(t.Context(), operators[0])
			require.NoError(t, err)
			require.Len(t, missing, c.missing)
		})
	}
}

func TestAChangelogThatIsGoneBelowASnapshotOfRocksDBLeavesATrace(t *testing.T) {
	fsys := golden(t, "generated", "rocksdb-zstd-changelog-v2-zip")
	remove(t, fsys, "/ckpt/state/0/0/3.changelog")
	v, found := verify(t, fsys)
	require.Equal(t, []int64{1, 2, 4, 5, 6, 7}, v.Loadable)
	require.Len(t, found, 1)
	require.Equal(t, sparkckpt.FileMissing, found[0].kind)
	require.Equal(t, sparkckpt.Warning, found[0].severity)
	require.Equal(t, "3.changelog", found[0].name)
}

func TestAnAggregationWithoutKeysHasOnePartition(t *testing.T) {
	fsys := localFS(t)
	dir := copyGolden(t, "query-agg-types-hdfs-snappy-sum")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "state/0/1")))
	one := "\x00\x00\x00\x01"
	schema := javaUTF("v2") + one + javaUTF(`{"type":"struct","fields":[]}`) + one + javaUTF(`{"type":"struct","fields":[]}`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state/0/0/_metadata/schema"), []byte(schema), 0o644))
	ckpt, err := sparkckpt.Open(t.Context(), fsys, dir)
	require.NoError(t, err)
	operators, _, err := ckpt.Operators(t.Context())
	require.NoError(t, err)
	found, missing, err := ckpt.StoreIDs(t.Context(), operators[0])
	require.NoError(t, err)
	require.Equal(t, []statestore.StoreID{{Name: "default"}}, found)
	require.Empty(t, missing)
}
