package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

// Errors of this package.
var (
	// ErrShared is returned by what would disturb the other users of a cluster.
	ErrShared = errors.New("the cluster is shared: set Options.Exclusive")
	// ErrOwn is returned by what cannot be done to a cluster that was not started here.
	ErrOwn = errors.New("the cluster, of HADOOP_CONF_DIR or of images, was not started by testenv")
	// ErrDown is returned if no cluster runs.
	ErrDown = supervisor.ErrDown
)

// Superuser is the Kerberos principal, without realm, that HDFS lets do anything; the others of Users it does not.
const Superuser = kdc.Superuser

// Users are the principals for which a Kerberos cluster has keytabs.
func Users() []string { return append([]string(nil), kdc.Users...) }

// Calls counts calls of the NameNode by method, as in "GetFileInfo".
type Calls = hadoop.Calls

// Process is what is known of one of the processes.
type Process = supervisor.Process

// Cluster is an HDFS. Its methods may be used concurrently. On somebody's own cluster those about processes, and Admin, Fsck,
// Calls and Keep, return ErrOwn; on that of images the same without Fsck and Calls.
type Cluster struct {
	folder    supervisor.Folder // empty: somebody's own, or images
	docker    string            // the folder that describes the cluster of images
	web       string            // address of the NameNode's web server, where testenv did not start it; "" is not known
	exclusive bool
	confDir   string
	nameNode  string
	state     supervisor.State // as it was at first; ports and folders do not change
	lease     *supervisor.Lease
}

// Start returns a cluster as the options say; it is started if it does not run yet. say is told what takes long. The cluster
// is there until it is closed or this process ends, whichever comes first.
func Start(ctx context.Context, o Options, say func(string)) (*Cluster, error) {
	return start(ctx, o, say, buildSupervisor)
}

// StartWith is Start for a program that itself is the command hdfsenv.
func StartWith(ctx context.Context, o Options, say func(string)) (*Cluster, error) {
	return start(ctx, o, say, func(context.Context) (string, error) { return os.Executable() })
}

func start(ctx context.Context, o Options, say func(string), program func(context.Context) (string, error)) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	folder, err := o.folder()
	if err != nil {
		return nil, err
	}
	if o.Exclusive {
		dir, err := os.MkdirTemp("", "hdfsckpt-testenv-")
		if err != nil {
			return nil, err
		}
		folder = supervisor.Folder(dir)
	}
	lease, err := supervisor.Acquire(ctx, folder, program, func(ctx context.Context) (supervisor.Spec, error) { return o.spec(ctx, say) })
	if err != nil {
		if o.Exclusive {
			err = errors.Join(err, remove(ctx, folder))
		}
		return nil, err
	}
	c, err := open(ctx, folder)
	if err != nil {
		return nil, errors.Join(err, lease.Release())
	}
	c.lease, c.exclusive = lease, o.Exclusive
	return c, nil
}

// remove removes a cluster also when the context has ended.
func remove(ctx context.Context, folder supervisor.Folder) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return supervisor.Down(ctx, folder)
}

// Find returns the running cluster of the options, without a lease of it, and with the right to do anything to it; ErrDown if
// there is none.
func Find(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	folder, err := o.folder()
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, folder)
	if err == nil {
		c.exclusive = true
	}
	return c, err
}

// Remove ends the cluster of the options, if there is one, and removes all of it.
func Remove(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	folder, err := o.folder()
	if err != nil {
		return err
	}
	return supervisor.Down(ctx, folder)
}

func open(ctx context.Context, folder supervisor.Folder) (*Cluster, error) {
	s, err := folder.Now(ctx)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		folder: folder, state: s, confDir: s.Layout.ConfDir("client"), nameNode: s.Layout.Address(s.Layout.Daemons[0], "rpc"),
	}, nil
}

// own describes the cluster of a configuration folder.
func own(confDir string) (*Cluster, error) {
	conf, err := hadoopconf.Load(confDir)
	if err != nil {
		return nil, err
	}
	names := conf.Namenodes()
	if len(names) == 0 {
		return nil, fmt.Errorf("HADOOP_CONF_DIR=%s names no NameNode", confDir)
	}
	c := &Cluster{confDir: confDir, nameNode: names[0]}
	c.state.Spec.Kerberos = conf["hadoop.security.authentication"] == "kerberos"
	return c, nil
}

