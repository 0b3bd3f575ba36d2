package main

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// hdfsenv runs the command and returns what it writes.
func hdfsenv(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandsNeedAClusterThatRuns(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"kill", "nn"}, {"fsck"}, {"calls"}, {"safemode", "enter"}} {
		_, err := hdfsenv(t, append(args, "-D", "hdfsckpt.test=none")...)
		require.ErrorIs(t, err, testenv.ErrDown, args)
	}
	out, err := hdfsenv(t, "down", "-D", "hdfsckpt.test=none")
	require.NoError(t, err, "it is down")
	require.Empty(t, out)
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"up", "x"}, {"kill"}, {"upgrade"}, {"safemode", "perhaps"}, {"up", "--datanodes=-1"}, {"dance"}} {
		_, err := hdfsenv(t, args...)
		require.Error(t, err, args)
		require.NotErrorIs(t, err, testenv.ErrDown, args)
	}
}

func TestAClusterIsDrivenByHand(t *testing.T) {
	c := testenv.Require(t, testenv.Options{DataNodes: 1, Properties: map[string]string{"hdfsckpt.test": t.Name()}})
	if c.Own() {
		t.Skip("left out: nothing is started with HADOOP_CONF_DIR")
	}
	do := func(args ...string) string {
		t.Helper()
		out, err := hdfsenv(t, append(args, "--datanodes=1", "-D", "hdfsckpt.test="+t.Name())...)
		require.NoError(t, err, out)
		return out
	}
	t.Cleanup(func() { _, _ = hdfsenv(t, "down", "--datanodes=1", "-D", "hdfsckpt.test="+t.Name()) })

	require.Contains(t, do("up"), "export HADOOP_CONF_DIR="+c.ConfDir()+"\n", "it takes the one that runs")
	status := do("status")
	require.Equal(t, 2, strings.Count(status, " running "), status)
	require.True(t, strings.HasSuffix(status, "ready\n"), status)
	require.Contains(t, do("fsck", "/"), "is HEALTHY")
	require.Contains(t, do("calls"), "Create ")
	do("kill", "dn1")
	do("restart", "dn1")
	do("stop", "nn")
	require.NotContains(t, do("cont", "nn"), "stopped")
	do("down")
	_, err := os.Stat(c.ConfDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}
