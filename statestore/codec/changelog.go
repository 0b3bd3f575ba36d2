package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strconv"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// ChangeOp is what a record of a changelog does. The values are those of the files.
type ChangeOp byte

// The operations. Versions 1 and 3 of the format have only ChangePut and ChangeDelete.
const (
	ChangePut         ChangeOp = 0x01
	ChangeDelete      ChangeOp = 0x10
	ChangeMerge       ChangeOp = 0x11 // Value is one operand: it is appended to the list of the key
	ChangeDeleteRange ChangeOp = 0x20 // Key is the first key that goes, End the first that stays

	changeEOF ChangeOp = 0x00
)

// String returns a name in lower case.
func (op ChangeOp) String() string {
	switch op {
	case ChangePut:
		return "put"
	case ChangeDelete:
		return "delete"
	case ChangeMerge:
		return "merge"
	case ChangeDeleteRange:
		return "delete range"
	}
	return fmt.Sprintf("op(%#02x)", byte(op))
}

// Change is one record of a changelog. Slices that ChangelogReader returned are valid until the next call.
type Change struct {
	Op     ChangeOp
	Key    []byte
	Value  []byte // without checksum and length
	Stored []byte // the value as RocksDB holds it: with row checksums CRC and length come first, else it is Value
	End    []byte
}

// LineageEntry names a version that a changelog builds on.
type LineageEntry struct {
	Version            int64  `json:"version"`
	CheckpointUniqueID string `json:"checkpointUniqueId"`
}

const (
	oldestChangelog = 1
	newestChangelog = 4
	maxUTF          = 65535 // what writeUTF can hold
)

// hasLineage and hasOps tell the versions of the format apart: column families need records with an operation, checkpoint
// ids need the lineage.
func hasLineage(version int) bool { return version >= 3 }
func hasOps(version int) bool     { return version%2 == 0 }

// ChangelogReader reads a changelog of RocksDB's provider. What the comment of [Reader] says of memory, checksums and
// errors holds here too.
type ChangelogReader struct {
	in      *input
	version int
	lineage []LineageEntry
	key     []byte
	value   []byte
}

// NewChangelogReader begins to read a changelog of size bytes; version and compression are told from its bytes.
func NewChangelogReader(src io.ReaderAt, size int64, opts ReaderOptions) (*ChangelogReader, error) {
	in, err := openInput(src, size, Changelog, opts)
	if err != nil {
		return nil, err
	}
	r := &ChangelogReader{in: in}
	if err := r.readHead(); err != nil {
		if errors.Is(err, core.ErrUnsupportedVersion) {
			return nil, in.end(core.PathError("read", opts.Name, err))
		}
		return nil, in.fail(err)
	}
	return r, nil
}

// readHead reads the version and the lineage. Version 1 has neither: it is what does not begin with "v" and a number.
func (r *ChangelogReader) readHead() error {
	c := &r.in.c
	r.version = oldestChangelog
	head, err := c.bytes(nil, 2)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(head))
	if n < 2 || n > 6 { // "v" and a 16-bit number
		c.unread(head)
		return nil
	}
	text, err := c.bytes(nil, n)
	version, numErr := 0, error(nil)
	if err == nil {
		version, numErr = strconv.Atoi(string(text[1:]))
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if err != nil || text[0] != 'v' || numErr != nil {
		c.unread(append(head, text...))
		return nil
	}
	if version <= oldestChangelog || version > newestChangelog {
		return fmt.Errorf("%w: changelog %q", core.ErrUnsupportedVersion, text)
	}
	r.version = version
	if !hasLineage(version) {
		return nil
	}
	if head, err = c.bytes(head[:0], 2); err != nil {
		return err
	}
	if text, err = c.bytes(text[:0], int(binary.BigEndian.Uint16(head))); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.lineage); err != nil {
		return corrupt(c.d.off(), "the lineage: %v", err)
	}
	return nil
}

// Version returns the version of the format, 1 to 4.
func (r *ChangelogReader) Version() int { return r.version }

