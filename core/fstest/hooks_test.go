package fstest

import (
	"context"
	"iter"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// hooks replaces methods of a file system, to break them. What is nil goes on to the file system itself.
type hooks struct {
	core.FileSystem

	uri          func() string
	capabilities func() core.Capabilities
	create       func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error)
	open         func(ctx context.Context, name string) (core.Reader, error)
	stat         func(ctx context.Context, name string) (core.FileInfo, error)
	list         func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error]
	mkdirAll     func(ctx context.Context, dir string) error
	rename       func(ctx context.Context, oldname, newname string, mode core.RenameMode) error
	remove       func(ctx context.Context, name string) error
	removeAll    func(ctx context.Context, name string) error
}

func (h *hooks) URI() string {
	if h.uri != nil {
		return h.uri()
	}
	return h.FileSystem.URI()
}

func (h *hooks) Capabilities() core.Capabilities {
	if h.capabilities != nil {
		return h.capabilities()
	}
	return h.FileSystem.Capabilities()
}

func (h *hooks) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	if h.create != nil {
		return h.create(ctx, name, opts)
	}
	return h.FileSystem.Create(ctx, name, opts)
}

func (h *hooks) Open(ctx context.Context, name string) (core.Reader, error) {
	if h.open != nil {
		return h.open(ctx, name)
	}
	return h.FileSystem.Open(ctx, name)
}

func (h *hooks) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	if h.stat != nil {
		return h.stat(ctx, name)
	}
	return h.FileSystem.Stat(ctx, name)
}

func (h *hooks) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	if h.list != nil {
		return h.list(ctx, dir)
	}
	return h.FileSystem.List(ctx, dir)
}

func (h *hooks) MkdirAll(ctx context.Context, dir string) error {
	if h.mkdirAll != nil {
		return h.mkdirAll(ctx, dir)
	}
	return h.FileSystem.MkdirAll(ctx, dir)
}

func (h *hooks) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if h.rename != nil {
		return h.rename(ctx, oldname, newname, mode)
	}
	return h.FileSystem.Rename(ctx, oldname, newname, mode)
}

func (h *hooks) Remove(ctx context.Context, name string) error {
	if h.remove != nil {
		return h.remove(ctx, name)
	}
	return h.FileSystem.Remove(ctx, name)
}

func (h *hooks) RemoveAll(ctx context.Context, name string) error {
	if h.removeAll != nil {
		return h.removeAll(ctx, name)
	}
	return h.FileSystem.RemoveAll(ctx, name)
}

// writerHooks replaces methods of a Writer.
type writerHooks struct {
	core.Writer

	write func(p []byte) (int, error)
	sync  func() error
	close func() error
	abort func() error
}

func (h *writerHooks) Write(p []byte) (int, error) {
	if h.write != nil {
		return h.write(p)
	}
	return h.Writer.Write(p)
}

func (h *writerHooks) Sync() error {
	if h.sync != nil {
		return h.sync()
	}
	return h.Writer.Sync()
}

func (h *writerHooks) Close() error {
	if h.close != nil {
		return h.close()
	}
	return h.Writer.Close()
}

func (h *writerHooks) Abort() error {
	if h.abort != nil {
		return h.abort()
	}
	return h.Writer.Abort()
}

// readerHooks replaces methods of a Reader.
type readerHooks struct {
	core.Reader

	read   func(p []byte) (int, error)
	readAt func(p []byte, off int64) (int, error)
	seek   func(offset int64, whence int) (int64, error)
	close  func() error
}

func (h *readerHooks) Read(p []byte) (int, error) {
	if h.read != nil {
		return h.read(p)
	}
	return h.Reader.Read(p)
}

func (h *readerHooks) ReadAt(p []byte, off int64) (int, error) {
	if h.readAt != nil {
		return h.readAt(p, off)
	}
	return h.Reader.ReadAt(p, off)
}

func (h *readerHooks) Seek(offset int64, whence int) (int64, error) {
	if h.seek != nil {
		return h.seek(offset, whence)
	}
	return h.Reader.Seek(offset, whence)
}

func (h *readerHooks) Close() error {
	if h.close != nil {
		return h.close()
	}
	return h.Reader.Close()
}
