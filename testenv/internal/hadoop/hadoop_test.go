package hadoop

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// parse reads a site file as Hadoop does.
func parse(t *testing.T, text []byte) Site {
	t.Helper()
	var file struct {
		Properties []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	require.NoError(t, xml.Unmarshal(text, &file))
	s := Site{}
	for _, p := range file.Properties {
		require.NotContains(t, s, p.Name)
		s[p.Name] = p.Value
	}
	return s
}

func TestSiteFilesHoldAnyValue(t *testing.T) {
	s := Site{"dfs.a": "<&>\"'", "b": "RULE:[2:$1@$0](x)s/.*/y/\nDEFAULT", "dfs.c": ""}
	dir := t.TempDir()
	require.NoError(t, writeConf(dir, s))
	got := Site{}
	for name, want := range s.files() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, parse(t, text), name)
		got = got.With(want)
	}
	require.Equal(t, s, got)
	require.DirExists(t, filepath.Join(dir, "webapps", "hdfs"))
	require.DirExists(t, filepath.Join(dir, "webapps", "datanode"))
}

func count() func() (int, error) {
	n := 100
	return func() (int, error) { n++; return n, nil }
}

func TestLayoutGivesEachDaemonItsPorts(t *testing.T) {
	l, err := NewLayout("/d", 2, count())
	require.NoError(t, err)
	require.Equal(t, []Daemon{
		{Name: "nn", Kind: NameNode, Heap: "192m", Ports: map[string]int{"rpc": 101, "http": 102}},
		{Name: "dn1", Kind: DataNode, Heap: "128m", Ports: map[string]int{"data": 103, "rpc": 104, "http": 105}},
		{Name: "dn2", Kind: DataNode, Heap: "128m", Ports: map[string]int{"data": 106, "rpc": 107, "http": 108}},
	}, l.Daemons)
	_, ok := l.Find("dn3")
	require.False(t, ok)
	_, err = NewLayout("/d", 1, func() (int, error) { return 0, errors.New("none left") })
	require.ErrorContains(t, err, "none left")
}

func TestConfiguration(t *testing.T) {
	l, err := NewLayout("/d", 2, count())
	require.NoError(t, err)
	l.ProcessUser = "me"
	l.Properties = Site{"dfs.blocksize": "1048576", "dfs.heartbeat.interval": "7"}

	client := l.Client()
	require.Equal(t, "hdfs://127.0.0.1:101", client["fs.defaultFS"])
	require.Equal(t, "127.0.0.1:101", client["dfs.namenode.rpc-address"])
	require.Equal(t, "2", client["dfs.replication"], "not more than there are DataNodes")
	require.Equal(t, "1048576", client["dfs.blocksize"])
	require.NotContains(t, client, "hadoop.security.authentication")

	nn := l.Daemon(l.Daemons[0])
	require.Equal(t, "file:///d/data/nn", nn["dfs.namenode.name.dir"])
	require.Equal(t, "7", nn["dfs.heartbeat.interval"], "the user's wish wins")
	dn := l.Daemon(l.Daemons[2])
	require.Equal(t, "file:///d/data/dn2", dn["dfs.datanode.data.dir"])
	require.Equal(t, "127.0.0.1:106", dn["dfs.datanode.address"])
	require.Equal(t, "127.0.0.1:107", dn["dfs.datanode.ipc.address"])
	require.Equal(t, "127.0.0.1:108", dn["dfs.datanode.http.address"])
	for _, s := range []Site{nn, dn} {
		for name, value := range client {
			require.Equal(t, value, s[name], "daemons know what clients know")
		}
	}
}

