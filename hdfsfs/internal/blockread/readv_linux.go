package blockread

import (
	"syscall"
	"unsafe"
)

// vectored is whether several slices are filled by one system call.
const vectored = true

// readv reads into several slices, none of them empty, by one system call. Of too many it takes the first ones.
func readv(fd uintptr, parts [][]byte) (int, error) {
	var vectors [maxParts]syscall.Iovec
	count := min(len(parts), maxParts)
	for i, p := range parts[:count] {
		vectors[i].Base = unsafe.SliceData(p)
		vectors[i].SetLen(len(p))
	}
	for {
		n, _, errno := syscall.Syscall(syscall.SYS_READV, fd, uintptr(unsafe.Pointer(&vectors[0])), uintptr(count))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// receiveBuffer is the size of that of a socket, 0 if it is not known.
func receiveBuffer(fd uintptr) int {
	n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n
}

// setLowWater makes a socket readable when n bytes have come, or its peer has ended.
func setLowWater(fd uintptr, n int) error {
	return syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n)
}
