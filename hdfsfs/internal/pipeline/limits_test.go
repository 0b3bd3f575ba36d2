package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
)

// timeIsUp lets the time of a crowd be up while two nodes hang: everybody returns, and what was synced is there.
func (c *chaos) timeIsUp(t *testing.T) {
	goroutines, descriptors := left(t)
	names := c.victims(2)
	ctx, cancel := context.WithCancel(t.Context())
	crowd := c.gather(ctx, names)
	crowd.await()
	for _, name := range names {
		require.NoError(t, c.cluster.Stop(t.Context(), name))
	}
	crowd.release()
	time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	end := time.Now()
	cancel()
	crowd.end()
	late := time.Since(end)
	t.Logf("%s: all had returned %v after the end", strings.Join(names, ", "), late.Round(time.Millisecond))
	require.Less(t, late, promised)
	for _, f := range crowd.files {
		f.w.Abort()
	}
	for _, name := range names {
		require.NoError(t, c.cluster.Continue(t.Context(), name))
	}
	c.waitReady()
	recovery, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	for _, f := range crowd.files {
		if f.err == nil {
			c.requireContent(f.name, f.data)
			continue
		}
		require.ErrorIs(t, f.err, context.Canceled, f.name)
		c.requirePrefix(recovery, f.name, f.data, f.synced)
	}
	requireNothingLeft(t, goroutines, descriptors)
}

// requirePrefix has a file closed that its writer has left, and requires what was synced.
func (c *chaos) requirePrefix(ctx context.Context, name string, data []byte, synced int) {
	c.t.Helper()
	require.NoError(c.t, c.nn.CloseAbandoned(ctx, c.dir+"/"+name), name)
	got := c.cat(name)
	require.GreaterOrEqual(c.t, len(got), synced, name)
	require.True(c.t, bytes.HasPrefix(data, got), "%s has other bytes", name)
}

// goneWriter leaves files behind as a process does that is killed.
func (c *chaos) goneWriter(t *testing.T) {
	for _, size := range []int{0, 1, 1000, block - 1, block, block + 70001} {
		other, err := namenode.New(namenode.Options{RPC: rpc.Options{
			Resolver: rpc.Fixed{c.cluster.NameNode()}, Authenticator: rpc.Simple{User: c.cluster.Credentials("alice").User},
		}})
		require.NoError(t, err)
		name := fmt.Sprint("gone-", c.round, "-", size)
		theirs := *c.rig
		theirs.nn = other
		w := theirs.create(name, 3, Options{})
		data := content(size)
		_, err = w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Sync(true))
		_, err = w.Write([]byte("nobody was told that this is there"))
		require.NoError(t, err)
		w.Abort()
		require.NoError(t, other.Close())
		begin := time.Now()
		c.requirePrefix(t.Context(), name, append(data, "nobody was told that this is there"...), size)
		t.Logf("%d bytes: closed in %v", size, time.Since(begin).Round(time.Millisecond))
	}
}

// otherClients do to a file what a writer must notice or survive.
func (c *chaos) otherClients(t *testing.T) {
	for _, tt := range []struct {
		what   string
		do     func(path string) error
		closes bool
		name   string // where the file is
	}{
		{"rename", func(p string) error { return c.nn.Rename(t.Context(), p, p+"-renamed", false) }, true, "-renamed"},
		{"remove", func(p string) error {
			_, err := c.nn.Delete(t.Context(), p, false)
			return err
		}, false, ""},
		{"replace", func(p string) error {
			c.hadoop.Call(t, "put", p+"-other", "of another", "1")
			return c.nn.Rename(t.Context(), p+"-other", p, true)
		}, false, ""},
	} {
		for _, moment := range []string{"in a block", "before the end"} {
			name := fmt.Sprintf("other-%d-%s-%s", c.round, tt.what, moment[:2])
			w := c.create(name, 3, Options{MinReplicas: 2})
			data := content(2*block + 100)
			half := block / 2
			if moment == "before the end" {
				half = len(data)
			}
			_, err := w.Write(data[:half])
			require.NoError(t, err)
			require.NoError(t, w.Sync(false))
			require.NoError(t, tt.do(c.dir+"/"+name), name)
			_, err = w.Write(data[half:])
			if err == nil {
				err = w.Close()
			}
			if tt.closes {
				require.NoError(t, err, name)
				c.requireContent(name+tt.name, data)
				continue
			}
			require.Error(t, err, name)
			var answer *rpc.ServerError
			require.ErrorAs(t, err, &answer, name)
			require.Regexp(t, "LeaseExpired|FileNotFound|does not exist", answer.Error())
			w.Abort()
			if tt.what == "replace" {
				c.requireContent(name, []byte("of another"))
			}
		}
	}
}

