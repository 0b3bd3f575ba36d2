package core

import (
	"errors"
	"fmt"
	"io/fs"
)

// The sentinels of this module, beside those of io/fs, context and errors. Each changes what a caller does; the text around
// them is not part of the interface. Use errors.Is.
var (
	// ErrCorrupt: bytes are there but wrong. Retrying does not help; restore from another copy or another checkpoint.
	ErrCorrupt = errors.New("corrupt data")

	// ErrUnsupportedVersion: the file is well-formed but of a version that this release does not know.
	ErrUnsupportedVersion = errors.New("unsupported format version")

	// ErrNoSpace: the disk is full or a space quota is used up. Free space, then retry.
	ErrNoSpace = errors.New("no space left")

	// ErrQuota: a quota on the number of names, or a directory's item limit, is used up. Remove files, then retry.
	ErrQuota = errors.New("name quota exceeded")

	// ErrFenced: another owner has taken over. This owner must stop; its uncommitted work is lost.
	ErrFenced = errors.New("fenced by a newer owner")

	// ErrOutcomeUnknown: the storage failed so that it is not known whether the file is published. Nothing that it may refer to
	// must be deleted before that is settled, by a look or by taking the whole location back.
	ErrOutcomeUnknown = errors.New("outcome unknown")

	// ErrUnavailable: the storage cannot serve the call now (safe mode, failover, too few DataNodes). Worth retrying.
	ErrUnavailable = errors.New("storage unavailable")
)

// PathError wraps err with an operation and a path. It returns nil for a nil err and leaves an err alone that already is
// an *fs.PathError of the same operation and path.
func PathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := err.(*fs.PathError); ok && pe.Op == op && pe.Path == path { //nolint:errorlint // only the outermost error matters
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// RenameError is the error of a failed Rename: its path is oldname and its text contains newname. It returns nil for a nil
// err.
func RenameError(oldname, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "rename", Path: oldname, Err: fmt.Errorf("to %s: %w", newname, err)}
}
