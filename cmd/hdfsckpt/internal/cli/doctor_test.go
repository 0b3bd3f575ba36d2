package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// healthyCluster is an HDFS in which all is well.
func healthyCluster() *ops.Cluster {
	return &ops.Cluster{
		Files:  []string{"/etc/hadoop/conf/core-site.xml", "/etc/hadoop/conf/hdfs-site.xml"},
		Client: "library", Nameservice: "ns1",
		NameNodes: []ops.NameNode{
			{Address: "nn1.example.com:8020", State: ops.Standby, Err: errors.New("StandbyException: Operation category READ is not supported in state standby")},
			{Address: "nn2.example.com:8020", State: ops.Active},
		},
		Kerberos: true, Protection: "authentication",
		User: "etl@EXAMPLE.COM", Source: "keytab /etc/etl.keytab", Expires: taken.Add(36 * time.Hour),
	}
}

// onHDFS makes hdfs://ns1 a file system in memory, reached as the cluster says.
func (r *rig) onHDFS(cluster *ops.Cluster) *memfs.FS {
	disk := memfs.New(memfs.Options{URI: "hdfs://ns1", Now: func() time.Time { return taken }})
	r.fsys = disk
	r.adjust = func(p *Program) {
		p.Cluster = func(_ context.Context, uri string, _ hdfsfs.Options) *ops.Cluster {
			require.Equal(r.t, "hdfs://ns1", uri)
			return cluster
		}
	}
	return disk
}

func (r *rig) requireNoProbe() {
	r.t.Helper()
	entries, err := os.ReadDir(r.root)
	require.NoError(r.t, err)
	for _, entry := range entries {
		require.NotRegexp(r.t, probeName, entry.Name())
	}
}

func TestDoctorFindsALocalDirectoryHealthyAndLeavesNothingBehind(t *testing.T) {
	r := newRig(t)
	synced, err := localfs.Open("/", localfs.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, synced.Close()) })
	r.fsys = synced
	before := r.snapshot()
	got := r.golden("doctor-local.txt", "doctor", r.root)
	require.Equal(t, 0, got.code)
	r.golden("doctor-local.json", "doctor", "--json", r.root)
	r.requireNoProbe()
	require.Len(t, r.snapshot(), len(before))

	var e report.Examination
	require.Equal(t, 0, r.json(&e, "doctor", r.path("not", "there", "yet")).ExitCode)
	require.Equal(t, "file:"+r.root, r.unneutral(e.Directory), "the nearest directory that exists")
	_, err = os.Stat(r.path("not"))
	require.ErrorIs(t, err, fs.ErrNotExist, "the directory itself is not made")

	require.NoError(t, os.WriteFile(r.path("file"), nil, 0o600))
	require.Equal(t, 3, r.run("doctor", r.path("file")).code)
	require.Equal(t, 3, r.run("doctor", r.path("file", "below")).code)
}

// unneutral undoes neutral for paths.
func (r *rig) unneutral(path string) string { return strings.ReplaceAll(path, "/ckpt", r.root) }

func TestDoctorFollowsASymbolicLink(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.Mkdir(r.path("real"), 0o700))
	require.NoError(t, os.Symlink(r.path("real"), r.path("current")))
	var e report.Examination
	require.Equal(t, 0, r.json(&e, "doctor", r.path("current")).ExitCode)
	require.Equal(t, "file:/ckpt/real", e.Directory)
}

func TestDoctorFindsAnHDFSHealthy(t *testing.T) {
	r := newRig(t)
	disk := r.onHDFS(healthyCluster())
	require.NoError(t, disk.MkdirAll(t.Context(), "/flink/checkpoints"))
	before := disk.Tree()
	require.Equal(t, 0, r.golden("doctor-hdfs.txt", "doctor", "hdfs://ns1/flink/checkpoints").code)
	require.Equal(t, before, disk.Tree())
	require.Empty(t, disk.OpenFiles())

	simple := healthyCluster()
	simple.Client, simple.Kerberos, simple.Protection, simple.User, simple.Files = "native", false, "", "alice", nil
	r.onHDFS(simple)
	require.Equal(t, 0, r.golden("doctor-hdfs-simple.txt", "doctor", "hdfs://ns1/").code)
}

func TestDoctorTellsOfSafeMode(t *testing.T) {
	r := newRig(t)
	r.onHDFS(healthyCluster())
	r.inject(faultfs.OnOp(faultfs.OpMkdirAll, faultfs.Fault{Err: fmt.Errorf(
		"%w: SafeModeException: Cannot create directory. Name node is in safe mode", core.ErrUnavailable)}))
	require.Equal(t, 3, r.golden("doctor-safe-mode.txt", "doctor", "hdfs://ns1/flink").code)
	r.golden("doctor-safe-mode.json", "doctor", "--json", "hdfs://ns1/flink")

	r.onHDFS(healthyCluster())
	r.inject(faultfs.OnOp(faultfs.OpMkdirAll, faultfs.Fault{Err: fs.ErrPermission}))
	var e report.Examination
	require.Equal(t, 3, r.json(&e, "doctor", "hdfs://ns1/flink").ExitCode)
	require.Equal(t, report.StepSafeMode, e.Steps[4].Name)
	require.Equal(t, report.StepSkipped, e.Steps[4].Status, "another reason tells nothing of safe mode")
}

