package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

// defaultMinReplicas is MinReplicas if that is 0 and the file has as many.
const defaultMinReplicas = 2

// Create implements core.FileSystem. The file has its name from now on.
func (f *FS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	if err := core.CheckName("create", f.opts.Base, name); err != nil {
		return nil, err
	}
	if err := f.checkOptions(opts); err != nil {
		return nil, core.PathError("create", name, err)
	}
	w, err := call(ctx, f, func() (*writer, error) { return f.create(ctx, name, opts) }, (*writer).discardNow)
	if err != nil {
		return nil, core.PathError("create", name, err)
	}
	return w, nil
}

func (f *FS) checkOptions(opts core.CreateOptions) error {
	_, ok := f.caps.Resolve(opts.Durability)
	switch {
	case opts.MinReplicas < 0:
		return fmt.Errorf("%w: MinReplicas is %d", fs.ErrInvalid, opts.MinReplicas)
	case !ok:
		return fmt.Errorf("%w: durability %s: this client can only have files acknowledged by DataNodes", errors.ErrUnsupported, opts.Durability)
	}
	return nil
}

// create claims the name. A failure leaves nothing behind, unless the NameNode could not be reached to say so.
func (f *FS) create(ctx context.Context, name string, opts core.CreateOptions) (*writer, error) {
	if name == f.opts.Base {
		return nil, fs.ErrExist
	}
	durability, _ := f.caps.Resolve(opts.Durability)
	spec := createSpec{
		perm: uint32(0o666 &^ f.settings.umask), replication: f.settings.replication, blockSize: f.settings.blockSize,
		minReplicas: opts.MinReplicas, synced: durability == core.Synced, storagePolicy: f.opts.StoragePolicy,
	}
	var cw clientWriter
	err := f.retry(ctx, func() (err error) {
		cw, err = f.client.create(ctx, name, spec)
		return err
	})
	if inDoubt(err) {
		return nil, fmt.Errorf("the file may be left behind, empty: %w", err)
	}
	if err != nil {
		return nil, err
	}
	w := &writer{fs: f, name: name, client: cw}
	w.queue = blocks.NewQueue(blocks.Options{
		Context: ctx, Gate: &f.gate, Answerer: answerer, Max: maxBlocks, Write: cw.write, Direct: f.client.features().direct,
	})
	if w.minReplicas, err = replicasWanted(cw.status(), opts.MinReplicas); err == nil {
		err = usableLayout(cw.status())
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		w.discardNow()
		return nil, err
	}
	return w, nil
}

func replicasWanted(s status, asked int) (int, error) {
	switch {
	case asked == 0:
		return min(defaultMinReplicas, s.replication), nil
	case asked > s.replication && !s.erasure:
		return 0, fmt.Errorf("%w: MinReplicas is %d and the file has a replication of %d: raise Options.Replication or dfs.replication",
			fs.ErrInvalid, asked, s.replication)
	}
	return asked, nil
}

// usableLayout refuses what this client would write or read wrongly.
func usableLayout(s status) error {
	switch {
	case s.erasure:
		return fmt.Errorf("%w: erasure coding: use a directory with the policy REPLICATION (hdfs ec -setPolicy -replicate)", errors.ErrUnsupported)
	case s.encrypted:
		return fmt.Errorf("%w: encryption zones: use a directory outside of one", errors.ErrUnsupported)
	}
	return nil
}
