//go:build !linux

package blockread

import "errors"

// vectored is whether several slices are filled by one system call.
const vectored = false

func readv(uintptr, [][]byte) (int, error) { return 0, errors.ErrUnsupported }

func receiveBuffer(uintptr) int { return 0 }

func setLowWater(uintptr, int) error { return errors.ErrUnsupported }
