package blockread

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
	"github.com/hdfsckpt/hdfsckpt/testenv"
	"github.com/hdfsckpt/hdfsckpt/testenv/faultproxy"
)

// rounds is how often each fault is made to happen; HDFSCKPT_CHAOS asks for more.
func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("HDFSCKPT_CHAOS"))
	if err != nil {
		return 1
	}
	t.Logf("%d rounds", n)
	return n
}

// quick is a cluster that notices dead DataNodes soon, and whose daemons may be disturbed.
func quick() testenv.Options {
	return testenv.Options{DataNodes: 3, Exclusive: true, Properties: map[string]string{
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "2000", "dfs.client.socket-timeout": "5000",
		"dfs.namenode.stale.datanode.interval": "3000", "dfs.namenode.avoid.read.stale.datanode": "true",
	}}
}

// replicaFile is the file of a block on a DataNode. A replica is moved into place shortly after its writer has closed it.
func (r *rig) replicaFile(node string, id uint64) string {
	found := ""
	require.Eventually(r.t, func() bool {
		err := filepath.WalkDir(r.cluster.DataDir(node), func(file string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Base(file) == fmt.Sprintf("blk_%d", id) && strings.Contains(file, "finalized") {
				found = file
			}
			return nil
		})
		return err == nil && found != ""
	}, 30*time.Second, 10*time.Millisecond)
	return found
}

// damage turns a bit of each block of a file on the first nodes of its places, as many as are asked for.
func (r *rig) damage(name string, size int, nodes int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var located *wire.LocatedBlocks
	require.Eventually(r.t, func() bool { // a node may report its replica after the file was closed
		var err error
		located, err = r.nn.GetBlockLocations(r.t.Context(), r.dir+"/"+name, 0, int64(size))
		require.NoError(r.t, err)
		return !slices.ContainsFunc(located.GetBlocks(), func(b *wire.LocatedBlock) bool { return len(b.GetLocs()) < nodes })
	}, 30*time.Second, 10*time.Millisecond)
	for _, b := range located.GetBlocks() {
		at, bit := random.IntN(int(b.GetB().GetNumBytes())), random.IntN(8)
		for _, node := range b.GetLocs()[:nodes] {
			file := r.replicaFile(r.cluster.DataNodeAt(node.GetId().GetXferPort()), b.GetB().GetBlockId())
			data, err := os.ReadFile(file)
			require.NoError(r.t, err)
			data[at] ^= 1 << bit
			require.NoError(r.t, os.WriteFile(file, data, 0o600))
		}
	}
}

func TestReplicasThatAreDamagedOnDiskCostNoByte(t *testing.T) {
	r := newRig(t, quick())
	want := content(3*realBlock + 4321)
	for round := range rounds(t) {
		for damaged := 1; damaged <= 3; damaged++ {
			t.Run(fmt.Sprintf("%d, %d of 3", round, damaged), func(t *testing.T) {
				name := fmt.Sprintf("damaged-%d-%d", round, damaged)
				r.put(name, want, 3)
				r.damage(name, len(want), damaged, uint64(round))
				c := r.client(Options{}, nil)
				begin := time.Now()
				got := make([]byte, len(want))
				n, err := r.open(c, name).ReadAt(got, 0)
				t.Logf("%d bytes in %v: %v", n, time.Since(begin).Round(time.Millisecond), err)
				require.True(t, bytes.Equal(want[:n], got[:n]), "damaged bytes were returned")
				if damaged == 3 {
					require.ErrorIs(t, err, ErrChecksum)
					return
				}
				require.NoError(t, err)
				require.Equal(t, len(want), n)
				// The NameNode puts the nodes in another order each time, so that one after the other is asked.
				require.Eventually(t, func() bool {
					require.True(t, bytes.Equal(want, readInPieces(t, r.open(c, name), 10_000)))
					return r.damagedPlaces(name, len(want)) == 0
				}, time.Minute, 100*time.Millisecond, "the NameNode still has places that were reported")
			})
		}
	}
}

// damagedPlaces is how many places the NameNode tells of replicas whose file does not have the bytes that it was written with.
func (r *rig) damagedPlaces(name string, size int) int {
	located, err := r.nn.GetBlockLocations(r.t.Context(), r.dir+"/"+name, 0, int64(size))
	require.NoError(r.t, err)
	want := content(size)
	damaged := 0
	for _, b := range located.GetBlocks() {
		at := int(b.GetOffset())
		for _, node := range b.GetLocs() {
			file := r.replicaFile(r.cluster.DataNodeAt(node.GetId().GetXferPort()), b.GetB().GetBlockId())
			data, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(data, want[at:at+int(b.GetB().GetNumBytes())]) {
				damaged++
			}
		}
	}
	return damaged
}

// readers read a file again and again, by Read and by ReadAt, until they are told to stop; each byte is compared.
func (r *rig) readers(c *Client, name string, want []byte, stop <-chan struct{}) (wait func() (reads int, slowest time.Duration)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	reads, slowest := 0, time.Duration(0)
	for g := range 3 {
		file := r.open(c, name)
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 3))
			p := make([]byte, 300_000)
			at := int64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				begin := time.Now()
				var n int
				var err error
				if g == 0 {
					at, _ = file.Seek(0, 1)
					if at == int64(len(want)) {
						at, _ = file.Seek(0, 0)
					}
					n, err = file.Read(p[:70_000])
				} else {
					at = random.Int64N(int64(len(want) - len(p)))
					n, err = file.ReadAt(p, at)
				}
				took := time.Since(begin)
				if err != nil || !bytes.Equal(want[at:at+int64(n)], p[:n]) {
					r.t.Errorf("%d bytes at %d after %v: %v", n, at, took, err)
					return
				}
				mu.Lock()
				reads++
				slowest = max(slowest, took)
				mu.Unlock()
			}
		})
	}
	return func() (int, time.Duration) {
		all.Wait()
		return reads, slowest
	}
}