func TestConfigurationWithKerberos(t *testing.T) {
	l, err := NewLayout("/d", 1, count())
	require.NoError(t, err)
	l.ProcessUser = "me"
	l.Security = &Security{Realm: "A.B", Superuser: "su", Protection: "privacy", Keytabs: map[string]string{
		NameNodePrincipal: "/k/nn", DataNodePrincipal: "/k/dn", WebPrincipal: "/k/web",
	}}
	client := l.Client()
	require.Equal(t, "hdfs://localhost:101", client["fs.defaultFS"], "Kerberos wants a name")
	require.Equal(t, "kerberos", client["hadoop.security.authentication"])
	require.Equal(t, "privacy", client["dfs.data.transfer.protection"])
	require.Equal(t, "nn/localhost@A.B", client["dfs.namenode.kerberos.principal"])
	require.Equal(t, "RULE:[2:$1@$0]([nd]n@A\\.B)s/.*/me/\nRULE:[1:$1@$0](su@A\\.B)s/.*/me/\nDEFAULT", client["hadoop.security.auth_to_local"])
	for name, value := range client {
		require.NotContains(t, value, "/k/", "%s: keys of the daemons are not for clients", name)
	}
	nn := l.Daemon(l.Daemons[0])
	require.Equal(t, "/k/nn", nn["dfs.namenode.keytab.file"])
	require.Equal(t, "/k/dn", nn["dfs.datanode.keytab.file"])
	require.Equal(t, "HTTP/localhost@A.B", nn["dfs.web.authentication.kerberos.principal"])
}

func TestPortsAreFreeAndGivenOnce(t *testing.T) {
	p := NewPorts(rand.New(rand.NewPCG(1, 2)))
	taken, err := p.Next()
	require.NoError(t, err)
	again := NewPorts(rand.New(rand.NewPCG(1, 2)))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", "0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	require.False(t, freeOnLoopback(l.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // of a TCP listener

	again.free = func(port int) bool { return port != taken }
	seen := map[int]bool{taken: true}
	for range 100 {
		port, err := again.Next()
		require.NoError(t, err)
		require.False(t, seen[port], "port %d again", port)
		require.True(t, lowestPort <= port && port <= highestPort)
		seen[port] = true
	}
	again.free = func(int) bool { return false }
	_, err = again.Next()
	require.Error(t, err)
}

func TestClassesThatComeFromFilesAreArchived(t *testing.T) {
	classes := map[string]bool{}
	require.NoError(t, addClasses(strings.NewReader(`[0.008s][info][class,load] java.lang.Object source: shared objects file
[0.2s][info][class,load] org.apache.hadoop.A$B source: file:/jars/hadoop.jar
[0.3s][info][class,load] java.sql.Date source: jrt:/java.sql
[0.4s][info][class,load] a.B$$Lambda$1/0x0000000800c03000 source: a.B
[0.4s][info][class,load] a.C$$Lambda$2/0x1 source: file:/jars/x.jar
[0.5s][info][class,load] jdk.proxy1.$Proxy0 source: jdk.proxy1
[0.5s][info][gc] something else
`), classes))
	require.Equal(t, map[string]bool{"java/lang/Object": true, "org/apache/hadoop/A$B": true, "java/sql/Date": true}, classes)
}

func TestOneProcessPreparesAtATime(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "bin"), 0o700))
	for name, script := range map[string]string{
		"mvn":  "#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) touch \"${a#*=}/b.jar\" \"${a#*=}/a.jar\";; esac; done\necho x >>'" + home + "/mvn'\n",
		"java": "#!/bin/sh\nfor a; do case $a in -version) echo 'openjdk version \"17\"' >&2;; -XX:SharedArchiveFile=*) touch \"${a#*=}\";; esac; done\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(home, "bin", name), []byte(script), 0o700))
	}
	t.Setenv("JAVA_HOME", home)
	t.Setenv("PATH", filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
	c := Cache{Dir: filepath.Join(home, "cache"), Pom: []byte("<hadoop.version>9</hadoop.version>")}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			p, err := c.Prepare(t.Context(), func(string) {}, func(p Parts) error {
				return os.WriteFile(strings.Replace(p.JVM.ClassLog, "%p", "1", 1), []byte("[class,load] a.B source: jrt:/x\n"), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if len(p.JVM.Jars) != 2 || filepath.Base(p.JVM.Jars[0]) != "a.jar" || p.JVM.Archive == "" {
				t.Errorf("%+v", p)
			}
		})
	}
	group.Wait()
	runs, err := os.ReadFile(filepath.Join(home, "mvn"))
	require.NoError(t, err)
	require.Equal(t, "x\n", string(runs))
	_, err = Cache{Dir: c.Dir}.Prepare(t.Context(), func(string) {}, nil)
	require.ErrorContains(t, err, "hadoop.version")
}

