package localfs

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// benchMiB is the size of the files of BenchmarkWriteBesidePlainLoop. LOCALFS_BENCH_MIB sets it; 1024 is a real checkpoint.
func benchMiB(b *testing.B) int {
	b.Helper()
	text := os.Getenv("LOCALFS_BENCH_MIB")
	if text == "" {
		return 64
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		b.Fatalf("LOCALFS_BENCH_MIB is %q: not a positive number", text)
	}
	return n
}

// BenchmarkWriteBesidePlainLoop measures a synced file whose writer also computes the CRC32C of every slice, as a
// checkpoint stream does, and beside it a loop over an os.File that does the same. The runs alternate, so that both see
// the same machine. ratio is the shortest time of this package divided by the shortest of the loop.
func BenchmarkWriteBesidePlainLoop(b *testing.B) {
	size := benchMiB(b) << 20
	for _, slice := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%dMiB/slice=%dKiB", size>>20, slice>>10), func(b *testing.B) {
			dir := diskDir(b)
			f := openFor(b, kernel{}, dir, Options{})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p := make([]byte, slice)
			for i := range p {
				p[i] = byte(i * 7)
			}
			ours, plain := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for i := 0; b.Loop(); i++ {
				for turn := range 2 {
					name := join(dir, "file")
					start := time.Now()
					var err error
					if (i+turn)%2 == 0 {
						err = writeOurs(ctx, f, name, p, size)
						ours = min(ours, time.Since(start))
					} else {
						err = writePlain(name, p, size)
						plain = min(plain, time.Since(start))
					}
					if err != nil {
						b.Fatal(err)
					}
					if err := os.Remove(name); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(ours.Seconds()/plain.Seconds(), "ratio")
			b.ReportMetric(float64(size)/1e6/ours.Seconds(), "ours-MB/s")
			b.ReportMetric(float64(size)/1e6/plain.Seconds(), "plain-MB/s")
		})
	}
}

func writeOurs(ctx context.Context, f *FS, name string, p []byte, size int) error {
	w, err := f.Create(ctx, name, core.CreateOptions{})
	if err != nil {
		return err
	}
	defer w.Abort() //nolint:errcheck // a no-op after Close
	if err := writeSlices(w, p, size); err != nil {
		return err
	}
	return w.Close()
}

func writePlain(name string, p []byte, size int) error {
	w, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // closed below
	if err := writeSlices(w, p, size); err != nil {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	return w.Close()
}

func writeSlices(w io.Writer, p []byte, size int) error {
	sum := uint32(0)
	for n := 0; n < size; n += len(p) {
		sum = crc32.Update(sum, castagnoli, p)
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	if sum == 0 {
		return io.ErrUnexpectedEOF // so that the sum is used
	}
	return nil
}

// BenchmarkSmallFile measures files that fit into the first block, with a context that can end and one that cannot.
func BenchmarkSmallFile(b *testing.B) {
	ended, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, durability := range []core.Durability{core.Unsynced, core.Synced} {
		for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": ended} {
			b.Run(fmt.Sprintf("durability=%s/ctx=%s", durability, name), func(b *testing.B) {
				dir := diskDir(b)
				f := openFor(b, kernel{}, dir, Options{})
				p := make([]byte, 4<<10)
				for i := 0; b.Loop(); i++ {
					w, err := f.Create(ctx, join(dir, strconv.Itoa(i)), core.CreateOptions{Durability: durability})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := w.Write(p); err != nil {
						b.Fatal(err)
					}
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkReadAt measures reads of what the kernel has in memory: directly, through the cache without waiting, and on
// another goroutine, as they are where the system cannot tell.
func BenchmarkReadAt(b *testing.B) {
	ended, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := diskDir(b)
	name := join(dir, "file")
	const size = 16 << 20
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name string
		sys  system
		ctx  context.Context //nolint:containedctx // a parameter of the benchmark
	}{
		{"direct", kernel{}, context.Background()}, {"cached", kernel{}, ended}, {"handed-over", oldKernel{kernel{}}, ended},
	} {
		for _, slice := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("way=%s/slice=%dKiB", way.name, slice>>10), func(b *testing.B) {
				f := openFor(b, way.sys, dir, Options{})
				r, err := f.Open(way.ctx, name)
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close() //nolint:errcheck // nothing was written
				p := make([]byte, slice)
				b.SetBytes(int64(slice))
				off := int64(0)
				for b.Loop() {
					if _, err := r.ReadAt(p, off); err != nil {
						b.Fatal(err)
					}
					off = (off + int64(slice)) % size
				}
			})
		}
	}
}

// BenchmarkContract measures the calls of the contract, under the names that every file system has for them.
func BenchmarkContract(b *testing.B) {
	fstest.Benchmark(b, fstest.Config{New: func(t testing.TB) fstest.Instance {
		dir := diskDir(t)
		return fstest.Instance{FS: openFor(t, kernel{}, dir, Options{}), Root: dir}
	}})
}
