package metadata

import "encoding/binary"

// cursor reads big-endian values. The first failure sticks: afterwards there are no bytes left and every value is zero, so
// that callers need to look at err only where they would go on for long.
type cursor struct {
	// data is all of the input, or the part of it that is in memory: then it begins at base, and more bytes follow in the
	// window.
	data []byte
	off  int
	base int
	more int
	from *window
	err  *Error
	// reserved bytes are needed by the elements that lists have announced and that are still to come. What another list may
	// announce is bounded by the rest, so that all announcements together never exceed the input.
	reserved int
}

func (c *cursor) fail(e *Error) {
	if c.err == nil {
		c.err = e
	}
	c.off, c.more = len(c.data), 0
}

// pos is the place in the input.
func (c *cursor) pos() int { return c.base + c.off }

func (c *cursor) rest() int { return len(c.data) - c.off + c.more }

// has reports whether the next n bytes are there, and brings them into memory.
func (c *cursor) has(n int) bool {
	return n <= len(c.data)-c.off || c.more > 0 && n <= c.rest() && c.from.fill(c, n)
}

// bytes returns the next n bytes of the input itself, which stay what they are until the cursor moves on; nil after a failure.
func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.data)-c.off && !c.has(n) {
		c.fail(corrupt(c.pos(), "needs %d bytes, %d are left", n, c.rest()))
		return nil
	}
	b := c.data[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// copy fills dst. It needs no more than one window of memory.
func (c *cursor) copy(dst []byte) {
	if len(dst) > c.rest() {
		c.bytes(len(dst))
	}
	for len(dst) > 0 && c.err == nil {
		n := min(len(dst), max(1, len(c.data)-c.off))
		copy(dst, c.bytes(n))
		dst = dst[n:]
	}
}

// skip moves on by n bytes.
func (c *cursor) skip(n int) {
	if n < 0 || n > c.rest() {
		c.bytes(n)
	}
	for n > 0 && c.err == nil {
		step := min(n, max(1, len(c.data)-c.off))
		c.bytes(step)
		n -= step
	}
}

func (c *cursor) u8() byte {
	if len(c.data)-c.off < 1 && !c.has(1) {
		c.bytes(1)
		return 0
	}
	b := c.data[c.off]
	c.off++
	return b
}

func (c *cursor) u16() int {
	if b := c.bytes(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) i32() int32 {
	if len(c.data)-c.off < 4 && !c.has(4) {
		c.bytes(4)
		return 0
	}
	v := binary.BigEndian.Uint32(c.data[c.off:])
	c.off += 4
	return int32(v)
}

func (c *cursor) i64() int64 {
	if len(c.data)-c.off < 8 && !c.has(8) {
		c.bytes(8)
		return 0
	}
	v := binary.BigEndian.Uint64(c.data[c.off:])
	c.off += 8
	return int64(v)
}

// boolean takes nothing but 0 and 1: no writer makes anything else, and damage should be noticed.
func (c *cursor) boolean() bool {
	at := c.pos()
	b := c.u8()
	if b > 1 {
		c.fail(corrupt(at, "%d is not a boolean", b))
	}
	return b == 1
}

// length reads a count of elements that take at least size bytes each.
func (c *cursor) length(size int) int {
	at := c.pos()
	return c.claim(at, int64(c.i32()), size)
}

func (c *cursor) claim(at int, n int64, size int) int {
	left := c.rest() - c.reserved
	switch {
	case c.err != nil:
		return 0
	case n < 0:
		c.fail(corrupt(at, "negative count %d", n))
		return 0
	case n*int64(size) > int64(left):
		c.fail(corrupt(at, "%d elements of %d bytes or more are announced, %d bytes are left", n, size, max(left, 0)))
		return 0
	}
	return int(n)
}

// longs fills dst.
func (c *cursor) longs(dst []int64) {
	for len(dst) > 0 && c.err == nil {
		n := min(len(dst), max(1, (len(c.data)-c.off)/8))
		b := c.bytes(8 * n)
		if b == nil {
			return
		}
		for i := range dst[:n] {
			dst[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
		}
		dst = dst[n:]
	}
}
