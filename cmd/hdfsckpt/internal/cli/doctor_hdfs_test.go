package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// examine runs doctor on a real cluster and returns its steps by name.
func examine(t *testing.T, wantCode int, args ...string) map[report.StepName]report.Step {
	t.Helper()
	r := newRig(t)
	r.adjust = func(p *Program) { p.Connect, p.Cluster = connect, clusterOf }
	var e report.Examination
	d := r.json(&e, append([]string{"doctor"}, args...)...)
	for _, problem := range d.Errors {
		t.Log(problem.Message)
	}
	require.Equal(t, wantCode, d.ExitCode, "%+v", d.Errors)
	require.Equal(t, wantCode == 0, e.Healthy)
	steps := map[report.StepName]report.Step{}
	for _, s := range e.Steps {
		steps[s.Name] = s
	}
	return steps
}

func TestDoctorDiagnosesARealHDFS(t *testing.T) {
	c := testenv.Require(t, testenv.Options{DataNodes: 1, Exclusive: true})
	dir := c.TempDir(t)
	args := []string{"--conf-dir", c.ConfDir(), "--user", "alice", "hdfs://" + c.NameNode() + dir}
	steps := examine(t, 0, args...)
	require.Equal(t, []string{filepath.Join(c.ConfDir(), "core-site.xml"), filepath.Join(c.ConfDir(), "hdfs-site.xml")}, steps[report.StepConfiguration].Details[:2])
	require.Equal(t, "client native", steps[report.StepConfiguration].Details[4])
	require.Contains(t, steps[report.StepLogin].Details[0], "user alice")
	require.Equal(t, c.NameNode()+" active", steps[report.StepNameNodes].Details[0])
	require.Contains(t, steps[report.StepWrite].Details[0], "synced")
	steps = examine(t, 0, append([]string{"--client", "library"}, args...)...)
	require.Equal(t, "client library", steps[report.StepConfiguration].Details[4])
	require.Contains(t, steps[report.StepWrite].Details[0], "replicated")
	files, err := c.Fsck(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, files, probePrefixForTest, "nothing is left behind")

	require.NoError(t, c.SafeMode(t.Context(), true))
	steps = examine(t, 3, args...)
	require.Equal(t, report.StepFailed, steps[report.StepSafeMode].Status)
	require.Equal(t, report.StepSkipped, steps[report.StepWrite].Status)
	require.Contains(t, steps[report.StepSafeMode].Problem.Message, "the NameNode is in safe mode")
	require.NoError(t, c.SafeMode(t.Context(), false))

	steps = examine(t, 3, "--conf-dir", c.ConfDir(), "--user", "bob", "hdfs://"+c.NameNode()+"/")
	require.Equal(t, report.Permission, steps[report.StepWrite].Problem.Kind, "the root belongs to another")

	require.NoError(t, c.Kill(t.Context(), "dn1"))
	steps = examine(t, 3, args...)
	require.Equal(t, report.StepOK, steps[report.StepSafeMode].Status)
	require.Contains(t, steps[report.StepWrite].Problem.Message, "DataNode")
	require.Equal(t, report.StepOK, steps[report.StepRemove].Status)

	require.NoError(t, c.Kill(t.Context(), testenv.NameNode))
	steps = examine(t, 3, args...)
	require.Equal(t, c.NameNode()+" unreachable", steps[report.StepNameNodes].Details[0])
	require.Contains(t, steps[report.StepNameNodes].Problem.Message, "nothing listens")
	require.NotContains(t, steps, report.StepWrite)
	// So that the directory can be removed.
	require.NoError(t, c.Launch(t.Context(), "dn1"))
	require.NoError(t, c.Restart(t.Context(), testenv.NameNode))
}

const probePrefixForTest = ".hdfsckpt-doctor-"

func TestDoctorDiagnosesARealLogin(t *testing.T) {
	c := testenv.Require(t, testenv.Options{Kerberos: true})
	if c.Own() {
		t.Skip("left out: the users of somebody's own cluster are not known")
	}
	alice, url := c.Credentials("alice"), "hdfs://"+c.NameNode()+c.TempDir(t)
	t.Setenv("KRB5_CONFIG", alice.Krb5Conf)
	t.Setenv("HADOOP_CONF_DIR", c.ConfDir())
	t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "none"))
	steps := examine(t, 0, "--principal", "alice@"+alice.Realm, "--keytab", alice.Keytab, url)
	require.Contains(t, steps[report.StepLogin].Details[0], "alice@"+alice.Realm+" by keytab "+alice.Keytab+", until 20")
	require.Contains(t, steps[report.StepConfiguration].Details[3], "Kerberos, data transfer with protection authentication")
	require.Equal(t, "client library", steps[report.StepConfiguration].Details[4])

	steps = examine(t, 3, url)
	require.Equal(t, report.StepFailed, steps[report.StepLogin].Status, "there is no ticket")
	steps = examine(t, 3, "--principal", "alice@"+alice.Realm, "--keytab", c.Credentials("bob").Keytab, url)
	require.Equal(t, report.StepFailed, steps[report.StepLogin].Status, "the keytab is another's")
	require.Equal(t, report.Permission, steps[report.StepLogin].Problem.Kind)

	t.Setenv("HADOOP_CONF_DIR", t.TempDir()) // it says nothing of Kerberos
	steps = examine(t, 3, url)
	require.Equal(t, report.StepFailed, steps[report.StepConfiguration].Status)
	t.Setenv("HADOOP_CONF_DIR", "")
	steps = examine(t, 3, "--user", "alice", url)
	require.Contains(t, steps[report.StepNameNodes].Problem.Message, "the cluster wants Kerberos")
}
