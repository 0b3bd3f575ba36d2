package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// sparkQuery is an aggregation by key that the real Spark runs, one file of input a batch.
type sparkQuery struct {
	*rig
	spark *testenv.Engine
	dir   string
	files int
}

// feed adds files of input; file i has two rows of key a and one of a key of its own.
func (q *sparkQuery) feed(files int) {
	q.t.Helper()
	for range files {
		name := filepath.Join(q.dir, "left", fmt.Sprint(q.files, ".json"))
		require.NoError(q.t, os.MkdirAll(filepath.Dir(name), 0o755))
		row := `{"key":%q,"n":%d,"ts":"2024-01-01T00:00:01Z"}` + "\n"
		rows := fmt.Sprintf(row+row+row, "a", q.files, "a", 1, fmt.Sprint("k", q.files), q.files)
		require.NoError(q.t, os.WriteFile(name, []byte(rows), 0o600))
		at := time.Unix(1_700_000_000+int64(q.files), 0)
		require.NoError(q.t, os.Chtimes(name, at, at))
		q.files++
	}
}

// run lets Spark process what is there, and compares what it has put out last for each key.
func (q *sparkQuery) runSpark() {
	q.t.Helper()
	q.spark.Call(q.t, "query", "aggregation", q.dir)
	last := map[string][2]int{}
	for batch := 0; ; batch++ {
		data, err := os.ReadFile(filepath.Join(q.dir, "output", fmt.Sprint(batch)))
		if os.IsNotExist(err) {
			break
		}
		require.NoError(q.t, err)
		for line := range strings.Lines(string(data)) {
			var row struct {
				Key        string
				Count, Sum int
			}
			require.NoError(q.t, json.Unmarshal([]byte(line), &row))
			last[row.Key] = [2]int{row.Count, row.Sum}
		}
	}
	want := map[string][2]int{"a": {2 * q.files, q.files*(q.files-1)/2 + q.files}}
	for i := range q.files {
		want[fmt.Sprint("k", i)] = [2]int{1, i}
	}
	require.Equal(q.t, want, last)
}

func TestSparkGoesOnFromWhatTheWritingVerbsOfStateHaveLeft(t *testing.T) {
	for _, version := range []string{"3.5.7", testenv.SparkVersion} {
		t.Run(version, func(t *testing.T) {
			q := &sparkQuery{rig: newRig(t), spark: testenv.RequireSpark(t, version, testenv.EngineSettings{}), dir: t.TempDir()}
			q.goesOn()
		})
	}
}

func (q *sparkQuery) goesOn() {
	ckpt := filepath.Join(q.dir, "checkpoint")
	state := func(verb string, args ...string) {
		q.t.Helper()
		got := q.rig.run(append([]string{"state", verb, ckpt}, args...)...)
		require.Equal(q.t, 0, got.code, "%s%s", got.stdout, got.stderr)
	}
	q.feed(6)
	q.runSpark()
	state("compact", "--retain", "3", "--yes", "--offline")
	state("verify")
	for partition := range 2 {
		// Spark has nothing but the snapshot to load from.
		require.NoError(q.t, os.Remove(filepath.Join(ckpt, "state", "0", fmt.Sprint(partition), "6.delta")))
	}
	q.feed(2)
	q.runSpark()

	state("rollback", "--version", "7", "--below-commit", "--yes", "--offline")
	for _, name := range []string{"7", ".7.crc"} {
		require.NoError(q.t, os.Remove(filepath.Join(ckpt, "commits", name)))
	}
	q.runSpark()
	q.feed(1)
	q.runSpark()
	state("verify")
}
