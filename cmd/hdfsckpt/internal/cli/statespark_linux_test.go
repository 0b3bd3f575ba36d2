package cli

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// sparkQuery is a streaming query that the real Spark runs, one file of input (for a join one of each side) a batch.
type sparkQuery struct {
	*rig
	spark     *testenv.Engine
	kind, dir string
	files     int
}

// feed adds files of input, the same for the same numbers. Keys come again in later files, some not at all, and time goes
// on, so that the states of all kinds of queries change, grow and (where there is a watermark) shrink.
func (q *sparkQuery) feed(files int) {
	q.t.Helper()
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for range files {
		i := q.files
		at := start.Add(time.Duration(5*i) * time.Second)
		row := func(key string, n int, late time.Duration) string {
			return fmt.Sprintf(`{"key":%q,"n":%d,"ts":%q}`+"\n", key, n, at.Add(late).Format(time.RFC3339))
		}
		own, before := fmt.Sprint("k", i), fmt.Sprint("k", max(i-1, 0))
		q.input("left", row("a", i, 0)+row("a", 1, 0)+row(own, i, 0)+row(before, max(i-1, 0), 0))
		if q.kind == "join" {
			q.input("right", row("a", 100+i, time.Second)+row(before, 100, 0))
		}
		q.files++
	}
}