func TestDoctorStopsWhereTheSurroundingsAreIll(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, spoil := range map[string]func(*ops.Cluster){
		"configuration": func(c *ops.Cluster) {
			*c = ops.Cluster{ConfigErr: core.PathError("open", "/etc/hadoop/conf", fs.ErrNotExist)}
		},
		"login": func(c *ops.Cluster) {
			c.LoginErr = fmt.Errorf("kerberos: login of etl@EXAMPLE.COM: %w (KRB_AP_ERR_SKEW): set the clocks of this machine and of the KDC by NTP", kerberos.ErrClockSkew)
		},
		"namenodes": func(c *ops.Cluster) {
			c.NameNodes[1].State, c.NameNodes[1].Err = ops.Unreachable, refused
		},
		"standby": func(c *ops.Cluster) { c.NameNodes = c.NameNodes[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			cluster := healthyCluster()
			spoil(cluster)
			disk := r.onHDFS(cluster)
			f := r.inject(func(faultfs.Call) faultfs.Fault { return faultfs.Fault{} })
			require.Equal(t, 3, r.golden("doctor-ill-"+name+".txt", "doctor", "hdfs://ns1/flink").code)
			require.Empty(t, f.Calls(), "nothing is written to what cannot be reached")
			require.Len(t, disk.Tree(), 0)
		})
	}
}

// Whatever fails, doctor tells, and leaves nothing behind that it can remove.
func TestDoctorReportsEveryFailingCall(t *testing.T) {
	r := newRig(t)
	counting := r.inject(func(faultfs.Call) faultfs.Fault { return faultfs.Fault{} })
	require.Equal(t, 0, r.run("doctor", r.root).code)
	calls := counting.Calls()
	require.Greater(t, len(calls), 15)
	for i, call := range calls {
		r := newRig(t)
		failing := r.inject(faultfs.Nth(i, faultfs.Fault{Err: core.ErrUnavailable}))
		var e report.Examination
		d := r.json(&e, "doctor", r.root)
		require.Equal(t, 3, d.ExitCode, "call %d, %v of %s", i, call.Op, call.Name)
		require.False(t, e.Healthy)
		require.NotEmpty(t, d.Errors[0].Hint)
		require.Empty(t, failing.OpenFiles())
		if call.Op == faultfs.OpRemoveAll {
			require.Contains(t, strings.Join(e.Steps[len(e.Steps)-1].Details, ""), "left behind: file:/ckpt/.hdfsckpt-doctor-")
		} else {
			r.requireNoProbe()
		}
	}
}

func TestDoctorFindsOtherBytesThanWritten(t *testing.T) {
	r := newRig(t)
	r.inject(faultfs.OnOp(faultfs.OpRead, faultfs.Fault{Flip: true}))
	got := r.golden("doctor-corrupt.txt", "doctor", r.root)
	require.Equal(t, 1, got.code, "that is worse than what cannot be reached")
	r.requireNoProbe()
}

// careless replaces files that it must not replace.
type careless struct{ core.FileSystem }

func (c careless) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	if err := c.Remove(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return c.FileSystem.Create(ctx, name, opts)
}

// hasty renames over files that it must not replace.
type hasty struct{ core.FileSystem }

func (h hasty) Rename(ctx context.Context, oldname, newname string, _ core.RenameMode) error {
	return h.FileSystem.Rename(ctx, oldname, newname, core.RenameReplace)
}

func TestDoctorFindsAStorageThatDoesNotRefuseTakenNames(t *testing.T) {
	for name, fsys := range map[string]func(core.FileSystem) core.FileSystem{
		"create": func(f core.FileSystem) core.FileSystem { return careless{f} },
		"rename": func(f core.FileSystem) core.FileSystem { return hasty{f} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.fsys = fsys(r.fsys)
			var e report.Examination
			d := r.json(&e, "doctor", r.root)
			require.Equal(t, 1, d.ExitCode)
			require.Contains(t, d.Errors[0].Message, "not safe for checkpoints")
			r.requireNoProbe()
		})
	}
}

func TestDoctorCleansUpAfterAnInterruption(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r.inject(before(faultfs.OpWrite, "/a", func() { cancel(report.ErrInterrupted) }))
	require.Equal(t, 130, r.runContext(ctx, "doctor", r.root).code)
	r.requireNoProbe()
}

func TestDoctorOfAFileSystemThatCannotBeOpenedIsAProblem(t *testing.T) {
	r := newRig(t)
	r.adjust = func(p *Program) {
		p.Connect = func(hdfsfs.Options) (core.Opener, io.Closer, error) {
			return func(context.Context, string) (core.FileSystem, string, error) {
				return nil, "", core.PathError("open", "/a", fs.ErrPermission)
			}, io.NopCloser(nil), nil
		}
	}
	require.Equal(t, 3, r.run("doctor", "/a").code)
}

func TestTheNameNodesOfAnHDFSAloneAreAsked(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	require.Nil(t, clusterOf(t.Context(), "file://", hdfsfs.Options{}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	c := clusterOf(t.Context(), "hdfs://"+address, hdfsfs.Options{User: "alice"})
	require.Equal(t, "alice", c.User)
	require.Equal(t, address, c.Nameservice)
	require.Len(t, c.NameNodes, 1)
	require.Equal(t, ops.Unreachable, c.NameNodes[0].State)
	require.ErrorContains(t, c.NameNodes[0].Err, "connection refused")
	steps := c.Steps(t.Context())
	require.Equal(t, report.StepFailed, steps[2].Status)
	require.Contains(t, steps[2].Problem.Message, "nothing listens")
}
