package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/testenv/faultproxy"
)

// networkFault chooses what happens to connections to DataNodes or to the NameNode, and after how many bytes.
func networkFault(random *rand.Rand, nameNode string, i int) (faultproxy.Fault, string) {
	kinds := []faultproxy.Kind{faultproxy.Stall, faultproxy.Reset, faultproxy.Truncate, faultproxy.Delay, faultproxy.Refuse}
	names := []string{"stall", "reset", "truncate", "delay", "refuse"}
	f := faultproxy.Fault{
		Kind: kinds[i%len(kinds)], Times: 1 + random.IntN(2), Direction: faultproxy.Direction(random.IntN(3)), //nolint:gosec // below 3
		Delay: time.Duration(1+random.IntN(20)) * time.Millisecond,
	}
	ofNameNode := i/len(kinds)%2 == 1
	switch {
	case ofNameNode, f.Direction == faultproxy.ToClient:
		f.After = random.Int64N(2 << 10)
	default:
		f.After = random.Int64N(block)
	}
	f.Match = func(address string) bool { return (address == nameNode) == ofNameNode }
	where := "DataNodes"
	if ofNameNode {
		where = "the NameNode"
	}
	return f, fmt.Sprintf("%s of %d connections to %s after %d bytes, direction %d", names[i%len(kinds)], f.Times, where, f.After, f.Direction)
}

// badNetwork writes files, each through a network of its own that has a fault.
func (c *chaos) badNetwork(t *testing.T) {
	goroutines, descriptors := left(t)
	const files = 20 // each kind of fault twice, for each kind of server
	hits, outcomes, contents := make([]int, files), make([]error, files), make([][]byte, files)
	var all sync.WaitGroup
	for i := range files {
		fault, what := networkFault(c.random, c.cluster.NameNode(), i)
		contents[i] = content(2*block + 1 + c.random.IntN(block))
		all.Go(func() {
			begin := time.Now()
			hits[i], outcomes[i] = c.writeThrough(t.Context(), fault, fmt.Sprint("network-", c.round, "-", i), contents[i])
			t.Logf("%s: %d hit, %.2f s", what, hits[i], time.Since(begin).Seconds())
			if outcomes[i] != nil {
				outcomes[i] = fmt.Errorf("%s: %w", what, outcomes[i])
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(outcomes...))
	sum := 0
	for i, n := range hits {
		sum += n
		c.requireContent(fmt.Sprint("network-", c.round, "-", i), contents[i])
	}
	require.Greater(t, sum, files/2, "too few faults have happened")
	requireNothingLeft(t, goroutines, descriptors)
}

func (c *chaos) writeThrough(ctx context.Context, fault faultproxy.Fault, name string, data []byte) (hits int, err error) {
	network := faultproxy.New()
	defer func() { err = errors.Join(err, network.Close()) }()
	network.Inject(fault)
	defer func() { hits = network.Hits() }()
	dial := func(ctx context.Context, kind, address string) (net.Conn, error) {
		return network.Dial(ctx, kind, address)
	}
	nn, err := namenode.New(namenode.Options{RPC: rpc.Options{
		Resolver: rpc.Fixed{c.cluster.NameNode()}, Authenticator: rpc.Simple{User: c.cluster.Credentials("alice").User},
		Dial: dial, CallTimeout: 5 * time.Second, ConnectTimeout: 5 * time.Second,
	}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, nn.Close()) }()
	defer nn.HoldLease()()
	path := c.dir + "/" + name
	status, err := nn.Create(ctx, path, namenode.CreateOptions{Mode: 0o644, Replication: 3, BlockSize: block})
	if err != nil {
		return 0, err
	}
	w, err := New(ctx, namenode.File{Path: path, ID: status.GetFileId()}, Options{
		NameNode: nn, Dialer: datanode.NewDialer(datanode.Options{Dial: dial, Timeout: 5 * time.Second}), BlockSize: block, Replication: 3, MinReplicas: 2,
	})
	if err != nil {
		return 0, err
	}
	defer w.Abort()
	for at := 0; at < len(data); at += 300000 {
		if _, err := w.Write(data[at:min(len(data), at+300000)]); err != nil {
			return 0, err
		}
		if at%600000 == 0 {
			if err := w.Sync(false); err != nil {
				return 0, err
			}
		}
	}
	return 0, w.Close()
}
