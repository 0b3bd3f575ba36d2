package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/blockread"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/conf"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/pipeline"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// native is a client on the packages below internal. One connection to the NameNode serves all calls. What changes the namespace
// goes on after its caller has left, so that FS can undo it; it ends with the client.
type native struct {
	nn     *namenode.Client
	dialer *datanode.Dialer
	reads  *blockread.Client
	pool   pipeline.Pool
	write  conf.Write
	files  conf.Files
	opts   Options

	ctx    context.Context //nolint:containedctx // ends with the client
	cancel context.CancelFunc

	mu      sync.Mutex
	writers map[*nativeWriter]struct{}
}

// newNative makes a client. Nothing is connected before the first call.
func newNative(s settings, o Options) (*native, error) {
	set := s.conf
	calls := rpc.Options{
		Resolver: rpc.Fixed(s.addresses), Authenticator: rpc.Simple{User: s.user}, Dial: o.dial,
		ConnectTimeout: o.CallTimeout, CallTimeout: o.CallTimeout, PingInterval: set.RPC.PingInterval, IdleTimeout: set.RPC.IdleTimeout,
		MaxRequest: set.RPC.MaxRequest, MaxAnswer: set.RPC.MaxAnswer,
	}
	n := &native{
		dialer: datanode.NewDialer(datanode.Options{
			Dial: o.dial, UseHostname: set.Data.ByHostname, Timeout: o.DataTimeout, WriteTimeout: o.writeTimeout,
		}),
		write: set.Write, files: set.Files, opts: o, writers: map[*nativeWriter]struct{}{},
	}
	var err error
	if n.nn, err = namenode.New(namenode.Options{RPC: calls, Policy: namenode.Policy{
		RetryFor: o.RetryFor, ConnectFor: max(0, o.RetryFor), Base: firstRetry,
	}}); err != nil {
		return nil, err
	}
	hedge := o.HedgeAfter
	if hedge == 0 && set.Read.HedgedReads > 0 {
		hedge = set.Read.HedgeAfter
	}
	n.reads, err = blockread.New(blockread.Options{
		NameNode: n.nn, Dialer: n.dialer, VisibleLength: blockread.ReplicaLengths(calls, set.Data.ByHostname), Prefetch: set.Read.Prefetch,
		CachedConns: noneIfZero(set.Read.CachedSockets), CachedFor: set.Read.CachedSocketLife, RetryFor: o.RetryFor, HedgeAfter: max(0, hedge),
	})
	if err != nil {
		return nil, errors.Join(err, n.nn.Close())
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n, nil
}

// firstRetry is the first wait for a NameNode, which is doubled each time.
const firstRetry = 100 * time.Millisecond

// noneIfZero is for options whose zero value is a default, and where the configuration means none by it.
func noneIfZero[T int | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

func (n *native) features() features { return features{sync: true, repeats: true, direct: true} }

// check refuses a cluster that asks for more than this client has.
func (n *native) check(ctx context.Context) error {
	defaults, err := n.nn.GetServerDefaults(ctx)
	if err == nil && defaults.GetEncryptDataTransfer() {
		return fmt.Errorf("%w: the DataNodes encrypt (dfs.encrypt.data.transfer): this client cannot", errors.ErrUnsupported)
	}
	return fromNative(err)
}

// counts implements client. Nothing is left behind by this one.
func (n *native) counts() Counts { return Counts{} }

// close implements client.
func (n *native) close() {
	n.cancel()
	n.reads.Close()
	_ = n.nn.Close() // always nil
}

// wait implements client.
func (n *native) wait() {
	n.mu.Lock()
	writers := n.writers
	n.writers = map[*nativeWriter]struct{}{}
	n.mu.Unlock()
	for w := range writers {
		w.pipe.Abort()
	}
}

// stat implements client.
func (n *native) stat(ctx context.Context, name string) (status, error) {
	found, err := n.nn.GetFileLinkInfo(ctx, name)
	if err != nil {
		return status{}, fromNative(err)
	}
	return nativeStatus(found), nil
}

// mkdirs implements client.
func (n *native) mkdirs(_ context.Context, name string, perm uint32) error {
	return fromNative(n.nn.Mkdirs(n.ctx, name, perm, 0, true))
}

// rename implements client.
func (n *native) rename(_ context.Context, oldname, newname string, replace bool) error {
	return fromNative(n.nn.Rename(n.ctx, oldname, newname, replace))
}

// remove implements client.
func (n *native) remove(_ context.Context, name string, recursive bool) (bool, error) {
	removed, err := n.nn.Delete(n.ctx, name, recursive)
	return removed, fromNative(err)
}

// listDirect implements directClient.
func (n *native) listDirect(name string) clientListing { return &nativeListing{nn: n.nn, name: name} }

// nativeListing lists a directory in one call if it is small: then that sees one state of it. A large one is listed by its inode.
type nativeListing struct {
	nn    *namenode.Client
	name  string // until the directory turns out to be large
	dir   string
	after []byte
}

// next implements clientListing.
func (l *nativeListing) next(ctx context.Context) ([]status, bool, error) {
	if l.name != "" {
		found, more, err := l.nn.ListPage(ctx, l.name, nil)
		if err != nil || !more {
			return nativePage(found), false, fromNative(err)
		}
		s, err := l.nn.GetFileInfo(ctx, l.name)
		if err != nil {
			return nil, false, fromNative(err)
		}
		l.name, l.dir = "", inodePath(s.GetFileId()) // perhaps another directory by now: it is begun anew
	}
	found, more, err := l.nn.ListPage(ctx, l.dir, l.after)
	if err != nil {
		return nil, false, fromNative(err)
	}
	if len(found) > 0 {
		l.after = found[len(found)-1].GetPath()
	}
	return nativePage(found), more, nil
}

func nativePage(found []*wire.HdfsFileStatus) []status {
	page := make([]status, len(found))
	for i, entry := range found {
		page[i] = nativeStatus(entry)
	}
	return page
}

func (l *nativeListing) close() {}

func nativeStatus(s *wire.HdfsFileStatus) status {
	return status{
		id: s.GetFileId(), name: string(s.GetPath()), size: int64(s.GetLength()), modified: millis(s.GetModificationTime()), //nolint:gosec // below 2^63
		dir: s.GetFileType() == wire.HdfsFileStatus_IS_DIR, symlink: s.GetFileType() == wire.HdfsFileStatus_IS_SYMLINK,
		perm: s.GetPermission().GetPerm(), replication: int(s.GetBlockReplication()), erasure: namenode.Striped(s), encrypted: namenode.Encrypted(s),
	}
}
