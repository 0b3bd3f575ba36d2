//go:build linux && !386 && !race

package socket

import (
	"syscall"
	"unsafe"
)

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
