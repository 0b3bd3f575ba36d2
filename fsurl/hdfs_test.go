package fsurl

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

func TestAnHDFSIsOpenedByItsURL(t *testing.T) {
	for name, o := range map[string]testenv.Options{"plain": {}, "Kerberos": {Kerberos: true}} {
		t.Run(name, func(t *testing.T) {
			c := testenv.Require(t, o)
			who := c.Credentials("alice")
			opts := hdfsfs.Options{User: who.User}
			if c.Kerberos() {
				opts.Login = kerberos.Options{Principal: who.Principal + "@" + who.Realm, Keytab: who.Keytab, Config: who.Krb5Conf}
			}
			t.Setenv("HADOOP_CONF_DIR", c.ConfDir())
			dir := c.TempDir(t)
			opener := newOpener(t, Options{HDFS: opts, DefaultFS: "hdfs://" + c.NameNode()})
			for _, url := range []string{strings.TrimSuffix(c.URL(), "/") + dir, "hdfs://" + dir, dir} {
				fsys, name, err := opener.Open(t.Context(), url)
				require.NoError(t, err)
				require.Equal(t, dir, name)
				require.Equal(t, "hdfs://"+c.NameNode(), fsys.URI())
				w, err := fsys.Create(t.Context(), name+"/file", core.CreateOptions{})
				require.NoError(t, err)
				_, err = w.Write([]byte("content"))
				require.NoError(t, err)
				require.NoError(t, w.Close())
				r, err := fsys.Open(t.Context(), name+"/file")
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.Equal(t, "content", string(got))
				require.NoError(t, fsys.Remove(t.Context(), name+"/file"))
			}
		})
	}
}
