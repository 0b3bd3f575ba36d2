package hdfsfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// confWith writes properties, "name=value", into a folder.
func confWith(t *testing.T, properties ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", name, value)
	}
	b.WriteString("</configuration>\n")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(b.String()), 0o600))
	return dir
}

var federation = []string{
	"fs.defaultFS=hdfs://ns1", "dfs.nameservices=ns1,ns2,ns3,ns4",
	"dfs.ha.namenodes.ns1=a, b", "dfs.namenode.rpc-address.ns1.a=NN1.example.com:9000", "dfs.namenode.rpc-address.ns1.b=nn2.example.com",
	"dfs.ha.namenodes.ns2=c", "dfs.namenode.rpc-address.ns2.c=other.example.com:8020",
	"dfs.namenode.rpc-address.ns3=single.example.com:8021",
}

func TestAnAuthorityIsResolvedToTheNameNodesOfItsOwnNameserviceAlone(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	dir := confWith(t, federation...)
	for _, tt := range []struct {
		authority string
		want      []string
	}{
		{"ns1", []string{"nn1.example.com:9000", "nn2.example.com:8020"}},
		{"", []string{"nn1.example.com:9000", "nn2.example.com:8020"}},
		{"ns2", []string{"other.example.com:8020"}},
		{"ns3", []string{"single.example.com:8021"}},
		{"nn9.example.com", []string{"nn9.example.com:8020"}},
		{"nn9.example.com:1234", []string{"nn9.example.com:1234"}},
		{"[::1]:1234", []string{"[::1]:1234"}},
	} {
		s, err := resolve(tt.authority, Options{ConfDir: dir, User: "alice"})
		require.NoError(t, err, tt.authority)
		require.Equal(t, tt.want, s.addresses)
	}
	for _, bad := range []string{"ns4", "a b", "host:port", "host:99999", "a,b"} {
		_, err := resolve(bad, Options{ConfDir: dir, User: "alice"})
		require.ErrorIs(t, err, fs.ErrInvalid, bad)
	}
	_, err := resolve("", Options{ConfDir: confWith(t), User: "alice"})
	require.ErrorContains(t, err, "fs.defaultFS")
	_, err = resolve("ns1", Options{ConfDir: confWith(t, "dfs.ha.namenodes.ns1=a"), User: "alice"})
	require.ErrorContains(t, err, "dfs.namenode.rpc-address.ns1.a")
}

func TestAConfigurationThatIsNotThereIsAnError(t *testing.T) {
	_, err := resolve("nn:8020", Options{ConfDir: t.TempDir()})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "hdfs-site.xml")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte("<configuration><property>"), 0o600))
	_, err = resolve("nn:8020", Options{ConfDir: dir})
	require.ErrorIs(t, err, fs.ErrInvalid)
	t.Setenv("HADOOP_CONF_DIR", dir)
	_, err = resolve("nn:8020", Options{})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestHowFilesAreMadeIsReadFromOptionsThenFromTheConfiguration(t *testing.T) {
	dir := confWith(t, "dfs.replication=2", "dfs.blocksize=64m", "fs.permissions.umask-mode=027")
	s, err := resolve("nn:8020", Options{ConfDir: dir, User: "alice"})
	require.NoError(t, err)
	require.Equal(t, settings{replication: 2, blockSize: 64 << 20, umask: 0o027},
		settings{replication: s.replication, blockSize: s.blockSize, umask: s.umask})
	umask := fs.FileMode(0o077)
	s, err = resolve("nn:8020", Options{ConfDir: dir, User: "alice", Replication: 1, BlockSize: 1 << 20, Umask: &umask})
	require.NoError(t, err)
	require.Equal(t, settings{replication: 1, blockSize: 1 << 20, umask: 0o077},
		settings{replication: s.replication, blockSize: s.blockSize, umask: s.umask})
	_, err = resolve("nn:8020", Options{User: "alice", ConfDir: confWith(t, "dfs.replication=x", "dfs.blocksize=x", "fs.permissions.umask-mode=xyz")})
	for _, key := range []string{"dfs.replication", "dfs.blocksize", "fs.permissions.umask-mode"} {
		require.ErrorContains(t, err, key)
	}
}

