package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// kdcName is the KDC's name among the processes.
const kdcName = "kdc"

// cluster runs daemons as children of this process. It is not safe for concurrent use.
type cluster struct {
	State
	starter  *proc.Starter
	children map[string]*proc.Child
	changed  func() error // called with each change of State
}

// Train runs a cluster in the folder, which must be new, until it has worked once.
func Train(ctx context.Context, dir string, spec Spec) error {
	c, err := start(ctx, dir, spec, func(State) error { return nil })
	if err != nil {
		return err
	}
	return c.end()
}

// start starts a cluster and waits until it works. Ports are chosen before they are used: if one was taken in between,
// others are chosen.
func start(ctx context.Context, dir string, spec Spec, changed func(State) error) (*cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	const attempts = 3
	for attempt := 1; ; attempt++ {
		sub := filepath.Join(dir, fmt.Sprint(attempt))
		c, err := startOnce(ctx, sub, spec, changed)
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.end())
		if attempt == attempts || !c.portTaken() {
			return nil, err
		}
	}
}

// startOnce returns a cluster also with an error; it must be ended.
func startOnce(ctx context.Context, dir string, spec Spec, changed func(State) error) (*cluster, error) {
	begin := time.Now()
	c := &cluster{starter: proc.NewStarter(), children: map[string]*proc.Child{}}
	c.Spec = spec
	c.changed = func() error { return changed(c.State) }
	var err error
	if c.Supervisor, err = proc.Identify(os.Getpid()); err != nil {
		return c, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return c, err
	}
	ports := hadoop.NewPorts(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if c.Layout, err = hadoop.NewLayout(dir, spec.DataNodes, ports.Next); err != nil {
		return c, err
	}
	c.Layout.Properties = spec.Properties
	me, err := user.Current()
	if err != nil {
		return c, err
	}
	c.Layout.ProcessUser = me.Username
	if spec.Kerberos {
		if err := c.startKDC(ctx, ports); err != nil {
			return c, err
		}
	}
	if err := c.Layout.Write(); err != nil {
		return c, err
	}
	if err := c.makeData(); err != nil {
		return c, err
	}
	for _, d := range c.Layout.Daemons {
		if err := c.launch(d.Name); err != nil {
			return c, err
		}
	}
	if err := c.awaitReady(ctx); err != nil {
		return c, err
	}
	c.Start = time.Since(begin)
	return c, c.changed()
}

func (c *cluster) startKDC(ctx context.Context, ports *hadoop.Ports) error {
	port, err := ports.Next()
	if err != nil {
		return err
	}
	k := &kdc.KDC{
		Dir: filepath.Join(c.Layout.Dir, kdcName), Port: port,
		TicketLifetime: c.Spec.TicketLifetime, EncryptionTypes: c.Spec.EncryptionTypes,
	}
	c.KDC = k
	c.Spec.Parts.JVM.Krb5Conf = k.Krb5Conf()
	daemons := []string{hadoop.NameNodePrincipal, hadoop.DataNodePrincipal, hadoop.WebPrincipal}
	if err := k.Create(ctx, c.starter, append(daemons, kdc.Users...)); err != nil {
		return err
	}
	keytabs := map[string]string{}
	for _, p := range daemons {
		keytabs[p] = k.Keytab(p)
	}
	c.Layout.Security = &hadoop.Security{
		Realm: kdc.Realm, Superuser: kdc.Superuser, Protection: c.Spec.Protection, Keytabs: keytabs,
	}
	if err := c.launch(kdcName); err != nil {
		return err
	}
	return poll(ctx, func() error {
		if err := c.fallen(); err != nil {
			return final(err)
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", k.Address())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// makeData gives the NameNode an empty file system.
func (c *cluster) makeData() error {
	for _, d := range c.Layout.Daemons {
		if err := os.MkdirAll(c.Layout.DataDir(d.Name), 0o700); err != nil {
			return err
		}
		if d.Kind == hadoop.NameNode {
			const current = "current"
			from := os.DirFS(filepath.Join(c.Spec.Parts.Template, current))
			if err := os.CopyFS(filepath.Join(c.Layout.DataDir(d.Name), current), from); err != nil {
				return err
			}
		}
	}
	return nil
}

// launch starts a process that does not run.
func (c *cluster) launch(name string) error {
	if child := c.children[name]; child != nil && child.Running() {
		return fmt.Errorf("%s runs already", name)
	}
	cmd, err := c.command(name)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.Layout.LogFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, c.Layout.Dir
	child, err := c.starter.Start(cmd)
	if err != nil {
		return err
	}
	c.children[name] = child
	c.note(Process{Name: name, ID: child.ID, Running: true, Log: log.Name()})
	return c.changed()
}

func (c *cluster) command(name string) (*exec.Cmd, error) {
	if name == kdcName && c.KDC != nil {
		return c.KDC.Server(context.Background()) // it ends by a signal
	}
	d, ok := c.Layout.Find(name)
	if !ok {
		return nil, fmt.Errorf("no process %q in this cluster", name)
	}
	j := c.Spec.Parts.JVM
	return exec.Command(j.Java.Path, c.Layout.Command(j, d)...), nil
}

func (c *cluster) note(p Process) {
	for i := range c.Processes {
		if c.Processes[i].Name == p.Name {
			c.Processes[i] = p
			return
		}
	}
	c.Processes = append(c.Processes, p)
}

// signal sends SIGKILL, SIGSTOP or SIGCONT; after SIGKILL it waits for the end.
func (c *cluster) signal(name string, s syscall.Signal) error {
	p, ok := c.Process(name)
	if !ok {
		return fmt.Errorf("no process %q in this cluster", name)
	}
	child := c.children[name]
	var err error
	switch s {
	case syscall.SIGKILL:
		err = child.Kill()
		p.Stopped = false
	default:
		err = child.Signal(s)
		p.Stopped = err == nil && s == syscall.SIGSTOP
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Running = child.Running()
	c.note(p)
	return c.changed()
}

// refresh notes which processes have ended.
func (c *cluster) refresh() {
	for i, p := range c.Processes {
		if p.Running && !c.children[p.Name].Running() {
			c.Processes[i].Running, c.Processes[i].Stopped = false, false
		}
	}
}

// fallen reports processes that ended without being asked to.
func (c *cluster) fallen() error {
	for _, p := range c.Processes {
		if p.Running && !c.children[p.Name].Running() {
			return fmt.Errorf("%s ended: %w: %s", p.Name, c.children[p.Name].Result(), tailOf(p.Log))
		}
	}
	return nil
}

func (c *cluster) awaitReady(ctx context.Context) error {
	return poll(ctx, func() error {
		if err := c.fallen(); err != nil {
			return final(err)
		}
		return c.Ready(ctx)
	})
}

// portTaken reports whether a process failed since its port was in use.
func (c *cluster) portTaken() bool {
	for _, p := range c.Processes {
		if b, err := os.ReadFile(p.Log); err == nil && strings.Contains(string(b), "Address already in use") {
			return true
		}
	}
	return false
}

// end kills all processes, which stay in State as they were.
func (c *cluster) end() error {
	var err error
	for _, child := range c.children {
		err = errors.Join(err, child.Kill())
	}
	c.starter.Close()
	return err
}

func tailOf(log string) string {
	b, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return proc.Tail(string(b), 1500)
}
