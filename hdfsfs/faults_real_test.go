package hdfsfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// patience bounds what a loaded machine may take to restart a daemon.
const patience = 2 * time.Minute

// disturbed is a cluster whose daemons may be killed, and which soon notices that.
func disturbed(t *testing.T) *testenv.Cluster {
	t.Helper()
	return testenv.Require(t, testenv.Options{DataNodes: 3, Exclusive: true, Properties: map[string]string{
		"dfs.heartbeat.interval":                                 "1",
		"dfs.namenode.heartbeat.recheck-interval":                "1000",
		"dfs.namenode.stale.datanode.interval":                   "3000",
		"dfs.namenode.avoid.read.stale.datanode":                 "true",
		"dfs.namenode.avoid.write.stale.datanode":                "true",
		"dfs.namenode.checkpoint.txns":                           "1000000",
		"dfs.client.socket-timeout":                              "5000",
		"dfs.datanode.socket.write.timeout":                      "5000",
		"dfs.namenode.fs-limits.min-block-size":                  "1048576",
		"dfs.namenode.ec.system.default.policy":                  "XOR-2-1-1024k",
		"dfs.namenode.safemode.extension":                        "0",
		"dfs.namenode.replication.work.multiplier.per.iteration": "10",
	}})
}

func TestHDFSSurvivesItsFaults(t *testing.T) {
	c := disturbed(t)
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { survives(t, c, kind) })
	}
}

func survives(t *testing.T, c *testenv.Cluster, kind ClientKind) {
	o := optionsFor(c, "")
	o.Client = kind
	o.DataTimeout, o.CallTimeout = 3*time.Second, 5*time.Second
	o.BlockSize = 1 << 20
	dir := c.TempDir(t)
	f := openOn(t, c, o)
	content := make([]byte, 3<<20+12_345)
	_, _ = rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%32s", kind)))).Read(content) // replicas are known by their bytes

	t.Run("a damaged replica is not returned", func(t *testing.T) { checkCorruptReplica(t, c, f, dir, content) })
	t.Run("an erasure-coded directory", func(t *testing.T) { checkErasureCoded(t, c, f, dir, content) })
	t.Run("a DataNode that dies under a writer", func(t *testing.T) { checkDataNodeDeath(t, c, f, dir, content) })
	t.Run("a DataNode that hangs under a writer", func(t *testing.T) { checkDataNodeHang(t, c, f, dir, content) })
	t.Run("a NameNode that restarts", func(t *testing.T) { checkNameNodeRestart(t, c, f, dir, content) })
	t.Run("a NameNode that hangs", func(t *testing.T) { checkNameNodeHang(t, c, f, dir) })
	t.Run("safe mode", func(t *testing.T) { checkSafeMode(t, c, o, dir) })
	t.Run("a NameNode that is dead", func(t *testing.T) { checkNameNodeDeath(t, c, o, dir) })
}

// writeSlowly writes content in pieces and calls halfway in the middle. It returns the first error.
func writeSlowly(ctx context.Context, f *FS, name string, content []byte, halfway func()) error {
	w, err := f.Create(ctx, name, core.CreateOptions{})
	if err != nil {
		return err
	}
	const piece = 100_000
	for at := 0; at < len(content) && err == nil; at += piece {
		if at/piece == len(content)/piece/2 {
			halfway()
		}
		_, err = w.Write(content[at:min(at+piece, len(content))])
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		return nil
	}
	if again := w.Close(); again == nil {
		return fmt.Errorf("a failed file was closed with success after: %w", errors.New(err.Error())) // no class
	}
	if aborted := w.Abort(); aborted != nil {
		return fmt.Errorf("abort: %s after: %s", aborted.Error(), err.Error()) // no class
	}
	return err
}

// checkDataNodeDeath: the file is all there, or there is an error and no file. Each DataNode is killed once, so that each
// place of the pipeline is likely to be hit.
func checkDataNodeDeath(t *testing.T, c *testenv.Cluster, f *FS, dir string, content []byte) {
	failed := 0
	for _, node := range []string{"dn1", "dn2", "dn3"} {
		name := dir + "/killed-" + node
		err := writeSlowly(t.Context(), f, name, content, func() { require.NoError(t, c.Kill(t.Context(), node)) })
		if err != nil {
			failed++
			require.ErrorIs(t, err, core.ErrUnavailable, node)
			_, err = f.Stat(t.Context(), name)
			require.ErrorIs(t, err, fs.ErrNotExist, node)
		} else {
			got, err := get(t.Context(), f, name)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got), "%s: a file that was closed has other bytes", node)
		}
		within(t, patience, func(ctx context.Context) { require.NoError(t, c.Restart(ctx, node)) })
	}
	if _, ok := f.client.(*native); ok {
		require.Zero(t, failed, "a file must survive the death of one DataNode")
	} else {
		require.Positive(t, failed, "no DataNode was part of a pipeline")
	}
	within(t, patience, func(ctx context.Context) { putUntilItWorks(t, ctx, f, dir+"/after-kills", content) })
	t.Logf("%d of 3 files failed; %+v", failed, f.Counts())
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	require.LessOrEqual(t, int64(bytes.Count(stacks, []byte("blockWriteStream).ackPackets("))), f.Counts().LeakedWriters, "goroutines of failed writers")
	require.Zero(t, bytes.Count(stacks, []byte("blockWriteStream).writeHeartbeats(")))
}

