package blockread

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// figures are what one side needed.
type figures struct {
	Wall  float64 // seconds
	CPU   float64 // seconds of the client's process
	bytes float64 // allocated for each byte that was read
}

func measured(do func() error) (figures, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	err := do()
	f := figures{Wall: time.Since(start).Seconds(), CPU: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	f.bytes = float64(after.TotalAlloc - before.TotalAlloc)
	return f, err
}

func cpuTime() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func mebibytes() int {
	if n, err := strconv.Atoi(os.Getenv("HDFSCKPT_BENCH_MIB")); err == nil {
		return n
	}
	return 1024
}

// BenchmarkReadBesideJava reads one large file by each client in turn, three times, and reports how many times as fast ours is,
// and what part of the CPU time it takes, by the medians.
func BenchmarkReadBesideJava(b *testing.B) {
	r := newRig(b, testenv.Options{Exclusive: true, Properties: map[string]string{"dfs.blocksize": "134217728"}})
	h := testenv.RequireHadoop(b, testenv.EngineSettings{Heap: "512m", Measured: true})
	h.Call(b, "connect", r.cluster.ConfDir())
	c, err := New(Options{NameNode: r.nn, Dialer: datanode.NewDialer(datanode.Options{})})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	mib := mebibytes()
	for _, replication := range []int{1, 3} {
		path := fmt.Sprintf("%s/large-%d", r.dir, replication)
		h.Call(b, "write", path, fmt.Sprint(mib), "1048576", fmt.Sprint(replication))
		for _, slice := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("replication-%d/slice-%dKiB", replication, slice>>10), func(b *testing.B) {
				p := make([]byte, slice)
				ours := func() (figures, error) {
					return measured(func() error {
						f, err := c.Open(b.Context(), path, nil)
						if err != nil {
							return err
						}
						defer func() { _ = f.Close() }()
						n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, p)
						if err == nil && n != int64(mib)<<20 {
							err = fmt.Errorf("%d bytes", n)
						}
						return err
					})
				}
				theirs := func() (f figures) {
					require.NoError(b, json.Unmarshal(h.Call(b, "read", path, fmt.Sprint(mib), fmt.Sprint(slice)), &f))
					return f
				}
				for b.Loop() {
					_, err := ours()
					require.NoError(b, err)
					theirs()
					var we, they []figures
					for range 3 {
						f, err := ours()
						require.NoError(b, err)
						we, they = append(we, f), append(they, theirs())
					}
					report(b, we, they, float64(mib))
				}
			})
		}
	}
}

func report(b *testing.B, we, they []figures, mib float64) {
	median := func(all []figures, of func(figures) float64) float64 {
		var values []float64
		for _, f := range all {
			values = append(values, of(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	wall := func(f figures) float64 { return f.Wall }
	cpu := func(f figures) float64 { return f.CPU }
	b.ReportMetric(median(they, wall)/median(we, wall), "times-as-fast")
	b.ReportMetric(median(we, cpu)/median(they, cpu), "of-its-CPU")
	b.ReportMetric(median(we, func(f figures) float64 { return f.bytes })/(mib*(1<<20)), "allocated/byte")
	b.Logf("ours %.0f MiB/s, %.2f CPU s/GiB; Java %.0f MiB/s, %.2f CPU s/GiB",
		mib/median(we, wall), median(we, cpu)/mib*1024, mib/median(they, wall), median(they, cpu)/mib*1024)
}
