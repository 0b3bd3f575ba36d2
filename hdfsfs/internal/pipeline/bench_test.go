package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// figures are what one side needed.
type figures struct {
	Wall float64 // seconds
	CPU  float64 // seconds of the client's process
	P50  float64 // milliseconds of one operation
	P99  float64
}

// besideJava is a cluster with both clients on it.
type besideJava struct {
	*rig
	b    *testing.B
	pool *Pool
	dial *datanode.Dialer
}

// newBesideJava starts a cluster of its own, with room for what is written. Hadoop's client gets the wait that suits it best.
func newBesideJava(b *testing.B) *besideJava {
	c := testenv.Require(b, testenv.Options{Exclusive: true, Properties: map[string]string{"dfs.blocksize": "134217728"}})
	nn, err := namenode.New(namenode.Options{RPC: rpc.Options{
		Resolver: rpc.Fixed{c.NameNode()}, Authenticator: rpc.Simple{User: c.Credentials("alice").User},
	}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, nn.Close()) })
	h := testenv.RequireHadoop(b, testenv.EngineSettings{Heap: "512m", Measured: true})
	h.Call(b, "connect", c.ConfDir(), "dfs.client.block.write.locateFollowingBlock.initial.delay.ms=5")
	return &besideJava{
		rig: &rig{t: b, cluster: c, nn: nn, dir: c.TempDir(b), hadoop: h}, b: b, pool: new(Pool), dial: datanode.NewDialer(datanode.Options{}),
	}
}

func (r *besideJava) java(command string, words ...any) figures {
	var text []string
	for _, w := range words {
		text = append(text, fmt.Sprint(w))
	}
	var f figures
	require.NoError(r.b, json.Unmarshal(r.hadoop.Call(r.b, command, text...), &f))
	return f
}

// measured runs n times, with that many goroutines.
func measured(b *testing.B, n, goroutines int, do func(i int) error) figures {
	var next atomic.Int64
	var all sync.WaitGroup
	taken := make([]time.Duration, n)
	errs := make([]error, goroutines)
	cpu, start := cpuTime(), time.Now()
	for g := range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				begin := time.Now()
				if errs[g] = do(i); errs[g] != nil {
					return
				}
				taken[i] = time.Since(begin)
			}
		})
	}
	all.Wait()
	f := figures{Wall: time.Since(start).Seconds(), CPU: cpuTime() - cpu}
	for _, err := range errs {
		require.NoError(b, err)
	}
	slices.Sort(taken)
	f.P50, f.P99 = float64(taken[n/2])/1e6, float64(taken[n*99/100])/1e6
	return f
}

func cpuTime() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

const benchBlock = 128 << 20

func (r *besideJava) write(name string, size, slice, replication int) error {
	ctx := r.b.Context()
	release := r.nn.HoldLease()
	defer release()
	path := r.dir + "/" + name
	status, err := r.nn.Create(ctx, path, namenode.CreateOptions{Mode: 0o644, Replication: uint32(replication), BlockSize: benchBlock, Overwrite: true})
	if err != nil {
		return err
	}
	w, err := New(ctx, namenode.File{Path: path, ID: status.GetFileId()}, Options{
		NameNode: r.nn, Dialer: r.dial, Pool: r.pool, BlockSize: benchBlock, Replication: replication, MinReplicas: min(2, replication),
	})
	if err != nil {
		return err
	}
	buffer := content(min(slice, size))
	for left := size; left > 0; left -= slice {
		if _, err := w.Write(buffer[:min(slice, left)]); err != nil {
			return err
		}
	}
	return w.Close()
}

func mebibytes() int {
	if n, err := strconv.Atoi(os.Getenv("HDFSCKPT_BENCH_MIB")); err == nil {
		return n
	}
	return 1024
}

// BenchmarkWriteBesideJava writes one large file by each client in turn, three times, and reports how many times as fast ours is,
// and what part of the CPU time it takes, by the medians.
func BenchmarkWriteBesideJava(b *testing.B) {
	r := newBesideJava(b)
	mib := mebibytes()
	for _, replication := range []int{1, 3} {
		for _, slice := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("replication-%d/slice-%dKiB", replication, slice>>10), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, r.write("warm", 64<<20, slice, replication))
					r.java("write", r.dir+"/warm-java", 64, slice, replication)
					var ours, theirs []figures
					for range 3 {
						ours = append(ours, measured(b, 1, 1, func(int) error { return r.write("large", mib<<20, slice, replication) }))
						theirs = append(theirs, r.java("write", r.dir+"/large-java", mib, slice, replication))
					}
					r.report(b, ours, theirs, float64(mib)/1024)
				}
			})
		}
	}
}

func median(f []figures, of func(figures) float64) float64 {
	var all []float64
	for _, one := range f {
		all = append(all, of(one))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (r *besideJava) report(b *testing.B, ours, theirs []figures, gib float64) {
	wall := func(f figures) float64 { return f.Wall }
	cpu := func(f figures) float64 { return f.CPU }
	b.ReportMetric(median(theirs, wall)/median(ours, wall), "times-as-fast")
	b.ReportMetric(median(ours, cpu)/median(theirs, cpu), "of-its-CPU")
	if gib > 0 {
		b.Logf("ours %.0f MiB/s, %.2f CPU s/GiB; Java %.0f MiB/s, %.2f CPU s/GiB",
			gib*1024/median(ours, wall), median(ours, cpu)/gib, gib*1024/median(theirs, wall), median(theirs, cpu)/gib)
	}
}

// BenchmarkCommitBesideJava makes small files as checkpoints are made: create, write 1 KiB, close, rename.
func BenchmarkCommitBesideJava(b *testing.B) {
	r := newBesideJava(b)
	const files = 500
	for _, writers := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("writers-%d", writers), func(b *testing.B) {
			for b.Loop() {
				commit := func(i int) error {
					name := fmt.Sprintf("tmp-%d-%d", writers, i)
					if err := r.write(name, 1024, 1024, 3); err != nil {
						return err
					}
					return r.nn.Rename(b.Context(), r.dir+"/"+name, r.dir+fmt.Sprintf("/f%d-%d", writers, i), true)
				}
				measured(b, 100, writers, commit)
				r.java("commit", fmt.Sprintf("%s/warm-java-%d", r.dir, writers), 200, writers, 3)
				var ours, theirs []figures
				for i := range 3 {
					ours = append(ours, measured(b, files, writers, commit))
					theirs = append(theirs, r.java("commit", fmt.Sprintf("%s/java-%d-%d", r.dir, writers, i), files, writers, 3))
				}
				r.report(b, ours, theirs, 0)
				p50 := func(f figures) float64 { return f.P50 }
				p99 := func(f figures) float64 { return f.P99 }
				b.ReportMetric(median(ours, p50)/median(theirs, p50), "of-its-p50")
				b.ReportMetric(median(ours, p99)/median(theirs, p99), "of-its-p99")
				b.Logf("%d writers: ours p50 %.1f p99 %.1f ms, Java p50 %.1f p99 %.1f ms", writers, median(ours, p50), median(ours, p99), median(theirs, p50), median(theirs, p99))
			}
		})
	}
}
