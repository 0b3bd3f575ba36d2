package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sort"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// eofMarker stands in the place of a key length.
const eofMarker = -1

// Record is one entry of a delta or snapshot. The slices of a record that Reader returned are valid until the next call,
// unless ReaderOptions.Keep says otherwise.
type Record struct {
	Key     []byte
	Value   []byte
	Removed bool // the key was removed; there is no value
}

// Reader reads the records of a delta or snapshot in the order of the file. It is for one goroutine.
//
// Memory is bounded by a block of the compression, the largest record and, with Parallelism, twice 256 KiB, or a block if that
// is larger, for each goroutine; no length in the file is believed before the bytes are there.
//
// A file with our footer is checked by CRC32C, 1 MiB at a time, before any byte of it is used. In a foreign file the
// damage that lz4's block checksums and the row checksums do not see is not found. Records of a file are complete only
// when Next has returned io.EOF.
type Reader struct {
	in    *input
	exact bool
	key   []byte
	value []byte
	from  []byte // records with a lower key are passed over
}

// NewReader begins to read a file of size bytes, a delta or a snapshot. The file's compression is told from its bytes. The
// error is an *fs.PathError: core.ErrCorrupt, core.ErrUnsupportedVersion, or what src returned.
func NewReader(src io.ReaderAt, size int64, kind Kind, opts ReaderOptions) (*Reader, error) {
	if kind != Delta && kind != Snapshot {
		return nil, core.PathError("read", opts.Name, fmt.Errorf("%w: a %s has another reader", fs.ErrInvalid, kind))
	}
	in, err := openInput(src, size, kind, opts)
	if err != nil {
		return nil, err
	}
	return &Reader{in: in, exact: in.footer != nil && in.footer.Exact}, nil
}

// Footer returns our footer, or nil.
func (r *Reader) Footer() *Footer { return r.in.footer }

// Compression returns what the file is compressed with.
func (r *Reader) Compression() Compression { return r.in.compression }

// Close stops the goroutines of the reader and waits for them. It never fails; calling it again is harmless.
func (r *Reader) Close() error {
	r.in.shut()
	return nil
}

// All iterates over the records. After an error, which comes with a zero record, it yields nothing more; without one the
// file was complete.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next record. io.EOF says that the file was read to its proper end; every other error is an
// *fs.PathError, core.ErrCorrupt for damage, and comes again.
func (r *Reader) Next() (Record, error) {
	for {
		rec, err := r.read()
		if err != nil {
			return Record{}, err
		}
		if r.from == nil || bytes.Compare(rec.Key, r.from) >= 0 {
			r.from = nil
			return rec, nil
		}
	}
}

func (r *Reader) read() (Record, error) {
	in := r.in
	if in.ended != nil {
		return Record{}, in.ended
	}
	if rec, n := r.whole(in.c.block); n > 0 {
		in.c.block = in.c.block[n:]
		return r.accept(rec.Key, rec.Value, rec.Removed)
	}
	keyLen, err := in.c.int32()
	switch {
	case err != nil:
		return Record{}, in.fail(err)
	case keyLen == eofMarker:
		return Record{}, in.finish()
	case keyLen < 0:
		return Record{}, in.malformed("a key of %d bytes", keyLen)
	}
	if in.opts.Keep {
		r.key, r.value = nil, nil
	}
	if r.key, err = in.c.bytes(r.key[:0], int(keyLen)); err != nil {
		return Record{}, in.fail(err)
	}
	valueLen, err := in.c.int32()
	if err != nil {
		return Record{}, in.fail(err)
	}
	if valueLen < 0 {
		return r.accept(r.key, nil, true)
	}
	if r.value, err = in.c.bytes(r.value[:0], int(valueLen)); err != nil {
		return Record{}, in.fail(err)
	}
	return r.accept(r.key, r.value, false)
}