// Lineage returns the versions since the last snapshot that the changelog builds on; versions 1 and 2 have none.
func (r *ChangelogReader) Lineage() []LineageEntry { return r.lineage }

// Footer returns our footer, or nil.
func (r *ChangelogReader) Footer() *Footer { return r.in.footer }

// Compression returns what the file is compressed with.
func (r *ChangelogReader) Compression() Compression { return r.in.compression }

// Close is as that of [Reader].
func (r *ChangelogReader) Close() error {
	r.in.shut()
	return nil
}

// All is as that of [Reader].
func (r *ChangelogReader) All() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			change, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next record. io.EOF says that the file was read to its proper end; other errors come again.
func (r *ChangelogReader) Next() (Change, error) {
	in := r.in
	if in.ended != nil {
		return Change{}, in.ended
	}
	op := ChangePut
	if hasOps(r.version) {
		b, err := in.c.byte()
		if err != nil {
			return Change{}, in.fail(err)
		}
		switch op = ChangeOp(b); op {
		case changeEOF:
			return Change{}, in.finish()
		case ChangePut, ChangeDelete, ChangeMerge, ChangeDeleteRange:
		default:
			return Change{}, in.malformed("record type %#02x", b)
		}
	}
	n, err := in.c.int32()
	switch {
	case err != nil:
		return Change{}, in.fail(err)
	case n == eofMarker && !hasOps(r.version):
		return Change{}, in.finish()
	case n < 0:
		return Change{}, in.malformed("a key of %d bytes", n)
	}
	if r.key, err = in.c.bytes(r.key[:0], int(n)); err != nil {
		return Change{}, in.fail(err)
	}
	return r.readValue(op)
}

func (r *ChangelogReader) readValue(op ChangeOp) (Change, error) {
	in := r.in
	n, err := in.c.int32()
	switch {
	case err != nil:
		return Change{}, in.fail(err)
	case n < 0 && !hasOps(r.version):
		op = ChangeDelete
	case op == ChangeDelete && n != -1:
		return Change{}, in.malformed("a delete with a value of %d bytes", n)
	case n < 0 && op != ChangeDelete:
		return Change{}, in.malformed("a value of %d bytes", n)
	}
	change := Change{Op: op, Key: r.key}
	if op == ChangeDelete {
		in.removals++
		if in.opts.RowChecksum {
			key, ok := checkRow(nil, r.key)
			if !ok {
				return Change{}, in.malformed("row checksum of a delete")
			}
			change.Key = key
		}
		return change, nil
	}
	if r.value, err = in.c.bytes(r.value[:0], int(n)); err != nil {
		return Change{}, in.fail(err)
	}
	value := r.value
	if in.opts.RowChecksum {
		bare, ok := checkChangelogRow(r.key, r.value)
		if !ok {
			return Change{}, in.malformed("row checksum of a %s", op)
		}
		value = bare
	}
	if op == ChangeDeleteRange {
		in.removals++
		change.End = value
		return change, nil
	}
	in.puts++
	change.Value, change.Stored = value, r.value
	return change, nil
}

// ChangelogWriter writes a changelog. What the comment of [Writer] says of its endings holds here too.
type ChangelogWriter struct {
	out     *output
	version int
	scratch []byte
}

// NewChangelogWriter begins a changelog of version 1 to 4 in dst; only versions 3 and 4 can hold a lineage. A changelog
// beside which Spark's .crc companion is written needs NoFooter or a companion that covers the footer too.
func NewChangelogWriter(dst io.Writer, version int, lineage []LineageEntry, opts WriterOptions) (*ChangelogWriter, error) {
	head, err := changelogHead(version, lineage)
	if err != nil {
		return nil, core.PathError("write", opts.Name, err)
	}
	out, err := newOutput(dst, Changelog, opts)
	if err != nil {
		return nil, err
	}
	out.write(head)
	return &ChangelogWriter{out: out, version: version}, nil
}

