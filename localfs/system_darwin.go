package localfs

import "golang.org/x/sys/unix"

// lookupFlag opens a directory only to name entries in it.
const lookupFlag = 0

func renameNoReplace(oldfd int, oldleaf string, newfd int, newleaf string) error {
	return unix.RenameatxNp(oldfd, oldleaf, newfd, newleaf, unix.RENAME_EXCL)
}

// knownNoReplace goes by the type of the file system.
func knownNoReplace(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch unix.ByteSliceToString(st.Fstypename[:]) {
	case "apfs", "hfs":
		return true
	}
	return false
}

// startWriteout has no counterpart here.
func startWriteout(int, int64, int64) error { return nil }

// readCached has no counterpart here.
func readCached(int, []byte, int64) (n int, able bool) { return 0, false }
