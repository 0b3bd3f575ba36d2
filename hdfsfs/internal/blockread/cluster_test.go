package blockread

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/pipeline"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// These tests read from real DataNodes.

const realBlock = 1 << 20

// rig is a cluster with a client on it.
type rig struct {
	t       testing.TB
	cluster *testenv.Cluster
	nn      *namenode.Client
	calls   rpc.Options
	dir     string
}

func newRig(t testing.TB, o testenv.Options) *rig {
	t.Helper()
	c := testenv.Require(t, o)
	r := &rig{t: t, cluster: c, calls: rpc.Options{
		Resolver: rpc.Fixed{c.NameNode()}, Authenticator: rpc.Simple{User: c.Credentials("alice").User},
	}}
	var err error
	r.nn, err = namenode.New(namenode.Options{RPC: r.calls})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.nn.Close()) })
	r.dir = c.TempDir(t)
	return r
}

// client reads with a timeout that a test can wait for; dial may be nil.
func (r *rig) client(o Options, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	r.t.Helper()
	o.NameNode, o.VisibleLength = r.nn, ReplicaLengths(r.calls, false)
	o.Dialer = datanode.NewDialer(datanode.Options{Dial: dial, Timeout: 3 * time.Second})
	c, err := New(o)
	require.NoError(r.t, err)
	r.t.Cleanup(c.Close)
	return c
}

// begin creates a file and writes what is given, without an end.
func (r *rig) begin(name string, content []byte, replication int, chunk int) *pipeline.Writer {
	r.t.Helper()
	ctx := r.t.Context()
	r.t.Cleanup(r.nn.HoldLease())
	status, err := r.nn.Create(ctx, r.dir+"/"+name, namenode.CreateOptions{Mode: 0o644, Replication: uint32(replication), BlockSize: realBlock})
	require.NoError(r.t, err)
	w, err := pipeline.New(ctx, namenode.File{Path: r.dir + "/" + name, ID: status.GetFileId()}, pipeline.Options{
		NameNode: r.nn, Dialer: datanode.NewDialer(datanode.Options{}), BlockSize: realBlock, Replication: replication, MinReplicas: replication,
		BytesPerChecksum: chunk,
	})
	require.NoError(r.t, err)
	r.t.Cleanup(w.Abort)
	_, err = w.Write(content)
	require.NoError(r.t, err)
	return w
}

func (r *rig) put(name string, content []byte, replication int) {
	r.t.Helper()
	require.NoError(r.t, r.begin(name, content, replication, 0).Close())
}

func (r *rig) open(c *Client, name string) *File {
	r.t.Helper()
	f, err := c.Open(r.t.Context(), r.dir+"/"+name, nil)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = f.Close() })
	return f
}

func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(b)
	return b
}

func TestRealFilesOfAllSizesAreReadAsTheyAre(t *testing.T) {
	r := newRig(t, testenv.Options{})
	c := r.client(Options{}, nil)
	for _, chunk := range []int{512, 4096} {
		for _, size := range []int{0, 1, 511, 512, 513, 65_536, 65_537, realBlock - 1, realBlock, realBlock + 1, 3*realBlock + 77_777} {
			name := fmt.Sprintf("f-%d-%d", chunk, size)
			want := content(size)
			require.NoError(t, r.begin(name, want, 3, chunk).Close())
			for _, piece := range []int{700, 1 << 30} {
				got, err := io.ReadAll(&pieces{r.open(c, name), min(piece, size+1)})
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got), "%s in pieces of %d", name, piece)
			}
			file := r.open(c, name)
			for range min(size, 20) {
				from := rand.IntN(size)
				p := make([]byte, 1+rand.IntN(size-from))
				n, err := file.ReadAt(p, int64(from))
				require.NoError(t, err)
				require.True(t, bytes.Equal(want[from:from+n], p), "%s at %d", name, from)
			}
			located, err := r.nn.GetBlockLocations(t.Context(), r.dir+"/"+name, 0, 1<<40)
			require.NoError(t, err)
			sum, length, err := c.Checksum(t.Context(), located)
			require.NoError(t, err)
			require.EqualValues(t, size, length)
			require.Equal(t, crc32.Checksum(want, chunksum.Castagnoli), sum, name)
		}
	}
}

// pieces reads by slices of one length.
type pieces struct {
	*File
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.File.Read(b[:min(len(b), p.n)]) }

func TestFilesOfHadoopsClientAreReadAndSummedAsItDoes(t *testing.T) {
	r := newRig(t, testenv.Options{})
	h := testenv.RequireHadoop(t, testenv.EngineSettings{})
	h.Call(t, "connect", r.cluster.ConfDir(), "dfs.checksum.combine.mode=COMPOSITE_CRC")
	c := r.client(Options{}, nil)
	name := "by-hadoop"
	h.Call(t, "write", r.dir+"/"+name, "3", "100000", "2", "false")
	want := h.Call(t, "cat", r.dir+"/"+name)
	got, err := io.ReadAll(r.open(c, name))
	require.NoError(t, err)
	require.NotEmpty(t, got)
	require.True(t, bytes.Equal(want, got))
	located, err := r.nn.GetBlockLocations(t.Context(), r.dir+"/"+name, 0, 1<<40)
	require.NoError(t, err)
	sum, _, err := c.Checksum(t.Context(), located)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(h.Call(t, "checksum", r.dir+"/"+name)), fmt.Sprintf("%08x", sum)))
}

func TestWhatAWriterHasSyncedIsReadAndNoMore(t *testing.T) {
	r := newRig(t, testenv.Options{})
	c := r.client(Options{}, nil)
	want := content(2*realBlock + 12_345)
	w := r.begin("growing", nil, 3, 0)
	at := 0
	for _, next := range []int{0, 1, 513, 70_000, realBlock, realBlock + 1, len(want)} {
		_, err := w.Write(want[at:next])
		require.NoError(t, err)
		require.NoError(t, w.Sync(false))
		at = next
		f := r.open(c, "growing")
		require.EqualValues(t, next, f.Size())
		got, err := io.ReadAll(f)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[:next], got), "%d bytes", next)
	}
	early := r.open(c, "growing")
	require.NoError(t, w.Close())
	got, err := io.ReadAll(early)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "a file that was closed after it was opened")
}
