package fsurl

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Opener opens each file system once, when it is first asked for, and closes all of them. Its Open method is a core.Opener.
// It is safe for concurrent use.
type Opener struct {
	plan plan
	open func(context.Context, target) (FileSystem, error)

	ctx    context.Context //nolint:containedctx // ends with the Opener: what is being opened then gives up
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	mounts map[target]*mount
}

// mount is a file system that is open or is being opened.
type mount struct {
	ready chan struct{} // closed when fsys and err are set
	fsys  FileSystem
	err   error
}

var _ core.Opener = (*Opener)(nil).Open

// NewOpener returns an Opener, or what is wrong with the options, see [Options.Validate].
func NewOpener(opts Options) (*Opener, error) {
	p, err := opts.plan()
	if err != nil {
		return nil, err
	}
	o := &Opener{plan: p, open: p.open, mounts: map[target]*mount{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, nil
}

// Open returns the file system of a URL and the name that the URL has there; the errors are those of [Open]. The file system
// belongs to the Opener and must not be closed. One that could not be opened is tried again by the next call. Open returns
// when ctx ends, even if opening hangs. After Close it fails with fs.ErrClosed.
func (o *Opener) Open(ctx context.Context, qualified string) (core.FileSystem, string, error) {
	fsys, name, err := o.openFS(ctx, qualified)
	if err != nil {
		return nil, "", err
	}
	return fsys, name, nil
}

func (o *Opener) openFS(ctx context.Context, url string) (FileSystem, string, error) {
	t, err := o.plan.parse(url)
	if err != nil {
		return nil, "", core.PathError("open", url, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, "", core.PathError("open", url, err)
	}
	m, err := o.mount(t.fileSystem())
	if err != nil {
		return nil, "", core.PathError("open", url, err)
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		return nil, "", core.PathError("open", url, ctx.Err())
	}
	if m.err != nil {
		return nil, "", core.PathError("open", url, m.err)
	}
	return m.fsys, t.name, nil
}

// mount returns the mount of a file system and starts to open it if there is none.
func (o *Opener) mount(t target) (*mount, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, fs.ErrClosed
	}
	if m, ok := o.mounts[t]; ok {
		return m, nil
	}
	m := &mount{ready: make(chan struct{})}
	o.mounts[t] = m
	go func() {
		defer close(m.ready)
		m.fsys, m.err = o.open(o.ctx, t)
		if m.err != nil {
			o.forget(t)
		}
	}()
	return m, nil
}

// forget lets a later call try again.
func (o *Opener) forget(t target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		delete(o.mounts, t)
	}
}

// Close closes all file systems that were opened, lets those that are being opened give up and waits for them, and returns all errors. Calling it
// again is harmless.
func (o *Opener) Close() error {
	o.mu.Lock()
	mounts := o.mounts
	o.closed, o.mounts = true, nil
	o.mu.Unlock()
	o.cancel()
	var problems []error
	for _, m := range mounts {
		<-m.ready
		if m.err == nil {
			problems = append(problems, m.fsys.Close())
		}
	}
	return errors.Join(problems...)
}
