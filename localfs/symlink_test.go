package localfs

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// linked makes a base with links that lead out of it and links that do not, and a directory outside.
func linked(t *testing.T) (base, outside string) {
	t.Helper()
	top := diskDir(t)
	base, outside = join(top, "base"), join(top, "outside")
	for _, dir := range []string{join(base, "dir"), join(outside, "dir")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(join(dir, "file"), []byte(dir), 0o600))
	}
	for name, target := range map[string]string{
		"out": "../outside", "absolute": outside, "tricky": "dir/../../outside", "in": "dir", "infile": "dir/file",
		"outfile": "../outside/dir/file", "nowhere": "missing", "loop": "loop",
	} {
		require.NoError(t, os.Symlink(target, join(base, name)))
	}
	return base, outside
}

// snapshot lists everything below a directory with its content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			found[name] = d.Type().String()
			return err
		}
		data, err := os.ReadFile(join(dir, name))
		found[name] = string(data)
		return err
	}))
	return found
}

func TestNoSymbolicLinkLeadsOutOfTheBase(t *testing.T) {
	base, outside := linked(t)
	f := openFor(t, kernel{}, base, Options{})
	ctx := context.Background()
	before := snapshot(t, outside)
	for _, link := range []string{"out", "absolute", "tricky"} {
		name := func(below string) string { return join(base, link, below) }
		for call, run := range map[string]func() error{
			"Open": func() error {
				_, err := f.Open(ctx, name("dir/file"))
				return err
			},
			"Stat": func() error {
				_, err := f.Stat(ctx, name("dir"))
				return err
			},
			"Create": func() error {
				_, err := f.Create(ctx, name("new"), core.CreateOptions{})
				return err
			},
			"MkdirAll":             func() error { return f.MkdirAll(ctx, name("new/dir")) },
			"MkdirAll of the link": func() error { return f.MkdirAll(ctx, join(base, link)) },
			"List": func() error {
				for _, err := range f.List(ctx, join(base, link)) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"List below": func() error {
				for _, err := range f.List(ctx, name("dir")) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"Rename from": func() error { return f.Rename(ctx, name("dir"), join(base, "new"), core.RenameNoReplace) },
			"Rename to":   func() error { return f.Rename(ctx, join(base, "dir"), name("new"), core.RenameReplace) },
			"Remove":      func() error { return f.Remove(ctx, name("dir/file")) },
			"RemoveAll":   func() error { return f.RemoveAll(ctx, name("dir")) },
		} {
			require.ErrorIs(t, run(), fs.ErrPermission, "%s through %s", call, link)
		}
	}
	_, err := f.Open(ctx, join(base, "outfile"))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, before, snapshot(t, outside))
}

func TestLinksThatStayInTheBaseAreFollowed(t *testing.T) {
	base, _ := linked(t)
	ctx := context.Background()
	for _, root := range []string{base, "/"} {
		f := openFor(t, kernel{}, root, Options{})
		r, err := f.Open(ctx, join(base, "infile"))
		require.NoError(t, err)
		require.Equal(t, int64(len(join(base, "dir"))), r.Size())
		require.NoError(t, r.Close())
		info, err := f.Stat(ctx, join(base, "in", "file"))
		require.NoError(t, err)
		require.True(t, info.IsRegular())
		require.NoError(t, f.MkdirAll(ctx, join(base, "in", "new")))
		require.DirExists(t, join(base, "dir", "new"))
		info, err = f.Stat(ctx, join(base, "in"))
		require.NoError(t, err)
		require.Equal(t, fs.ModeSymlink, info.Mode.Type(), "a link is described, not followed")
		require.ErrorIs(t, f.MkdirAll(ctx, join(base, "nowhere")), fs.ErrInvalid)
		_, err = f.Create(ctx, join(base, "nowhere"), core.CreateOptions{})
		require.ErrorIs(t, err, fs.ErrExist)
		_, err = f.Open(ctx, join(base, "nowhere"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = f.Open(ctx, join(base, "loop"))
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
}

func TestLinksAreListedMovedAndRemovedAsSuch(t *testing.T) {
	for _, whole := range []bool{false, true} {
		base, outside := linked(t)
		root := base
		if whole {
			root = "/"
		}
		f := openFor(t, kernel{}, root, Options{})
		ctx := context.Background()
		inside, beyond := snapshot(t, join(base, "dir")), snapshot(t, outside)
		links := 0
		for info, err := range f.List(ctx, base) {
			require.NoError(t, err)
			if info.Mode.Type() == fs.ModeSymlink {
				links++
			}
		}
		require.Equal(t, 8, links)
		require.NoError(t, f.Remove(ctx, join(base, "in")))
		require.NoError(t, f.Remove(ctx, join(base, "outfile")))
		require.NoError(t, f.RemoveAll(ctx, join(base, "out")))
		require.NoError(t, f.Rename(ctx, join(base, "absolute"), join(base, "moved"), core.RenameNoReplace))
		require.NoError(t, os.Mkdir(join(base, "tree"), 0o700))
		require.NoError(t, os.Symlink("../dir", join(base, "tree", "in")))
		require.NoError(t, os.Symlink(outside, join(base, "tree", "out")))
		require.NoError(t, f.RemoveAll(ctx, join(base, "tree")))
		require.Equal(t, []string{"dir", "infile", "loop", "moved", "nowhere", "tricky"}, children(t, base))
		require.Equal(t, inside, snapshot(t, join(base, "dir")))
		require.Equal(t, beyond, snapshot(t, outside))
	}
}

func TestOpenDoesNotWaitForAFIFO(t *testing.T) {
	f, _, top := tapped(t, Options{})
	makeFIFO(t, join(top, "fifo"))
	_, err := f.Open(context.Background(), join(top, "fifo"))
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, f.MkdirAll(context.Background(), join(top, "fifo", "dir")), fs.ErrInvalid)
	require.NoError(t, f.Remove(context.Background(), join(top, "fifo")))
}
