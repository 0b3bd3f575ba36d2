package localfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

// oldKernel cannot rename without replacing.
type oldKernel struct{ system }

func (oldKernel) renameNoReplace(*os.File, string, *os.File, string) error { return syscall.EINVAL }
func (oldKernel) knownNoReplace(*os.File) bool                             { return false }

func (o oldKernel) readCached(*os.File, []byte, int64) (int, bool) { return 0, false }

func TestConformance(t *testing.T) {
	for _, variant := range []struct {
		name  string
		sys   system
		opts  Options
		whole bool // open "/", not the directory above the root
		crash bool
		dir   func(t testing.TB) string
		races int
	}{
		{name: "below a base, without fsync", sys: kernel{}, dir: diskDir, races: 20, opts: Options{UnsafeNoFsync: true}},
		{name: "of the whole machine", sys: kernel{}, whole: true, dir: memoryDir, races: 20},
		{name: "where the kernel cannot rename without replacing", sys: oldKernel{kernel{}}, crash: true, dir: memoryDir, races: 20},
	} {
		t.Run(variant.name, func(t *testing.T) {
			fstest.Run(t, fstest.Config{Rounds: variant.races, New: func(t testing.TB) fstest.Instance {
				top := variant.dir(t)
				base, root := filepath.Join(top, "base"), filepath.Join(top, "base", "root")
				require.NoError(t, os.MkdirAll(root, 0o700))
				instance := fstest.Instance{
					Root:  root,
					Base:  base,
					Sizes: []int{blocks.Size - 1, blocks.Size, blocks.Size + 1, (maxBlocks+1)*blocks.Size + 1, writeoutStep + 1},
					Symlink: func(t testing.TB, target, name string) {
						require.NoError(t, os.Symlink(target, name))
					},
				}
				if variant.whole {
					base, instance.Base = "/", ""
				}
				reopen := func(t testing.TB) core.FileSystem { return openFor(t, variant.sys, base, variant.opts) }
				instance.Second = reopen
				if !variant.crash {
					instance.FS = openFor(t, variant.sys, base, variant.opts)
					return instance
				}
				sys := newTap()
				sys.system = variant.sys
				model, onDisk := newDisk(t, root)
				sys.disk = model
				instance.FS = openFor(t, sys, base, variant.opts)
				instance.Crash = func(t testing.TB) core.FileSystem {
					model.mu.Lock()
					defer model.mu.Unlock()
					onDisk.restore(t, root)
					return reopen(t)
				}
				return instance
			}})
		})
	}
}

// openFor opens a file system that is closed at the end of the test, when nothing may go on in it.
func openFor(t testing.TB, sys system, base string, opts Options) *FS {
	t.Helper()
	f, err := open(sys, base, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		require.Zero(t, f.Background())
	})
	return f
}

// diskDir is a temporary directory without symbolic links on the way, which some systems have.
func diskDir(t testing.TB) string {
	t.Helper()
	resolved, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return resolved
}

// memoryDir is a temporary directory in memory, if the system has one: another file system, and a fast one.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "localfs-test-") //nolint:usetesting // t.TempDir cannot be told where
	if err != nil {
		return diskDir(t)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
