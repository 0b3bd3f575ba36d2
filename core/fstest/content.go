package fstest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// sizes are lengths around the borders of checksum chunks (512), pages and buffers (4 KiB, 64 KiB), HDFS packets (126
// checksum chunks) and checked chunks (1 MiB), and some of many such units.
func (s *subject) sizes() []int {
	sizes := []int{0, 1, 2}
	for _, border := range []int{512, 4096, 126 * 512, 64 << 10, 1 << 20} {
		sizes = append(sizes, border-1, border, border+1)
	}
	return append(append(sizes, 2<<20, 3<<20+7, 5_000_011), s.Sizes...)
}

func contentRules() []rule {
	return []rule{
		{"Every length is written in one piece and read back", func(t testing.TB, s *subject) {
			second := s.Second(t)
			for _, size := range s.sizes() {
				data := pattern(uint64(size), size)
				name := s.path(fmt.Sprintf("file-%d", size))
				s.write(t, name, data)
				requireContent(t, s.ctx, s.FS, name, data)
				requireContent(t, s.ctx, second, name, data)
				info, err := s.FS.Stat(s.ctx, name)
				require.NoError(t, err)
				require.EqualValues(t, size, info.Size)
			}
		}},
		{"Every length is written in pieces of one size and read back", func(t testing.TB, s *subject) {
			// More than that takes time and shows nothing new.
			const most, largest = 4200, 2 << 20 // pieces of one file, bytes
			for _, piece := range []int{1, 511, 4097, 65536} {
				for _, size := range s.sizes() {
					if size <= most*piece && size < largest {
						s.requirePieces(t, fmt.Sprintf("%d-by-%d", size, piece), size, func() int { return piece })
					}
				}
			}
		}},
		{"Every length is written in pieces of random sizes and read back", func(t testing.TB, s *subject) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			for _, size := range s.sizes() {
				s.requirePieces(t, fmt.Sprintf("file-%d", size), size, func() int { return random.IntN(size/7 + 2) })
			}
		}},
		{"A read may begin and end anywhere", func(t testing.TB, s *subject) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			data := pattern(1, 3<<20+7)
			s.write(t, s.path("file"), data)
			r := s.open(t, s.path("file"))
			for i := range 300 {
				from := random.IntN(len(data))
				part := make([]byte, 1+random.IntN(min(200_000, len(data)-from)))
				if i%3 == 0 { // to the very end
					part = make([]byte, min(200_000, len(data)-from))
					from = len(data) - len(part)
				}
				n, err := r.ReadAt(part, int64(from))
				if err != nil {
					require.Equal(t, io.EOF, err)
					require.Equal(t, len(data), from+n)
				}
				requireBytes(t, data[from:from+len(part)], part[:n], fmt.Sprintf("from %d", from))
			}
		}},
		{"Write neither keeps nor changes the caller's buffer", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			buffer, want := make([]byte, 10_000), []byte(nil)
			for i := range 30 {
				piece := pattern(uint64(i), len(buffer))
				copy(buffer, piece)
				n, err := w.Write(buffer)
				require.NoError(t, err)
				require.Equal(t, len(buffer), n)
				requireBytes(t, piece, buffer, "the buffer after Write")
				clear(buffer)
				want = append(want, piece...)
			}
			require.NoError(t, w.Close())
			requireContent(t, s.ctx, s.FS, s.path("file"), want)
		}},
	}
}

// requirePieces writes a file in pieces whose sizes next gives, and reads it back.
func (s *subject) requirePieces(t testing.TB, name string, size int, next func() int) {
	t.Helper()
	data := pattern(uint64(size), size)
	w, err := s.FS.Create(s.ctx, s.path(name), core.CreateOptions{})
	require.NoError(t, err)
	for rest := data; len(rest) > 0; {
		piece := rest[:min(next(), len(rest))]
		n, err := w.Write(piece)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
		rest = rest[n:]
	}
	require.NoError(t, w.Close())
	requireContent(t, s.ctx, s.FS, s.path(name), data)
	require.NoError(t, s.FS.Remove(s.ctx, s.path(name)))
}
