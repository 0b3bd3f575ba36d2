package conf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// folder is a configuration in memory.
func folder(files map[string]string, env map[string]string) Source {
	return Source{
		Dir: "/conf",
		Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		open: func(name string) (io.ReadCloser, error) {
			content, ok := files[name]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return io.NopCloser(strings.NewReader(content)), nil
		},
	}
}

func configuration(properties ...string) string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for i := 0; i < len(properties); i += 2 {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", properties[i], properties[i+1])
	}
	return b.String() + "</configuration>\n"
}

func load(t *testing.T, s Source) *Conf {
	t.Helper()
	c, err := Load(s)
	require.NoError(t, err)
	return c
}

func core(xml string) map[string]string { return map[string]string{"/conf/core-site.xml": xml} }

func TestPropertiesAreReadAsHadoopReadsThem(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  map[string]string // a missing key has the value "-"
	}{
		{
			"elements, attributes, comments, entities, CDATA",
			core(`<?xml version="1.0" encoding="ISO-8859-1"?><!-- a --><configuration>
				<property><name> a </name><value> 1 </value><description>x<b>y</b></description></property>
				<property name="b" value="2"/>
				<property><name>c</name><value>x&amp;<![CDATA[<y>]]></value><!-- b --></property>
				<property><name>empty</name><value/></property>
				<property><name>none</name></property>
				<other><property><name>hidden</name><value>1</value></property></other>
			</configuration>`),
			map[string]string{"a": "1", "b": "2", "c": "x&<y>", "empty": "-", "none": "-", "hidden": "-"},
		},
		{
			"the later file wins, unless a value is final",
			map[string]string{
				"/conf/core-site.xml":     `<configuration><property><name>a</name><value>1</value></property><property><name>b</name><value>1</value><final>true</final></property></configuration>`,
				"/conf/hdfs-site.xml":     configuration("a", "2", "b", "2", "c", "2"),
				"/conf/hdfs-rbf-site.xml": configuration("c", "3"),
			},
			map[string]string{"a": "2", "b": "1", "c": "3"},
		},
		{
			"old names are new ones",
			core(configuration("fs.default.name", "hdfs://a", "dfs.block.size", "1m") + "\n"),
			map[string]string{"fs.defaultFS": "hdfs://a", "dfs.blocksize": "1m", "fs.default.name": "hdfs://a"},
		},
		{
			"an include stands where it stands",
			map[string]string{
				"/conf/core-site.xml": `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
					<property><name>a</name><value>before</value></property><property><name>b</name><value>before</value></property>
					<xi:include href="more/inc.xml"><xi:fallback><property name="c" value="fallback"/></xi:fallback></xi:include>
					<property><name>b</name><value>after</value></property></configuration>`,
				"/conf/more/inc.xml":    `<configuration><include href="deep.xml"/><include href="more/deeper.xml"/><property><name>a</name><value>included</value></property></configuration>`,
				"/conf/more/deep.xml":   configuration("d", "deep", "b", "deep"),
				"/conf/more/deeper.xml": configuration("e", "deeper"),
			},
			map[string]string{"a": "included", "b": "after", "c": "-", "d": "deep", "e": "deeper"},
		},
		{
			"a fallback counts where a file is missing",
			core(`<configuration><include href="/none.xml"><fallback><include href="file:///none2.xml"><fallback/></include><property name="a" value="1"/></fallback></include>
				<property name="b" value="2"/></configuration>`),
			map[string]string{"a": "1", "b": "2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, folder(tt.files, nil))
			for key, want := range tt.want {
				got, ok := c.Get(key)
				require.Equal(t, want != "-", ok, key)
				if ok {
					require.Equal(t, want, got, key)
				}
			}
		})
	}
}

