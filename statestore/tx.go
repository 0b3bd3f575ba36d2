package statestore

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// Tx makes version v+1 of a store out of version v. It has two endings and takes exactly one: Commit makes the version, Abort
// drops the changes. A Commit that fails ends the transaction as well; whoever wants to try again begins another. All methods
// are safe for concurrent use.
type Tx struct {
	store *Store
	base  *version

	mu       sync.Mutex
	state    txState
	editor   *ordered.Editor
	waiting  changes // made after what the editor has
	reserved int64   // bytes of the budget
}

type txState uint8

const (
	updating txState = iota
	committing
	ended
)

// reserveStep is how much of the budget a transaction takes at once.
const reserveStep = 256 << 10

// Begin begins a transaction that makes version v+1; v is loaded if it is not in memory. Version 0 is the empty store. Any
// number of transactions may go on at once, but of those that make one version only the first to commit succeeds, and those
// with equal results. Begin writes nothing.
//
// Versions above v+1 are an *AheadError: see [Store.Rollback]. If v cannot be loaded the error is as Load's.
func (s *Store) Begin(ctx context.Context, v int64) (*Tx, error) {
	ctx, done, err := s.ops.beginStoppable(ctx)
	if err != nil {
		return nil, core.PathError("begin", s.dir, err)
	}
	defer done()
	base, err := s.acquire(ctx, v, true)
	if err != nil {
		if c := s.owner(); c != nil {
			err = c.explain(ctx, err)
		}
		return nil, core.PathError("begin", s.versionPath(v), err)
	}
	t := &Tx{store: s, base: base, editor: base.tree.Edit()}
	s.mu.Lock()
	s.open[t] = struct{}{}
	s.mu.Unlock()
	return t, nil
}

// Version returns the version that Commit makes.
func (t *Tx) Version() int64 { return t.base.number + 1 }

// Len returns the number of entries, the changes included.
func (t *Tx) Len() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
	return int64(t.editor.Len())
}

// Get is as that of View; it sees the changes. The value is valid until the transaction ends.
func (t *Tx) Get(key []byte) (value []byte, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable("get"); err != nil {
		return nil, false, err
	}
	t.settle()
	value, ok = t.editor.Get(key)
	return value, ok, nil
}

// Put sets the value of a key. Both slices are copied. A nil value is an empty one. A key or value above Options.MaxBytes,
// or a value whose length is not a multiple of 8 where files have no footer, is fs.ErrInvalid and changes nothing. If the
// budget leaves no room the error is [ErrBudget], and the change is not made.
func (t *Tx) Put(key, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable("put"); err != nil {
		return err
	}
	if err := t.store.opts.accepts(key, value); err != nil {
		return t.failed("put", err)
	}
	if err := t.reserve(int64(len(key) + len(value))); err != nil {
		return t.failed("put", err)
	}
	if len(key)+len(value) > waitingBytes {
		t.settle()
		t.editor.Put(key, value)
		return nil
	}
	t.wait(t.waiting.add(key, value, false))
	return nil
}

// Remove removes a key. One that is not there changes nothing.
func (t *Tx) Remove(key []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable("remove"); err != nil {
		return err
	}
	if err := t.reserve(0); err != nil {
		return t.failed("remove", err)
	}
	t.wait(t.waiting.add(key, nil, true))
	return nil
}

// wait lets a change wait for others unless there are enough.
func (t *Tx) wait(enough bool) {
	if enough {
		t.settle()
	}
}

// settle makes the changes that wait.
func (t *Tx) settle() { t.waiting.apply(t.editor) }

// All is as that of View. It yields the state at the call of All, whatever is changed meanwhile. It must not be used after
// the transaction has ended.
func (t *Tx) All() iter.Seq2[Entry, error] { return t.iterate(nil, nil) }

// Prefix is as All, for the keys that begin with prefix.
func (t *Tx) Prefix(prefix []byte) iter.Seq2[Entry, error] {
	return t.iterate(prefix, prefixEnd(prefix))
}

// Range is as All, for the keys at or above from and below to. A nil from is the lowest key, a nil to has no end.
func (t *Tx) Range(from, to []byte) iter.Seq2[Entry, error] { return t.iterate(from, to) }

func (t *Tx) iterate(from, to []byte) iter.Seq2[Entry, error] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable("iterate"); err != nil {
		return func(yield func(Entry, error) bool) { yield(Entry{}, err) }
	}
	t.settle()
	now := t.editor.Range(from, to)
	return func(yield func(Entry, error) bool) {
		for key, value := range now {
			if !yield(Entry{key, value}, nil) {
				return
			}
		}
	}
}

// Abort drops the changes. After the transaction has ended it does nothing, so that it may be deferred. It never fails.
func (t *Tx) Abort() error {
	t.end(updating)
	return nil
}

// end ends the transaction and reports whether it had not ended. While a commit is under way only that ends it.
func (t *Tx) end(from txState) bool {
	t.mu.Lock()
	if t.state == ended || t.state == committing && from != committing {
		t.mu.Unlock()
		return false
	}
	t.state = ended
	reserved := t.reserved
	t.reserved = 0
	t.mu.Unlock()
	b := t.store.opts.Budget
	b.unreserve(reserved)
	b.release(t.base)
	t.store.mu.Lock()
	delete(t.store.open, t)
	t.store.mu.Unlock()
	return true
}

// reserve takes what the changes hold, and n bytes beside, from the budget.
func (t *Tx) reserve(n int64) error {
	need := t.editor.AddedBytes() + t.waiting.bytes() + n
	if need <= t.reserved {
		return nil
	}
	more := need - t.reserved + reserveStep
	b := t.store.opts.Budget
	if b.tryReserve(more) == nil {
		t.reserved += more
		return nil
	}
	more -= reserveStep
	if err := b.tryReserve(more); err != nil {
		return err
	}
	t.reserved += more
	return nil
}

func (t *Tx) usable(op string) error {
	if t.state != updating {
		return t.failed(op, fmt.Errorf("%w: the transaction has ended", fs.ErrClosed))
	}
	return nil
}

func (t *Tx) failed(op string, err error) error {
	return core.PathError(op, t.store.versionPath(t.base.number+1), err)
}

// accepts refuses what the files could not hold.
func (o Options) accepts(key, value []byte) error {
	switch {
	case len(key) > o.MaxBytes || len(value) > o.MaxBytes:
		return fmt.Errorf("%w: a key of %d and a value of %d bytes, where at most %d are allowed", fs.ErrInvalid, len(key), len(value), o.MaxBytes)
	case o.NoFooter && len(value)%8 != 0:
		return fmt.Errorf("%w: a value of %d bytes: without footers the length must be a multiple of 8", fs.ErrInvalid, len(value))
	}
	return nil
}
