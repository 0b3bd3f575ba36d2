package codec_test

import (
	"bytes"
	"errors"
	"io/fs"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

var errDisk = errors.New("disk on fire")

// failing fails once limit bytes were taken.
type failing struct{ limit int }

func (f *failing) Write(p []byte) (int, error) {
	if f.limit -= len(p); f.limit < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestFirstFailureOfAWriterSticks(t *testing.T) {
	r := seeded(t)
	before := runtime.NumGoroutine()
	for _, parallelism := range []int{1, 3} {
		for _, limit := range []int{0, 1000, 40_000, 200_000} {
			w, err := codec.NewWriter(&failing{limit}, codec.Delta, codec.WriterOptions{Name: "/1.delta", Compression: codec.None, Parallelism: parallelism})
			require.NoError(t, err)
			for range 100 {
				if err = w.Put([]byte("key"), []byte(noise(r, 8000))); err != nil {
					break
				}
			}
			closed := w.Close()
			require.ErrorIs(t, closed, errDisk)
			require.ErrorIs(t, w.Close(), errDisk)
			require.ErrorIs(t, w.Put(nil, nil), errDisk)
			w.Abort()
			var pe *fs.PathError
			require.ErrorAs(t, closed, &pe)
			require.Equal(t, "/1.delta", pe.Path)
		}
	}
	requireNoGoroutines(t, before)
}

func TestAbortLeavesNoCompleteFile(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, c := range allCompressions {
		var b bytes.Buffer
		w, err := codec.NewWriter(&b, codec.Delta, codec.WriterOptions{Compression: c, Parallelism: 2})
		require.NoError(t, err)
		require.NoError(t, w.Put([]byte("key"), make([]byte, 100_000)))
		w.Abort()
		w.Abort()
		require.ErrorIs(t, w.Close(), fs.ErrClosed)
		require.ErrorIs(t, w.Remove(nil), fs.ErrClosed)
		_, err = read(b.Bytes(), codec.Delta, codec.ReaderOptions{})
		require.ErrorIs(t, err, core.ErrCorrupt)
	}
	requireNoGoroutines(t, before)
}

func TestAbortAfterCloseKeepsTheFile(t *testing.T) {
	var b bytes.Buffer
	w, err := codec.NewWriter(&b, codec.Snapshot, codec.WriterOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, w.Remove([]byte("a")), fs.ErrInvalid)
	require.NoError(t, w.Put([]byte("a"), nil))
	require.NoError(t, w.Close())
	w.Abort()
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Put(nil, nil), fs.ErrClosed)
	got, err := read(b.Bytes(), codec.Snapshot, codec.ReaderOptions{})
	require.NoError(t, err)
	require.Equal(t, []record{{key: "a"}}, got)
}

func TestWriterRefusesWhatNoReaderTakes(t *testing.T) {
	w, err := codec.NewWriter(&bytes.Buffer{}, codec.Delta, codec.WriterOptions{MaxBytes: 16})
	require.NoError(t, err)
	require.ErrorIs(t, w.Put(make([]byte, 17), nil), fs.ErrInvalid)
	require.ErrorIs(t, w.Put(nil, make([]byte, 17)), fs.ErrInvalid)
	require.ErrorIs(t, w.Remove(make([]byte, 17)), fs.ErrInvalid)
	require.NoError(t, w.Put(make([]byte, 16), make([]byte, 16)))
	require.NoError(t, w.Close())
}
