package hdfsfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// optionsFor are those of a user of a cluster. The sessions of the same keytab are not shared, so that two file systems have
// nothing in common.
func optionsFor(c *testenv.Cluster, user string) Options {
	who := c.Credentials(user)
	o := Options{ConfDir: c.ConfDir(), User: who.User}
	if c.Kerberos() {
		o.Login = kerberos.Options{Principal: who.Principal + "@" + who.Realm, Keytab: who.Keytab, Config: who.Krb5Conf}
	}
	return o
}

// openOn opens a cluster for the time of a test.
func openOn(t testing.TB, c *testenv.Cluster, o Options) *FS {
	t.Helper()
	f, err := Open(t.Context(), c.NameNode(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// instances makes file systems for the conformance suite, whose base is a folder of the test.
func instances(c *testenv.Cluster, user string, kind ClientKind) func(testing.TB) fstest.Instance {
	return func(t testing.TB) fstest.Instance {
		base := c.TempDir(t)
		o := optionsFor(c, user)
		o.Client = kind
		o.Base = base
		f := openOn(t, c, o)
		root := base + "/root"
		require.NoError(t, f.MkdirAll(t.Context(), root))
		return fstest.Instance{
			FS: f, Root: root, Base: base,
			Second: func(t testing.TB) core.FileSystem { return openOn(t, c, o) },
		}
	}
}

func TestConformance(t *testing.T) {
	c := testenv.Require(t, testenv.Options{})
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			fstest.Run(t, fstest.Config{Rounds: 10, New: instances(c, "alice", kind)})
		})
	}
}

// kinds are the clients for clusters without Kerberos.
var kinds = []ClientKind{ClientNative, ClientLibrary}

func TestConformanceWithKerberos(t *testing.T) {
	c := testenv.Require(t, testenv.Options{Kerberos: true})
	fstest.Run(t, fstest.Config{Rounds: 3, New: instances(c, "alice", ClientLibrary)})
}

// within runs a step that must not take longer.
func within(t testing.TB, limit time.Duration, step func(ctx context.Context)) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	step(ctx)
	took := time.Since(begin)
	require.Less(t, took, limit)
	return took
}
