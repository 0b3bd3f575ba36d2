// Package storetest states what a state store promises as tests, for any file system that it runs on.
//
//	func TestStateStore(t *testing.T) {
//		storetest.Run(t, storetest.Config{New: func(t testing.TB) storetest.Instance {
//			return storetest.Instance{FS: …, Second: …, Root: …}
//		}})
//	}
package storetest

import (
	"context"
	"path"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// Config says how to reach the file system.
type Config struct {
	// New returns a file system for one subtest. What it starts or makes it must release with t.Cleanup.
	New func(t testing.TB) Instance
	// Options of the stores; what a rule needs it changes.
	Options statestore.Options
	// Rounds is how often each race is run; 20 by default.
	Rounds int
}

// Instance is a file system with a directory to work in.
type Instance struct {
	FS core.FileSystem
	// Second is another client of the same storage, which shares no cache with FS. It may be FS.
	Second core.FileSystem
	// Root is a fresh, empty, existing directory.
	Root string
}

// Run runs the rules, each in a subtest that is named for it.
func Run(t *testing.T, cfg Config) {
	if cfg.Rounds <= 0 {
		cfg.Rounds = 20
	}
	for _, r := range []struct {
		name  string
		check func(*subject)
	}{
		{"a committed version is what another client loads", committedVersions},
		{"a version costs one file, an empty one too", oneFileAVersion},
		{"equal content again is success, other content is a conflict", recommits},
		{"of stores that race for a version at most one wins", raceOfOwners},
		{"a successor fences the owner before it", fencing},
		{"rollback drops what is above, newest first", rollback},
		{"maintenance takes snapshots and keeps what must stay", maintenance},
		{"a damaged snapshot is passed over and repaired", repair},
		{"a damaged delta is an error and older versions load", damagedDelta},
		{"a version that is gone is not found, and one that lacks a delta is a gap", missing},
	} {
		t.Run(r.name, func(t *testing.T) {
			in := cfg.New(t)
			if in.Second == nil {
				in.Second = in.FS
			}
			r.check(&subject{TB: t, Instance: in, ctx: t.Context(), opts: cfg.Options, rounds: cfg.Rounds})
		})
	}
}

// subject is what a rule checks.
type subject struct {
	testing.TB
	Instance

	ctx    context.Context //nolint:containedctx // lives as long as one subtest
	opts   statestore.Options
	rounds int
}

// contents is the state of a version.
type contents map[string]string

func (c contents) with(key, value string) contents {
	next := contents{key: value}
	for k, v := range c {
		if k != key {
			next[k] = v
		}
	}
	return next
}

func (s *subject) dir() string { return path.Join(s.Root, "state/0/0") }

// open opens the store through one of the clients.
func (s *subject) open(fsys core.FileSystem) *statestore.Store {
	s.Helper()
	store, err := statestore.Open(s.ctx, fsys, s.dir(), s.opts)
	s.must(err)
	s.Cleanup(func() { _ = store.Close() })
	return store
}

func (s *subject) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *subject) is(got, want any, format string, args ...any) {
	s.Helper()
	if got != want {
		s.Fatalf("got %v, want %v: "+format, append([]any{got, want}, args...)...)
	}
}

// commit makes want the version after base.
func (s *subject) commit(store *statestore.Store, base int64, want contents) error {
	s.Helper()
	tx, err := store.Begin(s.ctx, base)
	if err != nil {
		return err
	}
	defer func() { s.must(tx.Abort()) }()
	for e, err := range tx.All() {
		s.must(err)
		if _, ok := want[string(e.Key)]; !ok {
			s.must(tx.Remove(e.Key))
		}
	}
	for k, v := range want {
		s.must(tx.Put([]byte(k), []byte(v)))
	}
	_, err = tx.Commit(s.ctx)
	return err
}

// history commits the versions from base+1 to base+n, and returns their states after the one of base.
func (s *subject) history(store *statestore.Store, base, n int64, start contents) []contents {
	s.Helper()
	states := []contents{start}
	for v := base; v < base+n; v++ {
		next := states[len(states)-1].with(string(rune('a'+v)), "12345678").with("version", "v="+string(rune('a'+v))+"-----")
		s.must(s.commit(store, v, next))
		states = append(states, next)
	}
	return states
}

func (s *subject) load(store *statestore.Store, v int64) (contents, error) {
	s.Helper()
	view, err := store.Load(s.ctx, v)
	if err != nil {
		return nil, err
	}
	defer func() { s.must(view.Close()) }()
	got := contents{}
	for e, err := range view.All() {
		s.must(err)
		got[string(e.Key)] = string(e.Value)
	}
	return got, nil
}

// holds requires a version's state.
func (s *subject) holds(store *statestore.Store, v int64, want contents) {
	s.Helper()
	got, err := s.load(store, v)
	s.must(err)
	s.is(len(got), len(want), "entries of version %d", v)
	for k, w := range want {
		s.is(got[k], w, "key %q of version %d", k, v)
	}
}

// files are the names of versions in the directory.
func (s *subject) files() []string {
	s.Helper()
	var names []string
	for info, err := range s.Second.List(s.ctx, s.dir()) {
		s.must(err)
		if _, _, ok := statestore.ParseFileName(info.Name); ok {
			names = append(names, info.Name)
		}
	}
	return names
}

// damage puts a file of zeros in the place of another, as a power cut may leave it.
func (s *subject) damage(name string) {
	s.Helper()
	full := s.dir() + "/" + name
	info, err := s.FS.Stat(s.ctx, full)
	s.must(err)
	s.must(s.FS.Remove(s.ctx, full))
	w, err := s.FS.Create(s.ctx, full, core.CreateOptions{})
	s.must(err)
	_, err = w.Write(make([]byte, info.Size))
	s.must(err)
	s.must(w.Close())
}
