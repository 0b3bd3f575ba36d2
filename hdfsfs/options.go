package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/conf"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// Options of a file system. The zero value is the documented default of every field.
type Options struct {
	// ConfDir is a folder with core-site.xml and hdfs-site.xml. "" is that of HADOOP_CONF_DIR, else of HADOOP_HOME; if these are not
	// set either there is no configuration, and Hadoop's defaults hold.
	ConfDir string

	// Base is the directory that names must lie in. "" is "/", which allows every name. It need not exist.
	Base string

	// User is who the NameNode is told to be spoken to, without Kerberos. "" is HADOOP_USER_NAME, then the user of the process.
	User string

	// Session is the Kerberos login, for a cluster whose configuration says hadoop.security.authentication=kerberos. It belongs
	// to the caller, who closes it after the file system. If it is nil, Open logs in as Login says.
	Session *kerberos.Session

	// Login says how Open logs in where the cluster needs Kerberos and there is no Session; the zero value takes the credential
	// cache of the environment. The session then belongs to the file system.
	Login kerberos.Options

	// Client chooses the code that talks to the cluster. "" is HDFSCKPT_HDFS_CLIENT of the environment, else ClientNative, and
	// ClientLibrary for clusters with Kerberos, which the former cannot do yet.
	Client ClientKind

	// Replication of new files. 0 is dfs.replication of the configuration, else what the NameNode says.
	Replication int

	// BlockSize of new files in bytes. 0 is dfs.blocksize of the configuration, else what the NameNode says. A file of more than
	// one block does not survive an outage of the NameNode between two of them.
	BlockSize int64

	// StoragePolicy of new files, by its name, such as ONE_SSD or ALL_SSD. "" is that of their directory. The library's client
	// refuses it.
	StoragePolicy string

	// HedgeAfter is after what time a ReadAt asks a second DataNode too and takes the first answer. 0 is
	// dfs.client.hedged.read.threshold.millis where dfs.client.hedged.read.threadpool.size asks for it, else never; negative is never.
	// The library's client does not do it.
	HedgeAfter time.Duration

	// Umask is taken off the modes 0666 of new files and 0777 of new directories. Nil is fs.permissions.umask-mode of the
	// configuration, else 022.
	Umask *fs.FileMode

	// Connections is how many connections to the NameNode the library's client may have. 0 is 4. Each answers one call at a time;
	// the native client needs only one.
	Connections int

	// RetryFor is how long a call is repeated while the NameNode is not there, in safe mode or about to fail over. 0 is 30 s,
	// negative is not at all. The context of a call ends it too.
	RetryFor time.Duration

	// CallTimeout is how long the NameNode may take to answer, and a connection to it or to a DataNode to be made. 0 is 20 s.
	CallTimeout time.Duration

	// DataTimeout is how long a DataNode may be silent while it should write, acknowledge or send. 0 is dfs.client.socket-timeout of
	// the configuration, else 60 s; the native client then lets a DataNode take dfs.datanode.socket.write.timeout, if that is set, to
	// accept what is sent.
	DataTimeout time.Duration

	// CloseTimeout is how long Close of a Writer waits until the NameNode has heard of all blocks. 0 is 30 s.
	CloseTimeout time.Duration

	// Logger receives what no caller gets, such as files that a failed writer may have left. nil is silent.
	Logger *slog.Logger

	writeTimeout time.Duration // of DataTimeout, where the configuration has one of its own

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests; of the native client
}

// ClientKind names the code that talks to a cluster.
type ClientKind string

const (
	// ClientNative is this project's own: files survive DataNodes that fail while they are written, every byte is verified, files can
	// be synced. It has no Kerberos and no encryption.
	ClientNative ClientKind = "native"
	// ClientLibrary is github.com/colinmarc/hdfs: for clusters with Kerberos, and for a second opinion.
	ClientLibrary ClientKind = "library"
)

// envClient is the variable that chooses the client where no option does.
const envClient = "HDFSCKPT_HDFS_CLIENT"

