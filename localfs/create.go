package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

// Create implements core.FileSystem. The file has its name, and the mode of Options.FileMode, from now on.
func (f *FS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	if err := core.CheckName("create", f.tree.base, name); err != nil {
		return nil, err
	}
	durability, err := f.resolve(opts)
	if err != nil {
		return nil, core.PathError("create", name, err)
	}
	w, err := call(ctx, f, func() (*writer, error) { return f.create(ctx, name, durability) }, (*writer).discardNow)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return w, nil
}

// resolve checks the options against the capabilities.
func (f *FS) resolve(opts core.CreateOptions) (core.Durability, error) {
	durability, ok := f.caps.Resolve(opts.Durability)
	switch {
	case opts.MinReplicas < 0:
		return 0, fmt.Errorf("%w: MinReplicas is %d", fs.ErrInvalid, opts.MinReplicas)
	case !ok:
		return 0, fmt.Errorf("%w: durability %s", errors.ErrUnsupported, opts.Durability)
	case opts.MinReplicas > 1:
		return 0, fmt.Errorf("%w: MinReplicas is %d and there are no replicas", errors.ErrUnsupported, opts.MinReplicas)
	}
	return durability, nil
}

// create claims the name. A failure leaves nothing behind.
func (f *FS) create(ctx context.Context, name string, durability core.Durability) (*writer, error) {
	if name == f.tree.base {
		return nil, fs.ErrExist
	}
	dir, leaf, err := f.parent(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		f.release(dir)
		return nil, err
	}
	file, err := f.sys.create(dir, leaf, f.opts.FileMode)
	if err != nil {
		f.release(dir)
		return nil, err
	}
	made, err := f.sys.stat(file)
	if err == nil && made.mode.Perm() != f.opts.FileMode {
		err = f.sys.chmod(file, f.opts.FileMode)
	}
	if err != nil {
		f.release(file)
		_ = f.sys.unlink(dir, leaf)
		f.release(dir)
		return nil, err
	}
	w := &writer{fs: f, name: name, durability: durability, dir: dir, leaf: leaf, file: file, id: made.id}
	w.queue = blocks.NewQueue(blocks.Options{Context: ctx, Gate: &f.gate, Answerer: answerer, Max: maxBlocks, Write: w.write})
	return w, nil
}
