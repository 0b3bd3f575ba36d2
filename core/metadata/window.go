package metadata

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// windowBytes is how much of a file is in memory at a time: more than the longest text, so that a text is always in one
// piece.
const windowBytes = 1 << 20

// window brings a range of a file into memory, piece by piece, for the cursor that it belongs to.
type window struct {
	src io.ReaderAt
	buf []byte
	// next is where in the file the next piece begins.
	next int64
	// crc is the sum of everything that was brought in.
	crc uint32
	// err is why nothing more could be read.
	err error
}

// newCursor reads the bytes from at to end of src through buf.
func newCursor(src io.ReaderAt, at, end int64, buf []byte) cursor {
	w := &window{src: src, buf: buf, next: at}
	return cursor{data: buf[:0], base: int(at), more: int(end - at), from: w}
}

// fill moves what is left of the data to the front of the window and reads more behind it, until there are n bytes. It
// reports false if the window is too small for them, or after a failure to read.
func (w *window) fill(c *cursor, n int) bool {
	if n > cap(w.buf) {
		grown := make([]byte, n)
		copy(grown, c.data[c.off:])
		w.buf = grown
	} else {
		copy(w.buf[:cap(w.buf)], c.data[c.off:])
	}
	have := len(c.data) - c.off
	c.base += c.off
	c.off = 0
	room := min(cap(w.buf)-have, c.more)
	piece := w.buf[have : have+room]
	if err := readFull(w.src, piece, w.next); err != nil {
		w.err = err
		c.data = w.buf[:have]
		c.fail(corrupt(c.base+have, "cannot be read: %v", err))
		return false
	}
	w.crc = crc32.Update(w.crc, castagnoli, piece)
	w.next += int64(room)
	c.more -= room
	c.data = w.buf[:have+room]
	return true
}

// drain reads to the end, for the sum.
func (w *window) drain(end int64) (uint32, error) {
	for w.err == nil && w.next < end {
		piece := w.buf[:min(int64(cap(w.buf)), end-w.next)]
		if w.err = readFull(w.src, piece, w.next); w.err == nil {
			w.crc = crc32.Update(w.crc, castagnoli, piece)
			w.next += int64(len(piece))
		}
	}
	return w.crc, w.err
}

// readFull fills p. A file that ends before is damaged: its length was known.
func readFull(src io.ReaderAt, p []byte, at int64) error {
	n, err := src.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the file ends at byte %d", core.ErrCorrupt, at+int64(n))
	}
	return err
}