// clientFor decides which client talks to a cluster.
func (o Options) clientFor(s settings) (ClientKind, error) {
	kind := o.Client
	if kind == "" {
		kind = ClientKind(os.Getenv(envClient))
	}
	if kind == "" {
		kind = ClientNative
		if s.kerberos {
			kind = ClientLibrary
		}
	}
	switch {
	case kind != ClientNative && kind != ClientLibrary:
		return "", fmt.Errorf("%w: %s is %q: it must be %s or %s", fs.ErrInvalid, envClient, kind, ClientNative, ClientLibrary)
	case kind == ClientNative && s.kerberos:
		return "", fmt.Errorf("%w: the native client cannot do Kerberos: use the client %q", errors.ErrUnsupported, ClientLibrary)
	case kind == ClientLibrary && o.StoragePolicy != "":
		return "", fmt.Errorf("%w: Options.StoragePolicy: the client %q cannot set it", errors.ErrUnsupported, ClientLibrary)
	}
	return kind, nil
}

// Limits of the options.
const (
	maxConnections = 64
	maxReplication = 512
	minBlockSize   = 1 << 20 // dfs.namenode.fs-limits.min-block-size
)

// Validate reports all problems of the options at once, each naming its field; the error is fs.ErrInvalid.
func (o Options) Validate() error {
	var problems []error
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: Options.%s is %s", fs.ErrInvalid, field, fmt.Sprintf(format, args...)))
	}
	if o.Base != "" {
		if err := core.CheckName("open", "/", o.Base); err != nil {
			problems = append(problems, fmt.Errorf("Options.Base: %w", err))
		}
	}
	if o.Client != "" && o.Client != ClientNative && o.Client != ClientLibrary {
		wrong("Client", "%q: it must be %q or %q", o.Client, ClientNative, ClientLibrary)
	}
	if o.Replication < 0 || o.Replication > maxReplication {
		wrong("Replication", "%d: it must be from 0 to %d", o.Replication, maxReplication)
	}
	if o.BlockSize != 0 && (o.BlockSize < minBlockSize || o.BlockSize%bytesPerChecksum != 0) {
		wrong("BlockSize", "%d: it must be 0, or at least %d and a multiple of %d", o.BlockSize, minBlockSize, bytesPerChecksum)
	}
	if o.Umask != nil && *o.Umask&^fs.ModePerm != 0 {
		wrong("Umask", "%v: only permission bits are allowed", *o.Umask)
	}
	if o.Connections < 0 || o.Connections > maxConnections {
		wrong("Connections", "%d: it must be from 0 to %d", o.Connections, maxConnections)
	}
	for field, d := range map[string]time.Duration{"CallTimeout": o.CallTimeout, "DataTimeout": o.DataTimeout, "CloseTimeout": o.CloseTimeout} {
		if d < 0 {
			wrong(field, "%v: it must not be negative", d)
		}
	}
	if err := o.Login.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Options.Login: %w", err))
	}
	return errors.Join(problems...)
}

// withConfigured takes what the options leave open from the configuration. In Hadoop a timeout of 0 is none: nothing hangs here, so it is
// the default.
func (o Options) withConfigured(data conf.Data) Options {
	if o.DataTimeout == 0 {
		o.DataTimeout, o.writeTimeout = data.SocketTimeout, data.WriteTimeout
	}
	return o
}

func (o Options) withDefaults() Options {
	if o.Base == "" {
		o.Base = "/"
	}
	if o.Connections == 0 {
		o.Connections = 4
	}
	setDuration(&o.RetryFor, 30*time.Second)
	setDuration(&o.CallTimeout, 20*time.Second)
	setDuration(&o.DataTimeout, time.Minute)
	setDuration(&o.writeTimeout, o.DataTimeout)
	setDuration(&o.CloseTimeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDuration(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// login returns the session, and whether it is to be closed with the file system.
func (o Options) login(ctx context.Context) (_ *kerberos.Session, ours bool, _ error) {
	if o.Session != nil {
		return o.Session, false, nil
	}
	s, err := kerberos.Login(ctx, o.Login)
	return s, true, err
}
