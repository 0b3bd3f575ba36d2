package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/jdk"
)

func TestOptionsReportAllProblems(t *testing.T) {
	_, err := Options{DataNodes: -1, Protection: "none", StartTimeout: -1}.withDefaults()
	require.ErrorContains(t, err, "DataNodes: -1")
	require.ErrorContains(t, err, "Protection, TicketLifetime and EncryptionTypes are for Kerberos")
	require.ErrorContains(t, err, "StartTimeout")
	_, err = Options{DataNodes: 17, Kerberos: true, Protection: "none", TicketLifetime: 1, EncryptionTypes: []string{"a b"}}.withDefaults()
	require.ErrorContains(t, err, "DataNodes: 17")
	require.ErrorContains(t, err, `Protection: "none"`)
	require.ErrorContains(t, err, "TicketLifetime")
	require.ErrorContains(t, err, `EncryptionTypes: "a b"`)
}

func TestOptionsHaveDefaults(t *testing.T) {
	o, err := Options{}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, Options{DataNodes: 3, StartTimeout: 3 * time.Minute, linger: defaultLinger}, o)
	o, err = Options{Kerberos: true}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, "authentication", o.Protection)
	require.Equal(t, 10*time.Hour, o.TicketLifetime)
}

func TestEqualOptionsHaveOneFolder(t *testing.T) {
	at := func(o Options) string {
		t.Helper()
		o, err := o.withDefaults()
		require.NoError(t, err)
		f, err := o.folder()
		require.NoError(t, err)
		require.NoError(t, f.Check())
		return string(f)
	}
	require.Equal(t, at(Options{}), at(Options{DataNodes: 3, StartTimeout: time.Hour}))
	require.Equal(t, at(Options{Properties: map[string]string{"a": "1", "b": "2"}}), at(Options{Properties: map[string]string{"b": "2", "a": "1"}}))
	seen := map[string]bool{}
	for _, o := range []Options{
		{},
		{DataNodes: 1},
		{Kerberos: true},
		{Kerberos: true, Protection: "privacy"},
		{Kerberos: true, TicketLifetime: time.Minute},
		{Properties: map[string]string{"a": "1"}},
	} {
		require.False(t, seen[at(o)], "%+v", o)
		seen[at(o)] = true
	}
}

func TestHDFSCKPT_REQUIRENamesParts(t *testing.T) {
	for _, tt := range []struct {
		list, part string
		want       bool
	}{
		{"", "hdfs", false},
		{"hdfs", "hdfs", true},
		{"hdfs", "kerberos", false},
		{"race,kerberos", "kerberos", true},
		{"race, hdfs", "hdfs", true},
		{"all", "kerberos", true},
		{"hdfsx", "hdfs", false},
	} {
		require.Equal(t, tt.want, required(tt.list, tt.part), "%q in %q", tt.part, tt.list)
	}
}

// outcome runs Require in a test of its own.
func outcome(t *testing.T, o Options) (skipped, failed bool, c *Cluster) {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // since Skip and Fatal end the goroutine
		defer close(done)
		c = Require(r, o)
	}()
	<-done
	return r.skipped, r.failed, c
}

// recorder is a testing.TB that notes how the test ended.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf("skipped: "+format, args...)
	r.skipped = true
	exit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf("failed: "+format, args...)
	r.failed = true
	exit()
}

func TestWithoutJavaATestIsSkippedUnlessItIsRequired(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HDFSCKPT_HDFS", "")
	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HDFSCKPT_CACHE", t.TempDir())
	t.Setenv("TMPDIR", shortTempDir(t))
	for _, exclusive := range []bool{false, true} {
		t.Setenv("HDFSCKPT_REQUIRE", "kerberos")
		skipped, failed, _ := outcome(t, Options{Exclusive: exclusive})
		require.True(t, skipped)
		require.False(t, failed)
		t.Setenv("HDFSCKPT_REQUIRE", "hdfs")
		skipped, failed, _ = outcome(t, Options{Exclusive: exclusive})
		require.False(t, skipped)
		require.True(t, failed)
	}
}

