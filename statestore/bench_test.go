package statestore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// The rows are those of Spark for a key of one long and a value of one binary of 84 bytes, which do not compress.
const (
	benchKeyLen   = 16
	benchValueLen = 104
	benchChanges  = 10_000
)

func benchKey(key []byte, i int) []byte {
	clear(key)
	binary.LittleEndian.PutUint64(key[8:], uint64(i))
	return key
}

func benchValue(value []byte, r *rand.Rand) []byte {
	clear(value[:16])
	binary.LittleEndian.PutUint64(value[8:], 16<<32|84)
	for i := 16; i < 100; i += 7 {
		binary.LittleEndian.PutUint64(value[min(i, 96):], r.Uint64())
	}
	return value
}

// reportCPU adds the processor time of an operation, which other processes disturb less than the time on the clock.
func reportCPU(b *testing.B) func() {
	b.Helper()
	start := processorTime(b)
	return func() {
		b.ReportMetric(float64((processorTime(b)-start).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// localStore opens a store on local disk, with fsync or without.
func localStore(b *testing.B, dir string, fsync bool, opts statestore.Options) *statestore.Store {
	b.Helper()
	fsys, err := localfs.Open(dir, localfs.Options{UnsafeNoFsync: !fsync})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, fsys.Close()) })
	s, err := statestore.Open(context.Background(), core.FileSystem(fsys), dir+"/0/0", opts)
	require.NoError(b, err)
	return s
}

// fill makes version 1 with n keys.
func fill(b *testing.B, s *statestore.Store, n int) {
	b.Helper()
	tx, err := s.Begin(context.Background(), 0)
	require.NoError(b, err)
	key, value, r := make([]byte, benchKeyLen), make([]byte, benchValueLen), rand.New(rand.NewPCG(1, 1))
	for i := range n {
		if err := tx.Put(benchKey(key, i), benchValue(value, r)); err != nil {
			b.Fatal(err)
		}
	}
	_, err = tx.Commit(context.Background())
	require.NoError(b, err)
}

// changeKeys makes version v+1 by overwriting random keys of n.
func changeKeys(b *testing.B, s *statestore.Store, v int64, n int, r *rand.Rand) {
	b.Helper()
	tx, err := s.Begin(context.Background(), v)
	if err != nil {
		b.Fatal(err)
	}
	key, value := make([]byte, benchKeyLen), make([]byte, benchValueLen)
	for range benchChanges {
		if err := tx.Put(benchKey(key, r.IntN(n)), benchValue(value, r)); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := tx.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		for _, n := range []int{100_000, 1_000_000, 10_000_000} {
			b.Run(fmt.Sprintf("changes=%d/keys=%d/fsync=%v", benchChanges, n, fsync), func(b *testing.B) {
				if testing.Short() && n > 1_000_000 {
					b.Skip("takes gigabytes")
				}
				s := localStore(b, b.TempDir(), fsync, statestore.Options{})
				fill(b, s, n)
				r := rand.New(rand.NewPCG(2, 2))
				runtime.GC()
				v := int64(1)
				report := reportCPU(b)
				for b.Loop() {
					changeKeys(b, s, v, n, r)
					v++
				}
				report()
				b.StopTimer()
				require.NoError(b, s.Close())
			})
		}
	}
}

// BenchmarkLoad loads a version of a million keys: from a snapshot as we write it, or from one as Spark does, compressed
// throughout, in another order and without our footer.
func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	for _, writer := range []string{"ours", "sparks"} {
		for _, deltas := range []int64{0, 10} {
			b.Run(fmt.Sprintf("keys=%d/deltas=%d/of=%s", n, deltas, writer), func(b *testing.B) {
				dir := b.TempDir()
				s := localStore(b, dir, false, statestore.Options{})
				fill(b, s, n)
				if writer == "ours" {
					require.NoError(b, s.Snapshot(context.Background(), 1))
				} else {
					snapshotAsSpark(b, filepath.Join(dir, "0", "0", "1.snapshot"), n)
				}
				r := rand.New(rand.NewPCG(3, 3))
				for v := range deltas {
					changeKeys(b, s, v+1, n, r)
				}
				require.NoError(b, s.Close())
				runtime.GC()
				report := reportCPU(b)
				for b.Loop() {
					s := localStore(b, dir, false, statestore.Options{ReadOnly: true})
					view, err := s.Load(context.Background(), 1+deltas)
					if err != nil {
						b.Fatal(err)
					}
					require.EqualValues(b, n, view.Len())
					require.NoError(b, view.Close())
					require.NoError(b, s.Close())
				}
				report()
			})
		}
	}
}

// snapshotAsSpark writes the rows of fill in the order of a hash map.
func snapshotAsSpark(b *testing.B, name string, n int) {
	b.Helper()
	file, err := os.Create(name)
	require.NoError(b, err)
	w, err := codec.NewWriter(file, codec.Snapshot, codec.WriterOptions{NoFooter: true, AlwaysCompress: true})
	require.NoError(b, err)
	key, value, r := make([]byte, benchKeyLen), make([]byte, benchValueLen), rand.New(rand.NewPCG(1, 1))
	for _, i := range r.Perm(n) {
		require.NoError(b, w.Put(benchKey(key, i), benchValue(value, r)))
	}
	require.NoError(b, w.Close())
	require.NoError(b, file.Close())
}

func BenchmarkSnapshot(b *testing.B) {
	const n = 1_000_000
	for _, c := range []struct{ fsync, always bool }{{false, false}, {true, false}, {false, true}} {
		b.Run(fmt.Sprintf("keys=%d/fsync=%v/always-compress=%v", n, c.fsync, c.always), func(b *testing.B) {
			dir := b.TempDir()
			s := localStore(b, dir, c.fsync, statestore.Options{AlwaysCompress: c.always})
			fill(b, s, n)
			fsys, err := localfs.Open(dir, localfs.Options{UnsafeNoFsync: true})
			require.NoError(b, err)
			runtime.GC()
			report := reportCPU(b)
			for b.Loop() {
				require.NoError(b, s.Snapshot(context.Background(), 1))
				b.StopTimer()
				info, err := fsys.Stat(context.Background(), dir+"/0/0/1.snapshot")
				require.NoError(b, err)
				b.ReportMetric(float64(info.Size)/1e6, "file-MB")
				require.NoError(b, fsys.Remove(context.Background(), dir+"/0/0/1.snapshot"))
				b.StartTimer()
			}
			report()
			b.StopTimer()
			require.NoError(b, fsys.Close())
			require.NoError(b, s.Close())
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
