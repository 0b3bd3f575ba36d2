package namenode

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// BenchmarkGetFileInfo calls a real NameNode from 1, 8 and 32 goroutines, by this package and by colinmarc/hdfs: time for the
// middle call, and processor time of this process for each.
func BenchmarkGetFileInfo(b *testing.B) {
	cluster := testenv.Require(b, testenv.Options{})
	dir := cluster.TempDir(b)
	c := clusterClient(b, cluster, Options{}, cluster.NameNode())
	rival, err := hdfs.NewClient(hdfs.ClientOptions{Addresses: []string{cluster.NameNode()}, User: cluster.Credentials("").User})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, rival.Close()) })
	ours := func() error { _, err := c.GetFileInfo(b.Context(), dir); return err }
	theirs := func() error { _, err := rival.Stat(dir); return err }
	for range 2000 { // the NameNode's compiler warms up
		require.NoError(b, ours())
		require.NoError(b, theirs())
	}
	for _, callers := range []int{1, 8, 32} {
		for _, client := range []struct {
			name string
			call func() error
		}{{"ours", ours}, {"colinmarc", theirs}} {
			b.Run(fmt.Sprintf("callers=%d/client=%s", callers, client.name), func(b *testing.B) {
				benchmarkCalls(b, callers, client.call)
			})
		}
	}
}

func benchmarkCalls(b *testing.B, callers int, call func() error) {
	took := make([]time.Duration, b.N)
	var next sync.Mutex
	done := 0
	take := func() int {
		next.Lock()
		defer next.Unlock()
		done++
		return done - 1
	}
	b.ReportAllocs()
	before := processorTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := take(); i < b.N; i = take() {
				begin := time.Now()
				if err := call(); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(begin)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