func TestVariablesAreSubstituted(t *testing.T) {
	c := load(t, folder(core(configuration(
		"which", "a", "a", "1", "b", "${a}2${a}", "c", "${b}3", "unknown", "x${nothing.of.that}y",
		"self", "${self}", "loop", "${pool}", "pool", "${loop}", "grow", "x${grow}",
		"env", "${env.SET}", "unset", "${env.UNSET}", "or", "${env.UNSET-d-e}", "empty", "[${env.EMPTY-d}]", "even", "${env.EMPTY:-d}",
		"open", "${a", "dollar", "$a $ {a} ${} ${a b}", "bomb0", strings.Repeat("x", 1000),
		"bomb1", strings.Repeat("${bomb0}", 100), "bomb2", strings.Repeat("${bomb1}", 100),
		"space", " ${a} ", "user", "${user.name}", "nested", "${${which}}",
	)), map[string]string{"SET": "s", "EMPTY": ""}))
	for key, want := range map[string]string{
		"b": "121", "c": "1213", "unknown": "x${nothing.of.that}y", "self": "${self}", "env": "s", "unset": "${env.UNSET}",
		"or": "d-e", "empty": "[]", "even": "d", "open": "${a", "dollar": "$a $ {a} ${} ${a b}", "space": "1", "nested": "1",
		"grow": "x${grow}",
	} {
		got, ok := c.Get(key)
		require.True(t, ok)
		require.Equal(t, want, got, key)
	}
	for _, key := range []string{"loop", "bomb2"} {
		got, _ := c.Get(key)
		require.Less(t, len(got), 2*maxValue, key)
	}
	name, _ := c.Get("user")
	require.NotContains(t, name, "$")
}

