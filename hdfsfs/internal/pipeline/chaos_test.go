package pipeline

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
	"github.com/hdfsckpt/hdfsckpt/testenv"
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

// quick is a cluster that notices dead DataNodes soon.
func quick(dataNodes int) testenv.Options {
	return testenv.Options{DataNodes: dataNodes, Exclusive: true, Properties: map[string]string{
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "2000", "dfs.client.socket-timeout": "5000",
		"dfs.namenode.redundancy.considerLoad": "false", "dfs.namenode.stale.datanode.interval": "3000",
		"dfs.namenode.avoid.write.stale.datanode": "true",
	}}
}

// waitForLine waits until the writer has a pipeline with acknowledged bytes, and returns its nodes.
func waitForLine(t *testing.T, w *Writer, acked int64) []*wire.DatanodeInfo {
	var nodes []*wire.DatanodeInfo
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.line != nil && w.line.confirmed && w.acked >= acked {
			nodes = w.line.nodes
		}
		return nodes != nil
	}, 30*time.Second, time.Millisecond)
	return nodes
}

func TestAFileSurvivesTheDeathOfADataNodeOfItsPipeline(t *testing.T) {
	r := newRig(t, quick(4))
	for round := range rounds(t) {
		for victim := range 3 {
			for _, moment := range []string{"in a block", "before the end"} {
				t.Run(fmt.Sprintf("%d, node %d, %s", round, victim, moment), func(t *testing.T) {
					name := fmt.Sprintf("killed-%d-%d-%s", round, victim, moment[:2])
					w := r.create(name, 3, Options{MinReplicas: 2})
					want := content(2*block + 333)
					half := block + block/2
					_, err := w.Write(want[:half])
					require.NoError(t, err)
					require.NoError(t, w.Sync(false))
					nodes := waitForLine(t, w, 1)
					if moment == "before the end" {
						_, err := w.Write(want[half:])
						require.NoError(t, err)
						require.NoError(t, w.Sync(false))
						nodes = waitForLine(t, w, 1)
						half = len(want)
					}
					dead := r.cluster.DataNodeAt(nodes[min(victim, len(nodes)-1)].GetId().GetXferPort())
					require.NotEmpty(t, dead)
					require.NoError(t, r.cluster.Kill(t.Context(), dead))
					start := time.Now()
					_, err = w.Write(want[half:])
					require.NoError(t, err)
					require.NoError(t, w.Close())
					t.Logf("closed %v after %s was killed, with %d replicas", time.Since(start).Round(time.Millisecond), dead, w.Replicas())
					require.GreaterOrEqual(t, w.Replicas(), 2)
					r.requireContent(name, want)
					require.NoError(t, r.cluster.Launch(t.Context(), dead))
					require.NoError(t, r.cluster.WaitReady(t.Context()))
				})
			}
		}
	}
}

func TestAFileSurvivesADataNodeThatHangs(t *testing.T) {
	r := newRig(t, quick(4))
	for round := range rounds(t) {
		for victim := range 3 {
			t.Run(fmt.Sprintf("%d, node %d", round, victim), func(t *testing.T) {
				name := fmt.Sprintf("stopped-%d-%d", round, victim)
				w := r.create(name, 3, Options{MinReplicas: 2})
				want := content(2 * block)
				_, err := w.Write(want[:block/2])
				require.NoError(t, err)
				require.NoError(t, w.Sync(false))
				stopped := r.cluster.DataNodeAt(waitForLine(t, w, 1)[victim].GetId().GetXferPort())
				require.NoError(t, r.cluster.Stop(t.Context(), stopped))
				start := time.Now()
				_, err = w.Write(want[block/2:])
				require.NoError(t, err)
				require.NoError(t, w.Close())
				t.Logf("closed %v after %s was stopped, with %d replicas", time.Since(start).Round(time.Millisecond), stopped, w.Replicas())
				r.requireContent(name, want)
				require.NoError(t, r.cluster.Continue(t.Context(), stopped))
				require.NoError(t, r.cluster.WaitReady(t.Context()))
			})
		}
	}
}

func TestAFileSurvivesARestartOfTheNameNode(t *testing.T) {
	r := newRig(t, quick(3))
	w := r.create("restarted", 3, Options{MinReplicas: 2})
	want := content(3 * block)
	_, err := w.Write(want[:block/2])
	require.NoError(t, err)
	require.NoError(t, w.Sync(false))
	require.NoError(t, r.cluster.Kill(t.Context(), "nn"))
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(want[block/2:])
		if err == nil {
			err = w.Close()
		}
		written <- err
	}()
	require.NoError(t, r.cluster.Launch(t.Context(), "nn"))
	require.NoError(t, <-written)
	r.requireContent("restarted", want)
}
