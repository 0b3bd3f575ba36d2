package hdfsfs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClient keeps files in memory, and fails as its hook says.
type fakeClient struct {
	// before is called before each call with its method and name; an error is returned in the place of the call.
	before func(method, name string) error
	// after is called after each call that has succeeded; an error replaces its success, so that the answer is lost.
	after func(method, name string) error

	replicas int // what finish reports
	can      features
	closed   chan struct{}

	mu     sync.Mutex
	nextID uint64
	names  map[string]*fakeFile
	calls  map[string]int
}

type fakeFile struct {
	status
	content []byte
	open    bool
}

var errFake = &connError{err: errors.New("connection reset")}

func newFake() *fakeClient {
	f := &fakeClient{replicas: 3, closed: make(chan struct{}), names: map[string]*fakeFile{}, calls: map[string]int{}, nextID: 16384}
	f.names["/"] = &fakeFile{status: status{id: f.nextID, dir: true, perm: 0o755}}
	return f
}

// onFake returns a file system on a fake, which the test closes.
func onFake(t *testing.T, c *fakeClient, o Options) *FS {
	t.Helper()
	f := newFS(c, settings{authority: "fake", umask: 0o022}, o.withDefaults())
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func (c *fakeClient) begin(method, name string) error {
	c.mu.Lock()
	c.calls[method]++
	before := c.before
	c.mu.Unlock()
	if before != nil {
		return before(method, name)
	}
	return nil
}

func (c *fakeClient) end(method, name string) error {
	if c.after != nil {
		return c.after(method, name)
	}
	return nil
}

func (c *fakeClient) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

func (c *fakeClient) find(name string) (string, *fakeFile) {
	for n, file := range c.names {
		if n == name || inodePath(file.id) == name {
			return n, file
		}
	}
	return "", nil
}
func (c *fakeClient) features() features { return c.can }

func (c *fakeClient) create(_ context.Context, name string, spec createSpec) (clientWriter, error) {
	if err := c.begin("create", name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, file := c.find(name); file != nil {
		return nil, fs.ErrExist
	}
	_, parent := c.find(path.Dir(name))
	if parent == nil {
		return nil, fs.ErrNotExist
	}
	c.nextID++
	file := &fakeFile{open: true, status: status{
		id: c.nextID, name: path.Base(name), perm: spec.perm, replication: max(3, spec.replication), erasure: parent.erasure, encrypted: parent.encrypted,
	}}
	c.names[name] = file
	return &fakeWriter{c: c, file: file}, c.end("create", name)
}

func (c *fakeClient) stat(_ context.Context, name string) (status, error) {
	if err := c.begin("stat", name); err != nil {
		return status{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, file := c.find(name)
	if file == nil {
		return status{}, fs.ErrNotExist
	}
	s := file.status
	s.size = int64(len(file.content))
	return s, nil
}

func (c *fakeClient) open(_ context.Context, file status) (clientReader, error) {
	if err := c.begin("open", file.name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.find(inodePath(file.id))
	if found == nil {
		return nil, fs.ErrNotExist
	}
	return &fakeReader{c: c, file: found}, nil
}

func (c *fakeClient) list(_ context.Context, dir status) (clientListing, error) {
	if err := c.begin("list", dir.name); err != nil {
		return nil, err
	}
	return nil, errors.ErrUnsupported
}

func (c *fakeClient) mkdirs(_ context.Context, name string, perm uint32) error {
	if err := c.begin("mkdirs", name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, file := c.find(name); file == nil {
		c.nextID++
		c.names[name] = &fakeFile{status: status{id: c.nextID, name: path.Base(name), dir: true, perm: perm}}
	}
	return c.end("mkdirs", name)
}

func (c *fakeClient) rename(_ context.Context, oldname, newname string, replace bool) error {
	if err := c.begin("rename", oldname); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, source := c.find(oldname)
	_, target := c.find(newname)
	switch {
	case source == nil:
		return fs.ErrNotExist
	case target != nil && !replace:
		return fs.ErrExist
	}
	delete(c.names, oldname)
	c.names[newname] = source
	return c.end("rename", oldname)
}

func (c *fakeClient) remove(_ context.Context, name string, _ bool) (bool, error) {
	if err := c.begin("remove", name); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, file := c.find(name)
	if file == nil {
		return false, nil
	}
	delete(c.names, at)
	return true, c.end("remove", name)
}

func (c *fakeClient) counts() Counts { return Counts{} }
func (c *fakeClient) close()         { close(c.closed) }
func (c *fakeClient) wait()          {}

// left lists what is there beside the root.
func (c *fakeClient) left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.names {
		if name != "/" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

type fakeWriter struct {
	c         *fakeClient
	file      *fakeFile
	mu        sync.Mutex
	cut       chan struct{}
	discarded []bool
}

func (w *fakeWriter) status() status { return w.file.status }

func (w *fakeWriter) write(p []byte) error {
	if err := w.c.begin("write", w.file.name); err != nil {
		return err
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.file.content = append(w.file.content, p...)
	return nil
}

func (w *fakeWriter) sync() error { return errors.ErrUnsupported }

func (w *fakeWriter) finish(time.Duration) (int, error) {
	if err := w.c.begin("finish", w.file.name); err != nil {
		return 0, err
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if _, file := w.c.find(inodePath(w.file.id)); file == nil {
		return 0, &remoteError{class: "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", message: "No lease"}
	}
	w.file.open = false
	return w.c.replicas, w.c.end("finish", w.file.name)
}

func (w *fakeWriter) discard(removed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discarded = append(w.discarded, removed)
}

func (w *fakeWriter) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut != nil {
		close(w.cut)
		w.cut = nil
	}
}

type fakeReader struct {
	c    *fakeClient
	file *fakeFile
	at   int64
}

func (r *fakeReader) readAt(p []byte, off int64) (int, error) {
	if err := r.c.begin("read", r.file.name); err != nil {
		return 0, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	n := copy(p, r.file.content[off:])
	r.at = off + int64(n)
	return n, nil
}

func (r *fakeReader) position() int64 { return r.at }
func (r *fakeReader) close()          {}
