package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

const (
	packedStates    = 1000
	packedStateSize = 10 << 10
)

// BenchmarkPack writes the states of one worker, 1,000 of 10 KiB, to local disk with fsync: packed into one file and, in the same
// run and alternating with it, into a file each. The metric "packed-ratio" is the time of the packed ones divided by that of
// the others: below 1 is faster.
func BenchmarkPack(b *testing.B) {
	dir := b.TempDir()
	fsys, err := localfs.Open(dir, localfs.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, fsys.Close()) }()
	storage, err := core.NewStorage(fsys, dir, core.JobIDOf("bench"), core.Options{InlineThreshold: core.NeverInline})
	require.NoError(b, err)
	owner, err := storage.Claim(b.Context())
	require.NoError(b, err)
	packer, err := storage.NewPacker(core.PackOptions{Worker: "bench"})
	require.NoError(b, err)
	state := patterned(packedStateSize)
	var packed, separate time.Duration
	id := int64(0)
	b.SetBytes(packedStates * packedStateSize)
	for b.Loop() {
		id++
		location, err := owner.Begin(b.Context(), id)
		require.NoError(b, err)
		separate += timed(b, func() {
			for range packedStates {
				writeState(b, location.CreateStateStream(b.Context(), core.Exclusive), state)
			}
		})
		packed += timed(b, func() {
			pack := packer.Begin(b.Context(), id, location.Location)
			for range packedStates {
				writeState(b, pack.CreateStateStream(b.Context(), core.Exclusive), state)
			}
			require.NoError(b, pack.Commit())
		})
		require.NoError(b, location.DisposeOnFailure(b.Context()))
		require.NoError(b, packer.Aborted(b.Context(), id))
	}
	n := float64(packedStates * b.N)
	b.ReportMetric(float64(packed)/float64(separate), "packed-ratio")
	b.ReportMetric(n/packed.Seconds(), "packed-states/s")
	b.ReportMetric(n/separate.Seconds(), "separate-states/s")
}

func writeState(b *testing.B, stream *core.StateStream, state []byte) {
	_, err := stream.Write(state)
	require.NoError(b, err)
	handle, err := stream.CloseAndGetHandle()
	require.NoError(b, err)
	require.Equal(b, int64(len(state)), handle.StateSize())
}
