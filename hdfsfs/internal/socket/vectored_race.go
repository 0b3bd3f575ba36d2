//go:build linux && !386 && race

package socket

import (
	"errors"
	"syscall"
)

// The race detector takes what is written before it is read over a connection for ordered, by what the standard library's calls
// tell it. With it, these are made, one slice at a time.

// Read is as without the race detector.
func Read(fd uintptr, parts [][]byte) (int, error) { return one(syscall.Read, fd, parts) }

// Write is as without the race detector.
func Write(fd uintptr, parts [][]byte) (int, error) { return one(syscall.Write, fd, parts) }

func one(call func(fd int, p []byte) (int, error), fd uintptr, parts [][]byte) (int, error) {
	for {
		n, err := call(int(fd), parts[0])
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
