package localfs

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// bound is what the contract allows a call after the end of its context.
const bound = 250 * time.Millisecond

// hang makes one kind of call wait, like a server that does not answer. It returns a channel that is closed when the first
// such call has begun, and a function that lets all of them go on.
func (t *tap) hang(tt *testing.T, op, path string) (begun <-chan struct{}, release func()) {
	tt.Helper()
	entered, released := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	t.hook = func(e event) (bool, error) {
		if e.op == op && (path == "" || e.path == path) {
			if !once.Swap(true) {
				close(entered)
			}
			<-released
		}
		return false, nil
	}
	release = sync.OnceFunc(func() { close(released) })
	tt.Cleanup(release) // also where a test fails
	return entered, release
}

// requireBounded ends ctx while run hangs and requires that run returns the context's error in time.
func requireBounded(t *testing.T, begun <-chan struct{}, cancel func(), run func() error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- run() }()
	select {
	case <-begun:
	case err := <-result:
		require.NoError(t, err)
		require.Fail(t, "the call came to its end without the system call that hangs")
	}
	cancel()
	start := time.Now()
	err := <-result
	require.Less(t, time.Since(start), bound)
	require.ErrorIs(t, err, context.Canceled)
	var pathErr *fs.PathError
	require.ErrorAs(t, err, &pathErr)
}

// requireCounted requires that work was left behind, lets it go on and requires that it ends.
func requireCounted(t *testing.T, f *FS, release func()) {
	t.Helper()
	require.Positive(t, f.Background())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = f.Close()
	}()
	select {
	case <-closed:
		require.Fail(t, "Close does not wait for the work that was left behind")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	<-closed
	require.Zero(t, f.Background())
}

func TestACallThatHangsReturnsSoonAfterTheEndOfItsContext(t *testing.T) {
	withoutLeaks(t, testHangingCalls)
}

