// Package localfs is a [core.FileSystem] on a local disk, for Linux and macOS: for development, and for production on one
// machine or on a shared mount. Names are the operating system's own absolute names at or below a base directory.
//
// # Durability
//
// A file with durability Synced, the default, is committed in this order: write, fsync the file, make sure that the name
// still leads to it, close it, fsync its directory. Rename fsyncs the directory of the new name, then that of the old one.
// MkdirAll fsyncs the parent of every directory that it makes, and in every call the parents of those that it finds, up to
// the base, because the process that made them may have died before it came to that. When a call returns nil, all of this
// has happened. On macOS every fsync is F_FULLFSYNC.
//
// What leads to the base is fsynced once, in Open: the base, every directory above it, and those above the directory that it
// is when symbolic links are resolved. Not covered are directories below the base that others make and for which
// MkdirAll is not called, the targets of links below the base, and directories that the process has no permission to read
// or that the operating system cannot fsync or has mounted read-only: it is for those who made them to make them durable.
// Open fsyncs nothing for the base "/".
//
// An fsync of a file that fails is never repeated: the kernel may have dropped the pages, and a second call would lie. The
// file is given up; Abort removes it. If a directory cannot be fsynced after a Rename, the error says that the name has
// changed but is not durable. A MkdirAll that fails so leaves the directory, and the next one fsyncs its parent again.
//
// Bytes on their way to the disk are copied into buffers and written by a goroutine of the writer's own (at most 512 KiB
// for each open Writer), and on Linux large files are written out while they grow, so that the final fsync has little left
// to do.
//
// [Options].UnsafeNoFsync switches every fsync off. Files then survive the death of the process, not that of the machine,
// and the file system declares Unsynced only. It is meant for development and for tests.
//
// # Symbolic links
//
// Below a base other than "/" everything goes through an [os.Root]: a symbolic link that leads out of the base, and any
// link with an absolute target, is refused with fs.ErrPermission, whatever the call. Links that stay inside are followed
// where they stand for a directory on the way and by Open and List. Stat, Rename, Remove and RemoveAll act on a link
// itself and never on its target. With the base "/" no link leads out, so all are followed on the way. The base itself
// may be a link; it is resolved once, in Open.
//
// Directories are held by descriptors: if the base is renamed, the file system follows it; if it is removed, every call
// fails with fs.ErrNotExist, also when another directory has taken its name.
//
// # Renames without replacing
//
// Linux (renameat2) and macOS (renameatx_np) rename files and directories without replacing in one step. File systems that
// do not support it, such as NFS, many in user space and older releases of ZFS, get link and unlink for files: still
// exactly one winner, but for a moment, or after a crash in between, the file has both names or a second one of the form
// "._metadata.inprogress.<uuid>" beside the old one, and a caller that loses the race for one file shows its own new name for
// a moment. If NFS loses the answer to a link, Rename cannot tell its own link from that of a caller with the same two names; it
// fails with core.ErrUnavailable, which says that both names are those of one file, and leaves both. Directories cannot be
// linked, so NoReplaceDirs is not declared then. What is declared is found out once, in Open: from the type of the base's
// file system where that is known, else by renaming a directory of a unique name in the base. Below a base that spans
// several mounts, a mount that cannot do what the base can refuses with errors.ErrUnsupported.
//
// A rename resolves the directories of both names when it is called, and then names the entries relative to them. A directory
// that is renamed away before that is fs.ErrNotExist. One that is renamed away between the two steps, which are microseconds
// apart unless a call hangs, takes the entry along: who fences others by renaming their directory must remove what is in it
// before relying on the fence. A rename across devices is an error, never a copy.
//
// # Network mounts
//
// A call returns soon after its context's end even if the kernel does not: see [FS.Background]. On NFS a file that is
// removed while somebody has it open lives on as ".nfs…" in its directory. Remove and RemoveAll wait a short while for such
// leftovers and then name them in their error. ESTALE is core.ErrUnavailable. EDQUOT is core.ErrNoSpace, because it does not
// tell whether blocks or inodes ran out.
package localfs
