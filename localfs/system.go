package localfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// system is the operating system as this package uses it. Tests replace it by one that records, fails or hangs.
//
// Errors are bare: an errno, fs.ErrClosed or errEscapes, without a path. EINTR does not occur.
type system interface {
	// open resolves a whole name in the tree and follows symbolic links that stay in it.
	open(t tree, name string, flag int) (*os.File, error)

	// These name an entry of an open directory and never follow it.
	create(dir *os.File, leaf string, mode fs.FileMode) (*os.File, error)
	openDir(dir *os.File, leaf string) (*os.File, error)
	mkdir(dir *os.File, leaf string, mode fs.FileMode) error
	lstat(dir *os.File, leaf string) (entry, error)
	unlink(dir *os.File, leaf string) error
	rmdir(dir *os.File, leaf string) error
	link(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error
	rename(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error

	// renameNoReplace fails with EEXIST if the new name is taken, and with an error that unsupported recognises if the
	// file system cannot do it. knownNoReplace reports whether the type of a directory's file system is known to do it.
	renameNoReplace(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error
	knownNoReplace(dir *os.File) bool

	stat(f *os.File) (entry, error)
	chmod(f *os.File, mode fs.FileMode) error
	names(dir *os.File) ([]string, error)
	write(f *os.File, p []byte) error
	// startWriteout asks for a range of the file to be on its way to the disk, and does not wait for it.
	startWriteout(f *os.File, offset, length int64) error
	fsync(f *os.File) error
	// read reads at least one byte, or returns io.EOF or an error.
	read(f *os.File, p []byte, offset int64) (int, error)
	// readCached reads what can be had without waiting for a disk or a server: possibly nothing. It returns false if it
	// can never tell for this file.
	readCached(f *os.File, p []byte, offset int64) (int, bool)
	close(f *os.File) error
}

// tree is where names are resolved: in an os.Root, or, with the base "/", where nothing is outside, by the kernel.
type tree struct {
	base string
	root *os.Root // nil for the base "/"
}

func (t tree) relative(name string) string {
	if name == t.base {
		return "."
	}
	return name[len(t.base)+1:]
}

// fileID tells files of one machine apart while they exist.
type fileID struct{ device, inode uint64 }

// entry is what the package wants to know about a file.
type entry struct {
	id       fileID
	links    uint64
	mode     fs.FileMode
	size     int64
	modified time.Time
}

func (e entry) info(name string) core.FileInfo {
	return core.FileInfo{Name: name, Size: e.size, Mode: e.mode, ModTime: e.modified}
}

// unsupported reports whether the kernel or a file system does not know an operation or a flag of it.
func unsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}

// kernel is the real system.
type kernel struct{}

var _ system = kernel{}

// control runs op with the descriptor of f, which stays open meanwhile whoever closes f.
func control(f *os.File, op func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return fs.ErrClosed
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = op(int(fd)); !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return fs.ErrClosed
	}
	return result
}

func control2(f, g *os.File, op func(fd, gd int) error) error {
	return control(f, func(fd int) error {
		return control(g, func(gd int) error { return op(fd, gd) })
	})
}

func openAt(dir *os.File, leaf string, flag int, mode fs.FileMode) (*os.File, error) {
	var file *os.File
	err := control(dir, func(dirfd int) error {
		fd, err := unix.Openat(dirfd, leaf, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW, uint32(mode.Perm()))
		if err == nil {
			file = os.NewFile(uintptr(fd), leaf)
		}
		return err
	})
	return file, err
}

func (kernel) open(t tree, name string, flag int) (*os.File, error) {
	if t.root == nil {
		f, err := os.OpenFile(name, flag, 0)
		return f, bare(err)
	}
	f, err := t.root.OpenFile(t.relative(name), flag, 0)
	if err = bare(err); err == nil {
		return f, nil
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) && !errors.Is(err, fs.ErrClosed) {
		return nil, errEscapes // the only other reason that os.Root has for a clean name
	}
	return nil, err
}

func (kernel) create(dir *os.File, leaf string, mode fs.FileMode) (*os.File, error) {
	return openAt(dir, leaf, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
}

func (kernel) openDir(dir *os.File, leaf string) (*os.File, error) {
	return openAt(dir, leaf, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

func (kernel) mkdir(dir *os.File, leaf string, mode fs.FileMode) error {
	return control(dir, func(fd int) error { return unix.Mkdirat(fd, leaf, uint32(mode.Perm())) })
}

func (kernel) lstat(dir *os.File, leaf string) (entry, error) {
	var st unix.Stat_t
	err := control(dir, func(fd int) error { return unix.Fstatat(fd, leaf, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return newEntry(&st), err
}

func (kernel) unlink(dir *os.File, leaf string) error {
	return control(dir, func(fd int) error { return unix.Unlinkat(fd, leaf, 0) })
}

func (kernel) rmdir(dir *os.File, leaf string) error {
	return control(dir, func(fd int) error { return unix.Unlinkat(fd, leaf, unix.AT_REMOVEDIR) })
}

func (kernel) link(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return control2(olddir, newdir, func(oldfd, newfd int) error { return unix.Linkat(oldfd, oldleaf, newfd, newleaf, 0) })
}

func (kernel) rename(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return control2(olddir, newdir, func(oldfd, newfd int) error { return unix.Renameat(oldfd, oldleaf, newfd, newleaf) })
}

func (kernel) renameNoReplace(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return control2(olddir, newdir, func(oldfd, newfd int) error { return renameNoReplace(oldfd, oldleaf, newfd, newleaf) })
}

func (kernel) knownNoReplace(dir *os.File) bool {
	known := false
	err := control(dir, func(fd int) error {
		known = knownNoReplace(fd)
		return nil
	})
	return known && err == nil
}

func (kernel) stat(f *os.File) (entry, error) {
	var st unix.Stat_t
	err := control(f, func(fd int) error { return unix.Fstat(fd, &st) })
	return newEntry(&st), err
}

func (kernel) chmod(f *os.File, mode fs.FileMode) error { return bare(f.Chmod(mode)) }

func (kernel) names(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	return names, bare(err)
}

func (kernel) write(f *os.File, p []byte) error {
	_, err := f.Write(p)
	return bare(err)
}

func (kernel) startWriteout(f *os.File, offset, length int64) error {
	return control(f, func(fd int) error { return startWriteout(fd, offset, length) })
}

func (kernel) fsync(f *os.File) error { return bare(f.Sync()) }

func (kernel) read(f *os.File, p []byte, offset int64) (int, error) {
	n, err := f.ReadAt(p, offset)
	if n > 0 {
		return n, nil
	}
	return 0, bare(err)
}

func (kernel) readCached(f *os.File, p []byte, offset int64) (int, bool) {
	n, able := 0, true
	err := control(f, func(fd int) error {
		n, able = readCached(fd, p, offset)
		return nil
	})
	return n, able && err == nil
}

func (kernel) close(f *os.File) error { return bare(f.Close()) }

func newEntry(st *unix.Stat_t) entry {
	return entry{
		id:       fileID{device: uint64(st.Dev), inode: st.Ino},
		links:    uint64(st.Nlink),
		mode:     fileMode(uint32(st.Mode)),
		size:     st.Size,
		modified: time.Unix(st.Mtim.Unix()),
	}
}

func fileMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	switch bits & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	if bits&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if bits&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if bits&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}
