package codec

import (
	"bufio"
	"errors"
	"fmt"
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
	// AlwaysCompress compresses every block. Without it the writer of an lz4 snapshot stores blocks of data that hardly
	// compresses: where the first block of 16 does not lose 30 %, the 15 that follow are stored as they are. Such a file is up to
	// 43 % larger, and much less work for a processor to write and to read. The first 512 KiB of a file, deltas, changelogs,
	// other compressions and blocks above 256 KiB are always compressed.
	AlwaysCompress bool
	// Parallelism is how many goroutines compress, besides the caller's; one more then writes to the file. 0 and 1 are none.
	// In a snapshot each takes 2 MiB of memory or four blocks, whichever is more.
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

// output is what writers of all kinds share: blocks, the codec's stream, the footer. The first failure sticks.
type output struct {
	name   string
	opts   WriterOptions
	footer Footer // what is known of the content; the rest comes with close
	index  *indexer
	stream *stream // of the pipe, until that has ended
	pipe   *pipe
	run    *run   // being filled
	left   int    // bytes to the end of the block that is being filled
	gap    []byte // before each block
	full   int    // bytes of a full run
	runs   int
	err    error
	closed bool
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
	if opts.BlockSize == 0 {
		opts.BlockSize = blockLimits[opts.Compression].def
	}
	o := &output{name: opts.Name, opts: opts, stream: &stream{w: newBuffer(dst)}}
	o.footer = Footer{Kind: kind, Compression: opts.Compression, RowChecksum: opts.RowChecksum, ChunkSize: footerChunk}
	length := 1
	if kind == Snapshot {
		o.footer.Sorted = true
		o.index = &indexer{interval: indexInterval, blockSize: int64(opts.BlockSize)}
		length = runLength(opts.BlockSize)
	}
	encoders := make([]blockEncoder, max(opts.Parallelism, 1))
	for i := range encoders {
		var err error
		if encoders[i], err = newBlockEncoder(opts.Compression, opts.BlockSize, opts.Level); err != nil {
			return nil, core.PathError("write", opts.Name, err)
		}
	}
	o.gap = make([]byte, gapOf(encoders[0]))
	o.full = length * (len(o.gap) + opts.BlockSize)
	o.pipe = newPipe(encoders, opts.BlockSize, o.stream.emit)
	if opts.Compression == Snappy {
		_ = o.fail(o.stream.write(snappyHeader()))
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
		n := min(len(p), o.room())
		o.run.raw = append(o.run.raw, p[:n]...)
		p = p[n:]
		o.wrote(n)
	}
}

// room is how many bytes, at least one, may be appended to the run that is being filled.
func (o *output) room() int {
	if o.left == 0 {
		if o.run == nil {
			o.run = o.pipe.next()
		}
		o.run.raw = append(o.run.raw, o.gap...)
		o.left = o.opts.BlockSize
	}
	return o.left
}

// wrote counts n bytes that were appended to the run.
func (o *output) wrote(n int) {
	o.footer.ContentBytes += int64(n)
	o.left -= n
	if o.left == 0 && len(o.run.raw) == o.full {
		o.flushRun()
	}
}

func (o *output) flushRun() {
	o.run.choose = o.footer.Kind == Snapshot && !o.opts.AlwaysCompress && o.runs > 0
	o.runs++
	err := o.pipe.add(o.run)
	o.run, o.left = nil, 0
	_ = o.fail(err)
}

// close ends the codec's stream and adds the footer.
func (o *output) close() error {
	if o.closed || o.err != nil {
		return o.err
	}
	o.closed = true
	if o.run != nil {
		o.flushRun()
	}
	if err := o.pipe.finish(); o.fail(err) != nil {
		return o.err
	}
	_ = o.fail(o.end())
	o.stream.w.Reset(nil)
	buffers.Put(o.stream.w)
	o.stream = nil
	return o.err
}

// end writes what follows the last block.
func (o *output) end() error {
	s := o.stream
	if o.opts.Compression == LZ4 {
		if err := s.write(lz4End(o.opts.BlockSize)); err != nil {
			return err
		}
	}
	o.footer.StreamBytes, o.footer.ChunkSums = s.bytes, s.chunkSums()
	if o.footer.Sorted {
		o.footer.Index = o.index.entries(s.blocks)
	}
	if !o.opts.NoFooter {
		if _, err := s.w.Write(o.footer.append(nil)); err != nil {
			return err
		}
	}
	return s.w.Flush()
}

// abort ends the writer without an end of the file.
func (o *output) abort() {
	if !o.closed {
		o.closed = true
		_ = o.fail(fs.ErrClosed)
		o.pipe.stop()
	}
}
