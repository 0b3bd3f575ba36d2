package core_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// writePatterns cut the same bytes into different writes.
var writePatterns = []struct {
	name string
	cut  func(data []byte, threshold int) [][]byte
}{
	{"in one call", func(data []byte, _ int) [][]byte { return [][]byte{data} }},
	{"byte by byte", func(data []byte, _ int) [][]byte { return slices.Collect(slices.Chunk(data, 1)) }},
	{"in halves of the threshold", func(data []byte, threshold int) [][]byte {
		return slices.Collect(slices.Chunk(data, max(threshold/2, 1)))
	}},
	{"in a long and a short piece", func(data []byte, _ int) [][]byte {
		cut := max(len(data)-1, 0)
		return [][]byte{data[:cut], data[cut:], nil}
	}},
}

func TestStateStreamIsInlineUpToTheThresholdAndAFileAbove(t *testing.T) {
	for _, threshold := range []int{1, 2, 1024, core.DefaultInlineThreshold, core.MaxInlineThreshold} {
		for _, size := range []int{0, threshold - 1, threshold, threshold + 1} {
			for _, pattern := range writePatterns {
				for _, flush := range []bool{false, true} {
					if threshold == core.MaxInlineThreshold && (flush || pattern.name != "in one call") {
						continue // nothing that the smaller thresholds do not show, and slow
					}
					t.Run(fmt.Sprintf("threshold %d/size %d/%s/flush %v", threshold, size, pattern.name, flush), func(t *testing.T) {
						r := newStreamRig(t, core.Options{InlineThreshold: threshold})
						s := r.exclusive(t.Context())
						content := noise(size)
						for _, piece := range pattern.cut(content, threshold) {
							n, err := s.Write(piece)
							require.NoError(t, err)
							require.Equal(t, len(piece), n)
						}
						require.Equal(t, int64(size), s.Pos())
						if flush {
							require.NoError(t, s.Flush())
						}
						handle, err := s.CloseAndGetHandle()
						require.NoError(t, err)
						require.NoError(t, s.Close())
						requireKind(t, r, handle, size, threshold)
						requireState(t, r.mem, content, handle)
					})
				}
			}
		}
	}
}

// requireKind says that a state of the given size has the handle that the threshold asks for, and that inline state took no
// file-system call.
func requireKind(t testing.TB, r *streamRig, handle core.StreamHandle, size, threshold int) {
	t.Helper()
	switch {
	case size == 0:
		require.Nil(t, handle)
		require.Empty(t, r.faults.Calls())
	case size <= threshold:
		require.IsType(t, (*core.BytesHandle)(nil), handle)
		require.Empty(t, r.faults.Calls())
	default:
		require.IsType(t, (*core.RelativeFileHandle)(nil), handle)
		require.Equal(t, 1, r.count(faultfs.OpCreate))
		require.Zero(t, r.count(faultfs.OpMkdirAll)+r.count(faultfs.OpStat)+r.count(faultfs.OpList), "directories are never made or checked")
	}
}

// TestStateStreamEqualsAByteSlice writes random slices, with and without flushes and syncs between them, beside a plain byte
// slice.
func TestStateStreamEqualsAByteSlice(t *testing.T) {
	generator := loggedRand(t)
	for range 700 {
		threshold := generator.IntN(200)
		buffer := generator.IntN(300)
		opts := core.Options{InlineThreshold: threshold, WriteBuffer: max(buffer, 1)}
		if threshold == 0 {
			opts.InlineThreshold = core.NeverInline
		}
		r := newStreamRig(t, opts)
		s := r.exclusive(t.Context())
		var model []byte
		history := fmt.Sprintf("threshold %d, buffer %d:", threshold, buffer)
		for range generator.IntN(20) {
			switch generator.IntN(8) {
			case 0:
				history += " flush"
				require.NoError(t, s.Flush(), history)
			case 1:
				history += " sync"
				require.NoError(t, s.Sync(), history)
			case 2:
				history += " byte"
				require.NoError(t, s.WriteByte(7), history)
				model = append(model, 7)
			default:
				// Lengths around the borders come up often.
				edges := []int{0, threshold - 1, threshold, threshold + 1, buffer - 1, buffer, buffer + 1, generator.IntN(1000)}
				piece := noise(max(edges[generator.IntN(len(edges))], 0))
				history += fmt.Sprintf(" %d", len(piece))
				n, err := s.Write(piece)
				require.NoError(t, err, history)
				require.Equal(t, len(piece), n, history)
				model = append(model, piece...)
				clear(piece)
			}
			require.Equal(t, int64(len(model)), s.Pos(), history)
		}
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, err, history)
		require.Equal(t, int64(len(model)), s.Pos(), history)
		requireKind(t, r, handle, len(model), threshold)
		require.True(t, bytes.Equal(model, stateOf(t, r.mem, handle)), history)
		requireTrueChecksums(t, handle, model)
		require.Empty(t, r.mem.OpenFiles())
	}
}

