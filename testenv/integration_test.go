package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"testing"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
)

// patience bounds what a loaded machine may take.
const patience = 3 * time.Minute

func client(t *testing.T, c *Cluster, user string) *probe.Client {
	t.Helper()
	client, err := probe.Dial(c.ConfDir(), c.login(user), time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() }) // the NameNode may be gone
	return client
}

func writeAndRead(t *testing.T, c *Cluster, user, name string, content []byte) {
	t.Helper()
	require.NoError(t, client(t, c, user).WriteFile(t.Context(), name, content))
	requireContent(t, c, user, name, content)
}

func requireContent(t *testing.T, c *Cluster, user, name string, want []byte) {
	t.Helper()
	r, err := client(t, c, user).Open(name)
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.True(t, bytes.Equal(want, got), "%s has other content", name)
}

// timed logs how long a step takes.
func timed(t *testing.T, step string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := time.Now()
	require.NoError(t, do(ctx), step)
	t.Logf("%s: %.1f s", step, time.Since(begin).Seconds())
}

func TestAClusterSurvivesTheDeathOfItsDaemons(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"plain", Options{DataNodes: 2, Exclusive: true}},
		{"Kerberos", Options{DataNodes: 2, Exclusive: true, Kerberos: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			c := Require(t, tt.o)
			t.Logf("Require took %.1f s, of that the daemons' start %.1f s", time.Since(begin).Seconds(), c.StartTime().Seconds())
			dir := c.TempDir(t)
			content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			before := path.Join(dir, "before")
			writeAndRead(t, c, "alice", before, content)

			timed(t, "kill and restart a DataNode", func(ctx context.Context) error {
				return errors.Join(c.Kill(ctx, "dn1"), c.Launch(ctx, "dn1"), c.WaitReady(ctx))
			})
			writeAndRead(t, c, "alice", path.Join(dir, "after-datanode"), content)

			timed(t, "restart the NameNode", func(ctx context.Context) error { return c.Restart(ctx, NameNode) })
			requireContent(t, c, "alice", before, content)
			writeAndRead(t, c, "alice", path.Join(dir, "after-namenode"), content)

			t.Run("a daemon that cannot start is reported", func(t *testing.T) {
				require.NoError(t, c.Kill(t.Context(), "dn1"))
				d, ok := c.state.Layout.Find("dn1")
				require.True(t, ok)
				taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", d.Ports["data"]))
				require.NoError(t, err)
				require.ErrorContains(t, c.Restart(t.Context(), "dn1"), "dn1 ended")
				require.NoError(t, taken.Close())
				timed(t, "restart a DataNode", func(ctx context.Context) error { return c.Restart(ctx, "dn1") })
			})
			t.Run("a DataNode shuts down for an upgrade", func(t *testing.T) {
				timed(t, "shut down", func(ctx context.Context) error { return c.ShutDownForUpgrade(ctx, "dn1") })
				processes, err := c.Processes(t.Context())
				require.NoError(t, err)
				running := map[string]bool{}
				for _, p := range processes {
					running[p.Name] = p.Running
				}
				require.False(t, running["dn1"])
				require.True(t, running["dn2"])
				timed(t, "start it again", func(ctx context.Context) error { return c.Restart(ctx, "dn1") })
				for _, other := range []string{NameNode, "dn9"} {
					require.ErrorContains(t, c.ShutDownForUpgrade(t.Context(), other), other+" is no DataNode")
				}
			})
			t.Run("safe mode refuses changes", func(t *testing.T) {
				timed(t, "enter safe mode", func(ctx context.Context) error { return c.SafeMode(ctx, true) })
				require.Error(t, client(t, c, "alice").Mkdir(path.Join(dir, "refused"), 0o755))
				requireContent(t, c, "alice", before, content)
				require.NoError(t, c.SafeMode(t.Context(), false))
				require.NoError(t, client(t, c, "alice").Mkdir(path.Join(dir, "allowed"), 0o755))
			})
			t.Run("fsck tells where blocks are", func(t *testing.T) {
				report, err := c.Fsck(t.Context(), before)
				require.NoError(t, err)
				require.Contains(t, report, "is HEALTHY")
				require.Contains(t, report, "Live_repl=2")
			})
			t.Run("a hanging DataNode is noted", func(t *testing.T) {
				require.NoError(t, c.Stop(t.Context(), "dn2"))
				processes, err := c.Processes(t.Context())
				require.NoError(t, err)
				require.True(t, processes[len(processes)-1].Stopped)
				require.NoError(t, c.Continue(t.Context(), "dn2"))
				timed(t, "continue a DataNode", c.WaitReady)
			})
			t.Run("calls are counted exactly", func(t *testing.T) { countCalls(t, c, dir) })
		})
	}
}

