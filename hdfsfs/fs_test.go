package hdfsfs

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// failing fails the calls of a method, n times or, if n is negative, for ever.
func failing(method string, n int, err error) func(string, string) error {
	var times atomic.Int64
	return func(m, _ string) error {
		if m == method && (n < 0 || times.Add(1) <= int64(n)) {
			return err
		}
		return nil
	}
}

// operations are a call of each method that can be repeated.
func operations(f *FS) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"stat":   func(ctx context.Context) error { _, err := f.Stat(ctx, "/file"); return err },
		"mkdirs": func(ctx context.Context) error { return f.MkdirAll(ctx, "/dir") },
		"create": func(ctx context.Context) error {
			w, err := f.Create(ctx, "/new", core.CreateOptions{})
			if err == nil {
				err = w.Abort()
			}
			return err
		},
		"rename": func(ctx context.Context) error { return f.Rename(ctx, "/file", "/moved", core.RenameNoReplace) },
		"remove": func(ctx context.Context) error { return f.Remove(ctx, "/file") },
		"read":   func(ctx context.Context) error { _, err := get(ctx, f, "/file"); return err },
		"open":   func(ctx context.Context) error { _, err := get(ctx, f, "/file"); return err },
	}
}

func TestCallsAreRepeatedWhileThereIsNoNameNode(t *testing.T) {
	for method := range operations(nil) {
		for _, cause := range []error{
			errFake,
			&remoteError{class: standbyException, message: "Operation category READ is not supported in state standby"},
			&remoteError{class: "org.apache.hadoop.hdfs.server.namenode.SafeModeException", message: "Name node is in safe mode."},
			&remoteError{class: "org.apache.hadoop.ipc.RetriableException", message: "still starting"},
		} {
			t.Run(method+", "+cause.Error(), func(t *testing.T) {
				c := newFake()
				f := onFake(t, c, Options{})
				require.NoError(t, put(t.Context(), f, "/file", []byte("content")))
				c.before = failing(method, 2, cause)
				before := c.count(method)
				require.NoError(t, operations(f)[method](t.Context()))
				require.GreaterOrEqual(t, c.count(method), before+3)
			})
		}
	}
}

func TestCallsGiveUpWhenTheirTimeIsOver(t *testing.T) {
	for method := range operations(nil) {
		t.Run(method, func(t *testing.T) {
			c := newFake()
			f := onFake(t, c, Options{RetryFor: 120 * time.Millisecond})
			require.NoError(t, put(t.Context(), f, "/file", []byte("content")))
			c.before = failing(method, -1, errFake)
			begin := time.Now()
			require.ErrorIs(t, operations(f)[method](t.Context()), core.ErrUnavailable)
			require.Less(t, time.Since(begin), 2*time.Second)

			f.opts.RetryFor = time.Hour
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			begin = time.Now()
			require.ErrorIs(t, operations(f)[method](ctx), context.DeadlineExceeded)
			require.Less(t, time.Since(begin), 280*time.Millisecond)
		})
	}
}

