package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/blockread"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

var _ directClient = (*native)(nil)

// located asks for a file and the places of its blocks.
func (n *native) located(ctx context.Context, name string) (*wire.HdfsFileStatus, error) {
	found, err := n.nn.GetLocatedFileInfo(ctx, name)
	var answer *rpc.ServerError
	if errors.As(err, &answer) && strings.HasSuffix(answer.Class, "NoSuchMethodException") { // a server before 3.3
		found, err = n.nn.GetFileInfo(ctx, name)
	}
	if err == nil {
		err = readable(nativeStatus(found))
	}
	return found, err
}

// openDirect implements directClient.
func (n *native) openDirect(ctx context.Context, name string) (*blockread.File, error) {
	found, err := n.located(ctx, name)
	if err != nil {
		return nil, fromNative(err)
	}
	file, err := n.reads.Open(ctx, inodePath(found.GetFileId()), found.GetLocations())
	return file, fromNative(err)
}

// checksum implements directClient.
func (n *native) checksum(ctx context.Context, name string) (uint32, int64, error) {
	found, err := n.located(ctx, name)
	if err != nil {
		return 0, 0, fromNative(err)
	}
	places := found.GetLocations()
	if places == nil || places.GetFileLength() != found.GetLength() {
		if places, err = n.nn.GetBlockLocations(ctx, inodePath(found.GetFileId()), 0, int64(found.GetLength())+1); err != nil { //nolint:gosec // below 2^63
			return 0, 0, fromNative(err)
		}
	}
	sum, size, err := n.reads.Checksum(ctx, places)
	return sum, size, fromNative(err)
}

// direct is a core.Reader on a reader that ends with its context by itself.
type direct struct {
	name string
	file *blockread.File
}

func (f *FS) openDirect(ctx context.Context, name string, c directClient) (core.Reader, error) {
	r, err := call(ctx, f, func() (*direct, error) {
		var file *blockread.File
		err := f.retryAnyway(ctx, func() (err error) {
			file, err = c.openDirect(ctx, name)
			return err
		})
		if err != nil {
			return nil, err
		}
		return &direct{name, file}, nil
	}, func(r *direct) { _ = r.Close() })
	if err != nil {
		return nil, core.PathError("open", name, err)
	}
	return r, nil
}

// failed is the error of a method; io.EOF stays bare.
func (r *direct) failed(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // only the bare one is the end of the file
		return err
	}
	return core.PathError(op, r.name, fromNative(err))
}

// Size implements core.Reader.
func (r *direct) Size() int64 { return r.file.Size() }

// Read implements core.Reader.
func (r *direct) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	return n, r.failed("read", err)
}

// ReadAt implements core.Reader.
func (r *direct) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.file.ReadAt(p, off)
	return n, r.failed("read", err)
}

// Seek implements core.Reader.
func (r *direct) Seek(offset int64, whence int) (int64, error) {
	at, err := r.file.Seek(offset, whence)
	return at, r.failed("seek", err)
}

// Close implements core.Reader. It breaks reads that are under way.
func (r *direct) Close() error { return r.file.Close() }

var _ core.Checksummer = (*FS)(nil)

// FileCRC32C implements core.Checksummer: DataNodes make the composite CRC from the checksums that they keep. It is
// errors.ErrUnsupported with the library's client, and for files that are being written or have checksums of another kind.
func (f *FS) FileCRC32C(ctx context.Context, name string) (uint32, int64, error) {
	if err := core.CheckName("checksum", f.opts.Base, name); err != nil {
		return 0, 0, err
	}
	c, ok := f.client.(directClient)
	if !ok {
		return 0, 0, core.PathError("checksum", name, fmt.Errorf("%w: this client does not ask DataNodes for sums", errors.ErrUnsupported))
	}
	type result struct {
		sum  uint32
		size int64
	}
	r, err := call(ctx, f, func() (result, error) {
		var r result
		err := f.retryAnyway(ctx, func() (err error) {
			r.sum, r.size, err = c.checksum(ctx, name)
			return err
		})
		return r, err
	}, nil)
	return r.sum, r.size, core.PathError("checksum", name, err)
}

// isEnd reports whether an error says that somebody has ended what failed.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fs.ErrClosed)
}
