package namenode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/conf"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// These tests run against a real NameNode.

func clusterClient(t testing.TB, c *testenv.Cluster, o Options, server string) *Client {
	t.Helper()
	o.RPC.Authenticator = rpc.Simple{User: c.Credentials("alice").User}
	return newClient(t, o, server)
}

var smallFile = CreateOptions{Mode: 0o666, Umask: 0o022, Replication: 1, BlockSize: 1 << 20}

// requireClass is about the exception of an error.
func requireClass(t *testing.T, err error, class string) {
	t.Helper()
	var thrown *rpc.ServerError
	require.ErrorAs(t, err, &thrown)
	require.Equal(t, class, short(thrown.Class), "%v", err)
	require.NotEmpty(t, thrown.Message)
	require.NotContains(t, thrown.Message, "\n")
}

// cutter is a proxy before a NameNode that, when it is armed, passes requests on and cuts the connection instead of passing the
// next answer: the call is executed, and its answer is lost.
type cutter struct {
	net.Listener
	armed atomic.Bool
	cuts  atomic.Int64
	wg    sync.WaitGroup
}

func newCutter(t testing.TB, server string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{Listener: l}
	c.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.pass(client, server) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		c.wg.Wait()
	})
	return c
}

func (c *cutter) pass(client net.Conn, server string) {
	defer client.Close() //nolint:errcheck // the client may have closed it
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	c.wg.Go(func() {
		_, _ = io.Copy(upstream, client) // until one of them ends
		_ = upstream.Close()
	})
	defer upstream.Close() //nolint:errcheck // may be closed already
	buf := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(buf)
		if err != nil {
			return
		}
		if c.armed.CompareAndSwap(true, false) {
			c.cuts.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestACallWhoseAnswerWasLostIsExecutedOnce(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	proxy := newCutter(t, cluster.NameNode())
	c := clusterClient(t, cluster, Options{}, proxy.Addr().String())
	plain := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	ctx := t.Context()

	// lost calls do after which the answer is lost once, and makes sure that it was.
	lost := func(name string, do func() error) {
		t.Helper()
		_, err := c.GetFileInfo(ctx, dir) // a connection is there
		require.NoError(t, err)
		before := proxy.cuts.Load()
		proxy.armed.Store(true)
		require.NoError(t, do(), name)
		require.Equal(t, before+1, proxy.cuts.Load(), "%s: the answer was not lost", name)
	}

	var created *wire.HdfsFileStatus
	lost("create", func() (err error) { created, err = c.Create(ctx, dir+"/a", smallFile); return err })
	status, err := plain.GetFileInfo(ctx, dir+"/a")
	require.NoError(t, err)
	require.Equal(t, status.GetFileId(), created.GetFileId(), "the status is that of the file")
	_, err = c.Create(ctx, dir+"/a", smallFile)
	requireClass(t, err, "AlreadyBeingCreatedException") // a call of its own is executed

	file := File{Path: dir + "/a", ID: created.GetFileId()}
	lost("complete", func() error {
		done, err := c.Complete(ctx, file, nil)
		if err == nil && !done {
			err = errors.New("not complete")
		}
		return err
	})
	lost("rename", func() error { return c.Rename(ctx, dir+"/a", dir+"/b", false) })
	requireClass(t, c.Rename(ctx, dir+"/a", dir+"/b", false), "FileNotFoundException")
	moved, err := plain.GetFileInfo(ctx, dir+"/b")
	require.NoError(t, err)
	require.Equal(t, status.GetFileId(), moved.GetFileId())

	lost("delete", func() error {
		existed, err := c.Delete(ctx, dir+"/b", false)
		if err == nil && !existed {
			err = errors.New("nothing was there to be deleted")
		}
		return err
	})
	existed, err := c.Delete(ctx, dir+"/b", false)
	require.NoError(t, err)
	require.False(t, existed)
	lost("mkdirs", func() error { return c.Mkdirs(ctx, dir+"/d", 0o755, 0, false) })
}

func TestCallsOfTheNamespace(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	ctx := t.Context()

	defaults, err := c.GetServerDefaults(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 512, defaults.GetBytesPerChecksum())
	safe, err := c.SafeMode(ctx)
	require.NoError(t, err)
	require.False(t, safe)
	_, err = c.HAState(ctx)
	requireClass(t, err, "ServiceFailedException") // there is no second NameNode

	require.NoError(t, c.Mkdirs(ctx, dir+"/d/e", 0o777, 0o027, true))
	require.NoError(t, c.Mkdirs(ctx, dir+"/d/e", 0o777, 0o027, true), "it exists")
	requireClass(t, c.Mkdirs(ctx, dir+"/x/y", 0o777, 0o022, false), "FileNotFoundException")
	status, err := c.GetFileInfo(ctx, dir+"/d")
	require.NoError(t, err)
	require.Equal(t, wire.HdfsFileStatus_IS_DIR, status.GetFileType())
	require.EqualValues(t, 0o750, status.GetPermission().GetPerm())
	require.False(t, Striped(status))
	_, err = c.GetFileInfo(ctx, dir+"/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = c.GetFileLinkInfo(ctx, dir+"/d")
	require.NoError(t, err)

	_, err = c.Create(ctx, dir+"/x/f", smallFile)
	requireClass(t, err, "FileNotFoundException")
	created, err := c.Create(ctx, dir+"/f", smallFile)
	require.NoError(t, err)
	require.EqualValues(t, 1, created.GetBlockReplication())
	require.EqualValues(t, 1<<20, created.GetBlocksize())
	closed, err := c.IsFileClosed(ctx, dir+"/f")
	require.NoError(t, err)
	require.False(t, closed)
	done, err := c.Complete(ctx, File{dir + "/f", created.GetFileId()}, nil)
	require.NoError(t, err)
	require.True(t, done)
	_, err = c.Create(ctx, dir+"/f", smallFile)
	requireClass(t, err, "FileAlreadyExistsException")
	overwrite := smallFile
	overwrite.Overwrite = true
	replaced, err := c.Create(ctx, dir+"/f", overwrite)
	require.NoError(t, err)
	require.NotEqual(t, created.GetFileId(), replaced.GetFileId())
	_, err = c.Complete(ctx, File{dir + "/f", created.GetFileId()}, nil)
	require.Error(t, err, "the writer of the replaced file is fenced")
	done, err = c.Complete(ctx, File{dir + "/f", replaced.GetFileId()}, nil)
	require.NoError(t, err)
	require.True(t, done)

	require.NoError(t, c.SetReplication(ctx, dir+"/f", 2))
	require.ErrorIs(t, c.SetReplication(ctx, dir+"/none", 2), fs.ErrNotExist)
	require.NoError(t, c.SetPermission(ctx, dir+"/f", 0o600))
	require.NoError(t, c.SetStoragePolicy(ctx, dir+"/f", "ALL_SSD"))
	policy, err := c.GetStoragePolicy(ctx, dir+"/f")
	require.NoError(t, err)
	require.Equal(t, "ALL_SSD", policy.GetName())
	ec, err := c.GetErasureCodingPolicy(ctx, dir)
	require.NoError(t, err)
	require.Nil(t, ec)
	key, err := c.GetDataEncryptionKey(ctx)
	require.NoError(t, err)
	require.Nil(t, key)
	located, err := c.GetLocatedFileInfo(ctx, dir+"/f")
	require.NoError(t, err)
	require.EqualValues(t, 2, located.GetBlockReplication())
	require.EqualValues(t, 0o600, located.GetPermission().GetPerm())

	summary, err := c.GetContentSummary(ctx, dir)
	require.NoError(t, err)
	require.EqualValues(t, 1, summary.GetFileCount())
	require.EqualValues(t, 3, summary.GetDirectoryCount())

	requireClass(t, c.Rename(ctx, dir+"/f", dir+"/d", false), "IOException") // kinds differ
	other, err := c.Create(ctx, dir+"/g", smallFile)
	require.NoError(t, err)
	done, err = c.Complete(ctx, File{dir + "/g", other.GetFileId()}, nil)
	require.NoError(t, err)
	require.True(t, done)
	requireClass(t, c.Rename(ctx, dir+"/g", dir+"/f", false), "FileAlreadyExistsException")
	require.NoError(t, c.Rename(ctx, dir+"/g", dir+"/f", true))
	_, err = c.Delete(ctx, dir+"/d", false)
	requireClass(t, err, "PathIsNotEmptyDirectoryException")
	existed, err := c.Delete(ctx, dir+"/d", true)
	require.NoError(t, err)
	require.True(t, existed)
}

func TestCallsOfABlock(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	ctx := t.Context()
	created, err := c.Create(ctx, dir+"/f", smallFile)
	require.NoError(t, err)
	file := File{dir + "/f", created.GetFileId()}

	first, err := c.AddBlock(ctx, file, nil, Placement{})
	require.NoError(t, err)
	require.Len(t, first.GetLocs(), 1)
	again, err := c.AddBlock(ctx, file, nil, Placement{})
	require.NoError(t, err)
	require.Equal(t, first.GetB().GetBlockId(), again.GetB().GetBlockId(), "the same previous gives the same block")
	require.NoError(t, c.AbandonBlock(ctx, file, first.GetB()))
	require.NoError(t, c.AbandonBlock(ctx, file, first.GetB()), "it is gone")

	bad := first.GetLocs()
	second, err := c.AddBlock(ctx, file, nil, Placement{Exclude: bad, NoLocalWrite: true, IgnoreLocality: true})
	require.NoError(t, err)
	require.NotEqual(t, bad[0].GetId().GetDatanodeUuid(), second.GetLocs()[0].GetId().GetDatanodeUuid())

	node := second.GetLocs()[0].GetId()
	favored, err := c.AddBlock(ctx, file, nil, Placement{Favored: []string{fmt.Sprintf("%s:%d", node.GetIpAddr(), node.GetXferPort())}})
	require.NoError(t, err)
	require.Equal(t, second.GetB().GetBlockId(), favored.GetB().GetBlockId())

	// On a busy machine a node may be late with its heartbeat, and is not chosen then.
	var more *wire.LocatedBlock
	require.Eventually(t, func() bool {
		more, err = c.GetAdditionalDatanode(ctx, file, second.GetB(), second.GetLocs(), second.GetStorageIds(), bad, 1)
		return err != nil || len(more.GetLocs()) == 2
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, err)
	old := slices.IndexFunc(more.GetLocs(), func(d *wire.DatanodeInfo) bool { return d.GetId().GetDatanodeUuid() == node.GetDatanodeUuid() })
	require.GreaterOrEqual(t, old, 0)
	require.Equal(t, second.GetStorageIds()[0], more.GetStorageIds()[old])

	fresh, err := c.UpdateBlockForPipeline(ctx, second.GetB())
	require.NoError(t, err)
	require.Greater(t, fresh.GetB().GetGenerationStamp(), second.GetB().GetGenerationStamp())
	require.NoError(t, c.UpdatePipeline(ctx, WithLength(second.GetB(), 0), WithLength(fresh.GetB(), 100), DatanodeIDs(more.GetLocs()), more.GetStorageIds()))
	require.NoError(t, c.Fsync(ctx, file, 100))
	locations, err := c.GetBlockLocations(ctx, dir+"/f", 0, 1<<20)
	require.NoError(t, err)
	require.True(t, locations.GetUnderConstruction())
	require.EqualValues(t, 100, locations.GetLastBlock().GetB().GetNumBytes())
	require.Len(t, locations.GetLastBlock().GetLocs(), 2)
	require.NoError(t, c.ReportBadBlocks(ctx, &wire.LocatedBlock{
		B: first.GetB(), Offset: new(uint64), Corrupt: new(bool), BlockToken: first.GetBlockToken(), Locs: bad,
		StorageTypes: first.GetStorageTypes(), StorageIds: first.GetStorageIds(),
	}))

	// No DataNode has the block, so that the file cannot be complete.
	done, err := c.Complete(ctx, file, WithLength(fresh.GetB(), 100))
	require.NoError(t, err)
	require.False(t, done)

	_, err = clusterClient(t, cluster, Options{}, cluster.NameNode()).AddBlock(ctx, file, nil, Placement{})
	requireClass(t, err, "LeaseExpiredException") // of another client
}

func TestALeaseIsRecovered(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	dead := clusterClient(t, cluster, Options{}, cluster.NameNode())
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	ctx := t.Context()
	created, err := dead.Create(ctx, dir+"/f", smallFile)
	require.NoError(t, err)
	require.NoError(t, dead.RenewLease(ctx))
	_, err = c.Create(ctx, dir+"/f", smallFile)
	requireClass(t, err, "AlreadyBeingCreatedException")

	require.NoError(t, c.CloseAbandoned(ctx, dir+"/f"))
	closed, err := c.IsFileClosed(ctx, dir+"/f")
	require.NoError(t, err)
	require.True(t, closed)
	_, err = dead.AddBlock(ctx, File{dir + "/f", created.GetFileId()}, nil, Placement{})
	require.Error(t, err, "the writer is fenced")
	requireClass(t, c.CloseAbandoned(ctx, dir+"/none"), "FileNotFoundException")
}

func TestAThousandCallsAreInFlight(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	const n = 1000
	errs := make(chan error, n)
	begin := time.Now()
	for i := range n {
		go func() {
			name := fmt.Sprintf("%s/%04d", dir, i)
			err := c.Mkdirs(t.Context(), name, 0o755, 0, false)
			if err == nil {
				var status *wire.HdfsFileStatus
				if status, err = c.GetFileInfo(t.Context(), name); err == nil && status.GetFileType() != wire.HdfsFileStatus_IS_DIR {
					err = errors.New("another answer")
				}
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	t.Logf("%d × (mkdirs, getFileInfo) in %v", n, time.Since(begin))
}

func TestAListingIsPaged(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	const n = 2600
	var wg sync.WaitGroup
	for worker := range 20 {
		wg.Go(func() {
			for i := worker; i < n; i += 20 {
				if err := c.Mkdirs(t.Context(), fmt.Sprintf("%s/%05d", dir, i), 0o755, 0, false); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	list := func(path string, from int) {
		next := from
		for entry, err := range c.List(t.Context(), path) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%05d", next), string(entry.GetPath()))
			next++
		}
		require.Equal(t, n, next)
	}
	list(dir, 0)
	status, err := c.GetFileInfo(t.Context(), dir)
	require.NoError(t, err)
	list(fmt.Sprintf("/.reserved/.inodes/%d", status.GetFileId()), 0) // wherever it is renamed to

	// An entry that vanishes between two pages does not disturb, not even the one that the first page ended with.
	page, more, err := c.ListPage(t.Context(), dir, nil)
	require.NoError(t, err)
	require.True(t, more)
	last := string(page[len(page)-1].GetPath())
	existed, err := c.Delete(t.Context(), dir+"/"+last, false)
	require.NoError(t, err)
	require.True(t, existed)
	rest, _, err := c.ListPage(t.Context(), dir, []byte(last))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%05d", len(page)), string(rest[0].GetPath()))

	for _, err := range c.List(t.Context(), dir+"/none") {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	created, err := c.Create(t.Context(), dir+"/file", smallFile)
	require.NoError(t, err)
	_, err = c.Complete(t.Context(), File{dir + "/file", created.GetFileId()}, nil)
	require.NoError(t, err)
	for _, err := range c.List(t.Context(), dir+"/file") {
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
}

func TestTheConfigurationOfTheClusterLeadsToIt(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	loaded, err := conf.Load(conf.Source{Dir: cluster.ConfDir()})
	require.NoError(t, err)
	for _, address := range []string{"", cluster.URL()} {
		settings, err := loaded.Settings(address)
		require.NoError(t, err)
		require.Equal(t, []string{cluster.NameNode()}, settings.Cluster.NameNodes)
		require.False(t, settings.Security.Kerberos)
	}
}

func TestARestartOfTheNameNodeIsRiddenOut(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{DataNodes: 1, Exclusive: true})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	created, err := c.Create(t.Context(), dir+"/before", smallFile)
	require.NoError(t, err)
	release := c.HoldLease()
	defer release()

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var longest atomic.Int64
	var made [4]int
	for worker := range made {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				begin := time.Now()
				name := fmt.Sprintf("%s/%d-%d", dir, worker, i)
				if err := makeAndRename(t.Context(), c, name); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				made[worker]++
				longest.Store(max(longest.Load(), int64(time.Since(begin))))
			}
		})
	}
	// While it hangs, the connection stays and nothing is answered.
	require.NoError(t, cluster.Stop(t.Context(), testenv.NameNode))
	requireEndInTime(t, c, dir)
	require.NoError(t, cluster.Continue(t.Context(), testenv.NameNode))
	_, err = c.GetFileInfo(t.Context(), dir)
	require.NoError(t, err)

	// Safe mode ends nothing but the patience of callers.
	setSafeMode(t, cluster, wire.SetSafeModeRequest_ENTER)
	safe, err := c.SafeMode(t.Context())
	require.NoError(t, err)
	require.True(t, safe)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Create(short, dir+"/safe", smallFile)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireClass(t, err, "SafeModeException")
	setSafeMode(t, cluster, wire.SetSafeModeRequest_LEAVE)

	require.NoError(t, cluster.Kill(t.Context(), testenv.NameNode))
	requireEndInTime(t, c, dir)
	require.NoError(t, cluster.Restart(t.Context(), testenv.NameNode))
	done, err := c.Complete(t.Context(), File{dir + "/before", created.GetFileId()}, nil)
	require.NoError(t, err)
	require.True(t, done, "a file that was open is closed after the restart")
	stop()
	wg.Wait()
	t.Logf("the longest create, complete and rename took %v", time.Duration(longest.Load()))
	names := 0
	for _, err := range c.List(t.Context(), dir) {
		require.NoError(t, err)
		names++
	}
	require.Equal(t, 1+made[0]+made[1]+made[2]+made[3], names, "each was made once, none was lost")
}

// superuser may do what no file system needs.
func superuser(t *testing.T, c *testenv.Cluster) *Client {
	t.Helper()
	return newClient(t, Options{RPC: rpc.Options{Authenticator: rpc.Simple{User: c.Credentials("").User}}}, c.NameNode())
}

func setSafeMode(t *testing.T, c *testenv.Cluster, action wire.SetSafeModeRequest_Action) {
	t.Helper()
	require.NoError(t, superuser(t, c).call(t.Context(), "setSafeMode", &wire.SetSafeModeRequest{Action: &action}, &wire.SetSafeModeResponse{}))
}

// setQuota uses the message of colinmarc/hdfs: quotas are the administrator's.
func setQuota(t *testing.T, c *testenv.Cluster, path string, names uint64) {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs.SetQuotaRequestProto")
	require.NoError(t, err)
	request := kind.New()
	for field, value := range map[protoreflect.Name]any{"path": path, "namespaceQuota": names, "storagespaceQuota": uint64(1<<63 - 1)} {
		request.Set(request.Descriptor().Fields().ByName(field), protoreflect.ValueOf(value))
	}
	call := rpc.Call{Method: "setQuota"}
	require.NoError(t, superuser(t, c).rpc.Call(t.Context(), call, request.Interface(), &wire.SetPermissionResponse{}))
}

// requireEndInTime calls a server that is not there.
func requireEndInTime(t *testing.T, c *Client, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := c.GetFileInfo(ctx, dir)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begin), 350*time.Millisecond)
}

// makeAndRename fails if any of its calls is executed twice or not at all.
func makeAndRename(ctx context.Context, c *Client, name string) error {
	created, err := c.Create(ctx, name, smallFile)
	if err != nil {
		return err
	}
	if done, err := c.Complete(ctx, File{name, created.GetFileId()}, nil); err != nil || !done {
		return fmt.Errorf("complete: %v, %w", done, err)
	}
	return c.Rename(ctx, name, name+".done", false)
}

func TestAQuotaIsNamed(t *testing.T) {
	cluster := testenv.Require(t, testenv.Options{})
	c := clusterClient(t, cluster, Options{}, cluster.NameNode())
	dir := cluster.TempDir(t)
	ctx := t.Context()
	setQuota(t, cluster, dir, 2)
	require.NoError(t, c.Mkdirs(ctx, dir+"/a", 0o755, 0, false))
	_, err := c.Create(ctx, dir+"/b", smallFile)
	requireClass(t, err, "NSQuotaExceededException")
	summary, err := c.GetContentSummary(ctx, dir)
	require.NoError(t, err)
	require.EqualValues(t, 2, summary.GetQuota())
}
