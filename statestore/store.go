package statestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// Store is the versions of one state store, in one directory. All methods are safe for concurrent use.
//
// # Owners
//
// Opening and reading a store writes nothing and disturbs nobody. The first Commit, Rollback or maintenance of a Store claims
// the directory. From then on every Store that was opened before, in this process or another, gets core.ErrFenced from what
// it tries to write: it must stop, and be opened again if it is to go on. Of several that were opened at the same time the
// first to write is the owner. Spark itself knows nothing of owners.
type Store struct {
	fsys core.FileSystem
	dir  string
	opts Options

	ops       *operations
	writing   gate // held by whoever changes the versions: a commit, a rollback, a claim
	loading   gate // held by whoever reads files into memory: the next finds the version in the cache
	snapshots gate // held by whoever takes or repairs a snapshot
	cleaning  gate // held by whoever deletes old files

	// Guarded by writing.
	seen     int64           // newest epoch when the store was opened
	attempts map[string]bool // names of the claims of this store, lost ones included

	// Guarded by the budget's mutex, see cache.go.
	cached map[int64]*version
	recent []*version  // the same, least recently used first
	held   ordered.Set // all versions in memory, those that only views and transactions use included

	mu          sync.Mutex
	claimed     *claim   // nil before the first write
	files       *Listing // what the owner knows to be there, never changed; nil if that is not known for sure
	open        map[*Tx]struct{}
	damaged     map[string]origin // snapshots that could not be read
	verified    map[string]origin // snapshots that were read to their end
	rowsChecked bool              // that they have checksums as the options say
	rollingBack bool
	jobs        map[*context.CancelCauseFunc]struct{} // maintenance under way
	stats       Stats
}

// origin identifies a file that was read or written: if any of it differs, the file was replaced.
type origin struct {
	name    string
	size    int64
	modTime time.Time
}

func (o origin) equal(p origin) bool {
	return o.name == p.name && o.size == p.size && o.modTime.Equal(p.modTime)
}

// Open returns the store in dir, which a program of Spark calls <checkpoint>/state/<operator>/<partition>, with the store's
// name below it unless that is "default"; see [StoreDir]. The directory need not exist: the first commit makes it. Open
// reads the directory, but no file, and writes nothing.
func Open(ctx context.Context, fsys core.FileSystem, dir string, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, core.PathError("open", dir, err)
	}
	if err := opts.suits(fsys); err != nil {
		return nil, core.PathError("open", dir, err)
	}
	if err := core.CheckName("open", "/", dir); err != nil {
		return nil, err
	}
	s := &Store{
		fsys: fsys, dir: dir, opts: opts.withDefaults(),
		ops:     newOperations(),
		writing: newGate(), loading: newGate(), snapshots: newGate(), cleaning: newGate(),
		attempts: map[string]bool{}, open: map[*Tx]struct{}{}, damaged: map[string]origin{}, verified: map[string]origin{},
		jobs: map[*context.CancelCauseFunc]struct{}{},
	}
	l, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	s.seen = l.newestEpoch()
	return s, nil
}

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

// Close ends the use of the store. It stops maintenance of the store, waits for calls that are under way, and ends all
// transactions; if some had not ended, their changes are lost and the error is an *OpenTransactionsError. Views stay
// readable until they are closed. Everything else is fs.ErrClosed afterwards. Calling it again is harmless.
func (s *Store) Close() error {
	s.ops.close()
	s.opts.Budget.forget(s, func(*version) bool { return true })
	s.mu.Lock()
	var left []*Tx
	for t := range s.open {
		left = append(left, t)
	}
	s.mu.Unlock()
	var lost OpenTransactionsError
	for _, t := range left {
		if t.end(ended) {
			lost.Versions = append(lost.Versions, t.base.number+1)
		}
	}
	if len(lost.Versions) > 0 {
		return core.PathError("close", s.dir, &lost)
	}
	return nil
}

// List returns what the directory holds now. A directory that does not exist holds nothing.
func (s *Store) List(ctx context.Context) (Listing, error) {
	ctx, done, err := s.ops.beginStoppable(ctx)
	if err != nil {
		return Listing{}, core.PathError("list", s.dir, err)
	}
	defer done()
	return s.list(ctx)
}

func (s *Store) list(ctx context.Context) (Listing, error) {
	var entries []core.FileInfo
	for info, err := range s.fsys.List(ctx, s.dir) {
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(entries) == 0:
			return Sort(nil), nil
		case err != nil:
			return Listing{}, err
		}
		entries = append(entries, info)
	}
	return Sort(entries), nil
}

// Latest returns the highest version that there is, 0 if there is none. If it cannot be rebuilt the error says why; an older
// one is taken only on request, by [Store.LatestLoadable]. What is in the files is not looked at.
func (s *Store) Latest(ctx context.Context) (int64, error) {
	l, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	v, err := PlanLatest(l)
	return v, core.PathError("latest", s.dir, err)
}

// LatestLoadable returns the highest version whose files are all there, 0 if there is none.
func (s *Store) LatestLoadable(ctx context.Context) (int64, error) {
	l, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	return LatestLoadable(l), nil
}

// Claim makes this store the owner of its directory now, rather than at its first write. If another has claimed since this
// store was opened the error is core.ErrFenced.
func (s *Store) Claim(ctx context.Context) error {
	return s.write(ctx, "claim", func(ctx context.Context) error {
		c, err := s.own(ctx)
		if err != nil {
			return err
		}
		return c.check(ctx)
	})
}

// write runs what changes the directory, one at a time.
func (s *Store) write(ctx context.Context, op string, change func(context.Context) error) error {
	if s.opts.ReadOnly {
		return core.PathError(op, s.dir, fmt.Errorf("%w: the store was opened for reading only", fs.ErrPermission))
	}
	done, err := s.ops.begin()
	if err != nil {
		return core.PathError(op, s.dir, err)
	}
	defer done()
	if err := s.writing.enter(ctx); err != nil {
		return core.PathError(op, s.dir, err)
	}
	defer s.writing.leave()
	return change(ctx)
}

// own makes sure that the store owns its directory and knows what is in it. The caller holds the gate writing.
func (s *Store) own(ctx context.Context) (*claim, error) {
	c := s.owner()
	if c == nil {
		var err error
		if c, err = newClaim(ctx, s, s.seen); err != nil {
			return nil, err
		}
	}
	if s.known() != nil {
		return c, nil
	}
	l, err := s.list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = c
	if err != nil {
		return nil, err
	}
	s.files = &l
	return c, nil
}

// owner returns the claim of this store, nil before the first write.
func (s *Store) owner() *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

// versionPath names a version in errors.
func (s *Store) versionPath(v int64) string {
	if v < 1 {
		return s.dir
	}
	return path.Join(s.dir, FileName(v, codec.Delta))
}
