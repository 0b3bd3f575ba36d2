package testenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// describeImages makes the cache of the test hold what docker/up.sh writes.
func describeImages(t *testing.T, profile, properties string) {
	t.Helper()
	conf := filepath.Join(os.Getenv("HDFSCKPT_CACHE"), "docker", profile, "conf")
	require.NoError(t, os.MkdirAll(conf, 0o700))
	text := "<configuration><property><name>fs.defaultFS</name><value>hdfs://localhost:1</value></property>" +
		"<property><name>dfs.namenode.http-address</name><value>localhost:2</value></property>" + properties + "</configuration>"
	require.NoError(t, os.WriteFile(filepath.Join(conf, "core-site.xml"), []byte(text), 0o600))
}

const secureImages = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>" +
	"<property><name>dfs.data.transfer.protection</name><value>privacy</value></property>"

func dockerEnvironment(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "/nowhere") // the images go before it
	t.Setenv("HDFSCKPT_HDFS", "docker")
	t.Setenv("HDFSCKPT_REQUIRE", "")
	t.Setenv("HDFSCKPT_CACHE", t.TempDir())
}

func TestImagesThatDoNotRunAreMissing(t *testing.T) {
	dockerEnvironment(t)
	for _, part := range []string{"hdfs", "kerberos"} {
		o := Options{Kerberos: part == "kerberos"}
		t.Setenv("HDFSCKPT_REQUIRE", "")
		skipped, failed, _ := outcome(t, o)
		require.True(t, skipped && !failed)
		t.Setenv("HDFSCKPT_REQUIRE", part)
		skipped, failed, _ = outcome(t, o)
		require.True(t, failed && !skipped, "what is required is not left out")
	}
}

func TestWhatImagesDoNotHaveIsLeftOutAlsoIfItIsRequired(t *testing.T) {
	dockerEnvironment(t)
	describeImages(t, "plain", "")
	describeImages(t, "kerberos", secureImages)
	t.Setenv("HDFSCKPT_REQUIRE", "all")
	for _, o := range []Options{
		{Exclusive: true},
		{DataNodes: 1},
		{Properties: map[string]string{"a": "1"}},
		{Kerberos: true}, // with protection authentication
		{Kerberos: true, Protection: "privacy", TicketLifetime: time.Minute},
		{Kerberos: true, Protection: "privacy", EncryptionTypes: []string{"aes256-cts-hmac-sha384-192"}},
	} {
		skipped, failed, _ := outcome(t, o)
		require.True(t, skipped && !failed, "%+v", o)
	}
	o, err := Options{Kerberos: true, Protection: "privacy"}.withDefaults()
	require.NoError(t, err)
	require.NoError(t, o.fitsDocker("privacy"))
}

func TestTheClusterOfImagesIsDescribedByItsFolder(t *testing.T) {
	dockerEnvironment(t)
	describeImages(t, "plain", "")
	describeImages(t, "kerberos", secureImages)
	dir, err := dockerDir(false)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(os.Getenv("HDFSCKPT_CACHE"), "docker", "plain"), dir)
	c, err := dockerCluster(dir)
	require.NoError(t, err)
	require.Equal(t, "hdfs://localhost:1/", c.URL())
	require.Equal(t, filepath.Join(dir, "conf"), c.ConfDir())
	require.False(t, c.Own())
	require.Equal(t, Credentials{User: Superuser}, c.Credentials(""))
	require.Equal(t, Credentials{User: "alice"}, c.Credentials("alice"))
	web, err := c.webAddress()
	require.NoError(t, err)
	require.Equal(t, "localhost:2", web)
	require.ErrorIs(t, c.Kill(t.Context(), NameNode), ErrOwn)
	require.ErrorIs(t, c.SafeMode(t.Context(), true), ErrOwn)
	require.NoError(t, c.Close(t.Context()))

	dir, err = dockerDir(true)
	require.NoError(t, err)
	c, err = dockerCluster(dir)
	require.NoError(t, err)
	require.True(t, c.Kerberos())
	require.Equal(t, Credentials{
		Principal: "alice", Realm: "HDFSCKPT.TEST", Keytab: filepath.Join(dir, "krb5", "alice.keytab"), Krb5Conf: filepath.Join(dir, "krb5", "krb5.conf"),
	}, c.Credentials("alice"))
}
