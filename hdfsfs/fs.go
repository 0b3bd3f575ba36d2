package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// abortLimit is how long Abort waits for the removal of its file. The contract allows 10 s.
const abortLimit = 9500 * time.Millisecond

// FS implements core.FileSystem. Make one with [Open].
type FS struct {
	client   client
	session  *kerberos.Session // to be closed with the file system; nil if it is the caller's or there is none
	settings settings
	opts     Options
	caps     core.Capabilities

	gate       calls.Gate
	closing    sync.Once
	ended      chan struct{} // closed by Close
	abortLimit time.Duration
}

var _ core.FileSystem = (*FS)(nil)

// Counts are numbers that an operator may want to watch.
type Counts struct {
	// Background is how many calls and clean-ups are still going on although their callers have left, because their contexts
	// had ended. Close waits for them.
	Background int
	// LeakedWriters is how many Writers of the library's client have failed so that it has kept a goroutine and about 0.25 MiB for
	// each, until the end of the process. It grows by the number of DataNode failures that hit a file being written.
	LeakedWriters int64
}

// Open returns the file system of a cluster: authority is that of a URL, the name of a nameservice of the configuration or
// host[:port] of a NameNode, and "" is the cluster of fs.defaultFS. It connects once, so that a cluster that is not there
// or does not accept the login is found out here. The error is an *fs.PathError: fs.ErrInvalid for bad options or a bad
// configuration, fs.ErrPermission, core.ErrUnavailable, the errors of package kerberos, or errors.ErrUnsupported for a cluster
// that asks for more protection than this client has, see the package's documentation. The FS must be closed.
func Open(ctx context.Context, authority string, opts Options) (*FS, error) {
	f, err := open(ctx, authority, opts)
	if err != nil {
		return nil, core.PathError("open", "hdfs://"+authority, err)
	}
	return f, nil
}

func open(ctx context.Context, authority string, opts Options) (*FS, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	s, err := resolve(authority, opts)
	if err != nil {
		return nil, err
	}
	opts = opts.withConfigured(s.conf.Data).withDefaults()
	var session *kerberos.Session
	ours := false
	if s.kerberos {
		if session, ours, err = opts.login(ctx); err != nil {
			return nil, err
		}
	}
	c, err := newClient(s, session, opts)
	if err != nil {
		if ours {
			err = errors.Join(err, session.Close())
		}
		return nil, err
	}
	f := newFS(c, s, opts)
	if ours {
		f.session = session
	}
	err = do(ctx, f, func() error { return f.retry(ctx, func() error { return checkCluster(ctx, c) }) })
	if err != nil {
		go f.Close() //nolint:errcheck // of a file system that nobody has got; a call may hang for a while
		return nil, err
	}
	return f, nil
}

func newFS(c client, s settings, opts Options) *FS {
	return &FS{
		client: c, settings: s, opts: opts, ended: make(chan struct{}), abortLimit: abortLimit, caps: declare(c.features()),
	}
}

// newClient makes the client that the options, or the cluster, ask for.
func newClient(s settings, session *kerberos.Session, o Options) (client, error) {
	kind, err := o.clientFor(s)
	if err != nil {
		return nil, err
	}
	if kind == ClientLibrary {
		return newLibrary(s, session, o), nil
	}
	return newNative(s, o)
}

// checkCluster asks the cluster something, and whether the client is able to talk to it.
func checkCluster(ctx context.Context, c client) error {
	if n, ok := c.(*native); ok {
		return n.check(ctx)
	}
	_, err := c.stat(ctx, "/")
	return err
}

// Declared returns what the file systems of this package declare that have a client of this kind.
func Declared(kind ClientKind) core.Capabilities {
	if kind == ClientLibrary {
		return declare((*library)(nil).features())
	}
	return declare((*native)(nil).features())
}

