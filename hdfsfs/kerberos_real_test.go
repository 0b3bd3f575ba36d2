package hdfsfs

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

func TestTwoPrincipalsOfOneProcessAreTwoUsers(t *testing.T) {
	c := testenv.Require(t, testenv.Options{Kerberos: true})
	dir := c.TempDir(t)
	private := optionsFor(c, "alice")
	umask := fs.FileMode(0o077)
	private.Umask = &umask
	alice, bob := openOn(t, c, private), openOn(t, c, optionsFor(c, "bob"))
	require.NoError(t, alice.MkdirAll(t.Context(), dir+"/of-alice"))
	require.NoError(t, put(t.Context(), alice, dir+"/of-alice/file", []byte("secret")))
	_, err := get(t.Context(), bob, dir+"/of-alice/file")
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "user=bob")
	require.ErrorIs(t, put(t.Context(), bob, dir+"/of-alice/other", nil), fs.ErrPermission)
	require.ErrorIs(t, bob.RemoveAll(t.Context(), dir+"/of-alice"), fs.ErrPermission)
	got, err := get(t.Context(), alice, dir+"/of-alice/file")
	require.NoError(t, err)
	require.Equal(t, "secret", string(got))
	principal, needed := alice.Kerberos()
	require.True(t, needed)
	require.Contains(t, principal, "alice@")
}

func TestAClientWithoutALoginIsToldThatTheClusterWantsOne(t *testing.T) {
	c := testenv.Require(t, testenv.Options{Kerberos: true})
	t.Setenv("HADOOP_CONF_DIR", "")
	_, err := Open(t.Context(), c.NameNode(), Options{User: "alice"})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "SIMPLE authentication is not enabled")
}

// TestCallsThatAreEncryptedWork: the answers cannot be looked at then, so that they are taken as the library understands them.
func TestCallsThatAreEncryptedWork(t *testing.T) {
	c := testenv.Require(t, testenv.Options{Kerberos: true, DataNodes: 1, Properties: map[string]string{"hadoop.rpc.protection": "privacy"}})
	dir := c.TempDir(t)
	o := optionsFor(c, "alice")
	o.Replication = 1
	f := openOn(t, c, o)
	ctx := t.Context()
	require.NoError(t, put(ctx, f, dir+"/a", []byte("a")))
	require.ErrorIs(t, put(ctx, f, dir+"/a", []byte("b")), fs.ErrExist)
	require.NoError(t, put(ctx, f, dir+"/b", []byte("b")))
	require.ErrorIs(t, f.Rename(ctx, dir+"/a", dir+"/b", core.RenameNoReplace), fs.ErrExist)
	require.NoError(t, f.Rename(ctx, dir+"/a", dir+"/b", core.RenameReplace))
	require.NoError(t, f.Rename(ctx, dir+"/b", dir+"/c", core.RenameNoReplace))
	got, err := get(ctx, f, dir+"/c")
	require.NoError(t, err)
	require.Equal(t, "a", string(got))
	for info, err := range f.List(ctx, dir) {
		require.NoError(t, err)
		require.Equal(t, "c", info.Name)
	}
	w, err := f.Create(ctx, dir+"/aborted", core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Abort())
	require.NoError(t, f.Remove(ctx, dir+"/c"))
	require.ErrorIs(t, f.Remove(ctx, dir+"/c"), fs.ErrNotExist)
	for info, err := range f.List(ctx, dir) {
		require.NoError(t, err)
		require.Fail(t, "something is left", info.Name)
	}

	_, err = Open(ctx, c.NameNode(), Options{
		ConfDir: confWith(t, "hadoop.security.authentication=kerberos", "dfs.namenode.kerberos.principal=nn/_HOST", "dfs.data.transfer.protection=privacy"),
		Login:   o.Login,
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