// Close lets go of the cluster: an exclusive one ends at once, even if the context has ended; a shared one when its last user
// has gone.
func (c *Cluster) Close(ctx context.Context) error {
	var err error
	if c.lease != nil {
		if c.exclusive {
			err = remove(ctx, c.folder)
		}
		err = errors.Join(err, c.lease.Release())
	}
	return err
}

// Keep makes the cluster stay when nobody uses it any more, until Remove.
func (c *Cluster) Keep(ctx context.Context) error {
	if err := c.started(); err != nil {
		return err
	}
	return c.folder.Order(ctx, "keep", "")
}

// ConfDir is a folder for HADOOP_CONF_DIR.
func (c *Cluster) ConfDir() string { return c.confDir }

// NameNode is the host:port to which clients connect.
func (c *Cluster) NameNode() string { return c.nameNode }

// URL is the root of the file system.
func (c *Cluster) URL() string { return "hdfs://" + c.nameNode + "/" }

// Kerberos reports whether a login is needed.
func (c *Cluster) Kerberos() bool { return c.state.Spec.Kerberos }

// Own reports whether the cluster is that of HADOOP_CONF_DIR.
func (c *Cluster) Own() bool { return c.folder == "" && c.docker == "" }

// StartTime is how long the daemons took until all of them worked.
func (c *Cluster) StartTime() time.Duration { return c.state.Start }

// Credentials are what a client says who it is.
type Credentials struct {
	User      string // in HDFS, without Kerberos
	Principal string // without realm
	Realm     string
	Keytab    string // a file
	Krb5Conf  string // a file
}

// Credentials returns those of a user: any name without Kerberos, one of Users with it. Empty is the superuser. On somebody's
// own cluster they are those of the environment, whatever the user.
func (c *Cluster) Credentials(name string) Credentials {
	l := c.login(name)
	return Credentials{User: l.User, Principal: l.Principal, Realm: l.Realm, Keytab: l.Keytab, Krb5Conf: l.Krb5Conf}
}

func (c *Cluster) login(name string) probe.Login {
	switch {
	case c.Own():
		return ownLogin(c.Kerberos())
	case c.docker != "":
		return c.dockerLogin(name)
	case name == "":
		return c.state.Login()
	}
	return c.state.LoginAs(name)
}

// LogFile is where a daemon, by its name, writes what happens.
func (c *Cluster) LogFile(name string) string { return c.state.Layout.LogFile(name) }

// DataDir is where a daemon, by its name, keeps its data.
func (c *Cluster) DataDir(name string) string { return c.state.Layout.DataDir(name) }

// buildSupervisor builds the command hdfsenv from the module that this process is in, as a test binary is.
func buildSupervisor(ctx context.Context) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "bin", "hdfsenv")
	s := proc.NewStarter()
	defer s.Close()
	_, err = s.Run(exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/hdfsckpt/hdfsckpt/testenv/cmd/hdfsenv"))
	return program, err
}

func ownLogin(kerberos bool) probe.Login {
	if !kerberos {
		if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
			return probe.Login{User: name}
		}
		me, err := user.Current()
		if err != nil {
			return probe.Login{}
		}
		return probe.Login{User: me.Username}
	}
	l := probe.Login{Krb5Conf: os.Getenv("KRB5_CONFIG"), Keytab: os.Getenv("HDFSCKPT_KEYTAB")}
	if l.Krb5Conf == "" {
		l.Krb5Conf = "/etc/krb5.conf"
	}
	l.Principal, l.Realm = splitPrincipal(os.Getenv("HDFSCKPT_PRINCIPAL"))
	return l
}

// started refuses what cannot be done to a cluster that runs without us.
func (c *Cluster) started() error {
	if c.folder == "" {
		return ErrOwn
	}
	return nil
}

// webAddress is that of the NameNode's web server.
func (c *Cluster) webAddress() (string, error) {
	switch {
	case c.folder != "":
		return c.state.NameNodeWeb(), nil
	case c.web != "":
		return c.web, nil
	}
	return "", ErrOwn
}

// mayDisturb refuses what others would notice.
func (c *Cluster) mayDisturb() error {
	if err := c.started(); err != nil {
		return err
	}
	if !c.exclusive {
		return ErrShared
	}
	return nil
}
