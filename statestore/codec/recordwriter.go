package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Writer writes the records of a delta or snapshot. It is for one goroutine. It takes one of two endings: Close makes the
// file complete, Abort leaves it without an end, so that no reader takes it for complete. After a failed call that was not
// an argument error every later one fails the same way.
type Writer struct {
	out     *output
	scratch []byte
	last    []byte
	any     bool
}

// NewWriter begins a file in dst, a delta or a snapshot. It does not close dst. With Parallelism above 1 a goroutine of the
// writer writes to dst, until Close or Abort has returned: Abort waits for a write that hangs.
func NewWriter(dst io.Writer, kind Kind, opts WriterOptions) (*Writer, error) {
	if kind == Changelog {
		return nil, core.PathError("write", opts.Name, fmt.Errorf("%w: a changelog has another writer", fs.ErrInvalid))
	}
	out, err := newOutput(dst, kind, opts)
	if err != nil {
		return nil, err
	}
	return &Writer{out: out}, nil
}

// Put adds an entry; both slices may be reused afterwards. A nil value is an empty one. In a snapshot the keys should
// ascend: the file then has an index and can be read by range. An argument that no reader would take is fs.ErrInvalid and
// leaves the file as it was.
func (w *Writer) Put(key, value []byte) error {
	o := w.out
	if err := o.usable(); err != nil {
		return err
	}
	if err := o.checkLength(key); err != nil {
		return err
	}
	if err := o.checkLength(value); err != nil {
		return err
	}
	if len(value)%8 != 0 {
		if o.opts.NoFooter {
			return core.PathError("write", o.name,
				fmt.Errorf("%w: a value of %d bytes: without a footer only multiples of 8 read back", fs.ErrInvalid, len(value)))
		}
		o.footer.Exact = true
	}
	w.order(key)
	stored := len(value)
	if o.opts.RowChecksum {
		stored += checksumLen
	}
	if 8+len(key)+stored <= o.room() {
		o.run.raw = o.appendPut(o.run.raw, key, value, stored)
		o.wrote(8 + len(key) + stored)
	} else {
		w.scratch = o.appendPut(w.scratch[:0], key, value, stored)
		o.write(w.scratch)
	}
	o.footer.Puts++
	return o.err
}

// appendPut appends the record of a value that takes so many bytes with its checksum.
func (o *output) appendPut(dst, key, value []byte, stored int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(stored))
	if o.opts.RowChecksum {
		dst = appendRowSum(dst, key, value)
	}
	return append(dst, value...)
}

// order keeps track of whether keys ascend, and of the index.
func (w *Writer) order(key []byte) {
	o := w.out
	if !o.footer.Sorted {
		return
	}
	if w.any && bytes.Compare(w.last, key) >= 0 {
		o.footer.Sorted = false
		o.index = nil
		return
	}
	w.any, w.last = true, append(w.last[:0], key...)
	o.index.note(key, o.footer.ContentBytes)
}

// Remove adds a removal to a delta; in a snapshot it is fs.ErrInvalid.
func (w *Writer) Remove(key []byte) error {
	o := w.out
	if err := o.usable(); err != nil {
		return err
	}
	if o.footer.Kind == Snapshot {
		return core.PathError("write", o.name, fmt.Errorf("%w: a removal in a snapshot", fs.ErrInvalid))
	}
	if err := o.checkLength(key); err != nil {
		return err
	}
	w.scratch = w.scratch[:0]
	if o.opts.RowChecksum {
		w.scratch = binary.BigEndian.AppendUint32(w.scratch, uint32(len(key)+checksumLen))
		w.scratch = appendRowSum(w.scratch, nil, key)
	} else {
		w.scratch = binary.BigEndian.AppendUint32(w.scratch, uint32(len(key)))
	}
	w.scratch = append(w.scratch, key...)
	w.scratch = append(w.scratch, 0xff, 0xff, 0xff, 0xff)
	o.write(w.scratch)
	o.footer.Removals++
	return o.err
}

// Close writes the EOF record, ends the compression and adds the footer. Only when it returns nil is the file complete. A
// second Close returns the outcome of the first.
func (w *Writer) Close() error {
	if !w.out.closed {
		w.out.write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	return w.out.close()
}

// Abort stops the goroutines of the writer and waits for them. After Close it does nothing, so that it may be deferred.
func (w *Writer) Abort() { w.out.abort() }

// Footer returns the counts and the index of what was written, complete after Close. It must not be changed.
func (w *Writer) Footer() *Footer { return &w.out.footer }
