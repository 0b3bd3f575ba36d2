package localfs

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

func TestCloseFailsIfTheNameNoLongerLeadsToTheFile(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(t *testing.T, top string)
		left []string // in the base after Abort
	}{
		{"the file was removed", func(t *testing.T, top string) {
			require.NoError(t, os.Remove(join(top, "job", "file")))
		}, []string{"job"}},
		{"the directory was removed", func(t *testing.T, top string) {
			require.NoError(t, os.RemoveAll(join(top, "job")))
		}, []string{}},
		{"the directory was removed and made again", func(t *testing.T, top string) {
			require.NoError(t, os.RemoveAll(join(top, "job")))
			require.NoError(t, os.Mkdir(join(top, "job"), 0o700))
		}, []string{"job"}},
		{"the directory was renamed", func(t *testing.T, top string) {
			require.NoError(t, os.Rename(join(top, "job"), join(top, "away")))
		}, []string{"away"}},
		{"another file has the name", func(t *testing.T, top string) {
			require.NoError(t, os.Remove(join(top, "job", "file")))
			require.NoError(t, os.WriteFile(join(top, "job", "file"), []byte("another"), 0o600))
		}, []string{"job", "job/file"}},
	} {
		for _, durability := range []core.Durability{core.Unsynced, core.Synced} {
			t.Run(c.name+" "+durability.String(), func(t *testing.T) {
				f, _, top := tapped(t, Options{})
				require.NoError(t, os.Mkdir(join(top, "job"), 0o700))
				w, err := f.Create(context.Background(), join(top, "job", "file"), core.CreateOptions{Durability: durability})
				require.NoError(t, err)
				_, err = w.Write([]byte("content"))
				require.NoError(t, err)
				c.harm(t, top)
				require.ErrorIs(t, w.Close(), fs.ErrNotExist)
				require.ErrorIs(t, w.Close(), fs.ErrNotExist)
				require.NoError(t, w.Abort())
				left := []string{}
				for name := range snapshot(t, top) {
					if name != "." {
						left = append(left, name)
					}
				}
				require.ElementsMatch(t, c.left, left)
			})
		}
	}
}

func TestAbortSaysIfTheFileWasMoved(t *testing.T) {
	f, _, top := tapped(t, Options{})
	w, err := f.Create(context.Background(), join(top, "file"), core.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, os.Rename(join(top, "file"), join(top, "moved")))
	require.NoError(t, os.WriteFile(join(top, "file"), []byte("another"), 0o600))
	err = w.Abort()
	require.ErrorContains(t, err, "may be left behind")
	require.Equal(t, []string{"file", "moved"}, children(t, top))
}

func TestWritesOfAllSizesArriveInOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, ctx := range []context.Context{ctx, context.Background()} {
		f, _, top := tapped(t, Options{})
		for round := range 5 {
			name := join(top, "file")
			w, err := f.Create(ctx, name, core.CreateOptions{})
			require.NoError(t, err)
			var want bytes.Buffer
			p := make([]byte, 3*blocks.Size)
			for range 30 {
				part := p[:random.IntN(len(p))>>random.IntN(18)]
				for i := range part {
					part[i] = byte(random.Uint32())
				}
				want.Write(part)
				n, err := w.Write(part)
				require.NoError(t, err)
				require.Equal(t, len(part), n)
				clear(part) // the caller may use its slice again
				if random.IntN(10) == 0 {
					require.NoError(t, w.Sync())
				}
			}
			require.NoError(t, w.Close())
			got, err := os.ReadFile(name)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want.Bytes(), got), "round %d", round)
			require.NoError(t, f.Remove(ctx, name))
		}
	}
}

func TestAWriterThatRestsHasNoGoroutine(t *testing.T) {
	withoutLeaks(t, func(t *testing.T) {
		f, _, top := tapped(t, Options{})
		w, err := f.Create(context.Background(), join(top, "file"), core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 10*blocks.Size))
		require.NoError(t, err)
		require.NoError(t, w.Sync())
		own, ok := w.(*writer)
		require.True(t, ok)
		require.True(t, own.queue.AwaitIdle(5*time.Second))
		require.NoError(t, w.Abort())
	})
}

// TestAbortRacesWithClose requires that the file is kept if and only if Close has said so.
func TestAbortRacesWithClose(t *testing.T) {
	f, _, top := tapped(t, Options{UnsafeNoFsync: true})
	name := join(top, "file")
	outcomes := map[bool]int{}
	for range 300 {
		w, err := f.Create(context.Background(), name, core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write([]byte("content"))
		require.NoError(t, err)
		var closeErr, abortErr error
		var wg sync.WaitGroup
		wg.Go(func() { closeErr = w.Close() })
		wg.Go(func() { abortErr = w.Abort() })
		wg.Wait()
		require.NoError(t, abortErr)
		_, err = os.Stat(name)
		outcomes[closeErr == nil]++
		if closeErr == nil {
			require.NoError(t, err)
			require.NoError(t, os.Remove(name))
			continue
		}
		require.ErrorIs(t, closeErr, fs.ErrClosed)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	t.Logf("kept %d, discarded %d", outcomes[true], outcomes[false])
}

func TestManyWritersShareTheFileSystem(t *testing.T) {
	withoutLeaks(t, func(t *testing.T) {
		f, _, top := tapped(t, Options{UnsafeNoFsync: true})
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				name := join(top, string(rune('a'+i)))
				data := bytes.Repeat([]byte{byte(i)}, blocks.Size+i)
				for range 5 {
					w, err := f.Create(context.Background(), name, core.CreateOptions{})
					if err == nil {
						_, err = w.Write(data)
					}
					if err == nil {
						err = w.Close()
					}
					got, readErr := os.ReadFile(name)
					if err != nil || readErr != nil || !bytes.Equal(data, got) {
						t.Errorf("%s: %v, %v", name, err, readErr)
						return
					}
					if err := f.Remove(context.Background(), name); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}
