package socket

import (
	"net"
	"syscall"
)

// MaxSlices is how many slices one call reads into or writes.
const MaxSlices = 16

// Raw returns the way to the socket of a connection, nil if that is not a plain TCP connection or this system has no such calls.
func Raw(c net.Conn) syscall.RawConn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !available {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
