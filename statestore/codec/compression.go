package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Compression is the framing around the records of a file. The zero value is LZ4, Spark's default.
type Compression uint8

// The framings, named as in Spark's configuration, and None for bare records, which Spark does not read.
const (
	LZ4    Compression = iota // lz4-java's block stream; checks each block
	Zstd                      // frames of RFC 8878; ours carry a content checksum, Spark's do not
	LZF                       // ning's chunks
	Snappy                    // xerial's stream of raw snappy blocks
	None
	compressions
)

var compressionNames = [compressions]string{"lz4", "zstd", "lzf", "snappy", "none"}

// String returns the name that Spark's configuration uses.
func (c Compression) String() string {
	if c < compressions {
		return compressionNames[c]
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

// ParseCompression is the inverse of String. A name that it does not know is core.ErrUnsupportedVersion.
func ParseCompression(name string) (Compression, error) {
	for c, known := range compressionNames {
		if name == known {
			return Compression(c), nil
		}
	}
	return 0, fmt.Errorf("%w: compression %q", core.ErrUnsupportedVersion, name)
}

var (
	lz4Magic    = []byte("LZ4Block")
	zstdMagic   = []byte{0x28, 0xb5, 0x2f, 0xfd}
	snappyMagic = []byte("\x82SNAPPY\x00")
)

// foreign are framings that look like ours to people, but not to Spark.
var foreign = []struct{ magic, name string }{
	{"\x04\x22\x4d\x18", "the LZ4 frame format"},
	{"\xff\x06\x00\x00sNaPpY", "the snappy framing format"},
	{"\x1f\x8b\x08", "gzip"},
}

// sniffLen is how many leading bytes Sniff looks at.
const sniffLen = 10

// Sniff tells the compression from the first bytes of a file, at least 10 unless the file is shorter. Bytes that begin
// neither a framing nor a bare record are core.ErrCorrupt; a framing that Spark does not read either is
// core.ErrUnsupportedVersion.
func Sniff(head []byte) (Compression, error) {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return 0, fmt.Errorf("%w: the file is in %s, which is no compression of a state store", core.ErrUnsupportedVersion, f.name)
		}
	}
	switch {
	case bytes.HasPrefix(head, lz4Magic):
		return LZ4, nil
	case bytes.HasPrefix(head, zstdMagic), isSkippableFrame(head):
		return Zstd, nil
	case bytes.HasPrefix(head, snappyMagic):
		return Snappy, nil
	case len(head) >= 3 && head[0] == 'Z' && head[1] == 'V' && head[2] <= lzfCompressed:
		return LZF, nil
	case len(head) < 4:
		return 0, fmt.Errorf("%w: %d bytes are no state store file", core.ErrCorrupt, len(head))
	}
	// A bare file begins with a key length or the EOF marker; a changelog of version 2 to 4 with "v" after its length.
	first := int32(binary.BigEndian.Uint32(head))
	if first >= eofMarker && first <= defaultMaxBytes || head[0] == 0 && head[2] == 'v' {
		return None, nil
	}
	return 0, fmt.Errorf("%w: the first bytes % x belong to no known compression", core.ErrCorrupt, head[:4])
}

func isSkippableFrame(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
}

// blockLimits are the default and the largest block size for writing; the smallest is 64.
var blockLimits = [compressions]struct{ def, largest int }{
	LZ4:    {32 << 10, 32 << 20},
	Zstd:   {1 << 20, 32 << 20},
	LZF:    {lzfMaxChunk, lzfMaxChunk},
	Snappy: {32 << 10, 1 << 20},
	None:   {64 << 10, 32 << 20},
}

const smallestBlock = 64

func checkBlockSize(c Compression, size int) error {
	if size != 0 && (size < smallestBlock || size > blockLimits[c].largest) {
		return fmt.Errorf("%w: block size %d: %s takes %d to %d bytes", fs.ErrInvalid, size, c, smallestBlock, blockLimits[c].largest)
	}
	return nil
}