func TestReadsGoOnWhateverHappensToDataNodes(t *testing.T) {
	r := newRig(t, quick())
	want := content(6*realBlock + 99)
	r.put("file", want, 3)
	cluster := r.cluster
	ctx := func() context.Context { return t.Context() }
	for round := range rounds(t) {
		for name, happens := range map[string]func(node string){
			"kill":    func(node string) { require.NoError(t, cluster.Kill(ctx(), node)) },
			"stop":    func(node string) { require.NoError(t, cluster.Stop(ctx(), node)) },
			"restart": func(node string) { require.NoError(t, cluster.Restart(ctx(), node)) },
		} {
			t.Run(fmt.Sprint(round, " ", name), func(t *testing.T) {
				c := r.client(Options{}, nil)
				located, err := r.nn.GetBlockLocations(t.Context(), r.dir+"/file", 0, int64(len(want)))
				require.NoError(t, err)
				stop := make(chan struct{})
				wait := r.readers(c, "file", want, stop)
				victim := cluster.DataNodeAt(located.GetBlocks()[round%6].GetLocs()[0].GetId().GetXferPort())
				happens(victim)
				seen := readInPieces(t, r.open(c, "file"), 1<<20)
				close(stop)
				reads, slowest := wait()
				require.True(t, bytes.Equal(want, seen))
				t.Logf("%s of %s: %d reads, the slowest took %v", name, victim, reads, slowest.Round(time.Millisecond))
				require.Less(t, slowest, 20*time.Second)
				switch name {
				case "kill":
					require.NoError(t, cluster.Launch(t.Context(), victim))
				case "stop":
					require.NoError(t, cluster.Continue(t.Context(), victim))
				}
				require.NoError(t, cluster.WaitReady(t.Context()))
			})
		}
	}
}

func TestReadsGoOnWhateverHappensToConnections(t *testing.T) {
	r := newRig(t, testenv.Options{})
	want := content(4*realBlock + 4242)
	r.put("file", want, 3)
	for round := range rounds(t) {
		for name, fault := range map[string]faultproxy.Fault{
			"reset in mid-block":    {Kind: faultproxy.Reset, After: 300_000, Direction: faultproxy.ToClient, Times: 5},
			"truncated mid-packet":  {Kind: faultproxy.Truncate, After: 123_457, Direction: faultproxy.ToClient, Times: 5},
			"truncated in a header": {Kind: faultproxy.Truncate, After: 50, Direction: faultproxy.ToClient, Times: 3},
			"refused":               {Kind: faultproxy.Refuse, Times: 4},
			"stalled":               {Kind: faultproxy.Stall, After: 200_000, Direction: faultproxy.ToClient, Times: 1},
			"slow":                  {Kind: faultproxy.Delay, Delay: 2 * time.Millisecond},
		} {
			t.Run(fmt.Sprint(round, " ", name), func(t *testing.T) {
				network := faultproxy.New()
				t.Cleanup(func() { require.NoError(t, network.Close()) })
				network.Inject(fault)
				c := r.client(Options{}, network.Dial)
				t.Cleanup(c.Close)
				begin := time.Now()
				require.True(t, bytes.Equal(want, readInPieces(t, r.open(c, "file"), 200_000)))
				file := r.open(c, "file")
				random := rand.New(rand.NewPCG(uint64(round), 8))
				for range 20 {
					p := make([]byte, 1+random.IntN(realBlock))
					at := random.Int64N(int64(len(want) - len(p)))
					_, err := file.ReadAt(p, at)
					require.NoError(t, err)
					require.True(t, bytes.Equal(want[at:at+int64(len(p))], p))
				}
				require.Positive(t, network.Hits())
				t.Logf("read in %v", time.Since(begin).Round(time.Millisecond))
			})
		}
	}
}

func TestAStoppedDataNodeIsHedged(t *testing.T) {
	r := newRig(t, quick())
	want := content(2 * realBlock)
	r.put("file", want, 3)
	located, err := r.nn.GetBlockLocations(t.Context(), r.dir+"/file", 0, int64(len(want)))
	require.NoError(t, err)
	c := r.client(Options{HedgeAfter: 50 * time.Millisecond}, nil)
	file := r.open(c, "file")
	victim := r.cluster.DataNodeAt(located.GetBlocks()[0].GetLocs()[0].GetId().GetXferPort())
	require.NoError(t, r.cluster.Stop(t.Context(), victim))
	begin := time.Now()
	p := make([]byte, realBlock)
	_, err = file.ReadAt(p, 1000)
	took := time.Since(begin)
	require.NoError(t, r.cluster.Continue(t.Context(), victim))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want[1000:1000+realBlock], p))
	t.Logf("read in %v", took.Round(time.Millisecond))
	require.Less(t, took, 2500*time.Millisecond, "it waited for the node that was stopped")
	require.NoError(t, r.cluster.WaitReady(t.Context()))
}
