package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// Chaos on a real cluster. Each fault happens at one moment to a crowd of files, one for each stage of a file and each position in the
// pipeline of the node that it happens to. HDFSCKPT_CHAOS asks for more rounds than one; HDFSCKPT_CHAOS_SEED repeats what was logged.

// chaos is what the tests below share.
type chaos struct {
	*rig
	random *rand.Rand
	round  int
	probes int
}

// number is what an environment variable asks for.
func number(t *testing.T, name string, fallback uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "%s=%q", name, text)
	return n
}

// quick is a cluster that notices dead DataNodes soon.
func quick(dataNodes int) testenv.Options {
	return testenv.Options{DataNodes: dataNodes, Exclusive: true, Properties: map[string]string{
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "2000", "dfs.client.socket-timeout": "5000",
		"dfs.namenode.redundancy.considerLoad": "false", "dfs.namenode.stale.datanode.interval": "3000",
		"dfs.namenode.avoid.write.stale.datanode":                                    "true",
		"dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "0", // a small disk is one all the same
		"dfs.namenode.fs-limits.min-block-size":                                      "512",
	}}
}

// disasters are what happens to the daemons while the crowd waits, how many nodes it happens to, and what makes it good again.
var disasters = []struct {
	what    string
	victims int
	strike  func(ctx context.Context, c *testenv.Cluster, names []string) error
	heal    func(ctx context.Context, c *testenv.Cluster, names []string) error // in time for the files; nil is none
	mend    func(ctx context.Context, c *testenv.Cluster, names []string) error // after them
}{
	{"a DataNode is killed", 1, each((*testenv.Cluster).Kill), nil, each((*testenv.Cluster).Launch)},
	{"two of three DataNodes are killed", 2, each((*testenv.Cluster).Kill), nil, each((*testenv.Cluster).Launch)},
	{"a DataNode restarts", 1, each((*testenv.Cluster).Kill), each((*testenv.Cluster).Launch), nil},
	{"a DataNode shuts down for an upgrade and restarts", 1, each((*testenv.Cluster).ShutDownForUpgrade), each((*testenv.Cluster).Launch), nil},
	{"a DataNode shuts down for an upgrade and stays away", 1, each((*testenv.Cluster).ShutDownForUpgrade), nil, each((*testenv.Cluster).Launch)},
	{"a DataNode hangs", 1, each((*testenv.Cluster).Stop), nil, each((*testenv.Cluster).Continue)},
	{"a DataNode hangs for a second", 1, each((*testenv.Cluster).Stop), later(time.Second, each((*testenv.Cluster).Continue)), nil},
	{"the NameNode restarts", 0, nameNode((*testenv.Cluster).Kill), nameNode((*testenv.Cluster).Launch), nil},
	{"the NameNode hangs for three seconds", 0, nameNode((*testenv.Cluster).Stop), later(3*time.Second, nameNode((*testenv.Cluster).Continue)), nil},
	{"the NameNode and a DataNode restart", 1, both((*testenv.Cluster).Kill), both((*testenv.Cluster).Launch), nil},
	{"safe mode", 0, safeMode(true), safeMode(false), nil},
}

type act = func(ctx context.Context, c *testenv.Cluster, names []string) error

func each(do func(*testenv.Cluster, context.Context, string) error) act {
	return func(ctx context.Context, c *testenv.Cluster, names []string) error {
		for _, name := range names {
			if err := do(c, ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
}

func nameNode(do func(*testenv.Cluster, context.Context, string) error) act {
	return func(ctx context.Context, c *testenv.Cluster, _ []string) error { return do(c, ctx, testenv.NameNode) }
}

func both(do func(*testenv.Cluster, context.Context, string) error) act {
	return func(ctx context.Context, c *testenv.Cluster, names []string) error {
		return each(do)(ctx, c, append([]string{testenv.NameNode}, names...))
	}
}

func later(wait time.Duration, do act) act {
	return func(ctx context.Context, c *testenv.Cluster, names []string) error {
		time.Sleep(wait)
		return do(ctx, c, names)
	}
}

func safeMode(enter bool) act {
	return func(ctx context.Context, c *testenv.Cluster, _ []string) error { return c.SafeMode(ctx, enter) }
}

// TestChaos makes everything happen to a cluster that can.
func TestChaos(t *testing.T) {
	seed := number(t, "HDFSCKPT_CHAOS_SEED", uint64(time.Now().UnixNano()))
	rounds := int(number(t, "HDFSCKPT_CHAOS", 1))
	t.Logf("HDFSCKPT_CHAOS_SEED=%d HDFSCKPT_CHAOS=%d", seed, rounds)
	r := newRig(t, quick(4))
	for round := range rounds {
		in := func(what string, do func(c *chaos, t *testing.T)) {
			t.Run(fmt.Sprintf("%d: %s", round, what), func(t *testing.T) {
				mine := *r
				mine.t = t
				// Each fault has a source of its own, so that it can be repeated alone.
				do(&chaos{rig: &mine, round: round, random: rand.New(rand.NewPCG(seed, uint64(round)))}, t)
			})
			if t.Failed() {
				t.FailNow() // the cluster is not as it should be
			}
		}
		for _, d := range disasters {
			in(d.what, func(c *chaos, t *testing.T) { c.survive(t, d.victims, d.strike, d.heal, d.mend) })
		}
		in("a DataNode without which files cannot go on shuts down for an upgrade", (*chaos).neededNodeRestarts)
		in("it does not come back", (*chaos).neededNodeStaysAway)
		in("the time is up while two DataNodes hang", (*chaos).timeIsUp)
		in("the network does what networks do", (*chaos).badNetwork)
		in("a disk is full", (*chaos).fullDisk)
		in("quotas are used up", (*chaos).quotas)
		in("another client renames, replaces and removes the file", (*chaos).otherClients)
		in("a writer is gone", (*chaos).goneWriter)
	}
}

// survive has a crowd written while something happens: all of them must be closed, and hold what was written.
func (c *chaos) survive(t *testing.T, victims int, strike, heal, mend act) {
	ctx := t.Context()
	goroutines, descriptors := left(t)
	names := c.victims(max(victims, 1))
	crowd := c.gather(ctx, names)
	if victims == 0 {
		names = []string{testenv.NameNode}
	}
	crowd.await()
	// Everybody goes on when it has happened, or it happens while they do.
	if c.round > 0 && c.random.IntN(2) == 0 {
		crowd.release()
		time.Sleep(time.Duration(c.random.IntN(30)) * time.Millisecond)
	}
	require.NoError(t, strike(ctx, c.cluster, names))
	crowd.release()
	if heal != nil {
		require.NoError(t, heal(ctx, c.cluster, names))
	}
	crowd.end()
	t.Logf("%s: %s", strings.Join(names, ", "), crowd.times())
	for _, f := range crowd.files {
		require.NoError(t, f.err, f.name)
		require.GreaterOrEqual(t, f.w.Replicas(), 2, f.name)
	}
	if mend != nil {
		require.NoError(t, mend(ctx, c.cluster, names))
	}
	c.waitReady()
	for _, f := range crowd.files {
		c.requireContent(f.name, f.data)
	}
	requireNothingLeft(t, goroutines, descriptors)
}

// victims chooses DataNodes.
func (c *chaos) victims(n int) []string {
	processes, err := c.cluster.Processes(c.t.Context())
	require.NoError(c.t, err)
	var all []string
	for _, p := range processes {
		if strings.HasPrefix(p.Name, "dn") {
			all = append(all, p.Name)
		}
	}
	slices.Sort(all)
	c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}
