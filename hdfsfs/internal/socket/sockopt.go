//go:build linux && !386

// 386 has one call for everything of sockets: it does without.

package socket

import (
	"syscall"
	"unsafe"
)

const available = true

// SetLowWater makes a socket readable when n bytes have come, or its peer has ended (SO_RCVLOWAT).
func SetLowWater(fd uintptr, n int) error {
	value := int32(n) //nolint:gosec // far below
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT,
		uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ReceiveBuffer is the size of that of a socket, 0 if it is not known.
func ReceiveBuffer(fd uintptr) int {
	var value int32
	size := uint32(unsafe.Sizeof(value))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF,
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return int(value)
}
