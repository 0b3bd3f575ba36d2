package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// diagnoseTimeout is how long each NameNode may take to answer Diagnose.
const diagnoseTimeout = 5 * time.Second

// Diagnosis is how a cluster is reached and what its NameNodes answer, for somebody who looks for what is in the way.
type Diagnosis struct {
	// Files are those of the configuration, in the order of reading; none if there is no folder for it.
	Files []string
	// ConfigErr tells what is wrong with the options or the configuration. If it is not nil, the rest may be missing.
	ConfigErr error

	// Client is the one that Open would take, with which the NameNodes were asked.
	Client ClientKind
	// Authority is that of the URL, or of fs.defaultFS.
	Authority string
	// NameNodes are the addresses of the authority, in the order of the configuration.
	NameNodes []NameNodeAnswer

	// Kerberos: the cluster asks for it. Protection is dfs.data.transfer.protection, as this client does it.
	Kerberos   bool
	Protection string
	// User is who the NameNode is told to be spoken to, with Kerberos the principal, whose ticket ends at Expires. LoginErr tells
	// why there is none, as errors of package kerberos.
	User     string
	Expires  time.Time
	LoginErr error

	// ConfigTime, LoginTime and NameNodeTime are how long each part took.
	ConfigTime, LoginTime, NameNodeTime time.Duration
}

// NameNodeState is what became of a question to a NameNode.
type NameNodeState string

// The states of a NameNode.
const (
	NameNodeActive      NameNodeState = "active"      // it has answered
	NameNodeStandby     NameNodeState = "standby"     // it has answered that another one is active
	NameNodeRefusing    NameNodeState = "refusing"    // it is there and does not accept the login, or not this client
	NameNodeUnreachable NameNodeState = "unreachable" // there is no answer
)

// NameNodeAnswer is what one NameNode has answered.
type NameNodeAnswer struct {
	Address string
	State   NameNodeState
	Err     error // nil if it is active
}

// Diagnose resolves the configuration, logs in, and asks every NameNode once, each by itself, with the client that Open would take. It changes nothing. It returns
// within 250 ms of the end of ctx, and after about 5 s per step where a server does not answer; calls that cannot be
// broken off end by themselves within that time too.
func Diagnose(ctx context.Context, authority string, opts Options) Diagnosis {
	var d Diagnosis
	begin := time.Now()
	d.Files = configFiles(opts.ConfDir)
	s, err := resolve(authority, opts)
	d.ConfigErr = errors.Join(opts.Validate(), err)
	if d.ConfigErr == nil {
		d.Client, d.ConfigErr = opts.clientFor(s)
	}
	d.ConfigTime = time.Since(begin)
	d.Authority, d.Kerberos, d.User, d.Protection = s.authority, s.kerberos, s.user, s.library.DataTransferProtection
	for _, address := range s.addresses {
		d.NameNodes = append(d.NameNodes, NameNodeAnswer{Address: address, State: NameNodeUnreachable})
	}
	if d.ConfigErr != nil {
		return d
	}
	opts = opts.withConfigured(s.conf.Data).withDefaults()
	opts.Connections, opts.RetryFor, opts.CallTimeout = 1, -1, min(opts.CallTimeout, diagnoseTimeout)
	session, ours := d.login(ctx, opts)
	if d.LoginErr == nil {
		begin = time.Now()
		d.ask(ctx, s, session, opts)
		d.NameNodeTime = time.Since(begin)
	}
	switch {
	case !ours || session == nil:
	case ctx.Err() != nil:
		go session.Close() //nolint:errcheck // a call that was left may still use it
	default:
		_ = session.Close() // it has only tickets to forget
	}
	return d
}

// login logs in where that is needed.
func (d *Diagnosis) login(ctx context.Context, opts Options) (session *kerberos.Session, ours bool) {
	if !d.Kerberos {
		return nil, false
	}
	begin := time.Now()
	session, ours, d.LoginErr = opts.login(ctx)
	d.LoginTime = time.Since(begin)
	if d.LoginErr == nil {
		d.User, d.Expires = session.Principal(), session.Expires()
	}
	return session, ours
}

// ask asks all NameNodes at the same time.
func (d *Diagnosis) ask(ctx context.Context, s settings, session *kerberos.Session, opts Options) {
	var asking sync.WaitGroup
	for i := range d.NameNodes {
		asking.Go(func() {
			n := &d.NameNodes[i]
			n.Err = askOne(ctx, s, n.Address, session, opts)
			n.State = stateOf(n.Err)
		})
	}
	asking.Wait()
}

func askOne(ctx context.Context, s settings, address string, session *kerberos.Session, opts Options) error {
	s.addresses = []string{address}
	c, err := newClient(s, session, opts)
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() {
		_, err := c.stat(ctx, "/")
		answer <- err
		c.close()
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		go c.close() // it breaks the call that hangs
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// stateOf reads the answer to a question that any active NameNode can answer.
func stateOf(err error) NameNodeState {
	var remote *remoteError
	switch {
	case err == nil:
		return NameNodeActive
	case strings.Contains(err.Error(), "StandbyException") && !strings.Contains(err.Error(), answerLost):
		return NameNodeStandby
	case errors.As(err, &remote), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return NameNodeRefusing
	}
	return NameNodeUnreachable
}

// answerLost is in the message of an answer that this client has made up itself.
const answerLost = "the answer was lost"

// configFiles lists the files of the configuration that exist.
func configFiles(dir string) []string {
	if dir == "" {
		dir = os.Getenv("HADOOP_CONF_DIR")
	}
	if dir == "" {
		return nil
	}
	files := []string{filepath.Join(dir, "core-site.xml"), filepath.Join(dir, "hdfs-site.xml"), filepath.Join(dir, "mapred-site.xml")}
	return slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
}
