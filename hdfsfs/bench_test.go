package hdfsfs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// figures are what one side needed.
type figures struct {
	Wall  float64 // seconds
	CPU   float64 // seconds of the client's process
	P50   float64 // milliseconds of one operation
	P99   float64
	bytes float64 // that were allocated
}

// besideJava is a cluster with both clients on it, ours as its users have it.
type besideJava struct {
	cluster *testenv.Cluster
	hadoop  *testenv.Engine
	dir     string
	mib     int
}

// newBesideJava starts a cluster of its own, with room for what is written. Hadoop's client gets the wait that suits it best.
// HDFSCKPT_BENCH_MIB is the size of large files.
func newBesideJava(b *testing.B) *besideJava {
	c := testenv.Require(b, testenv.Options{Exclusive: true, Properties: map[string]string{"dfs.blocksize": "134217728"}})
	h := testenv.RequireHadoop(b, testenv.EngineSettings{Heap: "512m", Measured: true})
	h.Call(b, "connect", c.ConfDir(), "dfs.client.block.write.locateFollowingBlock.initial.delay.ms=5")
	r := &besideJava{cluster: c, hadoop: h, dir: c.TempDir(b), mib: 1024}
	if text := os.Getenv("HDFSCKPT_BENCH_MIB"); text != "" {
		var err error
		r.mib, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	return r
}

// open opens our client. Its context can end, as that of a user's: without one some work is left out.
func (r *besideJava) open(b *testing.B, replication int) (context.Context, *FS) {
	o := optionsFor(r.cluster, "alice")
	o.Base, o.Replication = r.dir, replication
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	return ctx, openOn(b, r.cluster, o)
}

func (r *besideJava) java(b *testing.B, command string, words ...any) (f figures) {
	var text []string
	for _, w := range words {
		text = append(text, fmt.Sprint(w))
	}
	require.NoError(b, json.Unmarshal(r.hadoop.Call(b, command, text...), &f))
	return f
}

// measured runs n times, with that many goroutines.
func measured(b *testing.B, n, goroutines int, do func(i int) error) figures {
	var next atomic.Int64
	var all sync.WaitGroup
	taken, errs := make([]time.Duration, n), make([]error, goroutines)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(b), time.Now()
	for g := range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[g] == nil; i = int(next.Add(1)) - 1 {
				begin := time.Now()
				errs[g] = do(i)
				taken[i] = time.Since(begin)
			}
		})
	}
	all.Wait()
	f := figures{Wall: time.Since(start).Seconds(), CPU: cpuTime(b) - cpu}
	runtime.ReadMemStats(&after)
	for _, err := range errs {
		require.NoError(b, err)
	}
	slices.Sort(taken)
	f.P50, f.P99 = float64(taken[n/2])/1e6, float64(taken[n*99/100])/1e6
	f.bytes = float64(after.TotalAlloc - before.TotalAlloc)
	return f
}

