package core

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// AtomicOptions of an [AtomicFile].
type AtomicOptions struct {
	// Temp is the name of the temporary, which must be one that nobody else uses; Final is the name to publish under.
	Temp, Final string
	// Mode says what happens if Final exists when the file is published.
	Mode RenameMode
	// Create options of the temporary.
	Create CreateOptions
}

// AtomicFile is the one way in which this module publishes a file in a single step, on every file system: it writes a
// temporary, commits that, and renames it.
//
//	create temp → write … → Close (durable) → Rename temp to final (durable)
//
// Whatever the moment of a crash, final is the complete new file or what it was before; a temporary may be left over. Write
// and Commit are for one goroutine; Abort may come from any and breaks a call that hangs.
type AtomicFile struct {
	fsys FileSystem
	opts AtomicOptions
	ctx  context.Context //nolint:containedctx // the context given at creation governs the file

	cancel   context.CancelFunc
	aborting atomic.Bool

	mu     sync.Mutex
	writer Writer
	buffer *bufio.Writer
	size   int64
	crc    uint32
	failed error
	ended  bool
}

// atomicBuffer is the size in bytes of an AtomicFile's buffer.
const atomicBuffer = 64 << 10

// CreateAtomic creates the temporary.
func CreateAtomic(ctx context.Context, fsys FileSystem, opts AtomicOptions) (*AtomicFile, error) {
	streamCtx, cancel := context.WithCancel(ctx)
	w, err := fsys.Create(streamCtx, opts.Temp, opts.Create)
	if err != nil {
		cancel()
		return nil, err
	}
	return &AtomicFile{
		fsys: fsys, opts: opts, ctx: streamCtx, cancel: cancel, writer: w, buffer: bufio.NewWriterSize(w, atomicBuffer),
	}, nil
}

// Write implements io.Writer.
func (a *AtomicFile) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("write"); err != nil {
		return 0, err
	}
	n, err := a.buffer.Write(p)
	a.crc = crc32.Update(a.crc, castagnoli, p[:n])
	a.size += int64(n)
	return n, a.fail(err)
}

// Size is the number of bytes written so far.
func (a *AtomicFile) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// Sync makes durable what was written so far, in the temporary.
func (a *AtomicFile) Sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("sync"); err != nil {
		return err
	}
	if err := a.fail(a.buffer.Flush()); err != nil {
		return err
	}
	return a.fail(a.writer.Sync())
}

// Commit publishes the file: when it returns nil, all bytes are durable under the final name. When it fails, nothing of this
// file is published and the temporary is removed, except when the error says that the outcome is unknown.
func (a *AtomicFile) Commit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.usable("commit"); err != nil {
		return err
	}
	defer a.end()
	err := a.buffer.Flush()
	if err == nil {
		err = a.writer.Close()
	}
	if err != nil {
		return errors.Join(a.fail(err), a.removeTemp())
	}
	return a.fail(a.publish())
}

// Abort discards the file unless it is committed. It is harmless after any ending.
func (a *AtomicFile) Abort() error {
	a.aborting.Store(true)
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	defer a.end()
	return a.removeTemp()
}

func (a *AtomicFile) removeTemp() error {
	if err := a.writer.Abort(); err != nil {
		return fmt.Errorf("temporary left behind: %w", err)
	}
	return nil
}

func (a *AtomicFile) end() {
	a.ended = true
	a.cancel()
}

func (a *AtomicFile) usable(op string) error {
	switch {
	case a.failed != nil:
		return a.failed
	case a.ended || a.aborting.Load():
		return &fs.PathError{Op: op, Path: a.opts.Final, Err: fs.ErrClosed}
	}
	return nil
}

func (a *AtomicFile) fail(err error) error {
	if err != nil && a.failed == nil {
		a.failed = err
	}
	return err
}