func TestHDFSCKPT_HDFSChoosesTheWay(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HDFSCKPT_REQUIRE", "")
	t.Setenv("HDFSCKPT_HDFS", "none")
	skipped, _, _ := outcome(t, Options{})
	require.True(t, skipped)
	t.Setenv("HDFSCKPT_HDFS", "podman")
	_, failed, _ := outcome(t, Options{})
	require.True(t, failed, "an unknown way is no reason to skip")
	t.Setenv("HDFSCKPT_HDFS", "none")
	t.Setenv("HDFSCKPT_REQUIRE", "all")
	_, failed, _ = outcome(t, Options{})
	require.True(t, failed)
}

func TestSomebodysOwnCluster(t *testing.T) {
	t.Setenv("HDFSCKPT_HDFS", "")
	t.Setenv("HDFSCKPT_REQUIRE", "")
	t.Setenv("HADOOP_USER_NAME", "me")
	conf := t.TempDir()
	t.Setenv("HADOOP_CONF_DIR", conf)
	write := func(properties string) {
		t.Helper()
		text := "<configuration>" + properties + "</configuration>"
		require.NoError(t, os.WriteFile(filepath.Join(conf, "core-site.xml"), []byte(text), 0o600))
	}
	const address = "<property><name>fs.defaultFS</name><value>hdfs://example.test:8020</value></property>"

	write("")
	_, failed, _ := outcome(t, Options{})
	require.True(t, failed, "it names no NameNode")

	write(address)
	_, _, c := outcome(t, Options{})
	require.True(t, c.Own())
	require.Equal(t, "hdfs://example.test:8020/", c.URL())
	require.Equal(t, conf, c.ConfDir())
	require.Equal(t, Credentials{User: "me"}, c.Credentials("alice"))
	require.ErrorIs(t, c.Kill(t.Context(), NameNode), ErrOwn)
	require.ErrorIs(t, c.SafeMode(t.Context(), true), ErrOwn)
	require.ErrorIs(t, c.Keep(t.Context()), ErrOwn)
	_, err := c.Calls(t.Context())
	require.ErrorIs(t, err, ErrOwn)
	_, err = c.Fsck(t.Context(), "/")
	require.ErrorIs(t, err, ErrOwn)
	require.NoError(t, c.Close(t.Context()), "nothing was started")

	for _, o := range []Options{{Exclusive: true}, {Kerberos: true}} {
		skipped, _, _ := outcome(t, o)
		require.True(t, skipped, "%+v", o)
	}

	write(address + "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>")
	_, failed, _ = outcome(t, Options{Kerberos: true})
	require.True(t, failed, "it is not known who we are")
	t.Setenv("KRB5_CONFIG", "/k/krb5.conf")
	t.Setenv("HDFSCKPT_KEYTAB", "/k/me.keytab")
	t.Setenv("HDFSCKPT_PRINCIPAL", "me/host@A.B")
	_, _, c = outcome(t, Options{Kerberos: true})
	require.Equal(t, Credentials{Principal: "me/host", Realm: "A.B", Keytab: "/k/me.keytab", Krb5Conf: "/k/krb5.conf"}, c.Credentials(""))
}

func TestASharedClusterIsNotDisturbed(t *testing.T) {
	c := &Cluster{folder: "/nowhere"}
	for _, err := range []error{
		c.Kill(t.Context(), NameNode), c.Stop(t.Context(), NameNode), c.Restart(t.Context(), NameNode), c.SafeMode(t.Context(), true),
	} {
		require.ErrorIs(t, err, ErrShared)
	}
}

func TestWhatIsMissingIsToldFromWhatFails(t *testing.T) {
	require.True(t, isMissing(jdk.ErrMissing))
	require.False(t, isMissing(errors.New("the NameNode ended")))
}
