package codec

import (
	"bytes"
	"errors"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// XXH32 is for the tests.
var XXH32 = xxh32

// BlockLengths returns how much content each block of a complete file without footer holds.
func BlockLengths(b []byte) []int {
	c, err := Sniff(b[:min(len(b), sniffLen)])
	if err != nil {
		panic(err)
	}
	d, err := newDecoder(newSource(bytes.NewReader(b), int64(len(b)), nil, false), c, ReaderOptions{}, false)
	if err != nil {
		panic(err)
	}
	defer d.close()
	var lengths []int
	for {
		block, err := d.next()
		if err != nil {
			return lengths
		}
		lengths = append(lengths, len(block))
	}
}

// LZFDecompress and LZFCompress are the block codec without its chunks.
var LZFDecompress = lzfDecompress

// LZFCompress compresses at least 16 bytes, and returns shorter ones as literals.
func LZFCompress(b []byte) []byte {
	if len(b) < lzfMinCompress {
		return append([]byte{byte(len(b) - 1)}, b...)
	}
	return (&lzfEncoder{}).compress(nil, b)
}

// ParseFooter parses a footer without its checksum, length and end.
func ParseFooter(b []byte) (*Footer, error) {
	if len(b) < footerMinimum-footerTail || !bytes.HasPrefix(b, append(bytes.Clone(footerMagic), 0, footerVersion)) || b[12] > 7 || b[13]|b[14]|b[15] != 0 {
		return nil, errors.New("no footer")
	}
	f, ok := parseFooter(b)
	if !ok {
		return nil, errors.New("a footer that contradicts itself")
	}
	return f, nil
}

// BareFooter is the inverse of ParseFooter.
func BareFooter(f *Footer) []byte {
	b := f.append(nil)
	return b[:len(b)-footerTail]
}

// DecodeZstd decodes b as a part of one of our files, frame by frame or as a stream. known is whether there is a choice.
func DecodeZstd(b []byte, byFrame bool) (content []byte, known bool, err error) {
	footer := &Footer{ChunkSize: footerChunk, ChunkSums: []uint32{}}
	for at := 0; at < len(b); at += footerChunk {
		footer.ChunkSums = append(footer.ChunkSums, core.CRC32C(b[at:min(len(b), at+footerChunk)]))
	}
	s := newSource(bytes.NewReader(b), int64(len(b)), footer, false)
	z, err := newZstdFraming(s, 1)
	if err != nil || z == nil {
		return nil, false, err
	}
	var d blockDecoder = &serialDecoder{s: s, framing: z}
	if !byFrame {
		if d, err = newZstdDecoder(s, 0, false); err != nil {
			return nil, true, err
		}
	}
	defer d.close()
	for {
		block, err := d.next()
		if errors.Is(err, io.EOF) {
			return content, true, nil
		}
		if err != nil {
			return content, true, err
		}
		content = append(content, block...)
	}
}
