package namenode

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// quick is a policy whose waits a test can afford.
var quick = Policy{Base: time.Millisecond, Max: 10 * time.Millisecond}

func newClient(t testing.TB, o Options, servers ...string) *Client {
	t.Helper()
	o.RPC.Resolver = rpc.Fixed(servers)
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func entry(name string) *wire.HdfsFileStatus {
	return &wire.HdfsFileStatus{
		FileType: wire.HdfsFileStatus_IS_FILE.Enum(), Path: []byte(name), Length: proto.Uint64(0), Permission: permission(0o644),
		Owner: proto.String(""), Group: proto.String(""), ModificationTime: proto.Uint64(0), AccessTime: proto.Uint64(0),
	}
}

func TestWhatIsAbsentDoesNotExist(t *testing.T) {
	server := rpctest.Start(t, func(c *rpctest.Call) {
		switch c.Method {
		case "mkdirs", "setReplication":
			c.Reply(&wire.MkdirsResponse{Result: proto.Bool(false)})
		default:
			c.Reply(&wire.GetFileInfoResponse{})
		}
	})
	c := newClient(t, Options{}, server.Address)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"getFileInfo":        func() error { _, err := c.GetFileInfo(ctx, "/a"); return err },
		"getFileLinkInfo":    func() error { _, err := c.GetFileLinkInfo(ctx, "/a"); return err },
		"getLocatedFileInfo": func() error { _, err := c.GetLocatedFileInfo(ctx, "/a"); return err },
		"getBlockLocations":  func() error { _, err := c.GetBlockLocations(ctx, "/a", 0, 1); return err },
		"getListing":         func() error { _, _, err := c.ListPage(ctx, "/a", nil); return err },
		"mkdirs":             func() error { return c.Mkdirs(ctx, "/a", 0o777, 0o22, true) },
		"setReplication":     func() error { return c.SetReplication(ctx, "/a", 2) },
	} {
		err := call()
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		require.ErrorContains(t, err, name+": /a")
	}
}

func TestAListingThatWouldBeWrongIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pages [][]string // of names; the last one ends the listing
		want  error
		got   []string
	}{
		{"three pages", [][]string{{"a", "b"}, {"c"}, {"d"}}, nil, []string{"a", "b", "c", "d"}},
		{"an empty directory", [][]string{{}}, nil, nil},
		{"an empty page at the end", [][]string{{"a"}, {}}, nil, []string{"a"}},
		{"bytes that are no text", [][]string{{"\xc3"}, {"\xff\xfe"}}, nil, []string{"\xc3", "\xff\xfe"}},
		{"a file", [][]string{{""}}, fs.ErrInvalid, nil},
		{"an empty page", [][]string{{"a"}, {}, {"b"}}, wire.ErrMalformed, []string{"a"}},
		{"the same page again", [][]string{{"a", "b"}, {"a", "b"}, {"c"}}, wire.ErrMalformed, []string{"a", "b"}},
		{"names out of order", [][]string{{"b", "a"}}, wire.ErrMalformed, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var page atomic.Int64
			server := rpctest.Start(t, func(c *rpctest.Call) {
				i := int(page.Add(1)) - 1
				listing := &wire.DirectoryListing{RemainingEntries: proto.Uint32(uint32(len(tt.pages) - 1 - i))}
				for _, name := range tt.pages[i] {
					listing.PartialListing = append(listing.PartialListing, entry(name))
				}
				c.Reply(&wire.GetListingResponse{DirList: listing})
			})
			c := newClient(t, Options{}, server.Address)
			var got []string
			var last error
			for entry, err := range c.List(t.Context(), "/d") {
				require.NoError(t, last, "after an error there is nothing")
				if last = err; err == nil {
					got = append(got, string(entry.GetPath()))
				}
			}
			require.ErrorIs(t, last, tt.want)
			require.Equal(t, tt.got, got)
		})
	}
}

func TestLeasesAreRenewedOnlyWhileFilesAreOpen(t *testing.T) {
	var renewals atomic.Int64
	server := rpctest.Start(t, func(c *rpctest.Call) {
		m := &wire.RenewLeaseRequest{}
		if err := c.Decode(m); err != nil || c.Method != "renewLease" || m.GetClientName() != "me" || len(m.GetNamespaces()) > 0 {
			t.Errorf("%s %v: %v", c.Method, m, err)
		}
		if renewals.Add(1) == 2 {
			c.Throw(hadoop+"fs.UnknownException", "once")
			return
		}
		c.Reply(&wire.RenewLeaseResponse{})
	})
	c := newClient(t, Options{Name: "me", RenewInterval: 5 * time.Millisecond}, server.Address)
	atLeast := func(n int64) {
		require.Eventually(t, func() bool { return renewals.Load() >= n }, 5*time.Second, time.Millisecond)
	}
	first, second := c.HoldLease(), c.HoldLease()
	atLeast(4)
	first()
	first() // counts once
	atLeast(renewals.Load() + 3)
	second()
	c.leases.wait()
	calm := renewals.Load()
	time.Sleep(30 * time.Millisecond)
	require.LessOrEqual(t, renewals.Load(), calm+1, "one may have been under way")

	calm = renewals.Load()
	defer c.HoldLease()()
	atLeast(calm + 2)
	require.NoError(t, c.Close())
	calm = renewals.Load()
	defer c.HoldLease()()
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, calm, renewals.Load(), "a closed client renews nothing")
}

