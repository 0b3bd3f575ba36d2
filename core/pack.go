package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// Pack holds the states that a worker writes for one checkpoint. It makes at most one file for exclusive and one for shared
// segments, and further ones only while several states that are too large to be buffered are written at the same time: so the
// number of calls to the storage does not grow with the number of states. State at or below the inline threshold stays
// inline, and a savepoint is never packed: its files must move with its directory.
//
// A pack has two endings and takes exactly one. Commit makes all of it durable; Close discards, may always be deferred, and after
// a successful Commit does nothing. The handles of packed states name no file until Commit has returned nil: before, they are
// refused wherever they would be persisted or acknowledged. A failed write or Commit loses the pack as a whole.
//
// A pack is safe for concurrent use; each of its streams is for one goroutine.
type Pack struct {
	packer     *Packer
	checkpoint int64
	location   *Location
	ctx        context.Context //nolint:containedctx // the context given to Begin governs the pack
	cancel     context.CancelFunc
	closing    atomic.Bool
	exclusive  streamConfig
	shared     streamConfig

	lock chan struct{} // held while the fields below are used, and while a buffered segment is appended

	files  []*packFile
	failed error // the first failure
	ended  packEnd
}

type packEnd uint8

const (
	packOpen packEnd = iota
	packCommitted
	packDiscarded
)

// CreateStateStream opens a stream for one state. It makes no file-system call; ctx governs the stream. A stream that is
// closed or whose context ends while its bytes are on their way to a file breaks the pack.
func (p *Pack) CreateStateStream(ctx context.Context, scope Scope) *StateStream {
	if !p.Packs() {
		return p.location.CreateStateStream(ctx, scope)
	}
	if scope == Shared {
		return newStateStream(ctx, &p.shared)
	}
	return newStateStream(ctx, &p.exclusive)
}

// config is that of the streams of a scope.
func (p *Pack) config(scope Scope) streamConfig {
	config := *p.packer.storage.streamConfig(p.packer.storage.fsys, p.packer.dir(scope), false)
	config.segments = func(ctx context.Context) (*segmentWriter, error) { return p.newSegment(ctx, scope) }
	return config
}

// Packer returns the packer that has begun the pack.
func (p *Pack) Packer() *Packer { return p.packer }

// Packs reports whether the states are packed: those of a savepoint are not.
func (p *Pack) Packs() bool { return p.location.reference.IsDefault() }

func (p *Pack) newSegment(ctx context.Context, scope Scope) (*segmentWriter, error) {
	id, err := p.packer.storage.opts.NewUUID()
	if err != nil {
		return nil, PathError("create", p.packer.dir(scope), err)
	}
	return &segmentWriter{pack: p, ctx: ctx, handle: &SegmentHandle{Scope: scope, LogicalID: id.String()}}, nil
}

// Commit makes the files of the pack durable and completes the handles of its states. When it returns nil, every handle that a
// stream of the pack has returned has the durability of the storage. All streams must have ended; one that is being written
// is fs.ErrInvalid. When it fails, because of an earlier failure too, the files are removed; the error names those that may be
// left.
func (p *Pack) Commit() error {
	p.lock <- struct{}{} // what holds it ends with the context
	defer p.release()
	if p.ended != packOpen || p.closing.Load() {
		return p.whyEnded("commit")
	}
	p.fail(PathError("commit", p.location.String(), p.ctx.Err()))
	for _, f := range p.files {
		if f.held {
			p.fail(PathError("commit", f.name, fmt.Errorf("%w: a stream of the pack is still being written", fs.ErrInvalid)))
		}
	}
	if p.failed == nil {
		p.fail(p.closeFiles())
	}
	if p.failed != nil {
		return errors.Join(p.failed, p.discard())
	}
	p.ended = packCommitted
	p.cancel()
	for _, f := range p.files {
		for _, handle := range f.segments {
			handle.Path = Qualify(p.packer.storage.fsys.URI(), f.name)
		}
	}
	p.packer.track(p.checkpoint, p.files)
	return nil
}

// closeFiles makes all files durable; one in which every segment was given up is removed instead.
func (p *Pack) closeFiles() error {
	if err := p.eachFile((*packFile).close); err != nil {
		return err
	}
	kept := p.files[:0:0]
	for _, f := range p.files {
		if len(f.segments) > 0 {
			kept = append(kept, f)
		}
	}
	p.files = kept
	return nil
}

// Close ends the pack and discards its files, unless it was committed. It breaks a call that hangs. The error names files that
// could not be removed; a later sweep of the job directory finds them.
func (p *Pack) Close() error {
	p.closing.Store(true)
	p.cancel()
	p.lock <- struct{}{}
	defer p.release()
	if p.ended != packOpen {
		return nil
	}
	return p.discard()
}

// discard ends the pack and removes its files.
func (p *Pack) discard() error {
	p.ended = packDiscarded
	p.cancel()
	return p.eachFile(func(f *packFile) error { return f.discard(p.ctx) })
}

// eachFile does something with all files at the same time.
func (p *Pack) eachFile(do func(*packFile) error) error {
	outcomes := make([]error, len(p.files))
	var all sync.WaitGroup
	for i, f := range p.files {
		all.Go(func() { outcomes[i] = do(f) })
	}
	all.Wait()
	return errors.Join(outcomes...)
}

// whyEnded is the error of a call that comes too late.
func (p *Pack) whyEnded(op string) error {
	if p.ended == packDiscarded && p.failed != nil {
		return p.failed
	}
	return &fs.PathError{Op: op, Path: p.location.String(), Err: fs.ErrClosed}
}

// acquire takes the lock of a pack that is open and has not failed.
func (p *Pack) acquire(ctx context.Context, op string) error {
	select {
	case p.lock <- struct{}{}:
	case <-ctx.Done():
		return PathError(op, p.location.String(), context.Cause(ctx))
	}
	var err error
	switch {
	case p.ended != packOpen || p.closing.Load():
		err = p.whyEnded(op)
	case p.failed != nil:
		err = p.failed
	}
	if err != nil {
		p.release()
	}
	return err
}

func (p *Pack) release() { <-p.lock }

// fail remembers the first error.
func (p *Pack) fail(err error) {
	if err == nil || p.failed != nil {
		return
	}
	if p.closing.Load() && errors.Is(err, context.Canceled) {
		err = brokenOff(err)
	}
	p.failed = err
}

// file returns a file of the scope that nobody holds, a new one if there is none. It is called with the lock held.
func (p *Pack) file(scope Scope) (*packFile, error) {
	for _, f := range p.files {
		if f.scope == scope && !f.held {
			return f, nil
		}
	}
	f := &packFile{scope: scope}
	err := f.create(p.ctx, p.packer.storage, p.packer.dir(scope))
	if err == nil || f.doubt {
		p.files = append(p.files, f)
	}
	return f, err
}
