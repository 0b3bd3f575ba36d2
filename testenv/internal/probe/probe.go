// Package probe asks whether an HDFS works, by writing and reading with a client that is not the project's own: what is
// under test must not judge its own test environment.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

// callTimeout bounds each connection of a probe: a stopped daemon answers nothing, for ever.
const callTimeout = 5 * time.Second

// Login says who asks.
type Login struct {
	User     string // without Kerberos
	Krb5Conf string // with Kerberos, with the two below
	Keytab   string
	// Principal is the name without realm.
	Principal, Realm string
}

// Kerberos reports whether the login is one of Kerberos.
func (l Login) Kerberos() bool { return l.Krb5Conf != "" }

// kerberos logs in.
func (l Login) kerberos() (*krb.Client, error) {
	conf, err := config.Load(l.Krb5Conf)
	if err != nil {
		return nil, err
	}
	key, err := keytab.Load(l.Keytab)
	if err != nil {
		return nil, err
	}
	c := krb.NewWithKeytab(l.Principal, l.Realm, key, conf, krb.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		c.Destroy()
		return nil, err
	}
	return c, nil
}

// Client is a connection to a NameNode that must be closed.
type Client struct {
	*hdfs.Client
	kerberos *krb.Client
}

// Dial connects as the configuration folder says. Every connection of the client ends timeout after it was made, or never if
// timeout is 0.
func Dial(confDir string, login Login, timeout time.Duration) (*Client, error) {
	conf, err := hadoopconf.Load(confDir)
	if err != nil {
		return nil, err
	}
	o := hdfs.ClientOptionsFromConf(conf)
	o.User = login.User
	o.NamenodeDialFunc = dialer(timeout)
	o.DatanodeDialFunc = dialer(timeout)
	c := &Client{}
	if login.Kerberos() {
		if c.kerberos, err = login.kerberos(); err != nil {
			return nil, fmt.Errorf("login of %s: %w", login.Principal, err)
		}
		o.KerberosClient = c.kerberos
	}
	if c.Client, err = hdfs.NewClient(o); err != nil {
		c.logout()
		return nil, err
	}
	return c, nil
}

func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, network, address)
		if err == nil && timeout > 0 {
			err = conn.SetDeadline(time.Now().Add(timeout))
		}
		return conn, err
	}
}

// Close closes the connection and forgets the tickets.
func (c *Client) Close() error {
	defer c.logout()
	return c.Client.Close()
}

func (c *Client) logout() {
	if c.kerberos != nil {
		c.kerberos.Destroy()
	}
}

// WriteFile writes a file that did not exist. The DataNodes may report the last block late; Close is repeated for that
// reason alone, until the context ends.
func (c *Client) WriteFile(ctx context.Context, name string, content []byte) error {
	w, err := c.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Close())
	}
	wait := time.NewTicker(2 * time.Millisecond)
	defer wait.Stop()
	for {
		err := w.Close()
		if !hdfs.IsErrReplicating(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("close %s: %w: %w", name, err, context.Cause(ctx))
		case <-wait.C:
		}
	}
}

// RoundTrip writes one byte and reads it again.
func RoundTrip(ctx context.Context, confDir string, login Login) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := Dial(confDir, login, callTimeout)
	if err != nil {
		return err
	}
	return errors.Join(roundTrip(ctx, c), c.Close())
}

func roundTrip(ctx context.Context, c *Client) error {
	const name = "/.hdfsckpt-testenv-probe"
	if err := c.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.WriteFile(ctx, name, []byte("1")); err != nil {
		return err
	}
	r, err := c.Open(name)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	err = errors.Join(err, r.Close())
	if err == nil && string(got) != "1" {
		err = fmt.Errorf("read %q, wrote %q", got, "1")
	}
	return errors.Join(err, c.Remove(name))
}