// putUntilItWorks is what a job does: it repeats its checkpoint under another name, which is returned.
func putUntilItWorks(t *testing.T, ctx context.Context, f *FS, name string, content []byte) string {
	t.Helper()
	for i := 0; ; i++ {
		attempt := fmt.Sprintf("%s-%d", name, i)
		err := put(ctx, f, attempt, content)
		if err == nil {
			got, err := get(ctx, f, attempt)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
			return attempt
		}
		require.NoError(t, ctx.Err(), "%v", err)
		require.ErrorIs(t, err, core.ErrUnavailable)
	}
}

// checkDataNodeHang: nothing waits longer than DataTimeout and what the NameNode needs; a writer of the library, which cannot tell
// whether an acknowledgement is due, also until the next heartbeat.
func checkDataNodeHang(t *testing.T, c *testenv.Cluster, f *FS, dir string, content []byte) {
	before := ""
	within(t, patience, func(ctx context.Context) { before = putUntilItWorks(t, ctx, f, dir+"/before-hang", content) })
	limit := 30 * time.Second
	if _, ok := f.client.(*native); !ok {
		limit += heartbeat
	}
	for _, node := range []string{"dn1", "dn2"} {
		name := dir + "/hung-" + node
		took := within(t, limit, func(ctx context.Context) {
			err := writeSlowly(ctx, f, name, content, func() { require.NoError(t, c.Stop(t.Context(), node)) })
			if err != nil {
				require.ErrorIs(t, err, core.ErrUnavailable)
				_, err = f.Stat(ctx, name)
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		})
		t.Logf("%s hung: over after %v", node, took)
		took = within(t, 30*time.Second, func(ctx context.Context) {
			got, err := get(ctx, f, before)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
		})
		t.Logf("%s hung: read in %v", node, took)
		require.NoError(t, c.Continue(t.Context(), node))
		within(t, patience, func(ctx context.Context) { require.NoError(t, c.WaitReady(ctx)) })
	}
}

func checkNameNodeRestart(t *testing.T, c *testenv.Cluster, f *FS, dir string, content []byte) {
	before := ""
	within(t, patience, func(ctx context.Context) { before = putUntilItWorks(t, ctx, f, dir+"/before-restart", content) })
	open, err := f.Open(t.Context(), before)
	require.NoError(t, err)
	defer func() { require.NoError(t, open.Close()) }()
	require.NoError(t, c.Kill(t.Context(), testenv.NameNode))
	require.NoError(t, c.Launch(t.Context(), testenv.NameNode))
	// All of these are begun while there is no NameNode, and work when there is one again.
	took := within(t, patience, func(ctx context.Context) {
		_, err := f.Stat(ctx, before)
		require.NoError(t, err)
	})
	t.Logf("Stat over a restart of the NameNode: %v", took)
	within(t, patience, func(ctx context.Context) {
		require.NoError(t, c.WaitReady(ctx))
		require.NoError(t, f.Rename(ctx, before, dir+"/after-restart", core.RenameNoReplace))
		got := make([]byte, len(content))
		_, err := open.ReadAt(got, 0)
		require.NoError(t, err, "a reader that was opened before")
		require.True(t, bytes.Equal(content, got))
		putUntilItWorks(t, ctx, f, dir+"/new", content)
	})
}

func checkNameNodeHang(t *testing.T, c *testenv.Cluster, f *FS, dir string) {
	require.NoError(t, c.Stop(t.Context(), testenv.NameNode))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := f.Stat(ctx, dir)
	took := time.Since(begin)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, took, 450*time.Millisecond)
	require.NoError(t, c.Continue(t.Context(), testenv.NameNode))
	within(t, patience, func(ctx context.Context) {
		_, err := f.Stat(ctx, dir)
		require.NoError(t, err)
	})
}

