package localfs

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
)

const (
	defaultFileMode fs.FileMode = 0o600
	defaultDirMode  fs.FileMode = 0o700
)

// Options of a file system. The zero value is the documented default of every field.
type Options struct {
	// FileMode are the permission bits of new files, exactly: the umask does not change them. 0 is 0600.
	FileMode fs.FileMode

	// DirMode are the permission bits of new directories, exactly: the umask does not change them. 0 is 0700. A setgid bit
	// that a directory inherits from its parent stays.
	DirMode fs.FileMode

	// CreateBase makes the base directory and its missing parents, durably. By default a missing base is fs.ErrNotExist. An
	// existing one is fsynced with its parents either way, see Open.
	CreateBase bool

	// UnsafeNoFsync leaves out every fsync: nothing is sure to survive the machine, and only core.Unsynced is declared. For
	// development and tests.
	UnsafeNoFsync bool

	// Logger receives warnings that concern the whole file system, such as a base that the operating system may clean up.
	// nil is silent.
	Logger *slog.Logger
}

// Validate reports all problems of the options at once, each naming its field; the error is fs.ErrInvalid.
func (o Options) Validate() error {
	var problems []error
	check := func(field string, mode, needed fs.FileMode) {
		switch {
		case mode == 0:
		case mode&^fs.ModePerm != 0:
			problems = append(problems, fmt.Errorf("%w: Options.%s is %v: only permission bits are allowed", fs.ErrInvalid, field, mode))
		case mode&needed != needed:
			problems = append(problems, fmt.Errorf("%w: Options.%s is %#o: the owner needs %#o", fs.ErrInvalid, field, uint32(mode), uint32(needed)))
		}
	}
	check("FileMode", o.FileMode, 0o600)
	check("DirMode", o.DirMode, 0o700)
	return errors.Join(problems...)
}

func (o Options) withDefaults() Options {
	if o.FileMode == 0 {
		o.FileMode = defaultFileMode
	}
	if o.DirMode == 0 {
		o.DirMode = defaultDirMode
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