// requireTrueChecksums says that a file's handle has the checksums of the bytes.
func requireTrueChecksums(t testing.TB, handle core.StreamHandle, content []byte) {
	t.Helper()
	var sums *core.Checksums
	switch h := handle.(type) {
	case *core.FileHandle:
		sums = h.Checksums
	case *core.RelativeFileHandle:
		sums = h.Checksums
	default:
		return
	}
	require.NotNil(t, sums)
	require.Equal(t, core.ChecksumChunk, sums.ChunkSize)
	var want []uint32
	for chunk := range slices.Chunk(content, core.ChecksumChunk) {
		want = append(want, core.CRC32C(chunk))
	}
	require.Equal(t, want, sums.Sums)
}

func TestStateStreamChecksumsCoverChunkBorders(t *testing.T) {
	const chunk = core.ChecksumChunk
	for _, size := range []int{1, chunk - 1, chunk, chunk + 1, 2 * chunk} {
		for _, piece := range []int{size, chunk - 7} {
			t.Run(fmt.Sprintf("%d in pieces of %d", size, piece), func(t *testing.T) {
				r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
				s := r.exclusive(t.Context())
				content := noise(size)
				for part := range slices.Chunk(content, piece) {
					_, err := s.Write(part)
					require.NoError(t, err)
				}
				handle, err := s.CloseAndGetHandle()
				require.NoError(t, err)
				requireTrueChecksums(t, handle, content)
				requireState(t, r.mem, content, handle)
			})
		}
	}
}

func TestStateStreamRefusesThresholdsAndBuffersThatMakeNoSense(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"threshold below NeverInline": {InlineThreshold: -2},
		"threshold above the maximum": {InlineThreshold: core.MaxInlineThreshold + 1},
		"negative buffer":             {WriteBuffer: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := core.NewStorage(memfs.New(memfs.Options{}), rigBase, rigJob, opts)
			require.ErrorIs(t, err, fs.ErrInvalid)
		})
	}
}

func TestStateStreamWithTheSmallestBufferWritesEveryByte(t *testing.T) {
	// Better than Flink, where a single-byte write with buffer and threshold 0 indexes out of range and leaves an empty file.
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline, WriteBuffer: 1})
	s := r.exclusive(t.Context())
	n, err := s.Write(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, r.files(), "an empty write makes no file")
	for _, c := range []byte("abc") {
		require.NoError(t, s.WriteByte(c))
	}
	_, err = s.Write([]byte("de"))
	require.NoError(t, err)
	handle, err := s.CloseAndGetHandle()
	require.NoError(t, err)
	requireState(t, r.mem, []byte("abcde"), handle)
}

func TestStateStreamHandlesDoNotShareMemory(t *testing.T) {
	r := newStreamRig(t, core.Options{})
	var handles []core.StreamHandle
	for i := range 20 {
		s := r.exclusive(t.Context())
		_, err := s.Write(bytes.Repeat([]byte{byte(i)}, 100))
		require.NoError(t, err)
		handle, err := s.CloseAndGetHandle() // gives its buffer back for the next stream
		require.NoError(t, err)
		handles = append(handles, handle)
	}
	for i, handle := range handles {
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 100), stateOf(t, r.mem, handle))
	}
}
