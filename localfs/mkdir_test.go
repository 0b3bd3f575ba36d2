package localfs

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// TestMkdirAllTrustsNoEarlierFsync has a directory made durable, then lets its entry change, and requires of the next call
// that it fails if the fsync of the parent does, and of the one after that that it fsyncs again.
func TestMkdirAllTrustsNoEarlierFsync(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *FS, top string)
	}{
		{"nothing has happened that can be seen", func(*testing.T, *FS, string) {}},
		{"removed", func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.Remove(ctx, join(top, "a", "b")))
		}},
		{"removed with what is above", func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.RemoveAll(ctx, join(top, "a")))
			require.NoError(t, os.Mkdir(join(top, "a"), 0o700))
		}},
		{"moved away and back", func(t *testing.T, f *FS, top string) {
			require.NoError(t, f.Rename(ctx, join(top, "a"), join(top, "c"), core.RenameReplace))
			require.NoError(t, f.Rename(ctx, join(top, "c"), join(top, "a"), core.RenameReplace))
		}},
		{"removed and made again by another process, with the same inode number", func(t *testing.T, _ *FS, top string) {
			require.NoError(t, os.Remove(join(top, "a", "b")))
			require.NoError(t, os.Mkdir(join(top, "a", "b"), 0o700))
		}},
		{"moved away and back by another process", func(t *testing.T, _ *FS, top string) {
			require.NoError(t, os.Rename(join(top, "a", "b"), join(top, "c")))
			require.NoError(t, os.Rename(join(top, "c"), join(top, "a", "b")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sys, top := newTap(), diskDir(t)
			f := openFor(t, sys, top, Options{})
			dir := join(top, "a", "b")
			require.NoError(t, f.MkdirAll(ctx, dir))
			c.change(t, f, top)

			sys.hook = func(e event) (bool, error) { return e.op == "fsync" && e.path == join(top, "a"), syscall.EIO }
			require.ErrorIs(t, f.MkdirAll(ctx, dir), syscall.EIO)
			require.ErrorIs(t, f.MkdirAll(ctx, dir), syscall.EIO, "nor does a call that failed make the next one succeed")
			sys.hook = nil
			sys.reset()
			require.NoError(t, f.MkdirAll(ctx, dir))
			require.Equal(t, []string{"fsync .", "fsync ./a"}, sys.record(top, "fsync"))
		})
	}
}

// TestMkdirAllLeavesToOthersWhatItMayNotFsync is about directories that exist, for an fsync of which the process has no
// right, or which nobody can fsync.
func TestMkdirAllLeavesToOthersWhatItMayNotFsync(t *testing.T) {
	for _, cause := range []error{syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.EROFS} {
		f, sys, top := tapped(t, Options{})
		require.NoError(t, os.Mkdir(join(top, "found"), 0o700))
		sys.hook = func(e event) (bool, error) { return e.op == "fsync" && e.path == top, cause }
		require.NoError(t, f.MkdirAll(context.Background(), join(top, "found")), "%v", cause)
		require.Error(t, f.MkdirAll(context.Background(), join(top, "made")), "%v", cause)
	}
}

// BenchmarkMkdirAllFound measures what it costs to make existing directories durable again, by their number.
func BenchmarkMkdirAllFound(b *testing.B) {
	for _, depth := range []int{1, 3, 6} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			dir := diskDir(b)
			f := openFor(b, kernel{}, dir, Options{})
			for range depth {
				dir = join(dir, "dir")
			}
			for b.Loop() {
				if err := f.MkdirAll(context.Background(), dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
