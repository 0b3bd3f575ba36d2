package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Batch is a run of records of a snapshot, as they stand in the file's content: for loading without a copy of each.
//
//	int32 keyLen │ key │ int32 valueLen │ Skip bytes │ value
//
// with big-endian integers; valueLen includes what is skipped, and the value ends at a multiple of Floor.
type Batch struct {
	Content []byte
	Offsets []uint32 // in Content, where records begin
	Skip    int      // bytes before each value
	Floor   int      // 1 or 8
}

// NextBatch sets b to the next records; b.Offsets is used again. They are checked as by Next, and so is the end: io.EOF
// says that the file was read to its proper end. It is for snapshots, which have no removals: others are fs.ErrInvalid.
// Content is valid until the next call, unless ReaderOptions.Keep says otherwise.
func (r *Reader) NextBatch(b *Batch) error {
	in := r.in
	*b = Batch{Offsets: b.Offsets[:0], Floor: 8}
	if r.exact {
		b.Floor = 1
	}
	if in.opts.RowChecksum {
		b.Skip = checksumLen
	}
	if in.kind != Snapshot {
		return core.PathError("read", in.opts.Name, fmt.Errorf("%w: a %s is not read in batches", fs.ErrInvalid, in.kind))
	}
	if in.ended != nil {
		return in.ended
	}
	for len(b.Offsets) == 0 {
		if err := r.batchBlock(b); err != nil || len(b.Offsets) > 0 {
			return err
		}
		if err := r.batchOne(b); err != nil {
			return err
		}
	}
	return nil
}

// batchBlock takes the records that lie in the current block.
func (r *Reader) batchBlock(b *Batch) error {
	c := &r.in.c
	b.Content = c.block
	if !r.in.opts.RowChecksum && r.from == nil {
		r.skim(b)
	}
	for {
		rec, n := r.whole(c.block)
		if n == 0 {
			return nil
		}
		at := len(b.Content) - len(c.block)
		c.block = c.block[n:]
		rec, err := r.accept(rec.Key, rec.Value, rec.Removed)
		if err != nil {
			return err
		}
		if r.reached(rec.Key) {
			b.Offsets = append(b.Offsets, uint32(at))
		}
	}
}

// skim takes the puts that the current block begins with, where nothing but lengths has to be looked at.
func (r *Reader) skim(b *Batch) {
	c := &r.in.c
	block, at := c.block, 0
	for len(block)-at >= 8 {
		keyLen := int64(int32(binary.BigEndian.Uint32(block[at:])))
		if keyLen < 0 || keyLen > int64(c.limit) || keyLen+8 > int64(len(block)-at) {
			break
		}
		valueLen := int64(int32(binary.BigEndian.Uint32(block[at+4+int(keyLen):])))
		if valueLen < 0 || valueLen > int64(c.limit) || keyLen+8+valueLen > int64(len(block)-at) {
			break
		}
		b.Offsets = append(b.Offsets, uint32(at))
		at += int(8 + keyLen + valueLen)
	}
	c.block = block[at:]
	r.in.puts += int64(len(b.Offsets))
}

// batchOne takes the next record, which lies in more than one block, or is the end.
func (r *Reader) batchOne(b *Batch) error {
	rec, err := r.read()
	if err != nil || !r.reached(rec.Key) {
		return err
	}
	content := make([]byte, 0, 8+len(rec.Key)+b.Skip+len(rec.Value))
	content = binary.BigEndian.AppendUint32(content, uint32(len(rec.Key)))
	content = append(content, rec.Key...)
	content = binary.BigEndian.AppendUint32(content, uint32(b.Skip+len(rec.Value)))
	content = append(content, make([]byte, b.Skip)...)
	b.Content, b.Offsets = append(content, rec.Value...), append(b.Offsets, 0)
	return nil
}

// reached reports whether key is at or behind the one that Seek went to.
func (r *Reader) reached(key []byte) bool {
	if r.from != nil && bytes.Compare(key, r.from) < 0 {
		return false
	}
	r.from = nil
	return true
}