// page serves one answer for each query.
func page(t *testing.T, answers map[string]string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.FormValue("qry")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestStatusIsReadFromManagedBeans(t *testing.T) {
	const info, state = "Hadoop:service=NameNode,name=NameNodeInfo", "Hadoop:service=NameNode,name=FSNamesystemState"
	got, err := NameNodeStatusOf(t.Context(), page(t, map[string]string{
		info: `{"beans":[{"Safemode":"","Total":1}]}`, state: `{"beans":[{"NumLiveDataNodes":3}]}`,
	}))
	require.NoError(t, err)
	require.Equal(t, NameNodeStatus{Live: 3}, got)

	for name, answers := range map[string]map[string]string{
		"no page": {}, "no bean": {info: `{"beans":[]}`}, "no JSON": {info: "<html>"}, "half": {info: `{"beans":[{"Safemode":""}]}`},
	} {
		_, err := NameNodeStatusOf(t.Context(), page(t, answers))
		require.Error(t, err, name)
	}
}

func TestADataNodeIsRegisteredWhenItRunsForItsNameNode(t *testing.T) {
	for _, tt := range []struct {
		info string
		want bool
	}{
		{`[{\"ActorState\":\"RUNNING\"}]`, true},
		{`[{\"ActorState\":\"CONNECTING\"}]`, false},
		{`[]`, false},
	} {
		got, err := Registered(t.Context(), page(t, map[string]string{
			"Hadoop:service=DataNode,name=DataNodeInfo": `{"beans":[{"BPServiceActorInfo":"` + tt.info + `"}]}`,
		}))
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.info)
	}
}

func TestCallsAreCountedByMethod(t *testing.T) {
	address := page(t, map[string]string{"Hadoop:service=NameNode,name=RpcDetailedActivityForPort*": `{"beans":[{
		"name":"x","GetFileInfoNumOps":4,"GetFileInfoAvgTime":0.5,"CreateNumOps":1,"RenameNumOps":0,"SendHeartbeatNumOps":99,
		"DeferredCreateNumOps":5,"OverallCreateNumOps":1,"FileNotFoundExceptionNumOps":2}]}`})
	calls, err := CallsOf(t.Context(), address)
	require.NoError(t, err)
	require.Equal(t, Calls{"GetFileInfo": 4, "Create": 1, "SendHeartbeat": 99}, calls)
	clients := calls.OfClients()
	require.Equal(t, "Create 1, GetFileInfo 4", clients.String())
	require.Equal(t, 5, clients.Total())
	require.Equal(t, Calls{"GetFileInfo": 3}, clients.Since(Calls{"GetFileInfo": 1, "Create": 1}))
}

func FuzzClasses(f *testing.F) {
	f.Add("[0.2s][info][class,load] org.apache.hadoop.A$B source: file:/jars/hadoop.jar\n[0.5s][info][gc] x")
	f.Add("[class,load]  source: jrt:/x")
	f.Fuzz(func(t *testing.T, log string) {
		classes := map[string]bool{}
		if addClasses(strings.NewReader(log), classes) != nil {
			return // a line too long
		}
		for name := range classes {
			if strings.ContainsAny(name, ".\n") || !strings.Contains(log, "[class,load] ") {
				t.Errorf("%q is no class", name)
			}
		}
	})
}

func FuzzCalls(f *testing.F) {
	f.Add([]byte(`[{"GetFileInfoNumOps":4,"x":"y","CreateNumOps":-1,"NumOps":1e300}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var all []map[string]any
		if json.Unmarshal(text, &all) != nil {
			return
		}
		for method, n := range countCalls(all) {
			if n <= 0 || method == "" {
				t.Errorf("%q: %d", method, n)
			}
		}
	})
}