func TestABrokenFileIsNamedWithItsLine(t *testing.T) {
	include := func(href string) string {
		return "<configuration>\n<include href=\"" + href + "\"/></configuration>"
	}
	many := map[string]string{"/conf/core-site.xml": "<configuration>" + strings.Repeat(`<include href="x.xml"/>`, 100) + "</configuration>", "/conf/x.xml": configuration()}
	for _, tt := range []struct {
		name  string
		files map[string]string
		text  string
		want  error
	}{
		{"torn", core("<configuration>\n<property>\n<name>a"), "/conf/core-site.xml:3: ", fs.ErrInvalid},
		{"tags that do not match", core("<configuration>\n</property>"), "/conf/core-site.xml:2: ", fs.ErrInvalid},
		{"a missing include", core(include("none.xml")), "/conf/core-site.xml:2: open /conf/none.xml", fs.ErrNotExist},
		{"an include of itself", core(include("core-site.xml")), "more than 16 deep", fs.ErrInvalid},
		{"an include from the network", core(include("http://a/b")), "only files are read", errors.ErrUnsupported},
		{"an include of nothing", core(include("")), "without href", fs.ErrInvalid},
		{"a broken include", map[string]string{"/conf/core-site.xml": include("b.xml"), "/conf/b.xml": "\n\n<a"}, "/conf/b.xml:3: ", fs.ErrInvalid},
		{"too many includes", many, "more than 64 files", fs.ErrInvalid},
		{"a file that is too long", core("<configuration>" + strings.Repeat(" ", maxFile) + "</configuration>"), "longer than", fs.ErrInvalid},
		{"elements that are too deep", core(strings.Repeat("<configuration>", 50)), "deep", fs.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(folder(tt.files, nil))
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// testdata/hadoop/expected.txt was written by HdfsConfiguration.getTrimmed of Hadoop 3.4.2 for the files beside it, with CONF_SET=set
// and CONF_EMPTY= in the environment.
func TestValuesAreThoseThatHadoopReads(t *testing.T) {
	env := map[string]string{"CONF_SET": "set", "CONF_EMPTY": ""}
	c := load(t, Source{Dir: "testdata/hadoop", Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }})
	expected, err := os.ReadFile("testdata/hadoop/expected.txt")
	require.NoError(t, err)
	compared := 0
	for line := range strings.Lines(string(expected)) {
		key, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got, ok := c.Get(key)
		if !ok {
			got = "(none)"
		}
		require.Equal(t, strings.ReplaceAll(want, "\\n", "\n"), got, key)
		compared++
	}
	require.Greater(t, compared, 30)
}

func TestTheFolderIsFound(t *testing.T) {
	files := map[string]string{
		"/conf/hdfs-site.xml": configuration("a", "conf"), "/home/conf/core-site.xml": configuration("a", "old"),
		"/new/etc/hadoop/core-site.xml": configuration("a", "new"),
	}
	for _, tt := range []struct {
		dir  string
		env  map[string]string
		want string
	}{
		{"/conf", map[string]string{"HADOOP_CONF_DIR": "/home/conf"}, "conf"},
		{"", map[string]string{"HADOOP_CONF_DIR": "/conf", "HADOOP_HOME": "/home"}, "conf"},
		{"", map[string]string{"HADOOP_HOME": "/home"}, "old"},
		{"", map[string]string{"HADOOP_HOME": "/new"}, "new"},
		{"", nil, ""},
	} {
		s := folder(files, tt.env)
		s.Dir = tt.dir
		got, _ := load(t, s).Get("a")
		require.Equal(t, tt.want, got)
	}
	s := folder(files, map[string]string{"HADOOP_CONF_DIR": "/typo"})
	s.Dir = ""
	_, err := Load(s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "/typo has neither core-site.xml nor hdfs-site.xml")
}

func TestTheClusterOfAURLIsFound(t *testing.T) {
	federation := configuration(
		"fs.defaultFS", "hdfs://ns1", "dfs.nameservices", "ns1, ns2,single,broken,twice",
		"dfs.ha.namenodes.ns1", "nn1,nn2", "dfs.namenode.rpc-address.ns1.nn1", "A1:9000", "dfs.namenode.rpc-address.ns1.nn2", "a2",
		"dfs.ha.namenodes.ns2", "x", "dfs.namenode.rpc-address.ns2.x", "b1:8020", "dfs.client.failover.random.order.ns2", "false",
		"dfs.namenode.rpc-address.single", "c1:1", "dfs.client.failover.resolve-needed.single", "true",
		"dfs.ha.namenodes.broken", "nn1", "dfs.ha.namenodes.unlisted", "u", "dfs.namenode.rpc-address.unlisted.u", "d1",
		"dfs.ha.namenodes.twice", "a,b", "dfs.namenode.rpc-address.twice.a", "h", "dfs.namenode.rpc-address.twice.b", "h:8020",
		"dfs.client.failover.proxy.provider.vip", "org.apache.hadoop.hdfs.server.namenode.ha.IPFailoverProxyProvider",
	)
	c := load(t, folder(core(federation), nil))
	for address, want := range map[string]Cluster{
		"":                      {"ns1", "ns1", []string{"a1:9000", "a2:8020"}, true, false},
		"hdfs:///path":          {"ns1", "ns1", []string{"a1:9000", "a2:8020"}, true, false},
		"hdfs://ns1/p":          {"ns1", "ns1", []string{"a1:9000", "a2:8020"}, true, false},
		"ns1:8020":              {"ns1", "ns1", []string{"a1:9000", "a2:8020"}, true, false},
		"hdfs://ns2":            {"ns2", "ns2", []string{"b1:8020"}, false, false},
		"single":                {"single", "single", []string{"c1:1"}, true, true},
		"unlisted":              {"unlisted", "unlisted", []string{"d1:8020"}, true, false},
		"hdfs://Host.example/x": {Authority: "Host.example", NameNodes: []string{"host.example:8020"}},
		"hdfs://host:9000":      {Authority: "host:9000", NameNodes: []string{"host:9000"}},
		"hdfs://[::1]:9000":     {Authority: "[::1]:9000", NameNodes: []string{"[::1]:9000"}},
		"hdfs://[::1]/":         {Authority: "[::1]", NameNodes: []string{"[::1]:8020"}},
		"vip":                   {Authority: "vip", NameNodes: []string{"vip:8020"}},
	} {
		got, err := c.Cluster(address)
		require.NoError(t, err, address)
		require.Equal(t, want, got, address)
	}
	for address, want := range map[string]struct {
		err  error
		text string
	}{
		"viewfs://mounts/p": {errors.ErrUnsupported, "viewfs is not supported"},
		"s3a://bucket":      {errors.ErrUnsupported, "only hdfs://"},
		"hdfs://ns1:9000":   {fs.ErrInvalid, "ns1 is a nameservice, which has no port"},
		"hdfs://broken":     {fs.ErrInvalid, "dfs.namenode.rpc-address.broken.nn1"},
		"hdfs://twice":      {fs.ErrInvalid, "h:8020 twice"},
		"hdfs://h:0":        {fs.ErrInvalid, "no address"},
		"hdfs://h:http":     {fs.ErrInvalid, "no URL"},
		"h:http":            {fs.ErrInvalid, "no address"},
		"hdfs://user@h/":    {fs.ErrInvalid, "no URL"},
		"hdfs://a b/":       {fs.ErrInvalid, "no URL"},
		"hdfs://%zz":        {fs.ErrInvalid, "no URL"},
	} {
		_, err := c.Cluster(address)
		require.ErrorIs(t, err, want.err, address)
		require.ErrorContains(t, err, want.text, address)
	}
	for value, want := range map[string]error{
		"viewfs://m": errors.ErrUnsupported, "file:///": errors.ErrUnsupported, "hdfs:///": fs.ErrInvalid, "": fs.ErrInvalid, "host": fs.ErrInvalid,
	} {
		_, err := load(t, folder(core(configuration("fs.defaultFS", value)), nil)).Cluster("")
		require.ErrorIs(t, err, want, value)
		require.ErrorContains(t, err, "fs.defaultFS")
	}
}

func TestSettingsHaveHadoopsDefaults(t *testing.T) {
	s, err := load(t, Source{Env: func(string) (string, bool) { return "", false }}).Settings("hdfs://h")
	require.NoError(t, err)
	require.Equal(t, Settings{
		Cluster:  Cluster{Authority: "h", NameNodes: []string{"h:8020"}},
		Security: Security{RPCProtection: []string{"authentication"}, TokenServiceByAddress: true},
		Files:    Files{Umask: 0o022, BytesPerChecksum: 512, Checksum: "CRC32C"},
		RPC: RPC{
			20 * time.Second, 120 * time.Second, time.Minute, 10 * time.Second, 128 << 20, 128 << 20,
			500 * time.Millisecond, 15 * time.Second, 15,
		},
		Data: Data{SocketTimeout: time.Minute, NoDelay: true},
		Write: Write{
			PacketSize: 64 << 10, PacketsInFlight: 80, BlockRetries: 3, RecoveryRetries: 5, NextBlockRetries: 5,
			NextBlockDelay: 400 * time.Millisecond, NextBlockMaxDelay: time.Minute, ReplaceEnabled: true, ReplacePolicy: "DEFAULT",
			ExcludeFor: 10 * time.Minute, RestartTimeout: 30 * time.Second, SlowNodeThreshold: 10,
		},
		Read: Read{
			AcquireFailures: 3, RetryWindow: 3 * time.Second, HedgeAfter: 500 * time.Millisecond,
			CachedSockets: 16, CachedSocketLife: 3 * time.Second, CachedRetries: 3,
		},
	}, s)
}

func TestSettingsAreThoseOfTheConfiguration(t *testing.T) {
	env := map[string]string{"HADOOP_USER_NAME": "alice", "HADOOP_PROXY_USER": "bob", "HADOOP_TOKEN_FILE_LOCATION": "/a,/b"}
	files := core(configuration(
		"dfs.replication", "0x2", "dfs.blocksize", "256M", "fs.permissions.umask-mode", "u=rwx,g=rx,o=", "dfs.client.socket-timeout", "5s",
		"dfs.client.datanode-restart.timeout", "7", "ipc.client.rpc-timeout.ms", "1500", "hadoop.rpc.protection", "Privacy,integrity",
		"dfs.data.transfer.protection", "integrity", "dfs.client.use.datanode.hostname", "TRUE", "dfs.client.hedged.read.threadpool.size", "4",
	))
	s, err := load(t, folder(files, env)).Settings("h")
	require.NoError(t, err)
	require.Equal(t, Files{2, 256 << 20, 0o027, 512, "CRC32C"}, s.Files)
	require.Equal(t, 5*time.Second, s.Data.SocketTimeout)
	require.True(t, s.Data.ByHostname)
	require.Equal(t, 7*time.Second, s.Write.RestartTimeout)
	require.Equal(t, 1500*time.Millisecond, s.RPC.CallTimeout)
	require.Equal(t, 4, s.Read.HedgedReads)
	require.Equal(t, Security{
		User: "alice", ProxyUser: "bob", RPCProtection: []string{"privacy", "integrity"}, DataProtection: []string{"integrity"},
		TokenServiceByAddress: true, TokenFiles: []string{"/a", "/b"},
	}, s.Security)

	files["/conf/hdfs-site.xml"] = configuration("hadoop.security.authentication", "Kerberos", "dfs.namenode.kerberos.principal", "nn/_HOST@R")
	s, err = load(t, folder(files, env)).Settings("h")
	require.NoError(t, err)
	require.True(t, s.Security.Kerberos)
	require.Empty(t, s.Security.User, "a name that anybody can set proves nothing")
	require.Equal(t, "nn/_HOST@R", s.Security.NameNodePrincipal)
}

func TestAllProblemsOfSettingsAreReported(t *testing.T) {
	wrong := []string{
		"dfs.replication", "many", "dfs.blocksize", "1000", "dfs.bytes-per-checksum", "512", "fs.permissions.umask-mode", "u=z",
		"dfs.client.socket-timeout", "-1", "dfs.checksum.type", "MD5", "hadoop.security.authentication", "password",
		"hadoop.rpc.protection", "none", "ipc.ping.interval", "1w", "dfs.client.block.write.replace-datanode-on-failure.policy", "MAYBE",
		"dfs.client-write-packet-size", "17m", "fs.defaultFS", "viewfs://a",
	}
	_, err := load(t, folder(core(configuration(wrong...)), nil)).Settings("")
	for i := 0; i < len(wrong); i += 2 {
		if wrong[i] != "dfs.bytes-per-checksum" {
			require.ErrorContains(t, err, wrong[i])
		}
	}
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestNumbersAndUnits(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "12": 12, "0x1F": 31, "1k": 1 << 10, "2 M": 2 << 20, "3g": 3 << 30, "1t": 1 << 40, "1p": 1 << 50, "7e": 7 << 60, "-1": -1, "0xe": 14} {
		got, err := parseSize(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "k", "1kb", "8e", "x", "9999999999999999999", "1.5m"} {
		_, err := parseSize(s)
		require.Error(t, err, s)
	}
	for s, want := range map[string]time.Duration{
		"5": 5 * time.Second, "5ns": 5, "5us": 5 * time.Microsecond, "5ms": 5 * time.Millisecond, "5 s": 5 * time.Second,
		"5m": 5 * time.Minute, "5H": 5 * time.Hour, "5d": 120 * time.Hour,
	} {
		got, err := parseDuration(s, time.Second)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "s", "1w", "9223372036854775807", "107000d"} {
		_, err := parseDuration(s, time.Second)
		require.Error(t, err, s)
	}
	// As FsPermission.getUMask of Hadoop 3.4.2 answers.
	for s, want := range map[string]uint32{
		"022": 0o022, "0027": 0o027, "u=rwx,g=rx,o=rx": 0o022, "a=rwx": 0, "u=rwx": 0o077, "a+rx,u+w": 0o522, "=rwx,o-w": 0o007, "u+rwx,g-w": 0o077,
	} {
		got, ok := parseUmask(s)
		require.True(t, ok, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"0", "8", "1022", "u", "x=r", "u=q", "u=rwx,g=rwxs", "u=r,,"} {
		_, ok := parseUmask(s)
		require.False(t, ok, s)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(configuration("a", "${b}", "b", "${a}x"), configuration("c", "1"))
	f.Add(`<configuration><include href="inc.xml"><fallback><property name="a" value="b"/></fallback></include></configuration>`, "<configuration/>")
	f.Add(`<configuration><property><name>dfs.blocksize</name><value>0x</value><final>true</final></property></configuration>`, "<")
	f.Fuzz(func(t *testing.T, site, included string) {
		c, err := Load(folder(map[string]string{"/conf/core-site.xml": site, "/conf/inc.xml": included}, nil))
		if err != nil {
			require.True(t, errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported), "%v", err)
			return
		}
		for key := range c.values {
			got, ok := c.Get(key)
			require.True(t, ok)
			require.LessOrEqual(t, len(got), 2*maxValue+maxFile)
		}
		_, _ = c.Settings("hdfs://h")
	})
}
