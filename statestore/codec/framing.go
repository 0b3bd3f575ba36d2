package codec

import (
	"errors"
	"io"
)

// frame is one block of the codec's stream, which can be decoded without the others.
type frame struct {
	off     int64 // in the file
	payload []byte
	own     []byte // memory for payloads
	stored  bool   // the payload is the content
	rawLen  int
	sum     uint32
}

// framing splits the codec's stream into frames and decodes them. scan is for one goroutine, decode for many.
type framing interface {
	// scan reads the next frame, reusing f. io.EOF is the clean end of the stream.
	scan(s *source, f *frame) error
	// decode returns the content of the frame: the payload if that is stored, else in dst if that is large enough. It checks
	// lengths before it allocates.
	decode(dst []byte, f *frame) ([]byte, error)
}

// blockDecoder yields the content of the codec's stream block by block.
type blockDecoder interface {
	// next returns a block, valid until the next call unless blocks are kept. io.EOF is the clean end.
	next() ([]byte, error)
	// off is the offset in the file where the block of the last next begins, or as near before it as is known.
	off() int64
	// close stops what runs and waits for it.
	close()
}

// newDecoder decodes s, with the help of goroutines if Parallelism is above one and the compression has parts that can be
// decoded alone. resumed says that s does not stand at the beginning of the stream.
func newDecoder(s *source, c Compression, opts ReaderOptions, resumed bool) (blockDecoder, error) {
	var f framing
	switch c {
	case LZ4:
		f = &lz4Framing{}
	case LZF:
		f = lzfFraming{}
	case Snappy:
		f = &snappyFraming{begun: resumed}
	case Zstd:
		if opts.Parallelism > 1 {
			z, err := newZstdFraming(s, opts.Parallelism)
			if err != nil {
				return nil, err
			}
			if z != nil {
				return newParallelDecoder(s, z, opts.Parallelism), nil
			}
		}
		return newZstdDecoder(s, opts.MaxWindow, opts.Keep)
	default:
		return &plainDecoder{s}, nil
	}
	if opts.Parallelism > 1 {
		return newParallelDecoder(s, f, opts.Parallelism), nil
	}
	return &serialDecoder{s: s, framing: f}, nil
}

type serialDecoder struct {
	s       *source
	framing framing
	frame   frame
	raw     []byte
}

func (d *serialDecoder) next() ([]byte, error) {
	if err := d.framing.scan(d.s, &d.frame); err != nil {
		return nil, err
	}
	raw, err := d.framing.decode(d.raw, &d.frame)
	if err != nil {
		return nil, err
	}
	if !d.s.keep && !d.frame.stored {
		d.raw = raw
	}
	return raw, nil
}

func (d *serialDecoder) off() int64 { return d.frame.off }
func (d *serialDecoder) close()     {}

// plainDecoder is for None: the chunks of the source are the blocks.
type plainDecoder struct{ s *source }

func (d *plainDecoder) next() ([]byte, error) {
	if err := d.s.fill(); err != nil {
		return nil, err
	}
	block := d.s.buf[d.s.r:]
	d.s.r = len(d.s.buf)
	if d.s.keep {
		d.s.lent = true
	}
	return block, nil
}

func (d *plainDecoder) off() int64 { return d.s.off }
func (d *plainDecoder) close()     {}

// grow returns a slice of n bytes, in dst if that is large enough.
func grow(dst []byte, n int) []byte {
	if cap(dst) < n {
		return make([]byte, n)
	}
	return dst[:n]
}

// headerError turns an end before a header that must be there into damage.
func headerError(err error, at int64, what string) error {
	if errors.Is(err, io.EOF) {
		return corrupt(at, "the file ends before %s", what)
	}
	return err
}
