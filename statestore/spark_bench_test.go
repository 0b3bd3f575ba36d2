package statestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// million is the number of keys of most comparisons.
const million = 1_000_000

// comparison is something that Spark's store does, and what ours do beside it.
type comparison struct {
	name   string
	spark  string // command of the engine, and its settings
	figure string // of its answer
	ours   []contender
}

// contender is a way of ours. prepare makes what is measured: a few rounds, with whatever Spark left in its root.
type contender struct {
	name    string
	prepare func(b *testing.B) (measure func(root string) []round)
}

// round is a single measurement.
type round struct{ wall, cpu time.Duration }

// turns is how often Spark and we take turns.
const turns = 2

var comparisons = []comparison{
	{"commit/hdfs-backed", "commit keys=1000000 warmup=5", "total", []contender{
		{"unsynced", commitRounds(million, false)}, {"synced", commitRounds(million, true)},
	}},
	{"commit/rocksdb", "commit keys=1000000 warmup=5 rocksdb=1", "total", []contender{{"unsynced", commitRounds(million, false)}}},
	{"load", "load keys=1000000", "load", []contender{{"of-sparks", loadTheirs(1)}, {"of-ours", loadOurs(1)}}},
	{"load/deltas=10", "load keys=1000000 deltas=10", "load", []contender{{"of-sparks", loadTheirs(11)}, {"of-ours", loadOurs(11)}}},
	{"snapshot", "snapshot keys=1000000", "snapshot", []contender{
		{"unsynced", snapshotRounds(million, false)}, {"synced", snapshotRounds(million, true)},
	}},
}

// BenchmarkBesideSpark does the same with the real Spark's state store and with ours, in one run, on one file system and by turns,
// and reports how many times faster ours is: the median of Spark's rounds over the median of ours, and the best over the
// best. Spark never syncs its files. Rows are equal, see benchKey. A commit is everything from the begin of the transaction
// on; a load begins with nothing in memory.
//
//	go test -run '^$' -bench BesideSpark -benchtime 1x ./statestore
func BenchmarkBesideSpark(b *testing.B) {
	spark := testenv.RequireSpark(b, testenv.SparkVersion, testenv.EngineSettings{Heap: "6g", Measured: true})
	for _, c := range comparisons {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.run(b, spark)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			theirs := askSpark(b, spark, b.TempDir(), "heap keys=1000000 cached=10")
			b.ReportMetric(theirs["heap1"][0]/million, "spark-B/key")
			b.ReportMetric(theirs["heapN"][0]/million, "spark-B/key-of-10-versions")
			b.ReportMetric(memoryOf(b, million, 1), "B/key")
			b.ReportMetric(memoryOf(b, million, 10), "B/key-of-10-versions")
			b.ReportMetric(0, "ns/op")
		}
	})
}

// BenchmarkCommitGrowth reports how much longer the same commit takes on a hundred times as many keys, by the median and by the
// best of the rounds. Files are not synced.
func BenchmarkCommitGrowth(b *testing.B) {
	if testing.Short() {
		b.Skip("takes 3 GB")
	}
	small, large := commitRounds(100_000, false)(b), commitRounds(10_000_000, false)(b)
	runtime.GC()
	for b.Loop() {
		var few, many []float64
		for range 4 * turns {
			for _, r := range small("") {
				few = append(few, milliseconds(r.wall))
			}
			for _, r := range large("") {
				many = append(many, milliseconds(r.wall))
			}
		}
		b.ReportMetric(median(many)/median(few), "times-longer")
		b.ReportMetric(slices.Min(many)/slices.Min(few), "times-longer-at-best")
		b.ReportMetric(median(few), "ms-of-100k")
		b.ReportMetric(median(many), "ms-of-10M")
		b.ReportMetric(0, "ns/op")
	}
}

func (c comparison) run(b *testing.B, spark *testenv.Engine) {
	b.Helper()
	measures := make([]func(string) []round, len(c.ours))
	for i, o := range c.ours {
		measures[i] = o.prepare(b)
	}
	var theirs []float64
	wall, cpu := make([][]float64, len(c.ours)), make([][]float64, len(c.ours))
	for range turns {
		root := b.TempDir()
		theirs = append(theirs, askSpark(b, spark, root, c.spark)[c.figure]...)
		runtime.GC()
		for i, measure := range measures {
			for _, r := range measure(root) {
				wall[i], cpu[i] = append(wall[i], milliseconds(r.wall)), append(cpu[i], milliseconds(r.cpu))
			}
		}
		require.NoError(b, os.RemoveAll(root))
	}
	b.ReportMetric(median(theirs), "spark-ms")
	b.Logf("Spark %.1f", theirs)
	for i, o := range c.ours {
		b.ReportMetric(median(theirs)/median(wall[i]), o.name+"-times-faster")
		b.ReportMetric(slices.Min(theirs)/slices.Min(wall[i]), o.name+"-times-faster-at-best")
		b.ReportMetric(median(wall[i]), o.name+"-ms")
		b.ReportMetric(median(cpu[i]), o.name+"-cpu-ms")
		b.Logf("%s %.1f", o.name, wall[i])
	}
}

