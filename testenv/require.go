package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/jdk"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
)

// prepareTimeout bounds Require: the first time it fetches jars and makes an archive of classes, or it waits for another
// process that does.
const prepareTimeout = 15 * time.Minute

// Require returns a cluster for the test, which is there until the test binary ends, or, if it is exclusive, until the test
// ends. Where it cannot be had, the test is skipped, or it fails if HDFSCKPT_REQUIRE names it; the documentation of the package
// says more.
func Require(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), prepareTimeout)
	defer cancel()
	c, err := forTest(ctx, o, func(s string) { t.Log(s) })
	switch {
	case err == nil:
	case errors.Is(err, errDockerUnfit):
		t.Skipf("left out: %v", err)
	case isMissing(err) && !required(os.Getenv("HDFSCKPT_REQUIRE"), o.part()):
		t.Skipf("left out: %s needs %v", o.part(), err)
	default:
		t.Fatalf("%s is not to be had: %v", o.part(), err)
	}
	if c.exclusive {
		t.Cleanup(func() {
			if t.Failed() {
				logTails(t, c)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("end of the cluster: %v", err)
			}
		})
	}
	return c
}

// shared are the clusters that this process holds until its end, by their folders.
var shared = struct {
	sync.Mutex
	clusters map[string]*Cluster
}{clusters: map[string]*Cluster{}}

func forTest(ctx context.Context, o Options, say func(string)) (*Cluster, error) {
	switch kind := os.Getenv("HDFSCKPT_HDFS"); kind {
	case "", "local":
	case "none":
		return nil, fmt.Errorf("that HDFSCKPT_HDFS is not none: %w", errUnfit)
	case "docker":
		return dockerForTest(ctx, o)
	default:
		return nil, fmt.Errorf("HDFSCKPT_HDFS=%s: there is no such way to run HDFS; there are local, the default, docker and none", kind)
	}
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		return ownForTest(dir, o)
	}
	if o.Exclusive {
		return Start(ctx, o, say)
	}
	full, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	folder, err := full.folder()
	if err != nil {
		return nil, err
	}
	shared.Lock()
	defer shared.Unlock()
	if c := shared.clusters[string(folder)]; c != nil {
		return c, nil
	}
	c, err := Start(ctx, o, say)
	if err == nil {
		shared.clusters[string(folder)] = c
	}
	return c, err
}

// errUnfit is what an error is if what the environment asks for is not what the test needs.
var errUnfit = errors.New("the environment asks for something else")

func ownForTest(dir string, o Options) (*Cluster, error) {
	c, err := own(dir)
	switch {
	case err != nil:
		return nil, err
	case o.Exclusive:
		return nil, fmt.Errorf("a cluster whose daemons may be killed, not that of HADOOP_CONF_DIR: %w", errUnfit)
	case o.Kerberos != c.Kerberos():
		return nil, fmt.Errorf("a cluster with Kerberos=%v, that of HADOOP_CONF_DIR has %v: %w", o.Kerberos, c.Kerberos(), errUnfit)
	case c.Kerberos() && (c.login("").Keytab == "" || c.login("").Realm == ""):
		return nil, errors.New("HDFSCKPT_PRINCIPAL=name@REALM and HDFSCKPT_KEYTAB=file have to be set for the cluster of HADOOP_CONF_DIR")
	}
	return c, nil
}

func isMissing(err error) bool {
	return errors.Is(err, jdk.ErrMissing) || errors.Is(err, kdc.ErrMissing) || errors.Is(err, errUnfit) || errors.Is(err, errDockerDown)
}

// required reports whether the list, in which commas stand between names, holds the part.
func required(list, part string) bool {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(names, part) || slices.Contains(names, "all")
}

// logTails shows the ends of the daemons' logs, which vanish with the cluster.
func logTails(t testing.TB, c *Cluster) {
	processes, err := c.Processes(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Logf("processes: %v", err)
	}
	for _, p := range processes {
		log, err := os.ReadFile(p.Log)
		if err != nil {
			t.Log(err)
			continue
		}
		const most = 3000
		if len(log) > most {
			log = log[len(log)-most:]
		}
		t.Logf("%s, running %v, stopped %v; end of %s:\n%s", p.Name, p.Running, p.Stopped, filepath.Base(p.Log), log)
	}
}

// TempDir makes a folder in HDFS that belongs to the test alone and that all users may write to, and removes it when the test
// ends. It returns its path.
func (c *Cluster) TempDir(t testing.TB) string {
	t.Helper()
	name := "/hdfsckpt-test-" + strings.ToLower(rand.Text())
	err := c.with(func(client *probe.Client) error {
		// The client's umask does not apply to Chmod.
		return errors.Join(client.Mkdir(name, 0o777), client.Chmod(name, 0o777))
	})
	if err != nil {
		t.Fatalf("a folder in HDFS: %v", err)
	}
	t.Cleanup(func() {
		if err := c.with(func(client *probe.Client) error { return client.RemoveAll(name) }); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	})
	return name
}

// with calls do with a client of the superuser.
func (c *Cluster) with(do func(*probe.Client) error) error {
	client, err := probe.Dial(c.confDir, c.login(""), time.Minute)
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}
