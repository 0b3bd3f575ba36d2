package faultfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestConformanceWithoutFaults(t *testing.T) {
	fstest.Run(t, fstest.Config{New: func(t testing.TB) fstest.Instance {
		inner := memfs.New(memfs.Options{Base: "/some/base"})
		f := faultfs.Wrap(inner, nil)
		require.NoError(t, inner.MkdirAll(t.Context(), "/some/base/root"))
		return fstest.Instance{
			FS:        f,
			Root:      "/some/base/root",
			Second:    func(testing.TB) core.FileSystem { return faultfs.Wrap(inner, nil) },
			Base:      "/some/base",
			Crash:     func(testing.TB) core.FileSystem { return inner.CrashClone(memfs.CrashConfig{}) },
			OpenFiles: func() []string { return append(f.OpenFiles(), inner.OpenFiles()...) },
		}
	}})
}