func testHangingCalls(group *testing.T) {
	type call func(ctx context.Context, f *FS, top string) error
	create := func(ctx context.Context, f *FS, top string) error {
		_, err := f.Create(ctx, join(top, "new"), core.CreateOptions{})
		return err
	}
	open := func(ctx context.Context, f *FS, top string) error {
		_, err := f.Open(ctx, join(top, "file"))
		return err
	}
	stat := func(ctx context.Context, f *FS, top string) error {
		_, err := f.Stat(ctx, join(top, "file"))
		return err
	}
	list := func(ctx context.Context, f *FS, top string) error {
		for _, err := range f.List(ctx, top) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	mkdir := func(ctx context.Context, f *FS, top string) error { return f.MkdirAll(ctx, join(top, "x", "y")) }
	rename := func(ctx context.Context, f *FS, top string) error {
		return f.Rename(ctx, join(top, "file"), join(top, "new"), core.RenameNoReplace)
	}
	remove := func(ctx context.Context, f *FS, top string) error { return f.Remove(ctx, join(top, "file")) }
	removeAll := func(ctx context.Context, f *FS, top string) error { return f.RemoveAll(ctx, join(top, "dir")) }

	untouched := []string{"dir", "file"}
	for _, c := range []struct {
		name string
		op   string
		call call
		left []string // what is there when the work that was left behind has ended
	}{
		{"Create", "open", create, untouched},
		{"Create", "create", create, untouched},
		{"Create", "stat", create, untouched},
		{"Open", "open", open, untouched},
		{"Open", "stat", open, untouched},
		{"Stat", "open", stat, untouched},
		{"Stat", "lstat", stat, untouched},
		{"List", "open", list, untouched},
		{"List", "names", list, untouched},
		{"List", "lstat", list, untouched},
		{"MkdirAll", "open", mkdir, untouched},
		{"MkdirAll", "mkdir", mkdir, []string{"dir", "file", "x"}},
		{"MkdirAll", "fsync", mkdir, []string{"dir", "file", "x"}},
		{"Rename", "open", rename, untouched},
		{"Rename", "lstat", rename, untouched},
		{"Rename", "renameNoReplace", rename, []string{"dir", "new"}},
		{"Rename", "fsync", rename, []string{"dir", "new"}},
		{"Remove", "open", remove, untouched},
		{"Remove", "unlink", remove, []string{"dir"}},
		{"RemoveAll", "names", removeAll, untouched},
		{"RemoveAll", "unlink", removeAll, untouched},
	} {
		group.Run(c.name+" in "+c.op, func(t *testing.T) {
			t.Parallel()
			f, sys, top := tapped(t, Options{})
			require.NoError(t, os.WriteFile(join(top, "file"), []byte("content"), 0o600))
			require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
			require.NoError(t, os.WriteFile(join(top, "dir", "a"), nil, 0o600))
			require.NoError(t, os.WriteFile(join(top, "dir", "b"), nil, 0o600))
			ctx, cancel := context.WithCancel(context.Background())
			begun, release := sys.hang(t, c.op, "")
			requireBounded(t, begun, cancel, func() error { return c.call(ctx, f, top) })
			requireCounted(t, f, release)
			require.Equal(t, c.left, children(t, top))
			if c.name == "RemoveAll" && c.op == "unlink" {
				require.Len(t, children(t, join(top, "dir")), 1, "what was left behind stops at the next entry")
			}
		})
	}
}

func TestAWriterThatHangsReturnsSoonAfterTheEndOfItsContext(t *testing.T) {
	withoutLeaks(t, testHangingWriters)
}

func testHangingWriters(group *testing.T) {
	for _, c := range []struct {
		name string
		op   string
		call func(w core.Writer) error
	}{
		{"Write", "write", func(w core.Writer) error {
			var err error
			for range 2 * maxBlocks {
				if _, err = w.Write(make([]byte, blocks.Size)); err != nil {
					break
				}
			}
			return err
		}},
		{"Sync", "write", core.Writer.Sync},
		{"Sync", "fsync", core.Writer.Sync},
		{"Close", "write", core.Writer.Close},
		{"Close", "fsync", core.Writer.Close},
		{"Close", "lstat", core.Writer.Close},
		{"Close", "close", core.Writer.Close},
	} {
		group.Run(c.name+" in "+c.op, func(t *testing.T) {
			t.Parallel()
			f, sys, top := tapped(t, Options{})
			name := join(top, "file")
			ctx, cancel := context.WithCancel(context.Background())
			w, err := f.Create(ctx, name, core.CreateOptions{})
			require.NoError(t, err)
			_, err = w.Write([]byte("content"))
			require.NoError(t, err)
			begun, release := sys.hang(t, c.op, name)
			requireBounded(t, begun, cancel, func() error { return c.call(w) })
			require.Equal(t, 1, f.Background())
			require.ErrorIs(t, w.Close(), context.Canceled)
			require.Equal(t, 1, f.Background(), "the same goroutine")
			requireCounted(t, f, release)
			require.ErrorIs(t, w.Close(), context.Canceled, "an outcome that came too late counts for nothing")
			require.NoError(t, w.Abort())
			require.Empty(t, children(t, top))
		})
	}
}

func TestAbortBreaksACallThatHangs(t *testing.T) {
	withoutLeaks(t, testHangingAndAborting)
}

func testHangingAndAborting(group *testing.T) {
	for _, op := range []string{"write", "fsync"} {
		for _, call := range []string{"Write", "Sync", "Close"} {
			if op == "fsync" && call == "Write" {
				continue
			}
			group.Run(call+" in "+op, func(t *testing.T) {
				t.Parallel()
				f, sys, top := tapped(t, Options{})
				name := join(top, "file")
				w, err := f.Create(context.Background(), name, core.CreateOptions{})
				require.NoError(t, err)
				_, err = w.Write([]byte("content"))
				require.NoError(t, err)
				begun, release := sys.hang(t, op, name)
				result := make(chan error, 1)
				go func() {
					var err error
					switch call {
					case "Write":
						_, err = w.Write(make([]byte, 2*maxBlocks*blocks.Size))
					case "Sync":
						err = w.Sync()
					case "Close":
						err = w.Close()
					}
					result <- err
				}()
				<-begun
				require.NoError(t, w.Abort())
				require.ErrorIs(t, <-result, fs.ErrClosed)
				require.Empty(t, children(t, top))
				require.NoError(t, w.Abort())
				requireCounted(t, f, release)
				require.ErrorIs(t, w.Close(), fs.ErrClosed)
				require.Len(t, sys.record(top, "write"), 1, "nothing more is written")
			})
		}
	}
}

func TestAbortThatHangsNamesWhatMayBeLeftBehind(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	f.abortLimit = 50 * time.Millisecond
	name := join(top, "file")
	w, err := f.Create(context.Background(), name, core.CreateOptions{})
	require.NoError(t, err)
	_, release := sys.hang(t, "unlink", name)
	start := time.Now()
	for range 2 {
		err = w.Abort()
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.ErrorContains(t, err, name)
	}
	require.Less(t, time.Since(start), time.Second)
	require.Equal(t, 1, f.Background())
	requireCounted(t, f, release)
	require.Empty(t, children(t, top), "it is removed in the background")
	require.NoError(t, w.Abort())
	require.Less(t, abortLimit+calls.Grace, 10*time.Second)
}

func TestAReaderThatHangsReturnsSoonAfterTheEndOfItsContext(t *testing.T) {
	content := bytes.Repeat([]byte("content "), blocks.Size/4)
	for _, c := range []struct {
		name string
		op   string
		call func(r core.Reader, p []byte) error
	}{
		{"Read", "read", func(r core.Reader, p []byte) error {
			_, err := r.Read(p)
			return err
		}},
		{"ReadAt", "read", func(r core.Reader, p []byte) error {
			_, err := r.ReadAt(p, 10)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, sys, top := tapped(t, Options{})
			sys.system = oldKernel{kernel{}} // nothing is known to be cached
			name := join(top, "file")
			require.NoError(t, os.WriteFile(name, content, 0o600))
			ctx, cancel := context.WithCancel(context.Background())
			r, err := f.Open(ctx, name)
			require.NoError(t, err)
			begun, release := sys.hang(t, c.op, name)
			p := make([]byte, len(content))
			requireBounded(t, begun, cancel, func() error { return c.call(r, p) })
			require.NoError(t, r.Close())
			requireCounted(t, f, release)
			require.Equal(t, make([]byte, len(content)), p, "the caller has its slice back")
		})
	}
}

func TestCloseOfAReaderThatHangsIsBounded(t *testing.T) {
	f, sys, top := tapped(t, Options{})
	name := join(top, "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	r, err := f.Open(ctx, name)
	require.NoError(t, err)
	begun, release := sys.hang(t, "close", name)
	requireBounded(t, begun, cancel, r.Close)
	require.NoError(t, r.Close())
	requireCounted(t, f, release)
}

func TestReadsWithAndWithoutTheCacheAgree(t *testing.T) {
	_, _, top := tapped(t, Options{})
	content := make([]byte, 3*blocks.Size+17)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	require.NoError(t, os.WriteFile(join(top, "file"), content, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, sys := range []system{kernel{}, oldKernel{kernel{}}} {
		f := openFor(t, sys, top, Options{})
		for _, ctx := range []context.Context{ctx, context.Background()} {
			r, err := f.Open(ctx, join(top, "file"))
			require.NoError(t, err)
			for _, size := range []int{1000, blocks.Size - 1, blocks.Size, 2 * blocks.Size} {
				_, err := r.Seek(0, io.SeekStart)
				require.NoError(t, err)
				var got bytes.Buffer
				_, err = io.CopyBuffer(&got, struct{ io.Reader }{r}, make([]byte, size))
				require.NoError(t, err)
				require.True(t, bytes.Equal(content, got.Bytes()))
				_, err = r.Seek(-5, io.SeekEnd) // back into, or out of, what was read ahead
				require.NoError(t, err)
				p := make([]byte, size)
				n, err := r.Read(p)
				require.NoError(t, err)
				require.Equal(t, content[len(content)-5:], p[:n])
				n, err = r.ReadAt(p, 12345)
				require.NoError(t, err)
				require.True(t, bytes.Equal(content[12345:12345+size], p[:n]))
			}
			require.NoError(t, r.Close())
		}
	}
}

func TestAFileThatShrinksIsCorrupt(t *testing.T) {
	f, _, top := tapped(t, Options{})
	name := join(top, "file")
	require.NoError(t, os.WriteFile(name, make([]byte, 1000), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, ctx := range []context.Context{ctx, context.Background()} {
		require.NoError(t, os.Truncate(name, 1000))
		r, err := f.Open(ctx, name)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(name, 500))
		n, err := r.ReadAt(make([]byte, 600), 0)
		require.Equal(t, 500, n)
		require.ErrorIs(t, err, core.ErrCorrupt)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		_, err = r.Seek(700, io.SeekStart)
		require.NoError(t, err)
		_, err = r.Read(make([]byte, 10))
		require.ErrorIs(t, err, core.ErrCorrupt)
		require.NoError(t, r.Close())
	}
}
