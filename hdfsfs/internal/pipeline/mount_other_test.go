//go:build !linux

package pipeline

import "errors"

func mountSmallDisk(string) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }
