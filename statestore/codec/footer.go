package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The footer stands after the codec's stream, where Spark does not look. Integers are big-endian.
//
//	offset  size   footer
//	0       8      "HCstate\x01"
//	8       2      version, 1
//	10      1      kind: 1 delta, 2 snapshot, 3 changelog
//	11      1      compression: 0 lz4, 1 zstd, 2 lzf, 3 snappy, 4 none
//	12      1      flags: 1 row checksums, 2 keys ascend strictly, 4 value lengths are exact
//	13      3      0
//	16      8      records that are not removals
//	24      8      removals, those of ranges included
//	32      8      bytes of the codec's stream, that is the footer's offset in the file
//	40      8      bytes of its content, the EOF record included
//	48      4      chunk size, 1 MiB
//	52      4      number of chunks n
//	56      4n     CRC32C of each chunk of the codec's stream
//	…       4      number of index entries m
//	…       …      m × { 8 offset in the file of a block, 4 bytes to skip in its content, 4 length, key of the record there }
//	…       4      CRC32C of the footer up to here
//	…       4      length of the whole footer
//	…       8      "HCfooter"
const (
	footerVersion  = 1
	footerFixed    = 56
	footerTail     = 16
	footerChunk    = 1 << 20
	footerMinimum  = footerFixed + 4 + footerTail
	flagChecksums  = 1
	flagSorted     = 2
	flagExact      = 4
	indexEntryHead = 16
)

var (
	footerMagic    = []byte("HCstate\x01")
	footerEndMagic = []byte("HCfooter")
)

// Footer is what this module adds after the end of a file.
type Footer struct {
	Kind         Kind
	Compression  Compression
	RowChecksum  bool
	Sorted       bool // keys ascend strictly by their bytes; Index is usable
	Exact        bool // values have any length; a reader must not floor it to a multiple of 8
	Puts         int64
	Removals     int64
	StreamBytes  int64 // of the codec's stream; the footer's offset in the file
	ContentBytes int64 // decompressed, the EOF record included
	ChunkSize    int
	ChunkSums    []uint32 // CRC32C of each chunk of the codec's stream
	Index        []IndexEntry
}

// IndexEntry says where a record stands.
type IndexEntry struct {
	Key    []byte
	Offset int64 // in the file, of a block that can be decoded alone
	Skip   int   // bytes of the block's content before the record
}

func (f *Footer) append(dst []byte) []byte {
	at := len(dst)
	flags := byte(0)
	if f.RowChecksum {
		flags |= flagChecksums
	}
	if f.Sorted {
		flags |= flagSorted
	}
	if f.Exact {
		flags |= flagExact
	}
	be := binary.BigEndian
	dst = append(dst, footerMagic...)
	dst = be.AppendUint16(dst, footerVersion)
	dst = append(dst, byte(f.Kind), byte(f.Compression), flags, 0, 0, 0)
	for _, n := range []int64{f.Puts, f.Removals, f.StreamBytes, f.ContentBytes} {
		dst = be.AppendUint64(dst, uint64(n))
	}
	dst = be.AppendUint32(dst, uint32(f.ChunkSize))
	dst = be.AppendUint32(dst, uint32(len(f.ChunkSums)))
	for _, sum := range f.ChunkSums {
		dst = be.AppendUint32(dst, sum)
	}
	dst = be.AppendUint32(dst, uint32(len(f.Index)))
	for _, e := range f.Index {
		dst = be.AppendUint64(dst, uint64(e.Offset))
		dst = be.AppendUint32(dst, uint32(e.Skip))
		dst = be.AppendUint32(dst, uint32(len(e.Key)))
		dst = append(dst, e.Key...)
	}
	dst = be.AppendUint32(dst, core.CRC32C(dst[at:]))
	dst = be.AppendUint32(dst, uint32(len(dst)-at+4+len(footerEndMagic)))
	return append(dst, footerEndMagic...)
}

// ReadFooter returns the footer of a file of the given size, or nil if it has none, as Spark's own have not. It checks
// the footer, not the rest of the file. Damage is core.ErrCorrupt, a later version core.ErrUnsupportedVersion.
func ReadFooter(at io.ReaderAt, size int64) (*Footer, error) {
	if size < footerMinimum {
		return nil, nil
	}
	tail := make([]byte, footerTail)
	if err := readAt(at, tail, size-footerTail); err != nil {
		return nil, err
	}
	if !bytes.Equal(tail[8:], footerEndMagic) {
		return nil, nil
	}
	n := int64(binary.BigEndian.Uint32(tail[4:]))
	if n < footerMinimum || n > size {
		return nil, corrupt(size-footerTail, "a footer of %d bytes in a file of %d", n, size)
	}
	b := make([]byte, n-footerTail)
	if err := readAt(at, b, size-n); err != nil {
		return nil, err
	}
	if sum, stored := core.CRC32C(b), binary.BigEndian.Uint32(tail); sum != stored {
		return nil, corrupt(size-n, "checksum of the footer: stored %08x, computed %08x", stored, sum)
	}
	if !bytes.HasPrefix(b, footerMagic) {
		return nil, corrupt(size-n, "no footer begins here")
	}
	if version := binary.BigEndian.Uint16(b[8:]); version != footerVersion {
		return nil, fmt.Errorf("%w: footer of version %d", core.ErrUnsupportedVersion, version)
	}
	f, ok := parseFooter(b)
	if !ok || f.StreamBytes != size-n {
		return nil, corrupt(size-n, "the footer contradicts itself or the size of the file")
	}
	return f, nil
}

func parseFooter(b []byte) (*Footer, bool) {
	be := binary.BigEndian
	f := &Footer{
		Kind: Kind(b[10]), Compression: Compression(b[11]), RowChecksum: b[12]&flagChecksums != 0, Sorted: b[12]&flagSorted != 0,
		Exact: b[12]&flagExact != 0,
		Puts:  int64(be.Uint64(b[16:])), Removals: int64(be.Uint64(b[24:])),
		StreamBytes: int64(be.Uint64(b[32:])), ContentBytes: int64(be.Uint64(b[40:])),
		ChunkSize: int(be.Uint32(b[48:])),
	}
	chunks := int64(be.Uint32(b[52:]))
	b = b[footerFixed:]
	if f.Kind < Delta || f.Kind > Changelog || f.Compression >= compressions || f.ChunkSize < 1 || f.ChunkSize > footerChunk ||
		f.StreamBytes < 0 || chunks != (f.StreamBytes+int64(f.ChunkSize)-1)/int64(f.ChunkSize) || int64(len(b)) < 4*chunks+4 {
		return nil, false
	}
	f.ChunkSums = make([]uint32, chunks)
	for i := range f.ChunkSums {
		f.ChunkSums[i], b = be.Uint32(b), b[4:]
	}
	entries := int64(be.Uint32(b))
	b = b[4:]
	if entries*indexEntryHead > int64(len(b)) {
		return nil, false
	}
	f.Index = make([]IndexEntry, entries)
	for i := range f.Index {
		if len(b) < indexEntryHead {
			return nil, false
		}
		e := IndexEntry{Offset: int64(be.Uint64(b)), Skip: int(be.Uint32(b[8:]))}
		n := int64(be.Uint32(b[12:]))
		b = b[indexEntryHead:]
		if n > int64(len(b)) || e.Offset < 0 || e.Offset >= f.StreamBytes {
			return nil, false
		}
		e.Key, b = b[:n:n], b[n:]
		if i > 0 && bytes.Compare(f.Index[i-1].Key, e.Key) >= 0 {
			return nil, false
		}
		f.Index[i] = e
	}
	return f, len(b) == 0
}
