package hdfsfs

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

func requirePlain(t *testing.T) *testenv.Cluster {
	t.Helper()
	return testenv.Require(t, testenv.Options{})
}

func TestALostAnswerChangesNoOutcome(t *testing.T) {
	for kind, methods := range map[ClientKind][]string{
		ClientNative:  {"getFileLinkInfo", "mkdirs", "create", "addBlock", "complete", "rename2", "delete", "getListing", "getLocatedFileInfo"},
		ClientLibrary: {"getFileInfo", "mkdirs", "create", "addBlock", "updateBlockForPipeline", "complete", "rename2", "delete", "getListing", "getBlockLocations"},
	} {
		t.Run(string(kind), func(t *testing.T) { checkLostAnswers(t, kind, methods) })
	}
}

func checkLostAnswers(t *testing.T, kind ClientKind, methods []string) {
	c := requirePlain(t)
	dir := c.TempDir(t)
	p := startProxy(t, c.NameNode())
	o := optionsFor(c, "alice")
	o.Client = kind
	f, err := Open(t.Context(), p.address(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	for i, method := range methods {
		t.Run(method, func(t *testing.T) {
			p.loseAnswersTo.Store(&method)
			before := p.executed.Load()
			dir := fmt.Sprintf("%s/%d", dir, i)
			ctx := t.Context()
			require.NoError(t, f.MkdirAll(ctx, dir))
			require.NoError(t, put(ctx, f, dir+"/file", []byte("content")))
			require.NoError(t, f.Rename(ctx, dir+"/file", dir+"/moved", core.RenameNoReplace))
			info, err := f.Stat(ctx, dir+"/moved")
			require.NoError(t, err)
			require.EqualValues(t, 7, info.Size)
			got, err := get(ctx, f, dir+"/moved")
			require.NoError(t, err)
			require.Equal(t, "content", string(got))
			var names []string
			for info, err := range f.List(ctx, dir) {
				require.NoError(t, err)
				names = append(names, info.Name)
			}
			require.Equal(t, []string{"moved"}, names)
			require.NoError(t, f.Remove(ctx, dir+"/moved"))
			require.ErrorIs(t, f.Remove(ctx, dir+"/moved"), fs.ErrNotExist)
			require.Equal(t, before+1, p.executed.Load(), "no answer was lost")
		})
	}
}

func TestConnectionsThatWereCutAreReplaced(t *testing.T) {
	c := requirePlain(t)
	dir := c.TempDir(t)
	p := startProxy(t, c.NameNode())
	f, err := Open(t.Context(), p.address(), optionsFor(c, "alice"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	begin := time.Now()
	for i := range 12 { // more often than an address stands in the library's list
		p.cut()
		name := fmt.Sprintf("%s/file-%d", dir, i)
		require.NoError(t, put(t.Context(), f, name, []byte("content")))
		p.cut()
		require.NoError(t, f.Remove(t.Context(), name))
	}
	require.Less(t, time.Since(begin), 20*time.Second)
}

func TestCloseWaitsForTheReplicasAndThenGivesUp(t *testing.T) {
	c := requirePlain(t)
	dir := c.TempDir(t)
	p := startProxy(t, c.NameNode())
	o := optionsFor(c, "alice")
	o.CloseTimeout = 500 * time.Millisecond
	f, err := Open(t.Context(), p.address(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	method := "complete"
	p.denyResultOf.Store(&method)
	w, err := f.Create(t.Context(), dir+"/never", core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write([]byte("content"))
	require.NoError(t, err)
	begin := time.Now()
	require.ErrorIs(t, w.Close(), core.ErrUnavailable)
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Greater(t, p.executed.Load(), int64(3), "it was not tried again")
	require.ErrorIs(t, w.Close(), core.ErrUnavailable)
	require.NoError(t, w.Abort())
	_, err = f.Stat(t.Context(), dir+"/never")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// twoNameNodes is a configuration of one nameservice with two NameNodes, beside another that must not be used.
func twoNameNodes(t *testing.T, c *testenv.Cluster, first, second string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(c.ConfDir())))
	site, err := os.ReadFile(filepath.Join(dir, "hdfs-site.xml"))
	require.NoError(t, err)
	more := ""
	for name, value := range map[string]string{
		"dfs.nameservices":                   "ns1,ns2",
		"dfs.ha.namenodes.ns1":               "a,b",
		"dfs.namenode.rpc-address.ns1.a":     first,
		"dfs.namenode.rpc-address.ns1.b":     second,
		"dfs.ha.namenodes.ns2":               "c",
		"dfs.namenode.rpc-address.ns2.c":     c.NameNode(),
		"dfs.client.failover.proxy.provider": "unused",
	} {
		more += "<property><name>" + name + "</name><value>" + value + "</value></property>\n"
	}
	end := []byte("</configuration>")
	site = append(site[:len(site)-len(site[lastIndex(site, end):])], append([]byte(more), end...)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), site, 0o600))
	return dir
}

func lastIndex(b, sub []byte) int {
	for i := len(b) - len(sub); i >= 0; i-- {
		if string(b[i:i+len(sub)]) == string(sub) {
			return i
		}
	}
	return len(b)
}

func TestAFailoverIsRiddenOut(t *testing.T) {
	c := requirePlain(t)
	dir := c.TempDir(t)
	a, b := startProxy(t, c.NameNode()), startProxy(t, c.NameNode())
	a.standby.Store(true)
	o := optionsFor(c, "alice")
	o.ConfDir = twoNameNodes(t, c, a.address(), b.address())
	f, err := Open(t.Context(), "ns1", o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Equal(t, "hdfs://ns1", f.URI())
	require.ElementsMatch(t, []string{a.address(), b.address()}, f.NameNodes())
	require.NoError(t, put(t.Context(), f, dir+"/first", []byte("content")))

	t.Run("to the other NameNode, while a file is open", func(t *testing.T) {
		w, err := f.Create(t.Context(), dir+"/open", core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write([]byte("content"))
		require.NoError(t, err)
		a.standby.Store(false)
		b.standby.Store(true)
		require.NoError(t, w.Close())
		require.NoError(t, f.Rename(t.Context(), dir+"/open", dir+"/closed", core.RenameNoReplace))
	})
	t.Run("with a time in which neither is active", func(t *testing.T) {
		a.standby.Store(true)
		back := time.AfterFunc(1500*time.Millisecond, func() { b.standby.Store(false) })
		defer back.Stop()
		within(t, 20*time.Second, func(ctx context.Context) {
			require.NoError(t, f.Rename(ctx, dir+"/closed", dir+"/moved", core.RenameNoReplace))
			require.NoError(t, put(ctx, f, dir+"/second", []byte("content")))
		})
	})
	t.Run("that does not end within RetryFor is ErrUnavailable", func(t *testing.T) {
		b.standby.Store(true)
		f.opts.RetryFor = time.Second
		if n, ok := f.client.(*native); ok {
			n.close()
			o.RetryFor = time.Second
			impatient, err := newNative(f.settings, o.withDefaults())
			require.NoError(t, err)
			f.client = impatient
		}
		within(t, 10*time.Second, func(ctx context.Context) {
			_, err := f.Stat(ctx, dir+"/moved")
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.ErrorIs(t, put(ctx, f, dir+"/third", nil), core.ErrUnavailable)
		})
	})
}

func TestAServerThatNeverAnswersHoldsNobody(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	t.Setenv("HADOOP_CONF_DIR", "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = Open(ctx, listener.Addr().String(), Options{User: "alice", CallTimeout: 10 * time.Second})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begin), 300*time.Millisecond)

	_, err = Open(t.Context(), listener.Addr().String(), Options{User: "alice", CallTimeout: 50 * time.Millisecond, RetryFor: -1})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorContains(t, err, listener.Addr().String())
}
