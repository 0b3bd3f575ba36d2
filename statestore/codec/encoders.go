package codec

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// blockEncoder appends the framed form of raw to dst. One encoder is for one goroutine.
type blockEncoder interface {
	encode(dst, raw []byte) ([]byte, error)
}

// The encoders' tables are large beside a small delta, so they are used again.
var (
	lz4Encoders, lzfEncoders sync.Pool
	zstdEncoders             [zstd.SpeedBestCompression + 1]sync.Pool
)

func newBlockEncoder(c Compression, blockSize, level int) (blockEncoder, error) {
	switch c {
	case LZ4:
		e, ok := lz4Encoders.Get().(*lz4Encoder)
		if !ok {
			e = &lz4Encoder{}
		}
		e.level = lz4Level(blockSize)
		return e, nil
	case LZF:
		if e, ok := lzfEncoders.Get().(*lzfEncoder); ok {
			return e, nil
		}
		return &lzfEncoder{}, nil
	case Snappy:
		return snappyEncoder{}, nil
	case Zstd:
		speed := zstd.EncoderLevelFromZstd(level)
		if e, ok := zstdEncoders[speed].Get().(*zstdEncoder); ok {
			return e, nil
		}
		return newZstdEncoder(speed)
	}
	return plainEncoder{}, nil
}

func releaseEncoder(e blockEncoder) {
	switch e := e.(type) {
	case *lz4Encoder:
		lz4Encoders.Put(e)
	case *lzfEncoder:
		lzfEncoders.Put(e)
	case *zstdEncoder:
		zstdEncoders[e.level].Put(e)
	}
}

type plainEncoder struct{}

func (plainEncoder) encode(dst, raw []byte) ([]byte, error) { return append(dst, raw...), nil }
