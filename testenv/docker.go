package testenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

// dockerAnswer bounds how long a cluster of images may take to answer; it worked when docker/up.sh ended.
const dockerAnswer = 30 * time.Second

var (
	// errDockerDown is what an error is if the images do not run.
	errDockerDown = errors.New("the images that make docker-up starts")
	// errDockerUnfit is what an error is if the images are not what the test needs. Whoever asked for the images has
	// asked for this too, so it is never a failure.
	errDockerUnfit = errors.New("HDFSCKPT_HDFS=docker does not have it")
)

// dockerCluster describes the cluster of images that fits the options.
//
// docker/up.sh leaves for each, in the cache:
//
//	docker/plain|kerberos/conf/   for HADOOP_CONF_DIR
//	docker/kerberos/krb5/         krb5.conf, and <user>.keytab for each of Users
func dockerForTest(ctx context.Context, o Options) (*Cluster, error) {
	full, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := dockerDir(full.Kerberos)
	if err != nil {
		return nil, err
	}
	c, err := dockerCluster(dir)
	if err != nil {
		return nil, err
	}
	if err := full.fitsDocker(c.state.Spec.Protection); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dockerAnswer)
	defer cancel()
	if err := supervisor.Poll(ctx, func() error { return probe.RoundTrip(ctx, c.confDir, c.login("")) }); err != nil {
		return nil, fmt.Errorf("%w: %s is there, but its cluster does not work: %w", errDockerDown, dir, err)
	}
	return c, nil
}

// dockerDir is where docker/up.sh describes a cluster.
func dockerDir(kerberos bool) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	name := "plain"
	if kerberos {
		name = "kerberos"
	}
	return filepath.Join(filepath.Dir(cache), "docker", name), nil
}

// dockerCluster reads the description of a cluster.
func dockerCluster(dir string) (*Cluster, error) {
	confDir := filepath.Join(dir, "conf")
	if _, err := os.Stat(confDir); errors.Is(err, fs.ErrNotExist) {
		return nil, errDockerDown
	}
	c, err := own(confDir)
	if err != nil {
		return nil, err
	}
	conf, err := hadoopconf.Load(confDir)
	if err != nil {
		return nil, err
	}
	c.docker, c.web = dir, conf["dfs.namenode.http-address"]
	c.state.Spec.Protection = conf["dfs.data.transfer.protection"]
	return c, nil
}

// fitsDocker reports what of the options the images, with this protection of their data, do not have.
func (o Options) fitsDocker(protection string) error {
	var lacks []error
	lack := func(is bool, what string) {
		if is {
			lacks = append(lacks, fmt.Errorf("%s: %w", what, errDockerUnfit))
		}
	}
	secure := Options{Kerberos: o.Kerberos}
	if err := secure.secure(); err != nil {
		return err
	}
	lack(o.Exclusive, "daemons that may be killed")
	lack(o.DataNodes != 3, fmt.Sprintf("%d DataNodes", o.DataNodes))
	lack(len(o.Properties) > 0, "other properties")
	if o.Kerberos {
		lack(o.Protection != protection, "protection "+o.Protection)
		lack(o.TicketLifetime != secure.TicketLifetime, "another lifetime of tickets")
		lack(fmt.Sprint(o.EncryptionTypes) != fmt.Sprint(secure.EncryptionTypes), "other encryption types")
	}
	return errors.Join(lacks...)
}

// dockerLogin is a user's login, "" is the superuser.
func (c *Cluster) dockerLogin(name string) probe.Login {
	if name == "" {
		name = Superuser
	}
	if !c.Kerberos() {
		return probe.Login{User: name}
	}
	krb5 := filepath.Join(c.docker, "krb5")
	return probe.Login{
		Krb5Conf: filepath.Join(krb5, "krb5.conf"), Keytab: filepath.Join(krb5, name+".keytab"), Principal: name, Realm: kdc.Realm,
	}
}