// countCalls expects what its own client does, and nothing else.
func countCalls(t *testing.T, c *Cluster, dir string) {
	client := client(t, c, "alice")
	before, err := c.Calls(t.Context())
	require.NoError(t, err)
	count := func() Calls {
		t.Helper()
		after, err := c.Calls(t.Context())
		require.NoError(t, err)
		since := after.Since(before)
		before = after
		delete(since, "RenewLease") // of clients that have written, once a second
		return since
	}
	for range 5 {
		_, err := client.Stat(dir)
		require.NoError(t, err)
		_, err = client.Stat(path.Join(dir, "none"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.Equal(t, Calls{"GetFileInfo": 10}, count(), "each call, also one that finds nothing")
	require.NoError(t, client.Mkdir(path.Join(dir, "counted"), 0o755))
	require.Equal(t, 1, count()["Mkdirs"])
	require.Empty(t, count())
}

func TestKerberosKnowsItsUsers(t *testing.T) {
	c := Require(t, Options{
		DataNodes: 1, Exclusive: true, Kerberos: true,
		EncryptionTypes: []string{"aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha256-128"},
	})
	dir := c.TempDir(t)
	login := func(who Credentials) error {
		conf, err := config.Load(who.Krb5Conf)
		require.NoError(t, err)
		key, err := keytab.Load(who.Keytab)
		require.NoError(t, err)
		k := krb.NewWithKeytab(who.Principal, who.Realm, key, conf, krb.DisablePAFXFAST(true))
		defer k.Destroy()
		return k.Login()
	}
	for _, user := range Users() {
		require.NoError(t, login(c.Credentials(user)))
	}
	wrong := c.Credentials("alice")
	wrong.Keytab = c.Credentials("bob").Keytab
	require.Error(t, login(wrong), "bob's key is not alice's")

	require.ErrorIs(t, client(t, c, "alice").Mkdir("/alice", 0o755), fs.ErrPermission)
	require.NoError(t, client(t, c, Superuser).Mkdir("/alice", 0o755))
	require.NoError(t, client(t, c, Superuser).Remove("/alice"))
	writeAndRead(t, c, "bob", path.Join(dir, "a"), []byte("a"))
	info, err := client(t, c, "bob").Stat(path.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "bob", info.(interface{ Owner() string }).Owner()) //nolint:forcetypeassert // of this client

	require.NoError(t, c.Kill(t.Context(), KDC))
	require.Error(t, login(c.Credentials("")), "the KDC is dead")
	timed(t, "restart the KDC", func(ctx context.Context) error { return c.Restart(ctx, KDC) })
	require.NoError(t, login(c.Credentials("")))
}

func TestProcessesShareAClusterThatEndsWithTheLastOfThem(t *testing.T) {
	requireLocal(t)
	// Properties of its own make it a cluster that no other test knows.
	o := Options{DataNodes: 1, Properties: map[string]string{"hdfsckpt.test": t.Name()}}
	first, second := startUser(t, o), startUser(t, o)
	a, b := first.told(t), second.told(t)
	require.Equal(t, a, b, "both have the same cluster")
	t.Cleanup(func() { require.NoError(t, supervisorDown(t, a)) })

	require.NoError(t, first.cmd.Process.Kill(), "whoever started it")
	_ = first.cmd.Wait()
	third := startUser(t, o)
	require.Equal(t, a, third.told(t))

	for _, u := range []*otherUser{second, third} {
		require.NoError(t, u.cmd.Process.Kill())
		_ = u.cmd.Wait()
	}
	timed(t, "end of an unused cluster", func(ctx context.Context) error { return awaitNothing(ctx, a) })
}

func TestNothingIsLeftOfASupervisorThatIsKilled(t *testing.T) {
	requireLocal(t)
	o := Options{DataNodes: 1, Properties: map[string]string{"hdfsckpt.test": t.Name()}}
	u := startUser(t, o)
	v := u.told(t)
	require.NoError(t, v.Supervisor.Kill())
	require.NoError(t, u.stdin.Close())
	require.NoError(t, u.cmd.Wait())
	require.NoError(t, supervisorDown(t, v))
	timed(t, "end of the daemons", func(ctx context.Context) error { return awaitNothing(ctx, v) })
}
