package statestore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestAVersionIsWhatWasCommitted(t *testing.T) {
	for _, opts := range []statestore.Options{
		{},
		{NoFooter: true},
		{RowChecksum: true},
		{Compression: codec.Zstd},
		{Compression: codec.Snappy},
		{Compression: codec.LZF},
		{Compression: codec.None},
		{CachedVersions: -1},
	} {
		fsys := newMem()
		s := openStore(t, fsys, opts)
		states := []state{{}, {"a": "12345678", "b": "", "": "empty ke"}, {"a": "12345678", "": "empty ke"}, {}, {"z": "87654321"}}
		for v, want := range states[1:] {
			commit(t, s, int64(v), want)
		}
		commit(t, s, 4, states[4]) // an empty set of changes
		states = append(states, states[4])
		for _, reader := range []*statestore.Store{s, openStore(t, fsys, opts)} {
			for v, want := range states {
				require.Equal(t, want, load(t, reader, int64(v)), "version %d, %+v", v, opts)
			}
			latest, err := reader.Latest(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 5, latest)
			require.NoError(t, reader.Close())
		}
		require.Equal(t, []string{"1.delta", "2.delta", "3.delta", "4.delta", "5.delta"}, versionFiles(t, fsys))
	}
}

func TestValuesOfAnyLengthComeBackWhereFilesHaveFooters(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	commit(t, s, 0, state{"k": "odd", "big": string(bytes.Repeat([]byte("x"), 3<<20))})
	require.Equal(t, load(t, s, 1), load(t, openStore(t, fsys, statestore.Options{}), 1))

	plain := openStore(t, newMem(), statestore.Options{NoFooter: true, MaxBytes: 16})
	tx, err := plain.Begin(t.Context(), 0)
	require.NoError(t, err)
	require.ErrorIs(t, tx.Put([]byte("k"), []byte("odd")), fs.ErrInvalid)
	require.ErrorIs(t, tx.Put([]byte("k"), make([]byte, 24)), fs.ErrInvalid)
	require.ErrorIs(t, tx.Put(make([]byte, 17), nil), fs.ErrInvalid)
	require.Zero(t, tx.Len())
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
}

func TestEdgeVersions(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	history(t, s, 0, 5, nil)
	require.Empty(t, load(t, s, 0))
	for v, want := range map[int64]error{-1: fs.ErrInvalid, 6: fs.ErrNotExist, math.MaxInt64: fs.ErrNotExist, math.MinInt64: fs.ErrInvalid} {
		_, err := s.Load(t.Context(), v)
		require.ErrorIs(t, err, want, "version %d", v)
	}
	for v, want := range map[int64]error{-1: fs.ErrInvalid, 6: fs.ErrNotExist, math.MaxInt64: fs.ErrInvalid, math.MaxInt64 - 1: fs.ErrNotExist} {
		_, err := s.Begin(t.Context(), v)
		require.ErrorIs(t, err, want, "version %d", v)
	}
	require.Len(t, versionFiles(t, fsys), 5)
}