// quotas end while files are written.
func (c *chaos) quotas(t *testing.T) {
	ctx := t.Context()
	mine := *c.rig
	mine.dir = fmt.Sprint(c.dir, "/quotas-", c.round)
	require.NoError(t, c.nn.Mkdirs(ctx, mine.dir, 0o777, 0, true))
	_, err := c.cluster.Admin(ctx, "-setSpaceQuota", fmt.Sprint(5*block), mine.dir)
	require.NoError(t, err)
	w := mine.create("space", 3, Options{MinReplicas: 2})
	data := content(3 * block)
	_, err = w.Write(data[:block-10])
	require.NoError(t, err)
	require.NoError(t, w.Sync(false), "there is space for the first block")
	_, err = w.Write(data[block-10:])
	if err == nil {
		err = w.Close()
	}
	var answer *rpc.ServerError
	require.ErrorAs(t, err, &answer)
	require.Contains(t, answer.Class, "DSQuotaExceededException")
	w.Abort()
	inside := chaos{rig: &mine}
	inside.requirePrefix(ctx, "space", data, block-10)

	_, err = c.cluster.Admin(ctx, "-setQuota", "2", mine.dir)
	require.NoError(t, err)
	_, err = c.nn.Create(ctx, mine.dir+"/second", namenode.CreateOptions{Mode: 0o644, Replication: 3, BlockSize: block})
	require.ErrorAs(t, err, &answer)
	require.Contains(t, answer.Class, "NSQuotaExceededException")
}

// fullDisk fills the disk of a DataNode while a crowd has it in its pipelines.
func (c *chaos) fullDisk(t *testing.T) {
	ctx := t.Context()
	c.removeFiles() // else the small disk is filled by replicas of them
	names := c.victims(1)
	dir := c.cluster.DataDir(names[0])
	require.NoError(t, c.cluster.Kill(ctx, names[0]))
	identity := t.TempDir()
	require.NoError(t, copyWithoutBlocks(identity, dir)) // it stays the node that the NameNode knows
	if err := mountSmallDisk(dir); err != nil {
		require.NoError(t, c.cluster.Launch(ctx, names[0]))
		require.NoError(t, c.cluster.WaitReady(ctx))
		t.Skipf("left out: a small disk needs the right to mount one: %v", err)
	}
	back := sync.OnceFunc(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, c.cluster.Kill(ctx, names[0]))
		require.NoError(t, unmount(dir))
		require.NoError(t, c.cluster.Launch(ctx, names[0]))
		require.NoError(t, c.cluster.WaitReady(ctx))
	})
	t.Cleanup(back)
	require.NoError(t, copyWithoutBlocks(dir, identity))
	require.NoError(t, c.cluster.Launch(ctx, names[0]))
	c.waitReady()
	crowd := c.gather(ctx, names)
	crowd.await()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = filler.Write(chunk)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, filler.Close())
	crowd.release()
	crowd.end()
	t.Logf("the disk of %s is full: %s", names[0], crowd.times())
	for _, f := range crowd.files {
		require.NoError(t, f.err, f.name)
		require.GreaterOrEqual(t, f.w.Replicas(), 2)
		c.requireContent(f.name, f.data)
	}
	back()
}

// removeFiles removes what the tests before have written.
func (c *chaos) removeFiles() {
	for file, err := range c.nn.List(c.t.Context(), c.dir) {
		require.NoError(c.t, err)
		_, err = c.nn.Delete(c.t.Context(), c.dir+"/"+string(file.GetPath()), true)
		require.NoError(c.t, err)
	}
}

// copyWithoutBlocks copies what makes a folder that of a certain DataNode.
func copyWithoutBlocks(to, from string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasPrefix(entry.Name(), "blk_") || slices.Contains([]string{"in_use.lock", "dfsUsed"}, entry.Name()):
			return nil // dfsUsed is how much the blocks take
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
