package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/localfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/storetest"
)

func TestInMemory(t *testing.T) {
	for name, opts := range map[string]statestore.Options{
		"defaults":                 {},
		"Spark's files":            {NoFooter: true, RowChecksum: true, Compression: codec.Snappy},
		"nothing stays in memory":  {CachedVersions: -1},
		"a budget for one version": {Budget: statestore.NewBudget(statestore.BudgetOptions{Limit: 64 << 20})},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Config{Options: opts, New: func(t testing.TB) storetest.Instance {
				fsys := memfs.New(memfs.Options{})
				t.Cleanup(func() { require.Empty(t, fsys.OpenFiles()) })
				return storetest.Instance{FS: fsys, Root: "/"}
			}})
		})
	}
}

func TestOnLocalDisk(t *testing.T) {
	for _, unsafe := range []bool{true, false} {
		storetest.Run(t, storetest.Config{Rounds: 5, New: func(t testing.TB) storetest.Instance {
			root := t.TempDir()
			open := func() *localfs.FS {
				fsys, err := localfs.Open(root, localfs.Options{UnsafeNoFsync: unsafe})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, fsys.Close()) })
				return fsys
			}
			return storetest.Instance{FS: open(), Second: open(), Root: root}
		}})
	}
}
