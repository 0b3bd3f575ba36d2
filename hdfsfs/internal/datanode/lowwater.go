package datanode

import (
	"net"
	"runtime"
	"syscall"
)

// SetLowWater makes reads of the connection wait until n bytes are there, or its end, and reports whether it does: only a plain TCP
// connection on Linux can. What is there already is read at once. Who asks for more bytes than come waits until the deadline.
func (c *Conn) SetLowWater(n int) bool {
	if n == max(c.lowWater, 1) {
		return true
	}
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok || runtime.GOOS != "linux" {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	done := false
	err = raw.Control(func(fd uintptr) {
		done = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n) == nil
	})
	if err != nil || !done {
		return false
	}
	c.lowWater = n
	return true
}
