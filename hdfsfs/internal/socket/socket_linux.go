package socket

import (
	"syscall"
	"unsafe"
)

const available = true

// Read reads what is there into slices, none of them empty; of too many it takes the first ones. Zero bytes without an error are
// the end. If nothing is there the error is syscall.EAGAIN.
func Read(fd uintptr, parts [][]byte) (int, error) { return vectored(syscall.SYS_READV, fd, parts) }

// Write writes as much of slices, none of them empty, as there is room for; of too many it takes the first ones. If there is no room
// the error is syscall.EAGAIN.
func Write(fd uintptr, parts [][]byte) (int, error) { return vectored(syscall.SYS_WRITEV, fd, parts) }

func vectored(call, fd uintptr, parts [][]byte) (int, error) {
	var vectors [MaxSlices]syscall.Iovec
	count := min(len(parts), MaxSlices)
	for i, p := range parts[:count] {
		vectors[i].Base = unsafe.SliceData(p)
		vectors[i].SetLen(len(p))
	}
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&vectors[0])), uintptr(count))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

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