// askSpark runs a command of the engine's benchmark in a new root, and returns the figures of its rounds by name.
func askSpark(b *testing.B, spark *testenv.Engine, root, command string) map[string][]float64 {
	b.Helper()
	words := strings.Fields(command)
	answer := string(spark.Call(b, "bench", slices.Insert(words, 1, "file://"+root)...))
	figures := map[string][]float64{}
	for line := range strings.Lines(answer) {
		fields := strings.Fields(line)
		for _, f := range fields[1:] {
			figure, err := strconv.ParseFloat(f, 64)
			require.NoError(b, err)
			figures[fields[0]] = append(figures[fields[0]], figure)
		}
	}
	return figures
}

// rounds of ours in a turn; the first of a turn is for warming up.
const rounds = 6

func timed(b *testing.B, what func()) round {
	b.Helper()
	cpu, wall := processorTime(b), time.Now()
	what()
	return round{time.Since(wall), processorTime(b) - cpu}
}

// commitRounds commits changes of 10,000 keys on n.
func commitRounds(n int, fsync bool) func(*testing.B) func(string) []round {
	return func(b *testing.B) func(string) []round {
		b.Helper()
		s := localStore(b, b.TempDir(), fsync, statestore.Options{})
		fill(b, s, n)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		r, v := rand.New(rand.NewPCG(2, 2)), int64(1)
		return func(string) []round {
			var all []round
			for range 2 * rounds {
				all = append(all, timed(b, func() { changeKeys(b, s, v, n, r) }))
				v++
			}
			return all[2:]
		}
	}
}

// loadTheirs loads version v that Spark left, in a store that has nothing in memory.
func loadTheirs(v int64) func(*testing.B) func(string) []round {
	return func(b *testing.B) func(string) []round {
		b.Helper()
		return func(root string) []round { return loadRounds(b, root, v) }
	}
}

// loadOurs loads version v, which is a snapshot and deltas that we wrote.
func loadOurs(v int64) func(*testing.B) func(string) []round {
	return func(b *testing.B) func(string) []round {
		b.Helper()
		dir := b.TempDir()
		s := localStore(b, dir, false, statestore.Options{})
		fill(b, s, million)
		require.NoError(b, s.Snapshot(context.Background(), 1))
		r := rand.New(rand.NewPCG(3, 3))
		for at := int64(1); at < v; at++ {
			changeKeys(b, s, at, million, r)
		}
		require.NoError(b, s.Close())
		return func(string) []round { return loadRounds(b, dir, v) }
	}
}

func loadRounds(b *testing.B, dir string, v int64) []round {
	b.Helper()
	var all []round
	for range rounds {
		s := localStore(b, dir, false, statestore.Options{ReadOnly: true})
		runtime.GC() // what the round before has loaded is none of this one's business
		all = append(all, timed(b, func() {
			view, err := s.Load(context.Background(), v)
			require.NoError(b, err)
			require.EqualValues(b, million, view.Len())
			require.NoError(b, view.Close())
		}))
		require.NoError(b, s.Close())
	}
	return all[1:]
}

// snapshotRounds writes the snapshot of a version with n keys that is in memory.
func snapshotRounds(n int, fsync bool) func(*testing.B) func(string) []round {
	return func(b *testing.B) func(string) []round {
		b.Helper()
		dir := b.TempDir()
		s := localStore(b, dir, fsync, statestore.Options{})
		fill(b, s, n)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		return func(string) []round {
			var all []round
			for range rounds {
				all = append(all, timed(b, func() { require.NoError(b, s.Snapshot(context.Background(), 1)) }))
				require.NoError(b, os.Remove(filepath.Join(dir, "0", "0", "1.snapshot")))
			}
			return all[1:]
		}
	}
}

// memoryOf returns the bytes on the heap for each of n keys, of so many versions that differ in 10,000 keys each. The first
// was loaded from a snapshot.
func memoryOf(b *testing.B, n int, versions int64) float64 {
	b.Helper()
	dir := b.TempDir()
	s := localStore(b, dir, false, statestore.Options{})
	fill(b, s, n)
	require.NoError(b, s.Snapshot(context.Background(), 1))
	require.NoError(b, s.Close())
	before := heap()
	s = localStore(b, dir, false, statestore.Options{CachedVersions: 10})
	view, err := s.Load(context.Background(), 1)
	require.NoError(b, err)
	require.NoError(b, view.Close())
	r := rand.New(rand.NewPCG(4, 4))
	for v := int64(1); v < versions; v++ {
		changeKeys(b, s, v, n, r)
	}
	used := float64(heap()-before) / float64(n)
	require.NoError(b, s.Close())
	return used
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// BenchmarkMemory reports what a version takes, and what ten take that differ in 10,000 keys each.
func BenchmarkMemory(b *testing.B) {
	for _, versions := range []int64{1, 10} {
		b.Run(fmt.Sprintf("keys=%d/versions=%d", million, versions), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(memoryOf(b, million, versions), "B/key")
			}
		})
	}
}
