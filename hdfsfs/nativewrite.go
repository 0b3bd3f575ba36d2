package hdfsfs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/pipeline"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// nativeWriter is a file that is written.
type nativeWriter struct {
	client *native
	pipe   *pipeline.Writer
	state  status
	synced bool
	let    func() // goes of the lease and the context
}

// create implements client. In a directory whose files are erasure-coded the file is replicated all the same; in an encryption zone
// the NameNode refuses it.
func (n *native) create(ctx context.Context, name string, spec createSpec) (clientWriter, error) {
	if err := n.complete(ctx, &spec); err != nil {
		return nil, err
	}
	release := n.nn.HoldLease()
	made, err := n.nn.Create(n.ctx, name, namenode.CreateOptions{
		Mode: spec.perm, Replication: uint32(spec.replication), BlockSize: spec.blockSize, StoragePolicy: spec.storagePolicy, //nolint:gosec // at most 512
	})
	if err != nil {
		release()
		return nil, fromNative(err)
	}
	w := &nativeWriter{client: n, state: nativeStatus(made), synced: spec.synced}
	if err := n.begin(ctx, w, name, made, spec, release); err != nil {
		_, removeErr := n.nn.Delete(n.ctx, inodePath(made.GetFileId()), false)
		release()
		if removeErr != nil {
			return nil, fmt.Errorf("%w; the file may be left behind, empty: %w", err, fromNative(removeErr))
		}
		return nil, err
	}
	return w, nil
}

// complete takes what is not given from the NameNode.
func (n *native) complete(ctx context.Context, spec *createSpec) error {
	if spec.replication > 0 && spec.blockSize > 0 {
		return nil
	}
	defaults, err := n.nn.GetServerDefaults(ctx)
	if err != nil {
		return fromNative(err)
	}
	if spec.replication == 0 {
		spec.replication = int(defaults.GetReplication())
	}
	if spec.blockSize == 0 {
		spec.blockSize = int64(defaults.GetBlockSize()) //nolint:gosec // below 2^63: the NameNode's
	}
	return nil
}

func (n *native) begin(ctx context.Context, w *nativeWriter, name string, made *wire.HdfsFileStatus, spec createSpec, release func()) error {
	minReplicas, err := replicasWanted(w.state, spec.minReplicas)
	if err == nil {
		err = usableLayout(w.state)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(n.ctx, cancel)
	checksum := wire.ChecksumType_CHECKSUM_CRC32C
	if n.files.Checksum == "CRC32" {
		checksum = wire.ChecksumType_CHECKSUM_CRC32
	}
	w.pipe, err = pipeline.New(ctx, namenode.File{Path: name, ID: made.GetFileId()}, pipeline.Options{
		NameNode: n.nn, Dialer: n.dialer, Pool: &n.pool,
		BlockSize: int64(made.GetBlocksize()), Replication: int(made.GetBlockReplication()), MinReplicas: minReplicas, SyncBlocks: spec.synced, //nolint:gosec // below 2^63
		Checksum: checksum, BytesPerChecksum: n.files.BytesPerChecksum, PacketSize: n.write.PacketSize, Window: max(2, n.write.PacketsInFlight),
		BlockRetries: noneIfZero(n.write.BlockRetries), MaxRecoveries: noneIfZero(n.write.RecoveryRetries), CompleteFor: n.opts.CloseTimeout,
		RestartFor: noneIfZero(n.write.RestartTimeout), NeverReplace: !n.write.ReplaceEnabled || n.write.ReplacePolicy == "NEVER", AlwaysReplace: n.write.ReplacePolicy == "ALWAYS",
	})
	if err != nil {
		unbind()
		cancel()
		return err
	}
	w.let = sync.OnceFunc(func() {
		unbind()
		cancel()
		release()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.writers, w)
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writers[w] = struct{}{}
	return nil
}

func (w *nativeWriter) status() status { return w.state }

// write implements clientWriter.
func (w *nativeWriter) write(p []byte) error {
	_, err := w.pipe.Write(p)
	return fromPipeline(err)
}

// sync implements clientWriter.
func (w *nativeWriter) sync() error { return fromPipeline(w.pipe.Sync(w.synced)) }

// finish implements clientWriter. How long the NameNode may take was said when the file was created.
func (w *nativeWriter) finish(time.Duration) (int, error) {
	if err := w.pipe.Close(); err != nil {
		return 0, fromPipeline(err)
	}
	w.let()
	return w.pipe.Replicas(), nil
}

// discard implements clientWriter.
func (w *nativeWriter) discard(bool) {
	w.pipe.Abort()
	w.let()
}

func (w *nativeWriter) interrupt() { w.pipe.Interrupt() }
