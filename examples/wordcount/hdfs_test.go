package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// onHDFS makes this process, and those that it starts, users of a real HDFS, and returns it with a directory of the test.
func onHDFS(t *testing.T, o testenv.Options) (c *testenv.Cluster, base string) {
	t.Helper()
	c = testenv.Require(t, o)
	base = strings.TrimSuffix(c.URL(), "/") + c.TempDir(t)
	t.Setenv("HADOOP_CONF_DIR", c.ConfDir())
	t.Setenv("HADOOP_USER_NAME", c.Credentials("alice").User)
	return c, base
}

// counted tells how many calls of the NameNode do caused, where that can be known; do returns the number of checkpoints.
func counted(t *testing.T, c *testenv.Cluster, do func() int) (calls testenv.Calls, checkpoints int) {
	t.Helper()
	before, err := c.Calls(t.Context())
	if errors.Is(err, testenv.ErrOwn) {
		return nil, do()
	}
	require.NoError(t, err)
	checkpoints = do()
	after, err := c.Calls(t.Context())
	require.NoError(t, err)
	calls = after.Since(before)
	require.Positive(t, calls.Total())
	t.Logf("%d checkpoints, %.1f calls of the NameNode each, with all that is around them: %v",
		checkpoints, float64(calls.Total())/float64(checkpoints), calls)
	return calls, checkpoints
}

// HDFSCKPT_KILL9_HDFS is the number of kills; it takes about two seconds for each.
func TestEveryAcknowledgedCheckpointOnHDFSSurvivesKill9(t *testing.T) {
	text := os.Getenv("HDFSCKPT_KILL9_HDFS")
	if text == "" {
		t.Skip("left out: HDFSCKPT_KILL9_HDFS does not say how many kills there shall be")
	}
	kills, err := strconv.Atoi(text)
	require.NoError(t, err)
	// A property of its own makes it a cluster that nobody else uses, so that the calls are those of this job.
	c, base := onHDFS(t, testenv.Options{Properties: map[string]string{"hdfsckpt.use": "kill9"}})
	counted(t, c, func() int { return sweep(t, base, kills, 500*time.Millisecond, 2500*time.Millisecond) })
}

func TestAJobOnHDFSThatWasKilledEndsWithTheRightCountsAndNoGarbage(t *testing.T) {
	c, base := onHDFS(t, testenv.Options{})
	counted(t, c, func() int { return finish(t, base, 3000, time.Second).commits })
}
