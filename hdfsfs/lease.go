package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// leaseClient is a client that can close what another one has left open.
type leaseClient interface {
	client
	closeAbandoned(ctx context.Context, name string) error
}

// CloseAbandoned closes a file that its writer has left open, and returns when it is closed: with all that was synced, at least; what was
// written after that may be in it too, in part. It is for a file whose bytes are still wanted. Until then DataNodes that die are not
// replaced for its last block; by itself the NameNode does the same 20 minutes after the last sign of the writer. To take only the
// name, Remove or Rename need no such thing.
//
// Nobody can tell here whether the writer is dead. One that lives loses the file: its next Sync or Close fails, as a rule with
// fs.ErrNotExist. A file that is closed stays as it is, which is success. The library's client refuses with errors.ErrUnsupported.
func (f *FS) CloseAbandoned(ctx context.Context, name string) error {
	if err := core.CheckName("recover", f.opts.Base, name); err != nil {
		return err
	}
	c, ok := f.client.(leaseClient)
	if !ok {
		return core.PathError("recover", name, fmt.Errorf("%w: this client cannot recover leases", errors.ErrUnsupported))
	}
	return core.PathError("recover", name, do(ctx, f, func() error {
		err := f.retryAnyway(ctx, func() error { return c.closeAbandoned(ctx, name) })
		if errors.Is(err, fs.ErrNotExist) {
			if s, statErr := f.stat(ctx, name); statErr == nil && (s.dir || s.symlink) {
				err = readable(s)
			}
		}
		return err
	}))
}

// closeAbandoned implements leaseClient.
func (n *native) closeAbandoned(ctx context.Context, name string) error {
	return fromNative(n.nn.CloseAbandoned(ctx, name))
}
