package localfs

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// listBatch is how many entries are described in one go.
const listBatch = 256

// List implements core.FileSystem. It holds the names of the directory in memory; entries that vanish meanwhile are left out.
func (f *FS) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	return func(yield func(core.FileInfo, error) bool) {
		if err := f.list(ctx, dir, func(info core.FileInfo) bool { return yield(info, nil) }); err != nil {
			yield(core.FileInfo{}, pathError("list", dir, err))
		}
	}
}

// list calls yield until it returns false.
func (f *FS) list(ctx context.Context, name string, yield func(core.FileInfo) bool) error {
	if err := core.CheckName("list", f.tree.base, name); err != nil {
		return err
	}
	l, err := call(ctx, f, func() (*listing, error) { return f.openListing(name) }, (*listing).close)
	if err != nil {
		return err
	}
	defer l.close()
	for names := range slices.Chunk(l.names, listBatch) {
		infos, err := call(ctx, f, func() ([]core.FileInfo, error) { return l.describe(ctx, names) }, nil)
		if err != nil {
			return err
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(info) {
				return nil
			}
		}
	}
	return nil
}

// listing is an open directory with the names in it, in order and each once.
type listing struct {
	sys   system
	dir   *os.File
	names []string
}

func (f *FS) openListing(name string) (*listing, error) {
	dir, err := f.sys.open(f.tree, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	names, err := f.sys.names(dir)
	if err != nil {
		f.release(dir)
		return nil, err
	}
	slices.Sort(names)
	return &listing{sys: f.sys, dir: dir, names: slices.Compact(names)}, nil
}

func (l *listing) close() { _ = l.sys.close(l.dir) }

func (l *listing) describe(ctx context.Context, names []string) ([]core.FileInfo, error) {
	infos := make([]core.FileInfo, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := l.sys.lstat(l.dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, e.info(name))
	}
	return infos, nil
}
