//go:build !linux || 386

package socket

import "errors"

const available = false

// Read is not there.
func Read(uintptr, [][]byte) (int, error) { return 0, errors.ErrUnsupported }

// Write is not there.
func Write(uintptr, [][]byte) (int, error) { return 0, errors.ErrUnsupported }

// SetLowWater is not there.
func SetLowWater(uintptr, int) error { return errors.ErrUnsupported }

// ReceiveBuffer is not known.
func ReceiveBuffer(uintptr) int { return 0 }
