package statestore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// writeChain writes deltas 1 to n, each of which puts one of a hundred keys, and returns the state of version n.
func writeChain(t *testing.T, fsys *memfs.FS, n int64) state {
	t.Helper()
	want := state{}
	var b bytes.Buffer
	for v := int64(1); v <= n; v++ {
		key, value := fmt.Sprint(v%100), fmt.Sprintf("%08d", v)
		b.Reset()
		w, err := codec.NewWriter(&b, codec.Delta, codec.WriterOptions{Compression: codec.None, NoFooter: true})
		require.NoError(t, err)
		require.NoError(t, w.Put([]byte(key), []byte(value)))
		require.NoError(t, w.Close())
		write(t, fsys, home+"/"+statestore.FileName(v, codec.Delta), b.Bytes())
		want[key] = value
	}
	return want
}

func TestALongChainLoadsWithOneFileOpenAtATimeAndACancelledLoadLeavesNothing(t *testing.T) {
	const n = longChain
	fsys := newMem()
	want := writeChain(t, fsys, n)
	slow := faultfs.Wrap(fsys, nil)
	reader := openStore(t, slow, statestore.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opened := 0
	slow.SetInjector(func(c faultfs.Call) faultfs.Fault {
		if c.Op == faultfs.OpOpen {
			require.Empty(t, slow.OpenFiles())
			if opened++; opened == n/2 {
				cancel()
			}
		}
		return faultfs.Fault{}
	})
	_, err := reader.Load(ctx, n)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, opened, n/2+2)
	require.Equal(t, want, load(t, reader, n))
	require.Equal(t, n/2+n, opened, "nothing was kept of the load that was cancelled")
	require.Zero(t, reader.Stats().CacheHits)
	require.NoError(t, reader.Snapshot(t.Context(), n))
	require.Equal(t, want, load(t, openStore(t, fsys, statestore.Options{}), n))
}

func TestALargeValueComesBackFromDeltaAndSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a gigabyte of memory")
	}
	value := make([]byte, largeValue)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(value[:largeValue/2]) // half of it does not compress
	for _, compression := range []codec.Compression{codec.LZ4, codec.Zstd} {
		fsys := newMem()
		s := openStore(t, fsys, statestore.Options{Compression: compression})
		tx := begin(t, s, 0)
		require.NoError(t, tx.Put([]byte("large"), value))
		require.NoError(t, tx.Put([]byte("small"), []byte("12345678")))
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		comesBack := func() {
			t.Helper()
			view, err := openStore(t, fsys, statestore.Options{}).Load(t.Context(), 1)
			require.NoError(t, err)
			require.EqualValues(t, 2, view.Len())
			got, ok, err := view.Get([]byte("large"))
			require.NoError(t, err)
			require.True(t, ok)
			require.True(t, bytes.Equal(value, got), "%v", compression)
			require.NoError(t, view.Close())
		}
		comesBack()
		require.NoError(t, s.Snapshot(t.Context(), 1))
		require.NoError(t, fsys.Remove(t.Context(), home+"/1.delta"))
		comesBack()
		require.NoError(t, s.Close())
	}
}

// afterRead calls then after each read of a file.
type afterRead struct {
	core.FileSystem
	name string
	then func()
}

func (f afterRead) Open(ctx context.Context, name string) (core.Reader, error) {
	r, err := f.FileSystem.Open(ctx, name)
	if err == nil && name == f.name {
		r = afterReadFile{r, f.then}
	}
	return r, err
}

type afterReadFile struct {
	core.Reader
	then func()
}

func (r afterReadFile) ReadAt(p []byte, off int64) (int, error) {
	defer r.then()
	return r.Reader.ReadAt(p, off)
}

// When the last of a snapshot is read, what is left is to make the version of it, in memory.
func TestALoadEndsWithItsContextWhileItMakesTheVersion(t *testing.T) {
	inner := newMem()
	s := openStore(t, inner, statestore.Options{})
	states := history(t, s, 0, 1, state{})
	require.NoError(t, s.Snapshot(t.Context(), 1))
	loadCancelledAfter := func(reads int) (int, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		s := openStore(t, afterRead{inner, home + "/1.snapshot", func() {
			if n++; n == reads {
				cancel()
			}
		}}, statestore.Options{})
		view, err := s.Load(ctx, 1)
		if err == nil {
			require.Equal(t, states[1], contents(t, view.All()))
			require.NoError(t, view.Close())
		}
		require.NoError(t, s.Close())
		return n, err
	}
	all, err := loadCancelledAfter(-1)
	require.NoError(t, err)
	n, err := loadCancelledAfter(all)
	require.Equal(t, all, n)
	require.ErrorIs(t, err, context.Canceled)
}