func changelogHead(version int, lineage []LineageEntry) ([]byte, error) {
	switch {
	case version < oldestChangelog || version > newestChangelog:
		return nil, fmt.Errorf("%w: changelog version %d", core.ErrUnsupportedVersion, version)
	case version == oldestChangelog:
		return nil, lineageRefused(version, lineage)
	}
	head := appendUTF(nil, "v"+strconv.Itoa(version))
	if !hasLineage(version) {
		return head, lineageRefused(version, lineage)
	}
	if lineage == nil {
		lineage = []LineageEntry{}
	}
	text, err := json.Marshal(lineage)
	if err != nil {
		return nil, err
	}
	if len(text) > maxUTF {
		return nil, fmt.Errorf("%w: a lineage of %d bytes", fs.ErrInvalid, len(text))
	}
	// Java's UTF-8 differs from ours in NUL and above U+FFFF; ids are ASCII.
	if bytes.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return nil, fmt.Errorf("%w: an id in the lineage is not printable ASCII", fs.ErrInvalid)
	}
	return appendUTF(head, string(text)), nil
}

func lineageRefused(version int, lineage []LineageEntry) error {
	if lineage != nil {
		return fmt.Errorf("%w: changelog version %d has no lineage", fs.ErrInvalid, version)
	}
	return nil
}

func appendUTF(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

// Write adds a record; Stored is ignored. An operation that the version cannot hold is fs.ErrInvalid and leaves the file
// as it was.
func (w *ChangelogWriter) Write(change Change) error {
	o := w.out
	if err := o.usable(); err != nil {
		return err
	}
	value := change.Value
	switch change.Op {
	case ChangePut, ChangeDelete:
	case ChangeMerge, ChangeDeleteRange:
		if !hasOps(w.version) {
			return core.PathError("write", o.name, fmt.Errorf("%w: a %s in a changelog of version %d", fs.ErrInvalid, change.Op, w.version))
		}
		if change.Op == ChangeDeleteRange {
			value = change.End
		}
	default:
		return core.PathError("write", o.name, fmt.Errorf("%w: %s", fs.ErrInvalid, change.Op))
	}
	if err := errors.Join(o.checkLength(change.Key), o.checkLength(value)); err != nil {
		return err
	}
	w.scratch = w.append(w.scratch[:0], change.Op, change.Key, value)
	o.write(w.scratch)
	if change.Op == ChangePut || change.Op == ChangeMerge {
		o.footer.Puts++
	} else {
		o.footer.Removals++
	}
	return o.err
}

func (w *ChangelogWriter) append(dst []byte, op ChangeOp, key, value []byte) []byte {
	be, sums := binary.BigEndian, w.out.opts.RowChecksum
	if hasOps(w.version) {
		dst = append(dst, byte(op))
	}
	if op == ChangeDelete {
		if sums {
			dst = be.AppendUint32(dst, uint32(len(key)+checksumLen))
			dst = appendRowSum(dst, nil, key)
		} else {
			dst = be.AppendUint32(dst, uint32(len(key)))
		}
		return append(append(dst, key...), 0xff, 0xff, 0xff, 0xff)
	}
	dst = append(be.AppendUint32(dst, uint32(len(key))), key...)
	if sums {
		dst = be.AppendUint32(dst, uint32(len(value)+checksumLen+4))
		return AppendChecksummedValue(dst, key, value)
	}
	return append(be.AppendUint32(dst, uint32(len(value))), value...)
}

// Close writes the EOF record, ends the compression and adds the footer. Only when it returns nil is the file complete. A
// second Close returns the outcome of the first.
func (w *ChangelogWriter) Close() error {
	if !w.out.closed {
		end := []byte{0xff, 0xff, 0xff, 0xff}
		if hasOps(w.version) {
			end = []byte{byte(changeEOF)}
		}
		w.out.write(end)
	}
	return w.out.close()
}

// Abort is as that of [Writer].
func (w *ChangelogWriter) Abort() { w.out.abort() }
