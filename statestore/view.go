package statestore

import (
	"io/fs"
	"iter"
	"sync/atomic"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Entry is a key with its value. The slices must not be changed, and are valid until the iteration goes on.
type Entry struct {
	Key   []byte
	Value []byte
}

// View is a version of a store, for reading. It does not change, whatever happens to the store's files, and it keeps its
// memory until Close. All methods are safe for concurrent use, but nothing may go on when Close is called.
type View struct {
	store   *Store
	version *version
	closed  atomic.Bool
}

// Version returns the number of the version.
func (v *View) Version() int64 { return v.version.number }

// Len returns the number of entries.
func (v *View) Len() int64 { return int64(v.version.tree.Len()) }

// Get returns the value of key, and whether it is there. The value must not be changed, and is valid until Close. After
// Close the error is fs.ErrClosed.
func (v *View) Get(key []byte) (value []byte, ok bool, err error) {
	if v.closed.Load() {
		return nil, false, v.failed("get", fs.ErrClosed)
	}
	value, ok = v.version.tree.Get(key)
	return value, ok, nil
}

// All iterates over the entries in the order of the bytes of their keys. After an error, which comes with a zero entry, it
// yields nothing more.
func (v *View) All() iter.Seq2[Entry, error] { return v.Range(nil, nil) }

// Prefix is as All, for the keys that begin with prefix.
func (v *View) Prefix(prefix []byte) iter.Seq2[Entry, error] {
	return v.Range(prefix, prefixEnd(prefix))
}

// Range is as All, for the keys at or above from and below to. A nil from is the lowest key, a nil to has no end.
func (v *View) Range(from, to []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if v.closed.Load() {
			yield(Entry{}, v.failed("iterate", fs.ErrClosed))
			return
		}
		for key, value := range v.version.tree.Range(from, to) {
			if !yield(Entry{key, value}, nil) {
				return
			}
		}
	}
}

// Close ends the use of the view. Calling it again is harmless.
func (v *View) Close() error {
	if !v.closed.Swap(true) {
		v.store.opts.Budget.release(v.version)
	}
	return nil
}

func (v *View) failed(op string, err error) error {
	return core.PathError(op, v.store.versionPath(v.version.number), err)
}

// prefixEnd returns the lowest key above all that begin with prefix, nil if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