// publish renames the closed temporary and settles a failed rename.
func (a *AtomicFile) publish() error {
	renameErr := a.fsys.Rename(a.ctx, a.opts.Temp, a.opts.Final, a.opts.Mode)
	if renameErr == nil {
		return nil
	}
	ctx, cancel := cleanupContext(a.ctx)
	defer cancel()
	seen := a.lookAfterRename(ctx)
	switch decidePublication(seen, lostReply(renameErr), a.opts.Mode) {
	case notPublished:
		return errors.Join(renameErr, a.dropTemp(ctx, seen))
	case published:
		if err := confirmDurable(ctx, a.fsys, a.opts); err == nil {
			return nil
		}
		return a.withdraw(ctx, renameErr)
	case toWithdraw:
		return a.withdraw(ctx, renameErr)
	default:
		return outcomeUnknown(renameErr)
	}
}

// dropTemp removes a temporary that a refused rename left.
func (a *AtomicFile) dropTemp(ctx context.Context, seen publicationFacts) error {
	if seen.temp != present {
		return nil
	}
	if err := a.fsys.Remove(ctx, a.opts.Temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("temporary left behind: %w", err)
	}
	return nil
}

// withdraw takes a file back that is visible under its final name but may not be durable there.
func (a *AtomicFile) withdraw(ctx context.Context, cause error) error {
	if err := a.fsys.Rename(ctx, a.opts.Final, a.opts.Temp, RenameNoReplace); err != nil {
		return outcomeUnknown(errors.Join(cause, err))
	}
	return errors.Join(cause, a.dropTemp(ctx, publicationFacts{temp: present}))
}

func outcomeUnknown(err error) error {
	return fmt.Errorf("outcome unknown, the file may or may not be published: %w", err)
}

// presence is what a look at a name told.
type presence uint8

const (
	unknown presence = iota
	absent
	present
)

// publicationFacts is what is seen after a rename that returned an error.
type publicationFacts struct {
	temp  presence // the temporary's name
	final presence // a file with exactly our bytes under the final name
}

type publicationDecision uint8

const (
	outcomeOpen publicationDecision = iota
	notPublished
	published
	toWithdraw
)

// decidePublication decides what a rename did that returned an error. A lost reply (the call was cut off or retried below)
// may hide a success; any other error means that the file system could not make the rename durable, and a second attempt
// at that proves nothing, so a visible file is taken back. A replaced file cannot be taken back.
func decidePublication(seen publicationFacts, lost bool, mode RenameMode) publicationDecision {
	switch {
	case seen.temp == present:
		return notPublished
	case seen.temp == unknown || seen.final == unknown:
		return outcomeOpen
	case seen.final == absent:
		return notPublished
	case lost:
		return published
	case mode == RenameReplace:
		return outcomeOpen
	}
	return toWithdraw
}

// lostReply reports whether err leaves open if the rename took place: cut off, or, for a retry below, already done.
func lostReply(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnavailable) ||
		errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)
}

func (a *AtomicFile) lookAfterRename(ctx context.Context) publicationFacts {
	var seen publicationFacts
	switch _, err := a.fsys.Stat(ctx, a.opts.Temp); {
	case err == nil:
		seen.temp = present
		return seen
	case errors.Is(err, fs.ErrNotExist):
		seen.temp = absent
	}
	seen.final = a.lookAtFinal(ctx)
	return seen
}

// lookAtFinal compares the final file with what was written: its name alone does not tell whose it is.
func (a *AtomicFile) lookAtFinal(ctx context.Context) presence {
	r, err := a.fsys.Open(ctx, a.opts.Final)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
		return absent
	case err != nil:
		return unknown
	}
	defer func() { _ = r.Close() }()
	if r.Size() != a.size {
		return absent
	}
	sum := crc32.New(castagnoli)
	if n, err := io.Copy(sum, r); err != nil || n != a.size {
		return unknown
	}
	if sum.Sum32() != a.crc {
		return absent
	}
	return present
}

// confirmDurable makes the entries of final's directory durable: a durable file beside it takes them along.
func confirmDurable(ctx context.Context, fsys FileSystem, opts AtomicOptions) error {
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	name := join(parentDir(opts.Final), barrierPrefix+id.String())
	w, err := fsys.Create(ctx, name, opts.Create)
	if err != nil {
		return err
	}
	closeErr := w.Close()
	if closeErr != nil {
		return errors.Join(closeErr, w.Abort())
	}
	return fsys.Remove(ctx, name)
}