func TestHowLongADataNodeMayBeSilentIsReadFromOptionsThenFromTheConfiguration(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name        string
		option      time.Duration
		properties  []string
		read, write time.Duration
	}{
		{"nothing", 0, nil, 60 * s, 60 * s},
		{"the configuration", 0, []string{"dfs.client.socket-timeout=7000", "dfs.datanode.socket.write.timeout=9000"}, 7 * s, 9 * s},
		{"one key of it", 0, []string{"dfs.client.socket-timeout=7s"}, 7 * s, 7 * s},
		{"the other one", 0, []string{"dfs.datanode.socket.write.timeout=9s"}, 60 * s, 9 * s},
		{"its old name", 0, []string{"dfs.socket.timeout=7000"}, 7 * s, 7 * s},
		{"no limit, which there always is", 0, []string{"dfs.client.socket-timeout=0", "dfs.datanode.socket.write.timeout=0"}, 60 * s, 60 * s},
		{"the option", 3 * s, []string{"dfs.client.socket-timeout=7000", "dfs.datanode.socket.write.timeout=9000"}, 3 * s, 3 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set, err := resolve("nn:8020", Options{ConfDir: confWith(t, tt.properties...), User: "alice"})
			require.NoError(t, err)
			o := Options{DataTimeout: tt.option}.withConfigured(set.conf.Data).withDefaults()
			n, err := newNative(set, o)
			require.NoError(t, err)
			defer n.close()
			require.Equal(t, []time.Duration{tt.read, tt.write}, []time.Duration{n.dialer.Timeout(), n.dialer.WriteTimeout()})
		})
	}
}

func TestWhoeverSpeaksIsTheOptionThenHadoopsThenTheProcess(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_USER_NAME", "of-hadoop")
	s, err := resolve("nn:8020", Options{User: "alice"})
	require.NoError(t, err)
	require.Equal(t, "alice", s.user)
	s, err = resolve("nn:8020", Options{})
	require.NoError(t, err)
	require.Equal(t, "of-hadoop", s.user)
	t.Setenv("HADOOP_USER_NAME", "")
	s, err = resolve("nn:8020", Options{})
	require.NoError(t, err)
	require.NotEmpty(t, s.user)
}

func TestProtectionThatTheClientLacksIsRefused(t *testing.T) {
	secure := []string{"hadoop.security.authentication=kerberos", "dfs.namenode.kerberos.principal=nn/_HOST@EXAMPLE.COM"}
	for value, ok := range map[string]bool{"": true, "authentication": true, "authentication,privacy": true, "privacy": false, "integrity,privacy": false} {
		s, err := resolve("nn.example.com", Options{ConfDir: confWith(t, append(secure, "dfs.data.transfer.protection="+value)...)})
		if ok {
			require.NoError(t, err, value)
			require.True(t, s.kerberos)
			require.Equal(t, "nn/_HOST", s.principal)
			continue
		}
		require.ErrorIs(t, err, errors.ErrUnsupported, value)
	}
	_, err := resolve("nn.example.com", Options{ConfDir: confWith(t, append(secure, "dfs.encrypt.data.transfer=true")...)})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = resolve("nn.example.com", Options{ConfDir: confWith(t, secure[:1]...)})
	require.ErrorContains(t, err, "dfs.namenode.kerberos.principal")
}

func TestOptionsReportAllProblemsAtOnce(t *testing.T) {
	umask := fs.FileMode(0o1777)
	err := Options{
		Base: "relative", Replication: -1, BlockSize: 1000, Umask: &umask, Connections: 1000, CallTimeout: -1, DataTimeout: -1, CloseTimeout: -1,
	}.Validate()
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, field := range []string{"Base", "Replication", "BlockSize", "Umask", "Connections", "CallTimeout", "DataTimeout", "CloseTimeout"} {
		require.ErrorContains(t, err, "Options."+field)
	}
	require.NoError(t, Options{}.Validate())
}
