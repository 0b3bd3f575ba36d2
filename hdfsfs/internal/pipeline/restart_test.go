package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// held is a file that cannot go on without a certain DataNode.
type held struct {
	name   string
	w      *Writer
	data   []byte
	synced int // before the node goes
	err    error
	took   time.Duration
}

// hold writes files up to where they are when their DataNode goes. They have one replica, or as many as there are DataNodes.
func (c *chaos) hold(victim, kind string, o Options, synced ...int) []*held {
	var files []*held
	for _, replicas := range []int{1, 4} {
		for _, synced := range synced {
			f := &held{
				name: fmt.Sprintf("%s-%d-%d-%d", kind, c.round, replicas, synced),
				data: content(2*block + 333), synced: synced,
			}
			mine := o
			mine.MinReplicas, mine.NameNode = replicas, c.nn
			if replicas == 1 {
				mine.NameNode = onlyOn{c.nn, c, victim}
			}
			f.w = c.create(f.name, replicas, mine)
			if synced > 0 {
				_, err := f.w.Write(f.data[:synced])
				require.NoError(c.t, err)
				require.NoError(c.t, f.w.Sync(false), f.name)
			}
			files = append(files, f)
		}
	}
	return files
}

// finish writes what is missing of all files at once.
func finish(files []*held, begin time.Time) (wait func()) {
	var running sync.WaitGroup
	for _, f := range files {
		running.Go(func() {
			if _, f.err = f.w.Write(f.data[f.synced:]); f.err == nil {
				f.err = f.w.Close()
			}
			f.took = time.Since(begin)
		})
	}
	return running.Wait
}

