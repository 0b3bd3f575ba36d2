package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// visitThrice runs three lives of the job.
func visitThrice(t *testing.T, url, uri string) {
	t.Helper()
	for i := 1; i <= 3; i++ {
		var out strings.Builder
		require.NoError(t, run(t.Context(), url, &out))
		require.Contains(t, out.String(), fmt.Sprintf("visit %d is durable in %s", i, uri))
		require.Contains(t, out.String(), fmt.Sprintf("/chk-%d\n", i))
	}
}

func TestALifeGoesOnFromTheLastOne(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	visitThrice(t, filepath.Join(dir, "visits"), "file:"+dir)
}

func TestALifeOnHDFSGoesOnFromTheLastOne(t *testing.T) {
	for _, kerberos := range []bool{false, true} {
		t.Run(fmt.Sprintf("Kerberos %v", kerberos), func(t *testing.T) {
			c := testenv.Require(t, testenv.Options{Kerberos: kerberos})
			me, dir := c.Credentials("alice"), c.TempDir(t)
			t.Setenv("HADOOP_CONF_DIR", c.ConfDir())
			t.Setenv("HADOOP_USER_NAME", me.User)
			if kerberos {
				t.Setenv("KRB5_CONFIG", me.Krb5Conf)
				t.Setenv("HDFSCKPT_PRINCIPAL", me.Principal+"@"+me.Realm)
				t.Setenv("HDFSCKPT_KEYTAB", me.Keytab)
			}
			uri := "hdfs://" + c.NameNode()
			visitThrice(t, uri+dir+"/visits", uri+dir+"/visits")
		})
	}
}

// The page for users of a cluster shows lines of this program.
func TestThePageShowsThisProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "<!-- from examples/visits/main.go -->\n```go\n")
	require.True(t, found)
	shown, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Contains(t, string(program), shown)
}