func checkSafeMode(t *testing.T, c *testenv.Cluster, o Options, dir string) {
	o.RetryFor = 300 * time.Millisecond
	f := openOn(t, c, o)
	require.NoError(t, f.MkdirAll(t.Context(), dir+"/doomed"))
	within(t, patience, func(ctx context.Context) { require.NoError(t, c.SafeMode(ctx, true)) })
	t.Cleanup(func() { require.NoError(t, c.SafeMode(context.WithoutCancel(t.Context()), false)) })
	_, err := f.Create(t.Context(), dir+"/in-safe-mode", core.CreateOptions{})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, f.MkdirAll(t.Context(), dir+"/dir-in-safe-mode"), core.ErrUnavailable)
	require.ErrorIs(t, f.RemoveAll(t.Context(), dir+"/doomed"), core.ErrUnavailable)
	_, err = f.Stat(t.Context(), dir)
	require.NoError(t, err)
	within(t, patience, func(ctx context.Context) { require.NoError(t, c.SafeMode(ctx, false)) })
	require.NoError(t, f.MkdirAll(t.Context(), dir+"/dir-in-safe-mode"))
}

func checkNameNodeDeath(t *testing.T, c *testenv.Cluster, o Options, dir string) {
	o.RetryFor = time.Second
	f := openOn(t, c, o)
	w, err := f.Create(t.Context(), dir+"/orphan", core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Kill(t.Context(), testenv.NameNode))
	took := within(t, 10*time.Second, func(ctx context.Context) {
		_, err := f.Stat(ctx, dir)
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.ErrorContains(t, err, c.NameNode())
		require.ErrorIs(t, w.Close(), core.ErrUnavailable)
		require.Error(t, w.Abort())
		_, err = Open(ctx, c.NameNode(), o)
		require.ErrorIs(t, err, core.ErrUnavailable)
	})
	t.Logf("calls without a NameNode: %v", took)
	within(t, patience, func(ctx context.Context) { require.NoError(t, c.Restart(ctx, testenv.NameNode)) })
}

// checkCorruptReplica damages the replicas of a file on all DataNodes but one.
func checkCorruptReplica(t *testing.T, c *testenv.Cluster, f *FS, dir string, content []byte) {
	name := dir + "/damaged"
	require.NoError(t, put(t.Context(), f, name, content))
	const blocks = 4
	require.Eventually(t, func() bool { // a pipeline may have been short
		whole := true
		for _, node := range []string{"dn1", "dn2", "dn3"} {
			whole = whole && len(blocksOf(t, c, node, content)) == blocks
		}
		return whole
	}, patience, 50*time.Millisecond, "not every DataNode has every block")
	damage(t, c, content, "dn1", "dn2")
	for range 4 {
		got, err := get(t.Context(), f, name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got), "damaged bytes were returned")
		r, err := f.Open(t.Context(), name)
		require.NoError(t, err)
		part := make([]byte, 100_000)
		for at := int64(0); at+int64(len(part)) < int64(len(content)); at += int64(len(part)) {
			_, err := r.ReadAt(part, at)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content[at:at+int64(len(part))], part), "damaged bytes were returned")
		}
		require.NoError(t, r.Close())
	}
	damage(t, c, content, "dn3")
	got, err := get(t.Context(), f, name)
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.True(t, bytes.HasPrefix(content, got))
	require.NoError(t, f.Remove(t.Context(), name))
}

// damage turns bits in the block files of the DataNodes that hold a part of content.
func damage(t *testing.T, c *testenv.Cluster, content []byte, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		for _, file := range blocksOf(t, c, node, content) {
			block, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, at := range []int{700, len(block) / 2, len(block) - 1} {
				block[at] ^= 1
			}
			require.NoError(t, os.WriteFile(file, block, 0o600))
		}
	}
}

// blocksOf finds the block files of a DataNode that hold a part of content.
func blocksOf(t *testing.T, c *testenv.Cluster, node string, content []byte) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(c.DataDir(node), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(entry.Name(), "blk_") || strings.HasSuffix(entry.Name(), ".meta") {
			return ignoreMissing(err)
		}
		block, err := os.ReadFile(file)
		if err == nil && len(block) > 1000 && bytes.Contains(content, block) && strings.Contains(file, "finalized") {
			files = append(files, file)
		}
		return ignoreMissing(err)
	}))
	return files
}

// ignoreMissing is for files that a DataNode moves meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkErasureCoded: the library's client cannot ask for a replicated file in such a directory.
func checkErasureCoded(t *testing.T, c *testenv.Cluster, f *FS, dir string, content []byte) {
	coded := dir + "/coded"
	require.NoError(t, f.MkdirAll(t.Context(), coded))
	if err := setErasureCoding(t.Context(), c, coded); err != nil {
		t.Skipf("left out: erasure coding cannot be set here: %v", err)
	}
	if _, ok := f.client.(*native); ok {
		require.NoError(t, put(t.Context(), f, coded+"/file", content))
		got, err := get(t.Context(), f, coded+"/file")
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
		return
	}
	_, err := f.Create(t.Context(), coded+"/file", core.CreateOptions{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "erasure coding")
	for info, err := range f.List(t.Context(), coded) {
		require.NoError(t, err)
		require.Fail(t, "a refused file was left", info.Name)
	}
}
