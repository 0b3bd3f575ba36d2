package codec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// WriterOptions say how to write a file. The zero value writes what Spark reads by default, and our footer.
type WriterOptions struct {
	// Name of the file, for errors.
	Name string
	// Compression must be the one that the query's offset log pins, else Spark does not read the file.
	Compression Compression
	// Level of zstd, as zstd's own 1 to 22. 0 is 1, as Spark.
	Level int
	// BlockSize is how much is compressed at once: 0 is 32 KiB for lz4 and snappy, as Spark, 65535 B for lzf, 64 KiB for
	// None, 1 MiB for zstd. Larger blocks compress better and take more memory in the reader.
	BlockSize int
	// RowChecksum must be what the query's offset log pins.
	RowChecksum bool
	// NoFooter leaves the footer out. Values must then have a length that is a multiple of 8, because readers floor it.
	NoFooter bool
	// Parallelism is how many goroutines compress, besides the caller's. 0 and 1 are none.
	Parallelism int
	// MaxBytes is the largest key or value that is accepted. 0 is 128 MiB, the default of readers.
	MaxBytes int
}

func (o WriterOptions) validate(kind Kind) error {
	var problems []error
	if kind < Delta || kind > Changelog {
		problems = append(problems, fmt.Errorf("%w: kind %d", fs.ErrInvalid, kind))
	}
	if o.Compression >= compressions {
		problems = append(problems, fmt.Errorf("%w: %s", core.ErrUnsupportedVersion, o.Compression))
	} else if err := checkBlockSize(o.Compression, o.BlockSize); err != nil {
		problems = append(problems, err)
	}
	if o.Level < 0 || o.Level > 22 {
		problems = append(problems, fmt.Errorf("%w: Level %d", fs.ErrInvalid, o.Level))
	}
	if o.Parallelism < 0 {
		problems = append(problems, fmt.Errorf("%w: Parallelism %d", fs.ErrInvalid, o.Parallelism))
	}
	if o.MaxBytes < 0 || o.MaxBytes > maxMaxBytes {
		problems = append(problems, fmt.Errorf("%w: MaxBytes %d", fs.ErrInvalid, o.MaxBytes))
	}
	return errors.Join(problems...)
}

const (
	indexInterval  = 256 << 10 // bytes of content between entries of the index, at first
	indexMaxKey    = 1 << 10   // a record with a longer key is not indexed
	indexMaxLength = 1024      // then every other entry goes
)

// output is what writers of all kinds share: blocks, the codec's stream, the footer. The first failure sticks.
type output struct {
	name     string
	w        *bufio.Writer
	opts     WriterOptions
	footer   Footer
	pipe     *blockPipe
	block    []byte
	size     int   // of a full block
	blocks   int64 // full ones so far
	emitted  int64 // of these, written
	pending  []pendingEntry
	interval int64
	indexed  int64 // content offset of the last entry
	sum      uint32
	err      error
	closed   bool
}

// pendingEntry is an index entry whose block was not written yet.
type pendingEntry struct {
	IndexEntry
	block int64
}

