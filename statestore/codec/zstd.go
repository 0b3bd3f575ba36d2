package codec

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// zstdMinWindow is the window that every reader must be able to hold, by RFC 8878.
const zstdMinWindow = 8 << 20

// zstdBuffer is how much is decompressed at once.
const zstdBuffer = 64 << 10

// zstdWindow is the largest window that is accepted: a frame of few bytes must not reserve much memory.
func zstdWindow(bytes int64, asked uint64) uint64 {
	if asked != 0 {
		return max(asked, 1<<10)
	}
	return min(max(zstdMinWindow, 32*uint64(max(bytes, 0))), 2<<30)
}

type zstdDecoder struct {
	s     *source
	start int64
	d     *zstd.Decoder
	buf   []byte
	small bool
	keep  bool
}

// smallDecoders holds *zstdDecoder for the smallest window, that is for all but large files.
var smallDecoders sync.Pool

func newZstdDecoder(s *source, maxWindow uint64, keep bool) (blockDecoder, error) {
	start, window := s.pos(), zstdWindow(s.remaining(), maxWindow)
	if z, ok := smallDecoders.Get().(*zstdDecoder); ok && window == zstdMinWindow {
		z.s, z.start, z.keep = s, start, keep
		if err := z.d.Reset(s); err != nil {
			return nil, zstdError(s, err)
		}
		return z, nil
	}
	d, err := zstd.NewReader(s,
		zstd.WithDecoderConcurrency(1), // which starts no goroutine
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, zstdError(s, err)
	}
	return &zstdDecoder{s: s, start: start, d: d, buf: make([]byte, zstdBuffer), small: window == zstdMinWindow, keep: keep}, nil
}

func (z *zstdDecoder) next() ([]byte, error) {
	for {
		n, err := z.d.Read(z.buf)
		if n > 0 && z.keep {
			block := z.buf[:n:n]
			if z.buf = z.buf[n:]; len(z.buf) < zstdBuffer/8 {
				z.buf = make([]byte, zstdBuffer)
			}
			return block, nil
		}
		if n > 0 {
			return z.buf[:n], nil // an error comes again
		}
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, zstdError(z.s, err)
		}
	}
}

func zstdError(s *source, err error) error {
	switch {
	case s.err != nil:
		return s.err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("%w: %w: raise ReaderOptions.MaxWindow", core.ErrUnsupportedVersion, err)
	}
	return corrupt(s.pos(), "zstd, at or before this byte: %v", err)
}

func (z *zstdDecoder) off() int64 { return z.start }

func (z *zstdDecoder) close() {
	if z.small && z.d.Reset(nil) == nil {
		z.s = nil
		if z.keep {
			z.buf = make([]byte, zstdBuffer)
		}
		smallDecoders.Put(z)
		return
	}
	z.d.Close()
}

type zstdEncoder struct {
	e     *zstd.Encoder
	level zstd.EncoderLevel
}

func newZstdEncoder(level zstd.EncoderLevel) (*zstdEncoder, error) {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return &zstdEncoder{e: e, level: level}, nil
}

func (z *zstdEncoder) encode(dst, raw []byte) ([]byte, error) { return z.e.EncodeAll(raw, dst), nil }
