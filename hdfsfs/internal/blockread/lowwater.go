package blockread

import (
	"net"
	"runtime"
	"syscall"
)

// A DataNode sends the head of a packet and its data apart, and a reader that is faster than it would be woken for each. In the
// middle of a long stream it is woken when there is more than a head (SO_RCVLOWAT). The kernel must never wait for more than is
// still to come, nor for more than the smallest window has room for.
const (
	lowWater = 16 << 10
	// lowWaterEnd is how much must still come behind a packet.
	lowWaterEnd = 16 * lowWater
)

// setLowWater makes a connection wait for n bytes, and reports whether it does.
func setLowWater(c net.Conn, n int) bool {
	tcp, ok := c.(*net.TCPConn)
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
	return err == nil && done
}
