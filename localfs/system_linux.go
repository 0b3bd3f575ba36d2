package localfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// lookupFlag opens a directory only to name entries in it: that needs no permission to list it.
const lookupFlag = unix.O_PATH

func renameNoReplace(oldfd int, oldleaf string, newfd int, newleaf string) error {
	return unix.Renameat2(oldfd, oldleaf, newfd, newleaf, unix.RENAME_NOREPLACE)
}

// knownNoReplace goes by the type of the file system, and makes sure that the kernel, or what stands before it in a
// sandbox, has the call: names that cannot exist are not found.
func knownNoReplace(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
		unix.F2FS_SUPER_MAGIC:
		return errors.Is(renameNoReplace(fd, "", fd, ""), unix.ENOENT)
	}
	return false
}

// startWriteout saves the last fsync of a large file from finding gigabytes to write.
func startWriteout(fd int, offset, length int64) error {
	err := unix.SyncFileRange(fd, offset, length, unix.SYNC_FILE_RANGE_WRITE)
	if unsupported(err) {
		return nil // it is only a hint
	}
	return err
}

// readCached uses RWF_NOWAIT. File systems on a network or in user space, the ones that may hang, do not support it.
func readCached(fd int, p []byte, offset int64) (n int, able bool) {
	n, err := unix.Preadv2(fd, [][]byte{p}, offset, unix.RWF_NOWAIT)
	switch {
	case err == nil:
		return n, true
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, true
	}
	return 0, false
}
