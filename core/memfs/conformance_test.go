package memfs_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func config(opts memfs.Options) fstest.Config {
	var count atomic.Int64
	return fstest.Config{New: func(t testing.TB) fstest.Instance {
		f := memfs.New(opts)
		root := fmt.Sprintf("%s/root-%d", opts.Base, count.Add(1))
		require.NoError(t, f.MkdirAll(t.Context(), root))
		return fstest.Instance{
			FS:        f,
			Root:      root,
			Second:    func(testing.TB) core.FileSystem { return f },
			Base:      opts.Base,
			Crash:     func(testing.TB) core.FileSystem { return f.CrashClone(memfs.CrashConfig{}) },
			OpenFiles: f.OpenFiles,
		}
	}}
}

func TestConformance(t *testing.T) {
	fstest.Run(t, config(memfs.Options{Base: "/some/base"}))
}

func TestConformanceWithOtherCapabilities(t *testing.T) {
	for name, caps := range map[string]core.Capabilities{
		"nothing but unsynced": {Durabilities: []core.Durability{core.Unsynced}},
		"replicas, without NoReplaceDirs": {
			Durabilities:   []core.Durability{core.Replicated, core.Synced},
			NoReplaceFiles: true, Sync: true, Replicas: true, DetectsCorruptReads: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(memfs.Options{Capabilities: &caps})
			cfg.Rounds = 10
			fstest.Run(t, cfg)
		})
	}
}

func BenchmarkFileSystem(b *testing.B) {
	fstest.Benchmark(b, config(memfs.Options{}))
}
