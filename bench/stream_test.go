package bench

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// streamBytes is the size of the state: 1 GiB as published, or what HDFSCKPT_BENCH_BYTES says.
func streamBytes(b *testing.B) int64 {
	text := os.Getenv("HDFSCKPT_BENCH_BYTES")
	if text == "" {
		return 1 << 30
	}
	size, err := strconv.ParseInt(text, 10, 64)
	require.NoError(b, err)
	return size
}

// BenchmarkStateStream writes one large state to local disk through a state stream and, in the same run and alternating with
// it, through a plain os.File that takes a CRC32C and fsyncs file and directory. The metric "plain-ratio" is the time of
// the stream divided by the time of the plain file: below 1 is faster.
func BenchmarkStateStream(b *testing.B) {
	for _, slice := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("slice=%d", slice), func(b *testing.B) {
			size := streamBytes(b)
			p := patterned(slice)
			dir := b.TempDir()
			fsys, err := localfs.Open(dir, localfs.Options{})
			require.NoError(b, err)
			defer func() { require.NoError(b, fsys.Close()) }()
			storage, err := core.NewStorage(fsys, dir, core.JobIDOf("bench"), core.Options{})
			require.NoError(b, err)
			owner, err := storage.Claim(b.Context())
			require.NoError(b, err)
			location, err := owner.Begin(b.Context(), 1)
			require.NoError(b, err)
			var ours, plain time.Duration
			b.SetBytes(size)
			for b.Loop() {
				plain += timed(b, func() { writePlain(b, filepath.Join(dir, "plain"), p, size) })
				ours += timed(b, func() { writeStream(b, location, fsys, p, size) })
			}
			b.ReportMetric(float64(ours)/float64(plain), "plain-ratio")
			b.ReportMetric(float64(size)*float64(b.N)/ours.Seconds()/(1<<20), "stream-MiB/s")
			b.ReportMetric(float64(size)*float64(b.N)/plain.Seconds()/(1<<20), "plain-MiB/s")
		})
	}
}

func timed(b *testing.B, work func()) time.Duration {
	b.Helper()
	begin := time.Now()
	work()
	return time.Since(begin)
}

func patterned(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i * 7)
	}
	return p
}

func writeStream(b *testing.B, location *core.PendingLocation, fsys core.FileSystem, p []byte, size int64) {
	b.Helper()
	stream := location.CreateStateStream(b.Context(), core.Exclusive)
	for written := int64(0); written < size; written += int64(len(p)) {
		_, err := stream.Write(p)
		require.NoError(b, err)
	}
	handle, err := stream.CloseAndGetHandle()
	require.NoError(b, err)
	require.NoError(b, core.Discard(b.Context(), core.OnlyOn(fsys), handle))
}

func writePlain(b *testing.B, name string, p []byte, size int64) {
	b.Helper()
	table := crc32.MakeTable(crc32.Castagnoli)
	f, err := os.Create(name)
	require.NoError(b, err)
	sum := uint32(0)
	for written := int64(0); written < size; written += int64(len(p)) {
		sum = crc32.Update(sum, table, p)
		_, err := f.Write(p)
		require.NoError(b, err)
	}
	require.NotZero(b, sum)
	require.NoError(b, f.Sync())
	require.NoError(b, f.Close())
	directory, err := os.Open(filepath.Dir(name))
	require.NoError(b, err)
	require.NoError(b, directory.Sync())
	require.NoError(b, directory.Close())
	require.NoError(b, os.Remove(name))
}