// whole parses a record that lies in one block, without copying it. n is 0 if there is none.
func (r *Reader) whole(b []byte) (rec Record, n int) {
	if len(b) < 8 {
		return rec, 0
	}
	keyLen := int64(int32(binary.BigEndian.Uint32(b)))
	if keyLen < 0 || keyLen > int64(r.in.c.limit) || keyLen+8 > int64(len(b)) {
		return rec, 0
	}
	rec.Key = b[4 : 4+keyLen : 4+keyLen]
	rest := b[4+keyLen:]
	valueLen := int64(int32(binary.BigEndian.Uint32(rest)))
	if valueLen < 0 {
		rec.Removed = true
		return rec, int(8 + keyLen)
	}
	if valueLen > int64(r.in.c.limit) || 4+valueLen > int64(len(rest)) {
		return rec, 0
	}
	rec.Value = rest[4 : 4+valueLen : 4+valueLen]
	return rec, int(8 + keyLen + valueLen)
}

// accept applies Spark's rules to a stored record.
func (r *Reader) accept(key, value []byte, removed bool) (Record, error) {
	in := r.in
	if removed {
		if in.kind == Snapshot {
			return Record{}, in.malformed("a removal in a snapshot")
		}
		if in.opts.RowChecksum {
			bare, ok := checkRow(nil, key)
			if !ok {
				return Record{}, in.malformed("row checksum of a removal")
			}
			key = bare
		}
		in.removals++
		return Record{Key: key, Removed: true}, nil
	}
	if in.opts.RowChecksum {
		bare, ok := checkRow(key, value)
		if !ok {
			return Record{}, in.malformed("row checksum of an entry")
		}
		value = bare
	}
	in.puts++
	if !r.exact {
		value = value[:len(value)&^7] // as Spark: its releases before 2.3 wrote four stray bytes
	}
	return Record{Key: key, Value: value}, nil
}

// Seek makes Next go on at the first record whose key is key or above. Only files with a footer that says Sorted can do
// it, others are errors.ErrUnsupported. Afterwards the counts of the footer are not compared.
func (r *Reader) Seek(key []byte) error {
	in := r.in
	if in.closed {
		return core.PathError("seek", in.opts.Name, fs.ErrClosed)
	}
	if in.footer == nil || !in.footer.Sorted {
		return core.PathError("seek", in.opts.Name, fmt.Errorf("%w: the file has no index of keys", errors.ErrUnsupported))
	}
	index := in.footer.Index
	i := sort.Search(len(index), func(i int) bool { return bytes.Compare(index[i].Key, key) > 0 }) - 1
	in.close() // before the source is moved
	in.ended, in.partial, r.from = nil, true, bytes.Clone(key)
	at := IndexEntry{}
	if i >= 0 {
		at = index[i]
	}
	if err := in.start(at.Offset, i >= 0 && at.Offset > 0); err != nil {
		return in.fail(err)
	}
	if err := in.c.skip(at.Skip); err != nil {
		return in.fail(err)
	}
	return nil
}

// detectRows is how many records DetectRowChecksum looks at.
const detectRows = 1000

// DetectRowChecksum tells whether a delta or snapshot has row checksums: from its footer, or from whether those of its
// first 1000 records are right. known is false for a file without records, which reads the same either way. Some right and
// some wrong is core.ErrCorrupt.
func DetectRowChecksum(src io.ReaderAt, size int64, kind Kind, opts ReaderOptions) (on, known bool, err error) {
	opts.RowChecksum = false
	if f, err := ReadFooter(src, size); err != nil {
		return false, false, core.PathError("read", opts.Name, err)
	} else if f != nil {
		return f.RowChecksum, true, nil
	}
	r, err := NewReader(src, size, kind, opts)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = r.Close() }()
	r.exact = true
	right, wrong := 0, 0
	for rec, err := range r.All() {
		if err != nil {
			return false, false, err
		}
		ok := false
		if rec.Removed {
			_, ok = checkRow(nil, rec.Key)
		} else {
			_, ok = checkRow(rec.Key, rec.Value)
		}
		if ok {
			right++
		} else {
			wrong++
		}
		if right+wrong == detectRows {
			break
		}
	}
	if right > 0 && wrong > 0 {
		return false, false, core.PathError("read", opts.Name,
			fmt.Errorf("%w: %d records have a row checksum that is right, %d have not", core.ErrCorrupt, right, wrong))
	}
	return right > 0, right+wrong > 0, nil
}
