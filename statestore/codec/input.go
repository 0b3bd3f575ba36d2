package codec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Kind is what a file holds.
type Kind uint8

// The kinds of files.
const (
	Delta     Kind = iota + 1 // the changes of one version, in the order of their calls
	Snapshot                  // all entries of a version, each once
	Changelog                 // the changes of one version of a RocksDB store
)

// String returns the suffix that file names of the kind have.
func (k Kind) String() string {
	switch k {
	case Delta:
		return "delta"
	case Snapshot:
		return "snapshot"
	case Changelog:
		return "changelog"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

const (
	// defaultMaxBytes is the limit of one key or value, for reading and writing.
	defaultMaxBytes = 128 << 20
	maxMaxBytes     = 1<<31 - 1 - 64
)

// ReaderOptions say how to read a file. The zero value reads what Spark writes by default.
type ReaderOptions struct {
	// Name of the file, for errors.
	Name string
	// RowChecksum: the query has spark.sql.streaming.stateStore.rowChecksum.enabled. Every row is then verified. A footer
	// that says otherwise is fs.ErrInvalid; where the setting is not known, ask DetectRowChecksum.
	RowChecksum bool
	// Parallelism is how many goroutines decompress, besides the caller's. 0 and 1 are none: for deltas. A zstd file
	// of Spark's is one frame, for which there are none either.
	Parallelism int
	// MaxBytes is the largest key or value that is accepted. 0 is 128 MiB.
	MaxBytes int
	// MaxWindow is the largest zstd window that is accepted, in bytes, since a frame reserves it at once. 0 is 8 MiB or 32
	// times the file, whichever is more, and never above 2 GiB.
	MaxWindow uint64
	// Keep leaves the memory of records to the caller: what Next and NextBatch return stays valid and is not written again.
	// For loading a file as a whole, which then needs no copy of each record.
	Keep bool
	// StopAtEOF stops at the EOF record, as Spark does: what follows it, and whether the codec's stream ends properly, is not
	// looked at. For files that others have damaged behind their records.
	StopAtEOF bool
}

func (o ReaderOptions) validate() error {
	var problems []error
	if o.Parallelism < 0 {
		problems = append(problems, fmt.Errorf("%w: Parallelism %d", fs.ErrInvalid, o.Parallelism))
	}
	if o.MaxBytes < 0 || o.MaxBytes > maxMaxBytes {
		problems = append(problems, fmt.Errorf("%w: MaxBytes %d", fs.ErrInvalid, o.MaxBytes))
	}
	if o.MaxWindow > 2<<30 {
		problems = append(problems, fmt.Errorf("%w: MaxWindow %d", fs.ErrInvalid, o.MaxWindow))
	}
	return errors.Join(problems...)
}

// input is what readers of all kinds share: the way from the file to its content, and the end of it.
type input struct {
	opts        ReaderOptions
	kind        Kind
	src         *source
	footer      *Footer
	compression Compression
	c           content
	puts        int64
	removals    int64
	partial     bool // began in the middle: counts say nothing
	ended       error
	closed      bool
}

func openInput(at io.ReaderAt, size int64, kind Kind, opts ReaderOptions) (*input, error) {
	in := &input{opts: opts, kind: kind}
	if err := in.open(at, size); err != nil {
		return nil, core.PathError("read", opts.Name, err)
	}
	return in, nil
}

func (in *input) open(at io.ReaderAt, size int64) error {
	if err := in.opts.validate(); err != nil {
		return err
	}
	if size >= 0 && size <= plainChunk { // one read instead of three
		all := make(inMemory, size)
		if err := readAt(at, all, 0); err != nil {
			return err
		}
		at = all
	}
	footer, err := ReadFooter(at, size)
	if err != nil {
		return err
	}
	end := size
	if footer != nil {
		end = footer.StreamBytes
		if footer.Kind != in.kind {
			return corrupt(end, "the footer says that this is a %s, not a %s", footer.Kind, in.kind)
		}
		if footer.RowChecksum != in.opts.RowChecksum {
			return fmt.Errorf("%w: row checksums are %s in the file, %s in the options",
				fs.ErrInvalid, onOff(footer.RowChecksum), onOff(in.opts.RowChecksum))
		}
	}
	in.footer, in.src = footer, newSource(at, end, footer, in.opts.Keep)
	if err := in.src.fill(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if in.compression, err = Sniff(in.src.buf[:min(len(in.src.buf), sniffLen)]); err != nil {
		return err
	}
	if footer != nil && footer.Compression != in.compression {
		return corrupt(end, "the footer says %s, the file is %s", footer.Compression, in.compression)
	}
	return in.start(0, false)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// start decodes from an offset of the file on.
func (in *input) start(off int64, resumed bool) error {
	in.close()
	if off != in.src.pos() {
		in.src.seek(off)
	}
	limit := in.opts.MaxBytes
	if limit == 0 {
		limit = defaultMaxBytes
	}
	d, err := newDecoder(in.src, in.compression, in.opts, resumed)
	if err != nil {
		return err
	}
	in.c = content{d: d, limit: limit + checksumLen + 4} // a stored value may have its checksum and length before it
	return nil
}

// close stops the decoder.
func (in *input) close() {
	if in.c.d != nil {
		in.c.d.close()
		in.c.d = nil
	}
}

// shut ends the input for good.
func (in *input) shut() {
	in.closed = true
	if in.ended == nil {
		_ = in.end(core.PathError("read", in.opts.Name, fs.ErrClosed))
	}
}

// fail ends the input with err, the same from now on.
func (in *input) fail(err error) error {
	var damage *corruptAt
	at := int64(0)
	if in.c.d != nil {
		at = in.c.d.off()
	}
	where := fmt.Sprintf("record %d, byte %d of the content", in.puts+in.removals+1, in.c.off())
	switch {
	case errors.Is(err, io.EOF):
		err = corrupt(at, "the file ends before its EOF record, in %s", where)
	case errors.As(err, new(*tooLong)):
		err = corrupt(at, "%v, in %s", err, where)
	case errors.As(err, &damage):
		err = fmt.Errorf("%w (%s)", err, where)
	}
	return in.end(core.PathError("read", in.opts.Name, err))
}

// malformed ends the input with damage in a record.
func (in *input) malformed(format string, args ...any) error {
	at := int64(0)
	if in.c.d != nil {
		at = in.c.d.off()
	}
	return in.fail(corrupt(at, format, args...))
}

func (in *input) end(err error) error {
	in.ended = err
	in.close()
	return err
}

// finish checks what follows the EOF record and returns io.EOF if that is as it should be.
func (in *input) finish() error {
	if in.opts.StopAtEOF {
		return in.end(io.EOF)
	}
	at := in.c.off()
	end, err := in.c.atEnd()
	switch {
	case err != nil:
		return in.fail(fmt.Errorf("after the EOF record: %w", err))
	case !end:
		return in.malformed("there are bytes after the EOF record")
	}
	if f := in.footer; f != nil && !in.partial && (f.Puts != in.puts || f.Removals != in.removals || f.ContentBytes != at) {
		return in.malformed("the footer counts %d puts and %d removals in %d bytes; there are %d and %d in %d",
			f.Puts, f.Removals, f.ContentBytes, in.puts, in.removals, at)
	}
	return in.end(io.EOF)
}
