package core

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// FileSystem is the whole storage contract of this module. It is stated here once; an implementation says only what is
// special about it, and package fstest states the same rules as tests.
//
// # Names
//
// A name must be absolute, slash-separated and clean, and must lie at or below the base of the file system. Every method
// must refuse any other name with [fs.ErrInvalid] before it touches storage; [CheckName] is the one function that decides.
// Below a file, Stat, Open and Remove find nothing: fs.ErrNotExist or fs.ErrInvalid. The base itself can be neither removed
// nor renamed: fs.ErrInvalid.
//
// # Errors
//
// Every error of a FileSystem, Writer or Reader must be an [*fs.PathError] with the operation and the name the caller
// used, except that Read and ReadAt return a bare [io.EOF]. errors.Is must tell the cause:
//
//   - [fs.ErrNotExist]: no such file or directory, a missing parent of Create, Rename or Remove included;
//   - [fs.ErrExist]: the name is taken; Remove of a directory that is not empty;
//   - [fs.ErrPermission], [fs.ErrInvalid] (bad name or argument, a file where a directory is needed or the reverse),
//     [fs.ErrClosed] (use after an ending);
//   - [context.Canceled], [context.DeadlineExceeded] after the end of the context;
//   - [errors.ErrUnsupported]: a capability that is not declared; the call must then have had no effect;
//   - [ErrCorrupt], [ErrNoSpace], [ErrQuota], [ErrUnavailable] of this package.
//
// # Contexts and time
//
// A context that has ended before the call must mean that the call has no effect on storage. A call must return within
// 250 ms of its context's end; work that cannot be interrupted may go on in the background, where the implementation
// must count it and must wait for it when it is closed. The context given to Create and Open governs the whole stream.
//
// # Lost replies
//
// After a call whose answer was lost, the implementation must find out what happened (unique ids, a look at both ends) and
// report the truth. It must never report success on doubt.
//
// # Durability
//
// Rename and MkdirAll must be durable when they return: the directory entries that they made or changed survive what the file
// system's strongest [Durability] survives. Create followed by Close survives what the file's own durability survives. A
// durable change of a directory takes all earlier changes of it along. Remove and RemoveAll need not be durable.
//
// # Concurrency
//
// All methods of a FileSystem must be safe for concurrent use.
type FileSystem interface {
	// URI returns scheme and authority, such as "hdfs://ns1" or "file://": what [Qualify] puts before a name.
	URI() string

	// Capabilities returns what this file system can do. The value must not change.
	Capabilities() Capabilities

	// Create must claim the final name exclusively and return a Writer for it: of any number of racing callers exactly one
	// wins and the others get fs.ErrExist, also when the name is a directory. The parent directory must exist. The file may
	// be visible, incomplete, until Close. A Create that fails must leave no file of its own behind.
	Create(ctx context.Context, name string, opts CreateOptions) (Writer, error)

	// Open must open a regular file for reading; a directory is refused with fs.ErrInvalid.
	Open(ctx context.Context, name string) (Reader, error)

	// Stat must describe the named file or directory itself: a symbolic link is described, never followed.
	Stat(ctx context.Context, name string) (FileInfo, error)

	// List must yield the direct children of dir in byte order of their names, each exactly once if it was there during the
	// whole listing. It must be complete or end in an error: after a non-nil error, which comes with a zero FileInfo, it
	// yields nothing more. A missing dir is fs.ErrNotExist, a file is fs.ErrInvalid.
	List(ctx context.Context, dir string) iter.Seq2[FileInfo, error]

	// MkdirAll must make dir and its missing parents; an existing directory is success. A file in the way, at dir or above
	// it, is fs.ErrInvalid. It is not a lock: any number of callers may succeed.
	MkdirAll(ctx context.Context, dir string) error

	// Rename must move a file or directory atomically: an observer sees it under the old name or under the new one. A missing
	// oldname, or a missing parent of newname, is fs.ErrNotExist; a directory moved below itself is fs.ErrInvalid; what mode
	// adds is said there. Open readers of a file that is moved or replaced must go on with its bytes or fail, never mix.
	// The error's path is oldname and its text contains newname.
	Rename(ctx context.Context, oldname, newname string, mode RenameMode) error

	// Remove must remove a file, a symbolic link (not its target) or an empty directory.
	Remove(ctx context.Context, name string) error

	// RemoveAll must remove name and everything below it; symbolic links are removed, never followed. A missing name is
	// success. The base of the file system itself is refused with fs.ErrInvalid.
	RemoveAll(ctx context.Context, name string) error
}