func (q *sparkQuery) input(side, rows string) {
	q.t.Helper()
	name := filepath.Join(q.dir, side, fmt.Sprint(q.files, ".json"))
	require.NoError(q.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(q.t, os.WriteFile(name, []byte(rows), 0o600))
	at := time.Unix(1_700_000_000+int64(q.files), 0) // Spark takes the oldest first
	require.NoError(q.t, os.Chtimes(name, at, at))
}

// runSpark lets Spark process what is there: one batch a file, wherever it is stopped in between.
func (q *sparkQuery) runSpark() {
	q.t.Helper()
	q.spark.Call(q.t, "query", q.kind, q.dir, "noDataMicroBatches.enabled=false")
	require.Equal(q.t, int64(q.files-1), q.newestBatch())
}

func (q *sparkQuery) checkpoint() string { return filepath.Join(q.dir, "checkpoint") }

func (q *sparkQuery) newestBatch() int64 {
	q.t.Helper()
	newest := int64(-1)
	for _, entry := range must(os.ReadDir(filepath.Join(q.checkpoint(), "commits"))) {
		if batch, err := strconv.ParseInt(entry.Name(), 10, 64); err == nil {
			newest = max(newest, batch)
		}
	}
	return newest
}

// outputs are what each batch has put out.
func (q *sparkQuery) outputs() []string {
	q.t.Helper()
	var all []string
	for batch := range q.files {
		data, err := os.ReadFile(filepath.Join(q.dir, "output", fmt.Sprint(batch)))
		require.NoError(q.t, err)
		require.NotEmpty(q.t, data, "batch %d", batch)
		all = append(all, string(data))
	}
	return all
}

// stores are the directories of the query's stores.
func (q *sparkQuery) stores() []statestore.StoreID {
	q.t.Helper()
	var stores []statestore.StoreID
	for partition := range int64(2) {
		names := []string{}
		for _, entry := range must(os.ReadDir(filepath.Join(q.checkpoint(), "state", "0", fmt.Sprint(partition)))) {
			if entry.IsDir() && !strings.HasPrefix(entry.Name(), "_") {
				names = append(names, entry.Name())
			}
		}
		if len(names) == 0 {
			names = []string{statestore.DefaultStore}
		}
		for _, name := range names {
			stores = append(stores, statestore.StoreID{Partition: partition, Name: name})
		}
	}
	return stores
}

// state runs a verb of state on the query's checkpoint.
func (q *sparkQuery) state(verb string, args ...string) string {
	q.t.Helper()
	got := q.rig.run(append([]string{"state", verb, q.checkpoint()}, args...)...)
	require.Equal(q.t, 0, got.code, "%s: %s%s", verb, got.stdout, got.stderr)
	return got.stdout
}

// content is what is in each of the stores at the version that the query would begin with.
func (q *sparkQuery) content() map[statestore.StoreID]string {
	q.t.Helper()
	all := map[statestore.StoreID]string{}
	for _, id := range q.stores() {
		all[id] = q.state("dump", "--raw", "--partition", fmt.Sprint(id.Partition), "--store", id.Name)
	}
	return all
}

// holds reports whether a key is anywhere in the stores.
func holds(content map[statestore.StoreID]string, key string) bool {
	padded := hex.EncodeToString(append([]byte(key), make([]byte, 8-len(key))...)) // as in a row of Spark
	return slices.ContainsFunc(slices.Collect(maps.Values(content)), func(dump string) bool { return strings.Contains(dump, padded) })
}

// A query is stopped; its newest version is rolled back, the one below compacted, with no delta left to load it from; Spark
// does the last batch again and goes on. Every batch puts out, and the stores hold in the end, what they do in a query
// that has never been stopped.
func TestSparkGoesOnFromWhatTheWritingVerbsOfStateHaveLeft(t *testing.T) {
	for _, version := range []string{"3.5.7", testenv.SparkVersion} {
		t.Run(version, func(t *testing.T) {
			spark := testenv.RequireSpark(t, version, testenv.EngineSettings{})
			for _, test := range []struct {
				kind   string
				stores int // of a partition
			}{{"aggregation", 1}, {"deduplication", 1}, {"join", 4}} {
				t.Run(test.kind, func(t *testing.T) {
					undisturbed := &sparkQuery{rig: newRig(t), spark: spark, kind: test.kind, dir: t.TempDir()}
					undisturbed.feed(5)
					undisturbed.runSpark()
					require.Len(t, undisturbed.stores(), 2*test.stores)

					q := &sparkQuery{rig: newRig(t), spark: spark, kind: test.kind, dir: t.TempDir()}
					q.feed(3)
					q.runSpark()
					q.rollBackAndCompact()
					q.feed(2)
					q.runSpark()
					q.state("verify")
					require.Equal(t, undisturbed.outputs(), q.outputs())
					content := q.content()
					require.Equal(t, undisturbed.content(), content)
					require.True(t, holds(content, "k4"))
					require.Equal(t, test.kind != "join", holds(content, "k0"), "the watermark of the join is past it")
				})
			}
		})
	}
}

// rollBackAndCompact takes the newest version and its batch back, and leaves nothing of the one below but its snapshot.
func (q *sparkQuery) rollBackAndCompact() {
	q.t.Helper()
	q.state("verify")
	batch := q.newestBatch()
	version := fmt.Sprint(batch) // with which the batch began
	q.state("rollback", "--version", version, "--below-commit", "--yes", "--offline")
	for _, name := range []string{"commits/" + version, "commits/." + version + ".crc"} {
		require.NoError(q.t, os.Remove(filepath.Join(q.checkpoint(), name)))
	}
	require.NoError(q.t, os.Remove(filepath.Join(q.dir, "output", version)), "the batch is to come again")
	before := q.content()
	require.NotEmpty(q.t, strings.Join(slices.Collect(maps.Values(before)), ""))
	q.state("compact", "--retain", "2", "--yes", "--offline")
	q.state("verify")
	for _, id := range q.stores() {
		dir, err := statestore.StoreDir(filepath.Join(q.checkpoint(), "state"), id.Operator, id.Partition, id.Name)
		require.NoError(q.t, err)
		require.FileExists(q.t, filepath.Join(dir, version+".snapshot"))
		require.NoFileExists(q.t, filepath.Join(dir, fmt.Sprint(batch+1, ".delta")))
		require.NoError(q.t, os.Remove(filepath.Join(dir, version+".delta")))
	}
	q.state("verify")
	require.Equal(q.t, before, q.content())
}