func newOutput(dst io.Writer, kind Kind, opts WriterOptions) (*output, error) {
	if err := opts.validate(kind); err != nil {
		return nil, core.PathError("write", opts.Name, err)
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.Level == 0 {
		opts.Level = 1
	}
	o := &output{name: opts.Name, w: newBuffer(dst), opts: opts, size: opts.BlockSize, interval: indexInterval}
	if o.size == 0 {
		o.size = blockLimits[opts.Compression].def
	}
	o.footer = Footer{Kind: kind, Compression: opts.Compression, RowChecksum: opts.RowChecksum, ChunkSize: footerChunk}
	o.footer.Sorted = kind == Snapshot
	encoders := make([]blockEncoder, max(opts.Parallelism, 1))
	for i := range encoders {
		var err error
		if encoders[i], err = newBlockEncoder(opts.Compression, o.size, opts.Level); err != nil {
			return nil, core.PathError("write", opts.Name, err)
		}
	}
	o.pipe = newBlockPipe(encoders, o.emit)
	if opts.Compression == Snappy {
		o.stream(snappyHeader())
	}
	return o, nil
}

// buffers holds *bufio.Writer.
var buffers sync.Pool

func newBuffer(dst io.Writer) *bufio.Writer {
	if w, ok := buffers.Get().(*bufio.Writer); ok {
		w.Reset(dst)
		return w
	}
	return bufio.NewWriterSize(dst, 16<<10) // what is larger, as blocks are, passes it
}

// usable is the error of a writer that failed or was closed.
func (o *output) usable() error {
	if o.err != nil {
		return o.err
	}
	if o.closed {
		return core.PathError("write", o.name, fs.ErrClosed)
	}
	return nil
}

func (o *output) fail(err error) error {
	if o.err == nil && err != nil {
		o.err = core.PathError("write", o.name, err)
		o.pipe.stop()
	}
	return o.err
}

// checkLength refuses what a reader would refuse. It does not fail the writer: nothing was written.
func (o *output) checkLength(b []byte) error {
	if len(b) > o.opts.MaxBytes {
		return core.PathError("write", o.name, fmt.Errorf("%w: a key or value of %d bytes, above the limit of %d", fs.ErrInvalid, len(b), o.opts.MaxBytes))
	}
	return nil
}

// write adds content.
func (o *output) write(p []byte) {
	for len(p) > 0 && o.err == nil {
		if o.block == nil {
			o.block = make([]byte, 0, min(o.size, max(len(p), 4<<10)))
		}
		n := min(len(p), o.size-len(o.block))
		o.block = append(o.block, p[:n]...)
		p = p[n:]
		o.footer.ContentBytes += int64(n)
		if len(o.block) == o.size {
			o.flushBlock()
		}
	}
}

func (o *output) flushBlock() {
	o.blocks++
	var err error
	o.block, err = o.pipe.add(o.block)
	_ = o.fail(err)
}

// emit writes a block to the codec's stream.
func (o *output) emit(framed []byte, _ int) error {
	for len(o.pending) > 0 && o.pending[0].block == o.emitted {
		o.pending[0].Offset = o.footer.StreamBytes
		o.footer.Index = append(o.footer.Index, o.pending[0].IndexEntry)
		o.pending = o.pending[1:]
	}
	o.emitted++
	o.stream(framed)
	return o.err
}

// stream writes bytes of the codec's stream and sums them up by chunks.
func (o *output) stream(p []byte) {
	if _, err := o.w.Write(p); err != nil {
		_ = o.fail(err)
		return
	}
	for len(p) > 0 {
		n := min(int64(len(p)), footerChunk-o.footer.StreamBytes%footerChunk)
		o.sum = crc32.Update(o.sum, castagnoli, p[:n])
		p = p[n:]
		o.footer.StreamBytes += n
		if o.footer.StreamBytes%footerChunk == 0 {
			o.footer.ChunkSums = append(o.footer.ChunkSums, o.sum)
			o.sum = 0
		}
	}
}

// index notes where the record with this key, which is written next, stands.
func (o *output) index(key []byte) {
	if at := o.footer.ContentBytes; at-o.indexed >= o.interval && len(key) <= indexMaxKey {
		o.indexed = at
		o.pending = append(o.pending, pendingEntry{IndexEntry{Key: bytes.Clone(key), Skip: len(o.block)}, o.blocks})
	}
	if index := o.footer.Index; len(index) > indexMaxLength {
		kept := index[:0]
		for i := 0; i < len(index); i += 2 {
			kept = append(kept, index[i])
		}
		clear(index[len(kept):])
		o.footer.Index = kept
		o.interval *= 2
	}
}

// close ends the codec's stream and adds the footer.
func (o *output) close() error {
	if o.closed || o.err != nil {
		return o.err
	}
	o.closed = true
	if len(o.block) > 0 {
		o.flushBlock()
	}
	_ = o.fail(o.pipe.flush())
	o.pipe.stop()
	if o.opts.Compression == LZ4 {
		o.stream(lz4End(o.size))
	}
	if o.footer.StreamBytes%footerChunk != 0 {
		o.footer.ChunkSums = append(o.footer.ChunkSums, o.sum)
	}
	if !o.footer.Sorted {
		o.footer.Index = nil
	}
	if !o.opts.NoFooter && o.err == nil {
		_, err := o.w.Write(o.footer.append(nil))
		_ = o.fail(err)
	}
	if o.err == nil {
		_ = o.fail(o.w.Flush())
	}
	o.w.Reset(nil)
	buffers.Put(o.w)
	o.w = nil
	return o.err
}

// abort ends the writer without an end of the file.
func (o *output) abort() {
	if !o.closed {
		o.closed = true
		_ = o.fail(fs.ErrClosed)
		o.pipe.stop()
	}
}