// Writer writes one new file. It is not safe for concurrent use, but Abort may be called from another goroutine to break
// a call that hangs.
//
// A Writer has two endings and takes exactly one: Close commits, Abort discards. The first outcome sticks. After a failed
// Write, Sync or Close the file is failed: every later Write, Sync and Close must return an error, never success, and
// Abort removes what is left. An implementation may accept bytes in Write and report their failure in a later call, at
// the latest in Close. A call that is refused with errors.ErrUnsupported is no failure of the file.
//
// Close must fail if the file was removed meanwhile, and neither ending may touch another file that took the name. If the
// file or a directory above it was renamed, Close may commit at the new place or fail; it must never make the old name
// again.
type Writer interface {
	io.Writer

	// Sync must give everything written so far the durability that Create asked for.
	Sync() error

	// Close must commit the file: when it returns nil, all bytes and the directory entry have the durability that Create
	// asked for. A second Close returns the first one's outcome as an error or nil; Close after Abort is fs.ErrClosed.
	Close() error

	// Abort must discard the file and remove it, also after the context has ended, within 10 s. After a successful Close it
	// is a no-op that returns nil, so that it may always be deferred; after a failed Close it removes the file. Calling it
	// again is harmless. An error names what may be left behind.
	Abort() error
}

// Reader reads one file as it was when it was opened. ReadAt must be safe for concurrent use; Read and Seek share a
// position and are for one goroutine. Close is idempotent; afterwards everything is fs.ErrClosed.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer

	// Size is the length of the file in bytes when it was opened.
	Size() int64
}

// FileInfo describes a directory entry.
type FileInfo struct {
	Name    string      // base name
	Size    int64       // bytes of a regular file, else undefined
	Mode    fs.FileMode // type and permission bits
	ModTime time.Time
}

// IsDir reports whether the entry is a directory.
func (i FileInfo) IsDir() bool { return i.Mode.IsDir() }

// IsRegular reports whether the entry is a regular file.
func (i FileInfo) IsRegular() bool { return i.Mode.IsRegular() }

// CreateOptions fixes at Create what Close will promise.
type CreateOptions struct {
	// Durability of the file. [DurabilityDefault] is the strongest that the file system declares. One that it does not
	// declare must be refused with errors.ErrUnsupported.
	Durability Durability

	// MinReplicas is the number of replicas that must have acknowledged the file before Close returns nil, else Close is
	// ErrUnavailable. 0 is min(2, the file's replication); a negative value is fs.ErrInvalid. A file system without replicas
	// refuses a value above 1 with errors.ErrUnsupported.
	MinReplicas int
}

// RenameMode says what Rename does when the new name is taken.
type RenameMode uint8

const (
	// RenameNoReplace must fail with fs.ErrExist when newname exists, as a file or as a directory, or equals oldname; of any
	// number of racing callers with one newname exactly one wins. [Capabilities] tell for what it is available.
	RenameNoReplace RenameMode = iota

	// RenameReplace must replace a file in one step: newname is the old file or the new one, never neither. A newname that is
	// a directory is fs.ErrExist. For a directory as oldname, newname must not exist (fs.ErrExist); where NoReplaceDirs is not
	// declared that check is not atomic, so choose a name that nobody else uses. Equal names of an existing file are a no-op.
	RenameReplace
)

// Durability is what committed bytes survive. Higher values include lower ones.
type Durability uint8

const (
	// DurabilityDefault asks for the strongest that the file system declares.
	DurabilityDefault Durability = iota
	// Unsynced bytes survive the death of the process (kill -9), not that of the machine. For development.
	Unsynced
	// Replicated bytes are in a closed file that at least MinReplicas DataNodes have acknowledged.
	Replicated
	// Synced bytes are also fsynced, on each of those DataNodes or on the local disk, directory entries included.
	Synced
)

// String returns the name of the constant in lower case.
func (d Durability) String() string {
	switch d {
	case DurabilityDefault:
		return "default"
	case Unsynced:
		return "unsynced"
	case Replicated:
		return "replicated"
	case Synced:
		return "synced"
	}
	return "invalid"
}

// Capabilities declares what a file system can do. What is not declared is refused with errors.ErrUnsupported and has no
// effect; it is never done more weakly in silence.
type Capabilities struct {
	// Durabilities that Create accepts, weakest first.
	Durabilities []Durability
	// NoReplaceFiles: RenameNoReplace of files has exactly one winner.
	NoReplaceFiles bool
	// NoReplaceDirs: RenameNoReplace of directories has exactly one winner.
	NoReplaceDirs bool
	// Sync: Writer.Sync gives bytes their durability before Close.
	Sync bool
	// Replicas: files have replicas, and MinReplicas has a meaning.
	Replicas bool
	// DetectsCorruptReads: a damaged replica or block is found by the file system itself before its bytes are returned.
	DetectsCorruptReads bool
}

// Strongest returns the strongest declared durability, or DurabilityDefault if none is declared.
func (c Capabilities) Strongest() Durability {
	var best Durability
	for _, d := range c.Durabilities {
		best = max(best, d)
	}
	return best
}

// Resolve returns the durability that Create will give for the one asked for, and false if it is not declared.
func (c Capabilities) Resolve(asked Durability) (Durability, bool) {
	if asked == DurabilityDefault {
		asked = c.Strongest()
		return asked, asked != DurabilityDefault
	}
	for _, d := range c.Durabilities {
		if d == asked {
			return asked, true
		}
	}
	return asked, false
}
