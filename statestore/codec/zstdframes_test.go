package codec_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestZstdFramesAreDecodedSideBySide(t *testing.T) {
	records := randomRecords(seeded(t), codec.Snapshot, 600)
	for _, blockSize := range []int{64, 5000, 0, 9 << 20} {
		for _, level := range []int{0, 3} {
			before := runtime.NumGoroutine()
			file := write(t, codec.Snapshot, codec.WriterOptions{Compression: codec.Zstd, BlockSize: blockSize, Level: level}, records)
			r, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Snapshot, codec.ReaderOptions{Parallelism: 2})
			require.NoError(t, err)
			require.Equal(t, blockSize == 5000 || blockSize == 0, runtime.NumGoroutine() > before, "block size %d", blockSize)
			require.NoError(t, r.Close()) // frames of 64 bytes do not say how large they are
			requireNoGoroutines(t, before)
			got, err := read(file, codec.Snapshot, codec.ReaderOptions{Parallelism: 3})
			require.NoError(t, err)
			require.Equal(t, records, got)
		}
	}
}

// TestZstdFilesThatEndWithAShortFrame: it does not say how large it is.
func TestZstdFilesThatEndWithAShortFrame(t *testing.T) {
	r := seeded(t)
	for n := 0; n < 60; n += 7 {
		records := make([]record, n)
		for i := range records {
			records[i] = record{key: fmt.Sprintf("%04d", i), value: noise(r, 80)}
		}
		for _, level := range []int{0, 3} {
			file := write(t, codec.Snapshot, codec.WriterOptions{Compression: codec.Zstd, BlockSize: 600, Level: level}, records)
			got, err := read(file, codec.Snapshot, codec.ReaderOptions{Parallelism: 2})
			require.NoError(t, err)
			require.True(t, slices.Equal(records, got))
		}
	}
}

func frameOf(t testing.TB, content []byte, opts ...zstd.EOption) []byte {
	w, err := zstd.NewWriter(nil, opts...)
	require.NoError(t, err)
	return w.EncodeAll(content, nil)
}

func TestZstdFramesThatAreNotLikeTheFirst(t *testing.T) {
	text := bytes.Repeat([]byte("some text, "), 100)
	first := frameOf(t, text)
	for name, tt := range map[string]struct {
		second []byte
		ok     bool
	}{
		"a smaller one":             {frameOf(t, text[:10]), true},
		"one without a checksum":    {frameOf(t, text[:10], zstd.WithEncoderCRC(false)), true},
		"one with a window":         {frameOf(t, text, zstd.WithSingleSegment(false)), true},
		"incompressible":            {frameOf(t, []byte(noise(seeded(t), 1000))), true},
		"a larger one":              {frameOf(t, append(text, 'x')), false},
		"none":                      {[]byte("no frame at all"), false},
		"a skippable one":           {[]byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x"), false},
		"a header":                  {first[:6], false},
		"a cut one":                 {first[:len(first)-5], false},
		"one without its checksum":  {first[:len(first)-4], false},
		"a huge content size":       {[]byte("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00"), false},
		"a size beyond its blocks":  {append([]byte("\x28\xb5\x2f\xfd\x60\x00\x03"), 1, 0, 0), false},
		"a block that is too large": {append([]byte("\x28\xb5\x2f\xfd\x20\x10"), 0xff, 0xff, 0xff), false},
	} {
		content, known, err := codec.DecodeZstd(append(bytes.Clone(first), tt.second...), true)
		require.True(t, known, name)
		if !tt.ok {
			require.ErrorIs(t, err, core.ErrCorrupt, name)
			continue
		}
		require.NoError(t, err, name)
		stream, _, err := codec.DecodeZstd(append(bytes.Clone(first), tt.second...), false)
		require.NoError(t, err, name)
		require.Equal(t, stream, content, name)
	}
}

// FuzzZstdFrames: what decodes frame by frame decodes to the same as a stream.
func FuzzZstdFrames(f *testing.F) {
	text := bytes.Repeat([]byte("some text, "), 50)
	f.Add(append(frameOf(f, text), frameOf(f, text[:30])...))
	f.Add(append(frameOf(f, text, zstd.WithEncoderCRC(false)), frameOf(f, make([]byte, 500))...))
	f.Add(frameOf(f, make([]byte, 300_000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		content, known, err := codec.DecodeZstd(b, true)
		if err != nil {
			requireKnownError(t, err)
			return
		}
		if known {
			stream, _, err := codec.DecodeZstd(b, false)
			require.NoError(t, err)
			require.True(t, bytes.Equal(stream, content))
		}
	})
}