func TestReadingWritesNothing(t *testing.T) {
	fsys := newMem()
	history(t, openStore(t, fsys, statestore.Options{}), 0, 5, nil)
	wrote := 0
	fsys.OnMutation(func(memfs.Mutation) { wrote++ })
	for _, opts := range []statestore.Options{{}, {ReadOnly: true}} {
		s := openStore(t, fsys, opts)
		load(t, s, 5)
		tx, err := s.Begin(t.Context(), 5)
		require.NoError(t, err)
		require.NoError(t, tx.Abort())
		_, err = s.Verify(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.Zero(t, wrote)
	require.Empty(t, fsys.OpenFiles())

	s := openStore(t, fsys, statestore.Options{ReadOnly: true})
	tx, err := s.Begin(t.Context(), 5)
	require.NoError(t, err)
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorIs(t, s.Rollback(t.Context(), 3), fs.ErrPermission)
	require.ErrorIs(t, s.Maintain(t.Context()), fs.ErrPermission)
	require.ErrorIs(t, s.Claim(t.Context()), fs.ErrPermission)
	require.Zero(t, wrote)
}

func TestADirectoryThatIsNotThereIsAnEmptyStore(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{ReadOnly: true})
	require.Empty(t, load(t, s, 0))
	_, err := s.Load(t.Context(), 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	latest, err := s.Latest(t.Context())
	require.NoError(t, err)
	require.Zero(t, latest)
	require.Empty(t, names(t, fsys, "/"))
}

func TestOptionsAreCheckedAtOnce(t *testing.T) {
	_, err := statestore.Open(t.Context(), newMem(), home, statestore.Options{
		Compression: 99, CompressionLevel: 23, MaxBytes: -1, Durability: 99, MinReplicas: -1, CachedVersions: -2, Parallelism: -1,
		Snapshots: statestore.SnapshotPolicy{MinDeltas: -1}, Cleanup: statestore.CleanupPolicy{Retain: -1},
	})
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, field := range []string{"Compression", "CompressionLevel", "MaxBytes", "Durability", "MinReplicas", "CachedVersions", "Parallelism", "MinDeltas", "Retain"} {
		require.ErrorContains(t, err, field)
	}
	_, err = statestore.Open(t.Context(), newMem(), "relative", statestore.Options{})
	require.ErrorIs(t, err, fs.ErrInvalid)

	weak := memfs.New(memfs.Options{Capabilities: &core.Capabilities{Durabilities: []core.Durability{core.Unsynced}, NoReplaceFiles: true}})
	_, err = statestore.Open(t.Context(), weak, home, statestore.Options{Durability: core.Synced})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = statestore.Open(t.Context(), weak, home, statestore.Options{MinReplicas: 2})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	weaker := memfs.New(memfs.Options{Capabilities: &core.Capabilities{Durabilities: []core.Durability{core.Unsynced}}})
	_, err = statestore.Open(t.Context(), weaker, home, statestore.Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = statestore.Open(t.Context(), weaker, home, statestore.Options{ReadOnly: true})
	require.NoError(t, err)
}

func TestClose(t *testing.T) {
	s := openStore(t, newMem(), statestore.Options{})
	states := history(t, s, 0, 2, nil)
	view, err := s.Load(t.Context(), 1)
	require.NoError(t, err)
	tx, err := s.Begin(t.Context(), 2)
	require.NoError(t, err)
	finished, err := s.Begin(t.Context(), 2)
	require.NoError(t, err)
	require.NoError(t, finished.Abort())

	var left *statestore.OpenTransactionsError
	require.ErrorAs(t, s.Close(), &left)
	require.Equal(t, []int64{3}, left.Versions)
	require.NoError(t, s.Close())
	require.ErrorIs(t, tx.Put(nil, nil), fs.ErrClosed)
	_, err = s.Load(t.Context(), 1)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = s.Begin(t.Context(), 1)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, s.Maintain(t.Context()), fs.ErrClosed)
	require.ErrorIs(t, s.Rollback(t.Context(), 1), fs.ErrClosed)

	require.Equal(t, states[1], contents(t, view.All()), "a view stays readable")
	require.NoError(t, view.Close())
	require.NoError(t, view.Close())
	_, _, err = view.Get([]byte("a"))
	require.ErrorIs(t, err, fs.ErrClosed)
	for _, err := range view.All() {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

func TestAnEndedContextHasNoEffect(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	history(t, s, 0, 2, nil)
	tx, err := s.Begin(t.Context(), 2)
	require.NoError(t, err)
	wrote := 0
	fsys.OnMutation(func(memfs.Mutation) { wrote++ })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Load(ended, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Begin(ended, 2)
	require.ErrorIs(t, err, context.Canceled)
	_, err = tx.Commit(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Rollback(ended, 1), context.Canceled)
	require.ErrorIs(t, s.Maintain(ended), context.Canceled)
	_, err = statestore.Open(ended, fsys, home, statestore.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, wrote)
}
