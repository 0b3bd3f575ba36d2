package datanode

import "github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"

// SetLowWater makes reads of the connection wait until n bytes are there, or its end, and reports whether it does: only a plain TCP
// connection on Linux can. What is there already is read at once. Who asks for more bytes than come waits until the deadline.
func (c *Conn) SetLowWater(n int) bool {
	if n == max(c.lowWater, 1) {
		return true
	}
	if c.Raw == nil {
		return false
	}
	done := false
	err := c.Raw.Control(func(fd uintptr) { done = socket.SetLowWater(fd, n) == nil })
	if err != nil || !done {
		return false
	}
	c.lowWater = n
	return true
}