func took(files []*held) string {
	var parts []string
	for _, f := range files {
		parts = append(parts, fmt.Sprintf("%s %.2f s", f.name, f.took.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// neededNodeRestarts has the node without which files cannot go on come back: they wait for it.
func (c *chaos) neededNodeRestarts(t *testing.T) {
	goroutines, descriptors := left(t)
	victim := c.victims(1)[0]
	files := c.hold(victim, "needed", Options{}, 0, 511, block/2+100, 2*block+333)
	require.NoError(t, c.cluster.ShutDownForUpgrade(t.Context(), victim))
	begin := time.Now()
	wait := finish(files, begin)
	require.NoError(t, c.cluster.Launch(t.Context(), victim))
	wait()
	t.Logf("%s: %s", victim, took(files))
	c.waitReady()
	for _, f := range files {
		require.NoError(t, f.err, f.name)
		require.Equal(t, f.w.o.Replication, f.w.Replicas(), f.name)
		c.requireContent(f.name, f.data)
	}
	requireNothingLeft(t, goroutines, descriptors)
}

// neededNodeStaysAway: the files fail when its time is up, and what was acknowledged is there when the node is.
func (c *chaos) neededNodeStaysAway(t *testing.T) {
	goroutines, descriptors := left(t)
	victim := c.victims(1)[0]
	files := c.hold(victim, "away", Options{RestartFor: 2 * time.Second}, 0, block+511)
	for _, f := range files {
		f.w.placeFor = 2 * time.Second
	}
	require.NoError(t, c.cluster.ShutDownForUpgrade(t.Context(), victim))
	finish(files, time.Now())()
	t.Logf("%s: %s", victim, took(files))
	for _, f := range files {
		f.w.Abort()
		require.Less(t, f.took, 15*time.Second, f.name)
	}
	require.NoError(t, c.cluster.Launch(t.Context(), victim))
	c.waitReady()
	for _, f := range files {
		require.Error(t, f.err, f.name)
		c.requirePrefix(t.Context(), f.name, f.data, f.synced)
	}
	requireNothingLeft(t, goroutines, descriptors)
}

func restarting(s *session) {
	s.answer(wire.Status_SUCCESS, "")
	s.acknowledge(1)
	_, _ = s.packet()
	s.ack(wire.UnknownSeqno, wire.Status_SUCCESS, wire.Status_OOB_RESTART)
	silent(s)
}

func TestANodeThatRestartsIsReplacedIfThereIsAnother(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.spare = f.listen(99)
	f.serve = []func(*session){restarting}
	w := f.writer(Options{MinReplicas: 2})
	data := content(3000)
	begin := time.Now()
	require.NoError(t, writeAll(w, nil, data))
	require.Less(t, time.Since(begin), 10*time.Second)
	require.Equal(t, data, f.bytes())
	require.Equal(t, 1, f.count("getAdditionalDatanode 1 beside 1, without 1"))
	require.Equal(t, 1, f.count("transfer"))
	require.Equal(t, 2, w.Replicas())
}

func TestANodeThatRestartsIsNotWaitedForIfThereAreEnoughWithoutIt(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.serve = []func(*session){restarting}
	w := f.writer(Options{MinReplicas: 1})
	data := content(3000)
	require.NoError(t, writeAll(w, nil, data))
	require.Equal(t, data, f.bytes())
	require.Zero(t, f.count("getAdditionalDatanode"))
	require.Equal(t, 1, f.count("PIPELINE_SETUP_STREAMING_RECOVERY nodes=1"))
	require.Equal(t, 1, w.Replicas())
}

func TestANodeThatRestartsWhileThePipelineIsSetUpIsWaitedFor(t *testing.T) {
	f := newFakes(t, 1, 1)
	refuse := func(s *session) { s.answer(wire.Status_OOB_RESTART, "") }
	f.serve = []func(*session){restartsAlone, refuse, refuse}
	w := f.writer(Options{})
	data := content(3000)
	require.NoError(t, writeAll(w, nil, data))
	require.Equal(t, data, f.bytes())
	require.Equal(t, 3, f.count("PIPELINE_SETUP_STREAMING_RECOVERY nodes=1"))
}

func restartsAlone(s *session) {
	s.answer(wire.Status_SUCCESS, "")
	s.acknowledge(1)
	_, _ = s.packet()
	s.ack(wire.UnknownSeqno, wire.Status_OOB_RESTART)
	silent(s)
}

// fenced is a NameNode that knows another writer of the file.
type fenced struct{ *fakes }

var errFenced = &rpc.ServerError{Class: "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", Message: "No lease on /file"}

func (fenced) GetAdditionalDatanode(
	context.Context, namenode.File, *wire.ExtendedBlock, []*wire.DatanodeInfo, []string, []*wire.DatanodeInfo, uint32,
) (*wire.LocatedBlock, error) {
	return nil, errFenced
}

func TestAWriterThatIsFencedDoesNotWaitForNodes(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.serve = []func(*session){brokenAfter(1)}
	w := f.writer(Options{MinReplicas: 2})
	w.o.NameNode = fenced{f}
	begin := time.Now()
	require.ErrorIs(t, writeAll(w, nil, content(3000)), errFenced)
	require.Less(t, time.Since(begin), 10*time.Second)
}

func TestANodeThatRestartsIsNotWaitedForForEver(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit time.Duration
		least time.Duration
	}{{"for some time", 700 * time.Millisecond, 700 * time.Millisecond}, {"not at all", -1, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakes(t, 1, 1)
			only := f.listeners[0]
			f.listeners = nil
			t.Cleanup(func() { _ = only.Close() }) // again, perhaps
			f.serve = []func(*session){func(s *session) {
				s.answer(wire.Status_SUCCESS, "")
				s.acknowledge(1)
				_, _ = s.packet()
				_ = only.Close()
				s.ack(wire.UnknownSeqno, wire.Status_OOB_RESTART)
				silent(s)
			}}
			w := f.writer(Options{RestartFor: tt.limit, Dialer: datanode.NewDialer(datanode.Options{Timeout: time.Second})})
			begin := time.Now()
			require.ErrorContains(t, writeAll(w, nil, content(3000)), "all DataNodes of the pipeline have failed")
			require.GreaterOrEqual(t, time.Since(begin), tt.least)
			require.Less(t, time.Since(begin), tt.limit+5*time.Second)
		})
	}
}