func TestACallThatHangsIsLeftBehindCountedAndWaitedFor(t *testing.T) {
	for method := range operations(nil) {
		t.Run(method, func(t *testing.T) {
			c := newFake()
			f := newFS(c, settings{authority: "fake"}, Options{}.withDefaults())
			require.NoError(t, put(t.Context(), f, "/file", []byte("content")))
			c.before = func(m, _ string) error {
				if m == method {
					<-c.closed
				}
				return nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			begin := time.Now()
			require.ErrorIs(t, operations(f)[method](ctx), context.DeadlineExceeded)
			require.Less(t, time.Since(begin), 260*time.Millisecond)
			require.Equal(t, 1, f.Counts().Background)
			require.NoError(t, f.Close())
			require.Zero(t, f.Counts().Background)
			require.ErrorIs(t, operations(f)[method](t.Context()), fs.ErrClosed)
		})
	}
}

func TestARenameWhoseAnswerIsLostTellsTheTruth(t *testing.T) {
	lost := &connError{err: errors.New("EOF"), doubt: true}
	t.Run("done", func(t *testing.T) {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/a", []byte("a")))
		c.after = failing("rename", 1, lost)
		require.NoError(t, f.Rename(t.Context(), "/a", "/b", core.RenameNoReplace))
		require.Equal(t, []string{"/b"}, c.left())
	})
	t.Run("not done", func(t *testing.T) {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/a", []byte("a")))
		c.before = failing("rename", 1, lost)
		require.NoError(t, f.Rename(t.Context(), "/a", "/b", core.RenameNoReplace))
		require.Equal(t, []string{"/b"}, c.left())
		require.Equal(t, 2, c.count("rename"))
	})
	t.Run("done by another meanwhile", func(t *testing.T) {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/a", []byte("a")))
		other := onFake(t, newFake(), Options{})
		other.client = c
		require.NoError(t, put(t.Context(), f, "/rival", []byte("r")))
		c.before = func(m, name string) error {
			if m == "rename" && name == "/a" && c.count("rename") == 1 {
				if err := c.rename(t.Context(), "/rival", "/b", false); err != nil {
					return err
				}
				return lost
			}
			return nil
		}
		err := f.Rename(t.Context(), "/a", "/b", core.RenameNoReplace)
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, []string{"/a", "/b"}, c.left())
		other.client = newFake()
	})
	t.Run("delayed: it is done after it was looked for", func(t *testing.T) {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/a", []byte("a")))
		var attempts atomic.Int64
		c.before = func(m, _ string) error {
			if m != "rename" {
				return nil
			}
			switch attempts.Add(1) {
			case 1:
				return lost
			case 2: // the first one comes through before the second
				if err := c.rename(t.Context(), "/a", "/b", false); err != nil {
					return err
				}
			}
			return nil
		}
		require.NoError(t, f.Rename(t.Context(), "/a", "/b", core.RenameNoReplace))
	})
	t.Run("never known", func(t *testing.T) {
		c := newFake()
		f := onFake(t, c, Options{RetryFor: 50 * time.Millisecond})
		require.NoError(t, put(t.Context(), f, "/a", []byte("a")))
		c.before = func(m, name string) error {
			switch {
			case m == "rename":
				return lost
			case m == "stat" && name == "/b":
				return errFake
			}
			return nil
		}
		err := f.Rename(t.Context(), "/a", "/b", core.RenameNoReplace)
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.ErrorContains(t, err, "not known")
	})
}

func TestACreateOrARemoveInDoubtIsNoSuccess(t *testing.T) {
	lost := &connError{err: errors.New("EOF"), doubt: true}
	for method, call := range map[string]func(f *FS) error{
		"create": func(f *FS) error { return operations(f)["create"](t.Context()) },
		"remove": func(f *FS) error { return operations(f)["remove"](t.Context()) },
	} {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/file", []byte("content")))
		c.after = failing(method, 1, lost)
		err := call(f)
		require.ErrorIs(t, err, core.ErrUnavailable, method)
		require.ErrorContains(t, err, "may", method)
	}
}

func TestLayoutsThatTheClientWouldSpoilAreRefused(t *testing.T) {
	for text, change := range map[string]func(*status){
		"erasure coding":   func(s *status) { s.erasure = true },
		"encryption zones": func(s *status) { s.encrypted = true },
	} {
		c := newFake()
		f := onFake(t, c, Options{})
		require.NoError(t, put(t.Context(), f, "/file", []byte("content")))
		c.mu.Lock()
		for _, file := range c.names {
			change(&file.status)
		}
		c.mu.Unlock()
		_, err := f.Open(t.Context(), "/file")
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, text)
		_, err = f.Create(t.Context(), "/new", core.CreateOptions{})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, text)
		require.Equal(t, []string{"/file"}, c.left(), "a refused file was left")
	}
}

func TestTheBaseHoldsAllNames(t *testing.T) {
	c := newFake()
	f := onFake(t, c, Options{Base: "/base"})
	require.NoError(t, f.MkdirAll(t.Context(), "/base"))
	for _, name := range []string{"/", "/bas", "/base2", "/other/base"} {
		require.ErrorIs(t, f.MkdirAll(t.Context(), name), fs.ErrInvalid, name)
	}
	require.ErrorIs(t, f.Remove(t.Context(), "/base"), fs.ErrInvalid)
	require.ErrorIs(t, f.RemoveAll(t.Context(), "/base"), fs.ErrInvalid)
	require.ErrorIs(t, f.Rename(t.Context(), "/base", "/base/x", core.RenameReplace), fs.ErrInvalid)
	require.NoError(t, put(t.Context(), f, "/base/file", nil))
}
