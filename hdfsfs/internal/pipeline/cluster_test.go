package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// These tests write to real DataNodes and read back by Hadoop's own client.

const block = 1 << 20

type rig struct {
	t       testing.TB
	cluster *testenv.Cluster
	nn      *namenode.Client
	dir     string
	hadoop  *testenv.Engine
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func newRig(t testing.TB, o testenv.Options) *rig {
	t.Helper()
	c := testenv.Require(t, o)
	nn, err := namenode.New(namenode.Options{RPC: rpc.Options{
		Resolver: rpc.Fixed{c.NameNode()}, Authenticator: rpc.Simple{User: c.Credentials("alice").User},
		IdleTimeout: 500 * time.Millisecond, // what is left behind is seen soon
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nn.Close()) })
	t.Cleanup(nn.HoldLease())
	h := testenv.RequireHadoop(t, testenv.EngineSettings{})
	h.Call(t, "connect", c.ConfDir())
	return &rig{t: t, cluster: c, nn: nn, dir: c.TempDir(t), hadoop: h}
}

func (r *rig) create(name string, replication int, o Options) *Writer {
	r.t.Helper()
	return r.createIn(r.t.Context(), name, replication, o)
}

// createIn creates a file whose writer ends with a context.
func (r *rig) createIn(ctx context.Context, name string, replication int, o Options) *Writer {
	r.t.Helper()
	file := r.dir + "/" + name
	status, err := r.nn.Create(r.t.Context(), file, namenode.CreateOptions{Mode: 0o644, Replication: uint32(replication), BlockSize: block})
	require.NoError(r.t, err)
	o.BlockSize, o.Replication = block, replication
	if o.NameNode == nil {
		o.NameNode = r.nn
	}
	if o.Dialer == nil {
		o.Dialer = datanode.NewDialer(datanode.Options{Dial: r.dial, Timeout: 5 * time.Second})
	}
	w, err := New(ctx, namenode.File{Path: file, ID: status.GetFileId()}, o)
	require.NoError(r.t, err)
	r.t.Cleanup(w.Abort)
	return w
}

func (r *rig) requireContent(name string, want []byte) {
	r.t.Helper()
	got := r.cat(name)
	require.True(r.t, bytes.Equal(want, got), "%s has other bytes: %d, not %d", name, len(got), len(want))
}

// cat reads by Hadoop's client. That keeps its connection to the NameNode for a while, also to one that was killed in the meantime, and
// does not repeat such a call.
func (r *rig) cat(name string) []byte {
	r.t.Helper()
	got, err := r.hadoop.Try(r.t, "cat", r.dir+"/"+name)
	for range 3 {
		if err == nil || !strings.Contains(err.Error(), "End of File Exception") && !strings.Contains(err.Error(), "ConnectException") {
			break
		}
		got, err = r.hadoop.Try(r.t, "cat", r.dir+"/"+name)
	}
	require.NoError(r.t, err)
	return got
}

func content(n int) []byte {
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestFilesOfAllSizesAreWrittenAsTheyAre(t *testing.T) {
	r := newRig(t, testenv.Options{})
	for _, replication := range []int{1, 3} {
		for _, size := range []int{0, 1, 511, 512, 513, 65535, 65536, 65537, block - 1, block, block + 1, 3*block + 77777} {
			for _, slice := range []int{1 << 30, 4096, 1000} {
				if slice == 1000 && size > 2*block {
					continue
				}
				name := fmt.Sprintf("f-%d-%d-%d", replication, size, slice)
				w := r.create(name, replication, Options{MinReplicas: replication})
				want := content(size)
				for at := 0; at < size; at += slice {
					n, err := w.Write(want[at:min(size, at+slice)])
					require.NoError(t, err)
					require.Equal(t, min(slice, size-at), n)
				}
				require.NoError(t, w.Close())
				require.Equal(t, replication, w.Replicas())
				require.Error(t, w.Close())
				r.requireContent(name, want)
			}
		}
	}
}

func TestWhatIsSyncedCanBeReadBeforeTheEnd(t *testing.T) {
	r := newRig(t, testenv.Options{})
	for _, durable := range []bool{false, true} {
		name := fmt.Sprint("synced-", durable)
		w := r.create(name, 3, Options{SyncBlocks: durable})
		want := content(2*block + 12345)
		at := 0
		for _, next := range []int{1, 511, 512, 513, 70000, 70000, 70001, block, block + 1, 2 * block, len(want)} {
			_, err := w.Write(want[at:next])
			require.NoError(t, err)
			require.NoError(t, w.Sync(durable))
			r.requireContent(name, want[:next])
			at = next
		}
		require.NoError(t, w.Sync(durable))
		require.NoError(t, w.Close())
		r.requireContent(name, want)
	}
}
