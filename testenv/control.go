package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

// The names of the processes; DataNodes are dn1, dn2, and so on.
const (
	NameNode = "nn"
	KDC      = "kdc" // with Kerberos
)

// Processes returns the processes as they are now.
func (c *Cluster) Processes(ctx context.Context) ([]Process, error) {
	if err := c.started(); err != nil {
		return nil, err
	}
	s, err := c.folder.Now(ctx)
	return s.Processes, err
}

// Kill ends a process by SIGKILL and returns when it is gone.
func (c *Cluster) Kill(ctx context.Context, name string) error { return c.disturb(ctx, "kill", name) }

// Stop makes a process hang, by SIGSTOP: connections stay, nothing is answered.
func (c *Cluster) Stop(ctx context.Context, name string) error { return c.disturb(ctx, "stop", name) }

// Continue ends a Stop.
func (c *Cluster) Continue(ctx context.Context, name string) error {
	return c.disturb(ctx, "cont", name)
}

// Launch starts a process that was killed, and does not wait for it.
func (c *Cluster) Launch(ctx context.Context, name string) error {
	return c.disturb(ctx, "start", name)
}

// Restart kills a process that runs, starts it again, and waits until the cluster works with it.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	if err := c.mayDisturb(); err != nil {
		return err
	}
	s, err := c.folder.Now(ctx)
	if err != nil {
		return err
	}
	if p, ok := s.Process(name); ok && p.Running {
		if err := c.Kill(ctx, name); err != nil {
			return err
		}
	}
	if err := c.Launch(ctx, name); err != nil {
		return err
	}
	return c.waitReady(ctx, name)
}

// ShutDownForUpgrade asks a DataNode to end as one does that is about to be upgraded: it says so to the clients that write to it, and
// keeps what they have written so that they can go on when it is launched again. It returns when the process has ended.
func (c *Cluster) ShutDownForUpgrade(ctx context.Context, dataNode string) error {
	if err := c.mayDisturb(); err != nil {
		return err
	}
	d, ok := c.state.Layout.Find(dataNode)
	if !ok || d.Kind != hadoop.DataNode {
		return fmt.Errorf("%s is no DataNode of this cluster", dataNode)
	}
	who := c.login("")
	if who.Kerberos() { // a DataNode obeys itself; it does not know of the NameNode's superuser
		who.Principal, who.Keytab = hadoop.DataNodePrincipal, c.state.Layout.Security.Keytabs[hadoop.DataNodePrincipal]
	}
	if _, err := c.admin(ctx, who, "-shutdownDatanode", c.state.Layout.Address(d, "rpc"), "upgrade"); err != nil {
		return err
	}
	return supervisor.Poll(ctx, func() error {
		s, err := c.folder.Now(ctx)
		if err != nil {
			return err
		}
		if p, ok := s.Process(dataNode); ok && p.Running {
			return fmt.Errorf("%s has not ended", dataNode)
		}
		return nil
	})
}

// DataNodeAt is the name of the DataNode whose data port it is, "" if there is none.
func (c *Cluster) DataNodeAt(port uint32) string {
	for _, d := range c.state.Layout.Daemons {
		if data, ok := d.Ports["data"]; ok && uint32(data) == port { //nolint:gosec // ports have 16 bits
			return d.Name
		}
	}
	return ""
}

func (c *Cluster) disturb(ctx context.Context, verb, name string) error {
	if err := c.mayDisturb(); err != nil {
		return err
	}
	return c.folder.Order(ctx, verb, name)
}

// WaitReady waits until all daemons that are up work together: the NameNode has left safe mode and knows each DataNode that was
// neither killed nor stopped, and a byte that is written can be read. It asks each time which are up.
func (c *Cluster) WaitReady(ctx context.Context) error {
	if c.folder == "" {
		return supervisor.Poll(ctx, func() error { return probe.RoundTrip(ctx, c.confDir, c.login("")) })
	}
	return c.waitReady(ctx)
}

// waitReady does not wait any more when one of the processes that must be up is not.
func (c *Cluster) waitReady(ctx context.Context, must ...string) error {
	return supervisor.Poll(ctx, func() error {
		s, err := c.folder.Now(ctx)
		if err != nil {
			return err
		}
		for _, name := range must {
			if err := s.MustRun(name); err != nil {
				return err
			}
		}
		return s.Ready(ctx)
	})
}

// SafeMode makes the NameNode enter safe mode, in which nothing can be changed, or leave it.
func (c *Cluster) SafeMode(ctx context.Context, enter bool) error {
	if err := c.mayDisturb(); err != nil {
		return err
	}
	order := "leave"
	if enter {
		order = "enter"
	}
	_, err := c.Admin(ctx, "-safemode", order)
	return err
}

// Admin runs `hdfs dfsadmin` as the superuser and returns what it writes.
func (c *Cluster) Admin(ctx context.Context, args ...string) (string, error) {
	if err := c.started(); err != nil {
		return "", err
	}
	return c.admin(ctx, c.login(""), args...)
}

func (c *Cluster) admin(ctx context.Context, login probe.Login, args ...string) (string, error) {
	j := c.state.Spec.Parts.JVM
	if k := c.state.KDC; k != nil {
		j.Krb5Conf = k.Krb5Conf()
	}
	cmd := exec.CommandContext(ctx, j.Java.Path, c.state.Layout.Admin(j, args...)...)
	cmd.Env = append(withoutHadoop(os.Environ()), "HADOOP_USER_NAME="+login.User)
	if login.Kerberos() {
		cmd.Env = append(withoutHadoop(os.Environ()), "KRB5_CONFIG="+login.Krb5Conf,
			"KRB5PRINCIPAL="+login.Principal+"@"+login.Realm, "KRB5KEYTAB="+login.Keytab)
	}
	s := proc.NewStarter()
	defer s.Close()
	return s.Run(cmd)
}

// withoutHadoop drops what would tell Hadoop's tools to be somebody else.
func withoutHadoop(environ []string) []string {
	var rest []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "HADOOP_") && !strings.HasPrefix(v, "KRB5") {
			rest = append(rest, v)
		}
	}
	return rest
}

// Fsck returns the NameNode's report about the files below a path, their blocks and where these are.
func (c *Cluster) Fsck(ctx context.Context, path string) (string, error) {
	web, err := c.webAddress()
	if err != nil {
		return "", err
	}
	user := c.state.Layout.ProcessUser
	if c.docker != "" {
		user = Superuser
	}
	return hadoop.Fsck(ctx, web, user, path)
}

// Calls returns how often clients have called each method of the NameNode since it was started, up to now. Those of DataNodes
// are left out. Everybody's calls are counted; a difference means something where nobody else uses the cluster.
func (c *Cluster) Calls(ctx context.Context) (Calls, error) {
	web, err := c.webAddress()
	if err != nil {
		return nil, err
	}
	// The first answer may be as old as the period; it makes the NameNode count anew after another.
	timer := time.NewTimer(2 * hadoop.MetricsPeriod)
	defer timer.Stop()
	if _, err := hadoop.CallsOf(ctx, web); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
	}
	calls, err := hadoop.CallsOf(ctx, web)
	return calls.OfClients(), err
}

// splitPrincipal divides name@REALM.
func splitPrincipal(s string) (name, realm string) {
	name, realm, _ = strings.Cut(s, "@")
	return name, realm
}
