package memfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Create implements core.FileSystem. The file is visible from now on, and each Write at once.
func (f *FS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	if err := f.check(ctx, "create", name); err != nil {
		return nil, err
	}
	durability, err := f.resolve(opts)
	if err != nil {
		return nil, core.PathError("create", name, err)
	}
	f.mu.Lock()
	w, err := f.claim(name)
	if err != nil {
		f.mu.Unlock()
		return nil, core.PathError("create", name, err)
	}
	w.ctx, w.durability, w.minReplicas = ctx, durability, opts.MinReplicas
	f.unlockAfter(Mutation{Op: OpCreate, Step: Applied, Name: name})
	return w, nil
}

// resolve checks the options against the capabilities.
func (f *FS) resolve(opts core.CreateOptions) (core.Durability, error) {
	durability, ok := f.caps.Resolve(opts.Durability)
	switch {
	case opts.MinReplicas < 0:
		return 0, fmt.Errorf("%w: MinReplicas is %d", fs.ErrInvalid, opts.MinReplicas)
	case !ok:
		return 0, fmt.Errorf("%w: durability %s", errors.ErrUnsupported, opts.Durability)
	case opts.MinReplicas > 1 && !f.caps.Replicas:
		return 0, fmt.Errorf("%w: MinReplicas is %d and there are no replicas", errors.ErrUnsupported, opts.MinReplicas)
	}
	return durability, nil
}

func (f *FS) claim(name string) (*writer, error) {
	if name == f.base {
		return nil, fs.ErrExist
	}
	dir, err := f.lookupDir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	base := path.Base(name)
	if dir.entries.get(base) != nil {
		return nil, fs.ErrExist
	}
	n := newFile(f.now())
	dir.link(base, n)
	f.journal.add(f.root, change{edits: []edit{{slot{dir, base}, n}}})
	w := &writer{fs: f, name: name, node: n}
	f.open[w] = struct{}{}
	return w, nil
}

// outcome is how far a Writer has come. It leaves streaming once, except that Abort may follow a failure.
type outcome uint8

const (
	streaming outcome = iota
	failed
	committed
	discarded
)

type writer struct {
	fs          *FS
	ctx         context.Context // the context of Create governs the stream
	name        string
	node        *node
	durability  core.Durability
	minReplicas int

	// Guarded by fs.mu, because Abort may come from another goroutine.
	outcome outcome
	cause   error // of failed
}

func (w *writer) describe() string { return "write " + w.name }

// begin locks the file system for one step of a streaming writer, or returns why there is none and leaves it unlocked.
func (w *writer) begin(op string) error {
	w.fs.mu.Lock()
	if err := w.ctx.Err(); err != nil {
		w.fail(err)
	}
	switch w.outcome {
	case failed:
		w.fs.mu.Unlock()
		return core.PathError(op, w.name, w.cause)
	case committed, discarded:
		w.fs.mu.Unlock()
		return core.PathError(op, w.name, fs.ErrClosed)
	}
	return nil
}

// fail notes the first failure. The file system must be locked.
func (w *writer) fail(cause error) {
	if w.outcome == streaming {
		w.outcome, w.cause = failed, cause
	}
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.begin("write"); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		w.fs.mu.Unlock()
		return 0, nil
	}
	w.node.data = append(w.node.data, p...)
	w.node.modTime = w.fs.now()
	w.fs.unlockAfter(Mutation{Op: OpWrite, Step: Applied, Name: w.name})
	return len(p), nil
}

func (w *writer) Sync() error {
	if err := w.begin("sync"); err != nil {
		return err
	}
	if !w.fs.caps.Sync {
		w.fs.mu.Unlock()
		return core.PathError("sync", w.name, errors.ErrUnsupported)
	}
	if w.durability == core.Unsynced {
		w.fs.mu.Unlock()
		return nil
	}
	w.node.synced = len(w.node.data)
	w.fs.unlockAfter(Mutation{Op: OpSync, Step: DataDurable, Name: w.name})
	if err := w.begin("sync"); err != nil {
		return err
	}
	w.syncEntry()
	w.fs.unlockAfter(Mutation{Op: OpSync, Step: EntryDurable, Name: w.name})
	return nil
}

// syncEntry makes the entry durable wherever the file is now: like a file handle of any other file system, a Writer follows
// its file. The file system must be locked.
func (w *writer) syncEntry() {
	if dir := w.node.parent; dir != nil {
		w.fs.journal.syncEntries(dir)
	}
}

func (w *writer) Close() error {
	err := w.commit()
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	delete(w.fs.open, w)
	return err
}

func (w *writer) commit() error {
	if err := w.begin("close"); err != nil {
		w.fs.mu.Lock()
		defer w.fs.mu.Unlock()
		if w.outcome == committed {
			return nil
		}
		return err
	}
	if w.minReplicas > replicas {
		w.fail(fmt.Errorf("%w: %d of %d replicas", core.ErrUnavailable, replicas, w.minReplicas))
	}
	if !w.node.below(w.fs.root) {
		w.fail(fmt.Errorf("%w: the file was removed while it was written", fs.ErrNotExist))
	}
	if w.outcome == failed {
		w.fs.mu.Unlock()
		return core.PathError("close", w.name, w.cause)
	}
	if w.durability == core.Unsynced {
		w.outcome = committed
		w.fs.unlockAfter(Mutation{Op: OpClose, Step: Applied, Name: w.name})
		return nil
	}
	w.node.synced = len(w.node.data)
	w.fs.unlockAfter(Mutation{Op: OpClose, Step: DataDurable, Name: w.name})
	if err := w.begin("close"); err != nil {
		return err
	}
	w.syncEntry()
	w.outcome = committed
	w.fs.unlockAfter(Mutation{Op: OpClose, Step: EntryDurable, Name: w.name})
	return nil
}

// Abort removes the file wherever it is now, and never another file that took its name.
func (w *writer) Abort() error {
	w.fs.mu.Lock()
	delete(w.fs.open, w)
	if w.outcome == committed || w.outcome == discarded {
		w.fs.mu.Unlock()
		return nil
	}
	w.outcome = discarded
	dir := w.node.parent
	if dir == nil {
		w.fs.mu.Unlock()
		return nil
	}
	w.fs.removeEntry(dir, w.node.name)
	w.fs.unlockAfter(Mutation{Op: OpAbort, Step: Applied, Name: w.name})
	return nil
}