func TestCreateNeverAsksForWhatItCannotWrite(t *testing.T) {
	var got wire.CreateRequest
	server := rpctest.Start(t, func(c *rpctest.Call) {
		if err := c.Decode(&got); err != nil {
			t.Error(err)
		}
		c.Reply(&wire.CreateResponse{Fs: entry("")})
	})
	c := newClient(t, Options{Name: "me"}, server.Address)
	_, err := c.Create(t.Context(), "/a", CreateOptions{Mode: 0o666, Umask: 0o027, Replication: 2, BlockSize: 1 << 20, Overwrite: true, StoragePolicy: "HOT"})
	require.NoError(t, err)
	require.True(t, proto.Equal(&wire.CreateRequest{
		Src: proto.String("/a"), Masked: permission(0o640), Unmasked: permission(0o666), ClientName: proto.String("me"),
		CreateFlag:   proto.Uint32(1 | 2 | 128), // CREATE, OVERWRITE, SHOULD_REPLICATE
		CreateParent: proto.Bool(false), Replication: proto.Uint32(2), BlockSize: proto.Uint64(1 << 20), StoragePolicy: proto.String("HOT"),
	}, &got), "%v", &got)
	require.Empty(t, got.GetCryptoProtocolVersion(), "then an encryption zone refuses the file")
	_, err = c.Create(t.Context(), "/a", CreateOptions{})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestDefaultsOfTheServerAreAskedForOnce(t *testing.T) {
	var asked atomic.Int64
	server := rpctest.Start(t, func(c *rpctest.Call) {
		asked.Add(1)
		c.Reply(&wire.GetServerDefaultsResponse{ServerDefaults: &wire.FsServerDefaults{
			BlockSize: proto.Uint64(1), BytesPerChecksum: proto.Uint32(512), WritePacketSize: proto.Uint32(1), Replication: proto.Uint32(3), FileBufferSize: proto.Uint32(1),
		}})
	})
	c := newClient(t, Options{}, server.Address)
	for range 3 {
		d, err := c.GetServerDefaults(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 512, d.GetBytesPerChecksum())
	}
	require.EqualValues(t, 1, asked.Load())
	forgetful := newClient(t, Options{DefaultsFor: time.Nanosecond}, server.Address)
	for range 2 {
		_, err := forgetful.GetServerDefaults(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, asked.Load())
}

// executor is a NameNode that executes each call once, as the retry cache makes it, and counts the executions.
type executor struct {
	mu       sync.Mutex
	executed map[string]int
}

func (e *executor) execute(c *rpctest.Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.executed[fmt.Sprintf("%x %d", c.ClientID, c.ID)]++
}

func TestACallIsRepeatedUntilItIsAnswered(t *testing.T) {
	calls := &executor{executed: map[string]int{}}
	var attempt atomic.Int64
	server := rpctest.Start(t, func(c *rpctest.Call) {
		calls.execute(c)
		switch attempt.Add(1) {
		case 1:
			c.Reset()
		case 2:
			c.Throw(hadoop+"ipc.RetriableException", "NameNode still not started")
		case 3:
			c.Throw(hadoop+"hdfs.server.namenode.SafeModeException", "Cannot delete /a. Name node is in safe mode.")
		case 4:
			c.Throw(hadoop+"ipc.StandbyException", "standby")
		case 5:
			c.Drop()
		default:
			c.Reply(&wire.DeleteResponse{Result: proto.Bool(true)})
		}
	})
	c := newClient(t, Options{Policy: quick}, server.Address)
	existed, err := c.Delete(t.Context(), "/a", false)
	require.NoError(t, err)
	require.True(t, existed)
	require.Len(t, calls.executed, 1, "one id for all attempts")

	server.Handle(func(c *rpctest.Call) {
		c.Throw(hadoop+"hdfs.server.namenode.SafeModeException", "Name node is in safe mode.")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	_, err = c.Delete(ctx, "/a", false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "SafeModeException: Name node is in safe mode.", "it says what was waited for")
}

func TestOptionsReportAllProblems(t *testing.T) {
	_, err := New(Options{RenewInterval: -1, DefaultsFor: -1, Policy: Policy{Base: -1, Max: -1, ConnectFor: -1}})
	for _, part := range []string{"RenewInterval", "DefaultsFor", "Policy.Base", "Policy.Max", "Policy.ConnectFor", "Resolver"} {
		require.ErrorContains(t, err, "option "+part)
	}
}

func TestNamesOfClientsDiffer(t *testing.T) {
	a, b := randomName(), randomName()
	require.NotEqual(t, a, b)
	require.True(t, strings.HasPrefix(a, "DFSClient_NONMAPREDUCE_"))
}

func TestStatusTellsWhatCannotBeRead(t *testing.T) {
	plain := entry("")
	require.False(t, Striped(plain))
	require.False(t, Encrypted(plain))
	for _, s := range []*wire.HdfsFileStatus{
		{EcPolicy: &wire.ErasureCodingPolicy{Id: proto.Uint32(5)}},
		{Flags: proto.Uint32(4)},
	} {
		require.True(t, Striped(s))
	}
	require.False(t, Striped(&wire.HdfsFileStatus{EcPolicy: &wire.ErasureCodingPolicy{Id: proto.Uint32(0)}}), "0 is replication")
	require.True(t, Encrypted(&wire.HdfsFileStatus{FileEncryptionInfo: &wire.FileEncryptionInfo{}}))
	require.True(t, Encrypted(&wire.HdfsFileStatus{Flags: proto.Uint32(3)}))
}

func TestTheAtMostOnceCallsAreThoseThatHadoopMarks(t *testing.T) {
	var got []string
	for name, m := range methods {
		if m.semantics == rpc.AtMostOnce {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	require.Equal(t, []string{"create", "delete", "rename2", "updatePipeline"}, got)
}
