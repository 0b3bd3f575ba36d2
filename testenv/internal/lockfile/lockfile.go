// Package lockfile locks files between processes. The kernel releases a lock when its holder ends, however it ends.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Mode says whether a lock can be held by one or by many.
type Mode int

// The modes.
const (
	Shared    Mode = syscall.LOCK_SH
	Exclusive Mode = syscall.LOCK_EX
)

// poll is how often Wait looks again. flock itself cannot be cancelled.
const poll = 20 * time.Millisecond

// ErrHeld is returned by Try if somebody else holds the file in a mode that excludes the wanted one.
var ErrHeld = errors.New("locked by another")

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Try locks the file, which it creates with its folder if need be, or returns ErrHeld at once. The file may be removed by
// whoever holds it exclusively: a lock that is returned is on the file that has the name.
func Try(name string, mode Mode) (*Lock, error) {
	for {
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue // it was there, and was removed before MkdirAll could see that it is a folder
		}
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the folder was removed in between
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f, int(mode)|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("%s: %w", name, ErrHeld)
			}
			return nil, &fs.PathError{Op: "flock", Path: name, Err: err}
		}
		if sameFile(f, name) {
			return &Lock{f}, nil
		}
		_ = f.Close()
	}
}

// Wait locks the file as Try does, and waits until it can or the context ends.
func Wait(ctx context.Context, name string, mode Mode) (*Lock, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		l, err := Try(name, mode)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// Held reports whether somebody holds the file exclusively.
func Held(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	err = flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Unlock releases the lock.
func (l *Lock) Unlock() error { return l.file.Close() }

// flock ignores the signals by which the Go runtime preempts.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func sameFile(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(opened, named)
}
