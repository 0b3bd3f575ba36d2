package localfs

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// errEscapes is what a symbolic link is refused with that leads out of the base.
var errEscapes error = &classified{
	err:      errors.New("a symbolic link leads out of the base, or is absolute"),
	sentinel: fs.ErrPermission,
}

// errNoDirFsync is for file systems on which nothing can be made durable.
var errNoDirFsync = errors.New("the file system cannot fsync a directory")

// classified is an error of the operating system with what it means to a caller.
type classified struct {
	err      error
	sentinel error
}

func (c *classified) Error() string   { return c.err.Error() }
func (c *classified) Unwrap() []error { return []error{c.sentinel, c.err} }

// pathError is the one way in which errors leave this package.
func pathError(op, name string, err error) error {
	return core.PathError(op, name, classify(err))
}

// classify adds the sentinel of the contract to an error that contains an errno. Errors that syscall.Errno itself
// recognises (not exist, exist, permission, unsupported) and those that were classified before stay as they are.
func classify(err error) error {
	var errno syscall.Errno
	var done *classified
	if err == nil || errors.As(err, &done) || !errors.As(err, &errno) {
		return err
	}
	if sentinel := meaning(errno); sentinel != nil {
		return &classified{err, sentinel}
	}
	return err
}

func meaning(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOSPC,
		syscall.EDQUOT: // of blocks or of inodes: the errno does not say which
		return core.ErrNoSpace
	case syscall.EMLINK: // a directory cannot take more subdirectories, a file no more names
		return core.ErrQuota
	case syscall.EROFS:
		return fs.ErrPermission
	case syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.ENOTCONN, // NFS and FUSE servers
		syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE:
		return core.ErrUnavailable
	case syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ELOOP,
		syscall.ENXIO: // open of a socket
		return fs.ErrInvalid
	}
	return nil
}

// missing is for look-ups of something that exists or not: below a file there is nothing.
func missing(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &classified{err, fs.ErrNotExist}
	}
	return err
}

// bare takes the path off an error of package os: the path that the caller used is put on later.
func bare(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
