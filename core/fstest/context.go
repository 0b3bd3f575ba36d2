package fstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// contextCall is a call that would succeed if its context had not ended. It returns the path of its error.
type contextCall struct {
	method string
	call   func(ctx context.Context, s *subject) (string, error)
}

func contextCalls() []contextCall {
	onName := func(method, name string, call func(ctx context.Context, s *subject, name string) error) contextCall {
		return contextCall{method, func(ctx context.Context, s *subject) (string, error) {
			return s.path(name), call(ctx, s, s.path(name))
		}}
	}
	rename := func(method, oldname, newname string, mode func(s *subject) core.RenameMode) contextCall {
		return onName(method, oldname, func(ctx context.Context, s *subject, name string) error {
			return s.FS.Rename(ctx, name, s.path(newname), mode(s))
		})
	}
	calls := []contextCall{
		rename("Rename of a file", "file", "new", (*subject).fileMode),
		rename("Rename of a directory", "dir", "new", (*subject).dirMode),
		rename("RenameReplace", "file", "other", func(*subject) core.RenameMode { return core.RenameReplace }),
	}
	names := map[string]string{
		"Create": "new", "Open": "file", "Stat": "file", "List": "dir", "MkdirAll": "a/b/c", "Remove": "file", "RemoveAll": "dir",
	}
	for _, n := range namings() {
		if name, ok := names[n.method]; ok {
			calls = append(calls, onName(n.method, name, n.call))
		}
	}
	return calls
}

func contextRules() []rule {
	var rules []rule
	for _, c := range contextCalls() {
		rules = append(rules, rule{c.method + " after the end of its context fails and has no effect", c.check})
	}
	return append(rules,
		rule{"A Writer whose context ends fails in Close, and Abort removes the file", func(t testing.TB, s *subject) {
			for _, size := range []int{0, 10, 100_000} {
				ctx, cancel := context.WithCancel(s.ctx)
				w := s.create(t, ctx, s.path("file"))
				_, err := w.Write(pattern(1, size))
				require.NoError(t, err)
				cancel()
				requireError(t, w.Close(), s.path("file"), context.Canceled)
				require.NoError(t, w.Abort())
				requireMissing(t, s.ctx, s.FS, s.path("file"))
			}
		}},
		rule{"A Writer past its deadline fails in Sync and Close", func(t testing.TB, s *subject) {
			ctx, stop := context.WithTimeout(s.ctx, 50*time.Millisecond)
			defer stop()
			w, err := s.FS.Create(ctx, s.path("file"), core.CreateOptions{})
			if err == nil {
				defer func() { require.NoError(t, w.Abort()) }()
				<-ctx.Done()
				requireError(t, w.Sync(), s.path("file"), context.DeadlineExceeded, errors.ErrUnsupported)
				err = w.Close()
			}
			requireError(t, err, s.path("file"), context.DeadlineExceeded)
		}},
		rule{"The end of the context after Close changes nothing", func(t testing.TB, s *subject) {
			ctx, cancel := context.WithCancel(s.ctx)
			w := s.create(t, ctx, s.path("file"))
			_, err := w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			cancel()
			require.NoError(t, w.Close())
			require.NoError(t, w.Abort())
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content"))
		}},
		rule{"A Reader whose context ends fails", func(t testing.TB, s *subject) {
			s.write(t, s.path("file"), pattern(1, 100_000))
			ctx, cancel := context.WithCancel(s.ctx)
			r, err := s.FS.Open(ctx, s.path("file"))
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			_, err = r.Read(make([]byte, 1000))
			require.NoError(t, err)
			cancel()
			_, err = r.Read(make([]byte, 1000))
			requireError(t, err, s.path("file"), context.Canceled)
			_, err = r.ReadAt(make([]byte, 1000), 50_000)
			requireError(t, err, s.path("file"), context.Canceled)
		}},
		rule{"The end of one stream's context leaves other streams alone", func(t testing.TB, s *subject) {
			s.write(t, s.path("old"), pattern(1, 100_000))
			ctx, cancel := context.WithCancel(s.ctx)
			doomed := s.create(t, ctx, s.path("doomed"))
			w := s.create(t, s.ctx, s.path("file"))
			r := s.open(t, s.path("old"))
			cancel()
			requireError(t, doomed.Close(), s.path("doomed"), context.Canceled)
			_, err := w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			_, err = r.ReadAt(make([]byte, 1000), 50_000)
			require.NoError(t, err)
			require.NoError(t, doomed.Abort())
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content"))
		}},
		rule{"Close that meets the end of its context tells the truth", checkCancelCloseRace},
		rule{"Rename that meets the end of its context has happened or not", checkCancelRenameRace},
	)
}

// check uses both kinds of end, and a context of each that ended before the call.
func (c contextCall) check(t testing.TB, s *subject) {
	s.plant(t)
	before := s.snapshot(t)
	cancelled, cancel := context.WithCancel(s.ctx)
	cancel()
	expired, stop := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer stop()
	for ctx, cause := range map[context.Context]error{cancelled: context.Canceled, expired: context.DeadlineExceeded} {
		name, err := c.call(ctx, s)
		requireError(t, err, name, cause)
		require.Equal(t, before, s.snapshot(t), "%s had an effect", c.method)
	}
	// The same call with a live context shows that nothing else was wrong with it.
	_, err := c.call(s.ctx, s)
	require.NoError(t, err)
}

func checkCancelCloseRace(t testing.TB, s *subject) {
	for round := range s.rounds {
		name := s.path(fmt.Sprintf("file-%d", round))
		ctx, cancel := context.WithCancel(s.ctx)
		w := s.create(t, ctx, name)
		_, err := w.Write([]byte("content"))
		require.NoError(t, err)
		errs := race(2, func(i int) error {
			if (i+round)%2 == 0 {
				cancel()
				return nil
			}
			return w.Close()
		})
		cancel()
		if closed := errs[(round+1)%2]; closed != nil {
			requireError(t, closed, name, context.Canceled)
			requireError(t, w.Close(), name)
			require.NoError(t, w.Abort())
			requireMissing(t, s.ctx, s.FS, name)
			continue
		}
		require.NoError(t, w.Close())
		requireContent(t, s.ctx, s.FS, name, []byte("content"))
	}
}

// checkCancelRenameRace: an error may come with or without the effect, success only with it.
func checkCancelRenameRace(t testing.TB, s *subject) {
	oldname, newname := s.path("file-a"), s.path("file-b")
	s.write(t, oldname, []byte("content"))
	for round := range s.rounds {
		ctx, cancel := context.WithCancel(s.ctx)
		errs := race(2, func(i int) error {
			if (i+round)%2 == 0 {
				cancel()
				return nil
			}
			return s.FS.Rename(ctx, oldname, newname, s.fileMode())
		})
		cancel()
		_, err := s.FS.Stat(s.ctx, newname)
		moved := err == nil
		if !moved {
			requireError(t, err, newname, fs.ErrNotExist)
		}
		if renamed := errs[(round+1)%2]; renamed != nil {
			requireError(t, renamed, oldname, context.Canceled)
		} else {
			require.True(t, moved, "Rename returned nil and did nothing")
		}
		if moved {
			requireMissing(t, s.ctx, s.FS, oldname)
			oldname, newname = newname, oldname
		}
		requireContent(t, s.ctx, s.FS, oldname, []byte("content"))
	}
}
