package statestore_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

const home = "/ckpt/state/0/0"

// state is the plain map that a version is compared with.
type state map[string]string

// with returns a copy with other values of some keys.
func (s state) with(pairs ...string) state {
	next := maps.Clone(s)
	if next == nil {
		next = state{}
	}
	for i := 0; i < len(pairs); i += 2 {
		next[pairs[i]] = pairs[i+1]
	}
	return next
}

func openStore(t testing.TB, fsys core.FileSystem, opts statestore.Options) *statestore.Store {
	t.Helper()
	s, err := statestore.Open(t.Context(), fsys, home, opts)
	require.NoError(t, err)
	return s
}

// change applies what turns the transaction's state into want.
func change(t testing.TB, tx *statestore.Tx, want state) {
	t.Helper()
	have := contents(t, tx.All())
	for k := range have {
		if _, ok := want[k]; !ok {
			require.NoError(t, tx.Remove([]byte(k)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := have[k]; !ok || v != want[k] {
			require.NoError(t, tx.Put([]byte(k), []byte(want[k])))
		}
	}
}

// commit makes want the state of version base+1.
func commit(t testing.TB, s *statestore.Store, base int64, want state) {
	t.Helper()
	require.NoError(t, tryCommit(t, s, base, want))
}

func tryCommit(t testing.TB, s *statestore.Store, base int64, want state) error {
	t.Helper()
	tx, err := s.Begin(t.Context(), base)
	if err != nil {
		return err
	}
	defer func() { require.NoError(t, tx.Abort()) }()
	change(t, tx, want)
	v, err := tx.Commit(t.Context())
	if err == nil {
		require.Equal(t, base+1, v)
	}
	return err
}

// load returns the state of a version.
func load(t testing.TB, s *statestore.Store, v int64) state {
	t.Helper()
	got, err := tryLoad(t, s, v)
	require.NoError(t, err)
	return got
}

func tryLoad(t testing.TB, s *statestore.Store, v int64) (state, error) {
	t.Helper()
	view, err := s.Load(context.Background(), v)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, view.Close()) }()
	require.Equal(t, v, view.Version())
	got := contents(t, view.All())
	require.Equal(t, view.Len(), int64(len(got)))
	return got, nil
}

func contents(t testing.TB, all func(func(statestore.Entry, error) bool)) state {
	t.Helper()
	got := state{}
	last := ""
	for e, err := range all {
		require.NoError(t, err)
		require.True(t, len(got) == 0 || string(e.Key) > last, "keys ascend")
		last = string(e.Key)
		got[last] = string(e.Value)
	}
	return got
}

// history commits versions 1 to n, each with one more key, and returns the states by version.
func history(t testing.TB, s *statestore.Store, from, n int64, start state) []state {
	t.Helper()
	states := []state{start}
	for v := from; v < from+n; v++ {
		next := states[len(states)-1].with(fmt.Sprintf("key-%02d", v+1), fmt.Sprintf("value %d", v+1), "common", fmt.Sprint(v+1))
		commit(t, s, v, next)
		states = append(states, next)
	}
	return states
}

func names(t testing.TB, fsys core.FileSystem, dir string) []string {
	t.Helper()
	var all []string
	for info, err := range fsys.List(t.Context(), dir) {
		require.NoError(t, err)
		all = append(all, info.Name)
	}
	return all
}

// versionFiles are the names in the store's directory without the owner's.
func versionFiles(t testing.TB, fsys core.FileSystem) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, fsys, home), func(name string) bool {
		_, isEpoch := statestore.ParseEpochName(name)
		return isEpoch
	})
}

func write(t testing.TB, fsys core.FileSystem, name string, content []byte) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll(t.Context(), path.Dir(name)))
	w, err := fsys.Create(t.Context(), name, core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func read(t testing.TB, fsys core.FileSystem, name string) []byte {
	t.Helper()
	r, err := fsys.Open(t.Context(), name)
	require.NoError(t, err)
	content := make([]byte, r.Size())
	if len(content) > 0 {
		_, err = r.ReadAt(content, 0)
		require.NoError(t, err)
	}
	require.NoError(t, r.Close())
	return content
}

// replace puts other bytes under a name.
func replace(t testing.TB, fsys core.FileSystem, name string, content []byte) {
	t.Helper()
	require.NoError(t, fsys.Remove(t.Context(), name))
	write(t, fsys, name, content)
}

// damage flips a bit in the middle of a file.
func damage(t testing.TB, fsys core.FileSystem, name string) {
	t.Helper()
	content := read(t, fsys, name)
	content[len(content)/2] ^= 0x10
	replace(t, fsys, name, content)
}

func newMem() *memfs.FS { return memfs.New(memfs.Options{}) }

// hangAt makes the next call of op hang until its context ends. The channel is closed when it does.
func hangAt(fsys *faultfs.FS, op faultfs.Op) <-chan struct{} {
	hanging := make(chan struct{})
	var once sync.Once
	fsys.SetInjector(func(c faultfs.Call) (fault faultfs.Fault) {
		if c.Op == op {
			once.Do(func() {
				fault.Block = make(chan struct{})
				close(hanging)
			})
		}
		return fault
	})
	return hanging
}
