package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// tooLong is a length above the limit.
type tooLong struct{ n, limit int }

func (e *tooLong) Error() string {
	return fmt.Sprintf("a key or value of %d bytes, above the limit of %d", e.n, e.limit)
}

// content reads integers and byte strings out of the decompressed blocks.
type content struct {
	d       blockDecoder
	block   []byte // what is left of the current block; from next, so valid until the next one is fetched
	fetched int64  // bytes of all blocks so far
	limit   int    // of one byte string
}

// off is the offset in the content of the next byte.
func (c *content) off() int64 { return c.fetched - int64(len(c.block)) }

// fetch makes at least one byte available; io.EOF is the clean end.
func (c *content) fetch() error {
	for len(c.block) == 0 {
		block, err := c.d.next()
		if err != nil {
			return err
		}
		c.block = block
		c.fetched += int64(len(block))
	}
	return nil
}

func (c *content) byte() (byte, error) {
	if err := c.fetch(); err != nil {
		return 0, err
	}
	b := c.block[0]
	c.block = c.block[1:]
	return b, nil
}

func (c *content) int32() (int32, error) {
	if len(c.block) >= 4 {
		n := int32(binary.BigEndian.Uint32(c.block))
		c.block = c.block[4:]
		return n, nil
	}
	var n uint32
	for range 4 {
		b, err := c.byte()
		if err != nil {
			return 0, err
		}
		n = n<<8 | uint32(b)
	}
	return int32(n), nil
}

// bytes appends n bytes to dst, which grows no further than bytes really come.
func (c *content) bytes(dst []byte, n int) ([]byte, error) {
	if n > c.limit {
		return dst, &tooLong{n, c.limit}
	}
	for n > 0 {
		if err := c.fetch(); err != nil {
			return dst, err
		}
		part := c.block[:min(n, len(c.block))]
		dst = append(dst, part...)
		c.block = c.block[len(part):]
		n -= len(part)
	}
	return dst, nil
}

// skip passes over n bytes.
func (c *content) skip(n int) error {
	for n > 0 {
		if err := c.fetch(); err != nil {
			return err
		}
		part := min(n, len(c.block))
		c.block = c.block[part:]
		n -= part
	}
	return nil
}

// unread puts bytes in front of what comes.
func (c *content) unread(b []byte) {
	c.block = append(append([]byte(nil), b...), c.block...)
}

// atEnd reports whether nothing comes any more.
func (c *content) atEnd() (bool, error) {
	err := c.fetch()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}
