package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func confDir(t *testing.T, properties map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	text := "<configuration>"
	for name, value := range properties {
		text += "<property><name>" + name + "</name><value>" + value + "</value></property>"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte(text+"</configuration>"), 0o600))
	return dir
}

func TestDiagnoseTellsWhatIsWrongWithTheConfiguration(t *testing.T) {
	d := Diagnose(t.Context(), "ns1", Options{ConfDir: t.TempDir(), Replication: -1})
	require.Empty(t, d.Files)
	require.ErrorIs(t, d.ConfigErr, fs.ErrNotExist)
	require.ErrorContains(t, d.ConfigErr, "Options.Replication", "all problems at once")
	require.Empty(t, d.NameNodes)
}

func TestDiagnoseAsksEachNameNodeByItself(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { asksEachByItself(t, kind) })
	}
}

func asksEachByItself(t *testing.T, kind ClientKind) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	conf := confDir(t, map[string]string{
		"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": "a,b",
		"dfs.namenode.rpc-address.ns1.a": silent.Addr().String(), "dfs.namenode.rpc-address.ns1.b": gone.Addr().String(),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	d := Diagnose(ctx, "ns1", Options{ConfDir: conf, User: "alice", Client: kind})
	require.Equal(t, kind, d.Client)
	require.Less(t, time.Since(begin), 3*time.Second, "it ends with its context, though a NameNode says nothing")
	require.NoError(t, d.ConfigErr)
	require.Equal(t, []string{filepath.Join(conf, "core-site.xml")}, d.Files)
	require.Equal(t, "alice", d.User)
	require.Equal(t, silent.Addr().String(), d.NameNodes[0].Address)
	for _, n := range d.NameNodes {
		require.Equal(t, NameNodeUnreachable, n.State)
	}
	require.ErrorIs(t, d.NameNodes[0].Err, context.DeadlineExceeded)
	require.ErrorContains(t, d.NameNodes[1].Err, "connection refused")
}

func TestDiagnoseTellsWhyThereIsNoLogin(t *testing.T) {
	conf := confDir(t, map[string]string{
		"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@X",
	})
	t.Setenv("KRB5_CONFIG", filepath.Join(t.TempDir(), "none"))
	d := Diagnose(t.Context(), "localhost:1", Options{ConfDir: conf})
	require.NoError(t, d.ConfigErr)
	require.True(t, d.Kerberos)
	require.Error(t, d.LoginErr)
	require.NoError(t, d.NameNodes[0].Err, "without a login nobody is asked")
}

func TestDiagnoseTakesTheClientThatOpenWouldTake(t *testing.T) {
	closed := confDir(t, map[string]string{"fs.defaultFS": "hdfs://127.0.0.1:1"})
	secure := confDir(t, map[string]string{
		"fs.defaultFS": "hdfs://127.0.0.1:1", "hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@X",
	})
	t.Setenv("KRB5_CONFIG", filepath.Join(t.TempDir(), "none"))
	for _, tt := range []struct {
		conf    string
		option  ClientKind
		env     string
		want    ClientKind
		refused error
	}{
		{closed, "", "", ClientNative, nil},
		{closed, "", "library", ClientLibrary, nil},
		{closed, ClientNative, "library", ClientNative, nil},
		{closed, "", "another", "", fs.ErrInvalid},
		{secure, "", "", ClientLibrary, nil},
		{secure, ClientNative, "", "", errors.ErrUnsupported},
	} {
		t.Setenv(envClient, tt.env)
		d := Diagnose(t.Context(), "", Options{ConfDir: tt.conf, User: "alice", Client: tt.option})
		require.Equal(t, tt.want, d.Client)
		require.ErrorIs(t, d.ConfigErr, tt.refused)
	}
}

func TestWhatIsNoNameNodeIsSaidToBeNone(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	address := web.Listener.Addr().String()
	for kind, says := range map[ClientKind]string{ClientNative: "does the port serve Hadoop RPC?", ClientLibrary: errFrame.Error()} {
		d := Diagnose(t.Context(), address, Options{User: "alice", Client: kind})
		require.NoError(t, d.ConfigErr)
		require.Equal(t, NameNodeUnreachable, d.NameNodes[0].State)
		require.ErrorContains(t, d.NameNodes[0].Err, says, kind)
	}
}

func TestTheStateOfANameNodeIsReadFromItsAnswer(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want NameNodeState
	}{
		{nil, NameNodeActive},
		{&remoteError{class: "org.apache.hadoop.ipc.StandbyException", message: "Operation category READ is not supported in state standby"}, NameNodeStandby},
		{&connError{err: errors.New("no available namenodes: org.apache.hadoop.ipc.StandbyException")}, NameNodeStandby},
		{&connError{err: fmt.Errorf("%s: %s", standbyException, answerLost)}, NameNodeUnreachable},
		{&remoteError{class: "org.apache.hadoop.security.AccessControlException", message: "SIMPLE authentication is not enabled"}, NameNodeRefusing},
		{&connError{err: errors.New("connection refused")}, NameNodeUnreachable},
	} {
		require.Equal(t, tt.want, stateOf(tt.err), "%v", tt.err)
	}
	require.Contains(t, string(standbyAnswer(1)), answerLost)
}