func cpuTime(b *testing.B) float64 {
	var r syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// compared has each side run in turn, once to warm up and several times in earnest, and reports the medians.
func compared(b *testing.B, rounds int, mib float64, ours, theirs func() figures) {
	for b.Loop() {
		ours()
		theirs()
		var we, they []figures
		for range rounds {
			we, they = append(we, ours()), append(they, theirs())
		}
		report(b, mib, medians(we), medians(they))
	}
}

func medians(all []figures) figures {
	median := func(of func(figures) float64) float64 {
		var values []float64
		for _, f := range all {
			values = append(values, of(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		Wall: median(func(f figures) float64 { return f.Wall }), CPU: median(func(f figures) float64 { return f.CPU }),
		P50: median(func(f figures) float64 { return f.P50 }), P99: median(func(f figures) float64 { return f.P99 }),
		bytes: median(func(f figures) float64 { return f.bytes }),
	}
}

func report(b *testing.B, mib float64, we, they figures) {
	b.ReportMetric(they.Wall/we.Wall, "times-as-fast")
	b.ReportMetric(we.CPU/they.CPU, "of-its-CPU")
	if mib > 0 {
		b.ReportMetric(we.bytes/mib/(1<<20), "allocated/byte")
		b.Logf("ours %.0f MiB/s, %.2f CPU s/GiB; Java %.0f MiB/s, %.2f CPU s/GiB", mib/we.Wall, we.CPU/mib*1024, mib/they.Wall, they.CPU/mib*1024)
		return
	}
	b.ReportMetric(we.P50/they.P50, "of-its-p50")
	b.ReportMetric(we.P99/they.P99, "of-its-p99")
	b.Logf("ours p50 %.1f p99 %.1f ms; Java p50 %.1f p99 %.1f ms", we.P50, we.P99, they.P50, they.P99)
}

// durabilities are compared with what gives the same in Hadoop's client, which does not fsync by default.
var durabilities = []core.Durability{core.Replicated, core.Synced}

// BenchmarkWriteBesideJava writes one large file.
func BenchmarkWriteBesideJava(b *testing.B) {
	r := newBesideJava(b)
	for _, durability := range durabilities {
		for _, replication := range []int{1, 3} {
			ctx, f := r.open(b, replication)
			for _, slice := range []int{4 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("%v/replication-%d/slice-%dKiB", durability, replication, slice>>10), func(b *testing.B) {
					name, large := r.dir+"/large", largeFile{mib: r.mib, slice: slice, durability: durability}
					ours := func() figures {
						taken := measured(b, 1, 1, func(int) error { return large.write(ctx, f, name) })
						require.NoError(b, f.Remove(ctx, name))
						return taken
					}
					compared(b, 3, float64(r.mib), ours, func() figures {
						return r.java(b, "write", name+"-java", r.mib, slice, replication, durability == core.Synced)
					})
				})
			}
		}
	}
}

// largeFile is one, and how it is written.
type largeFile struct {
	mib, slice int
	durability core.Durability
}

func (l largeFile) write(ctx context.Context, f *FS, name string) error {
	w, err := f.Create(ctx, name, core.CreateOptions{Durability: l.durability})
	p := make([]byte, l.slice)
	for range l.mib << 20 / l.slice {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return err
}

// BenchmarkReadBesideJava reads one large file.
func BenchmarkReadBesideJava(b *testing.B) {
	r := newBesideJava(b)
	for _, replication := range []int{1, 3} {
		ctx, f := r.open(b, replication)
		name := fmt.Sprintf("%s/large-%d", r.dir, replication)
		r.java(b, "write", name, r.mib, 1<<20, replication, false)
		for _, slice := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("replication-%d/slice-%dKiB", replication, slice>>10), func(b *testing.B) {
				p := make([]byte, slice)
				ours := func() figures {
					return measured(b, 1, 1, func(int) error {
						file, err := f.Open(ctx, name)
						if err != nil {
							return err
						}
						n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{file}, p)
						if err == nil && n != int64(r.mib)<<20 {
							err = fmt.Errorf("%d bytes", n)
						}
						if closeErr := file.Close(); err == nil {
							err = closeErr
						}
						return err
					})
				}
				compared(b, 15, float64(r.mib), ours, func() figures { return r.java(b, "read", name, r.mib, slice) })
			})
		}
	}
}

// BenchmarkCommitBesideJava makes small files as checkpoints are made: create, write 1 KiB, close, rename.
func BenchmarkCommitBesideJava(b *testing.B) {
	r := newBesideJava(b)
	const files, replication = 500, 3
	ctx, f := r.open(b, replication)
	for _, durability := range durabilities {
		for _, writers := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%v/writers-%d", durability, writers), func(b *testing.B) {
				round, dir := 0, fmt.Sprintf("%s/%v-%d", r.dir, durability, writers)
				require.NoError(b, f.MkdirAll(ctx, dir))
				ours := func() figures {
					round++
					return measured(b, files, writers, func(i int) error { return commit(ctx, f, fmt.Sprintf("%s/%d-%d", dir, round, i), durability) })
				}
				theirs := func() figures {
					return r.java(b, "commit", fmt.Sprintf("%s/java-%d", dir, round), files, writers, replication, durability == core.Synced)
				}
				compared(b, 3, 0, ours, theirs)
			})
		}
	}
}

func commit(ctx context.Context, f *FS, name string, durability core.Durability) error {
	w, err := f.Create(ctx, name+".tmp", core.CreateOptions{Durability: durability})
	if err == nil {
		_, err = w.Write(make([]byte, 1024))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Rename(ctx, name+".tmp", name, core.RenameNoReplace)
	}
	return err
}