func declare(can features) core.Capabilities {
	durabilities := []core.Durability{core.Replicated}
	if can.sync {
		durabilities = append(durabilities, core.Synced)
	}
	return core.Capabilities{
		Durabilities:        durabilities,
		NoReplaceFiles:      true,
		NoReplaceDirs:       true,
		Sync:                can.sync,
		Replicas:            true,
		DetectsCorruptReads: true,
	}
}

// Close ends the file system: what is under way is broken, and waited for. Afterwards every call is fs.ErrClosed, those of
// open Readers and Writers included, except their Close and Abort. A file that is still being written stays as it is, incomplete,
// until somebody removes it. Calling Close again is harmless.
func (f *FS) Close() error {
	f.gate.Close()
	var err error
	f.closing.Do(func() {
		close(f.ended)
		f.client.close()
		f.gate.Wait()
		f.client.wait()
		if f.session != nil {
			err = f.session.Close()
		}
	})
	return core.PathError("close", f.URI(), err)
}

// Counts returns what there is to watch.
func (f *FS) Counts() Counts {
	c := f.client.counts()
	c.Background = f.gate.Background()
	return c
}

// NameNodes returns the addresses that the file system talks to, as host:port.
func (f *FS) NameNodes() []string { return slices.Clone(f.settings.addresses) }

// Kerberos reports whether the cluster needs a login, and the principal of the one that is used.
func (f *FS) Kerberos() (principal string, needed bool) {
	if l, ok := f.client.(*library); ok && l.session != nil {
		return l.session.Principal(), true
	}
	return "", f.settings.kerberos
}

// URI implements core.FileSystem: it returns "hdfs://" and the authority, as it was given to Open or as fs.defaultFS has it.
func (f *FS) URI() string { return "hdfs://" + f.settings.authority }

// Capabilities implements core.FileSystem.
func (f *FS) Capabilities() core.Capabilities {
	caps := f.caps
	caps.Durabilities = slices.Clone(caps.Durabilities)
	return caps
}

// retry repeats a call that has had no outcome, until it has one, ctx or the file system ends, or Options.RetryFor is over.
func (f *FS) retry(ctx context.Context, op func() error) error {
	return f.repeat(ctx, op, transient)
}

// retryAnyway is retry for what may be done twice.
func (f *FS) retryAnyway(ctx context.Context, op func() error) error {
	return f.repeat(ctx, op, func(err error) bool { return transient(err) || inDoubt(err) })
}

func (f *FS) repeat(ctx context.Context, op func() error, again func(error) bool) error {
	deadline := time.Now().Add(f.opts.RetryFor)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := op()
		if err == nil || !again(err) || time.Now().Add(wait).After(deadline) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-f.ended:
			timer.Stop()
			return fs.ErrClosed
		}
	}
}

// Stat implements core.FileSystem.
func (f *FS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	if err := core.CheckName("stat", f.opts.Base, name); err != nil {
		return core.FileInfo{}, err
	}
	s, err := call(ctx, f, func() (status, error) { return f.stat(ctx, name) }, nil)
	if err != nil {
		return core.FileInfo{}, core.PathError("stat", name, err)
	}
	return s.info(path.Base(name)), nil
}

func (f *FS) stat(ctx context.Context, name string) (status, error) {
	var s status
	err := f.retryAnyway(ctx, func() (err error) {
		s, err = f.client.stat(ctx, name)
		return err
	})
	return s, err
}

// info describes an entry under the name that the caller uses for it.
func (s status) info(name string) core.FileInfo {
	mode := fs.FileMode(s.perm) & fs.ModePerm
	if s.perm&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	switch {
	case s.dir:
		mode |= fs.ModeDir
	case s.symlink:
		mode |= fs.ModeSymlink
	}
	return core.FileInfo{Name: name, Size: s.size, Mode: mode, ModTime: s.modified}
}

// kind says what an entry is, for messages.
func (s status) kind() string {
	switch {
	case s.dir:
		return "a directory"
	case s.symlink:
		return "a symbolic link"
	}
	return "a file"
}
