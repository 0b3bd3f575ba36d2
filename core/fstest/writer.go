package fstest

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func writerRules() []rule {
	return []rule{
		{"Close without Write makes an empty file", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			require.NoError(t, w.Close())
			requireContent(t, s.ctx, s.Second(t), s.path("file"), nil)
		}},
		{"Write of no bytes is allowed and writes nothing", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			for _, p := range [][]byte{nil, {}, []byte("x"), {}} {
				n, err := w.Write(p)
				require.NoError(t, err)
				require.Equal(t, len(p), n)
			}
			require.NoError(t, w.Close())
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("x"))
		}},
		{"A second Close returns nil after the first did", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			require.NoError(t, w.Close())
			require.NoError(t, w.Close())
			requireContent(t, s.ctx, s.FS, s.path("file"), nil)
		}},
		{"Write after Close is ErrClosed and changes nothing", func(t testing.TB, s *subject) {
			w := s.committed(t, "content")
			n, err := w.Write([]byte("more"))
			requireError(t, err, s.path("file"), fs.ErrClosed)
			require.Zero(t, n)
			require.NoError(t, w.Close(), "a refused Write does not change the outcome")
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("content"))
		}},
		{"Sync after Close is ErrClosed", func(t testing.TB, s *subject) {
			w := s.committed(t, "content")
			requireError(t, w.Sync(), s.path("file"), fs.ErrClosed, errors.ErrUnsupported)
			require.NoError(t, w.Close(), "a refused Sync does not change the outcome")
		}},
		{"Sync between writes keeps the bytes in order, or is refused where it is not declared", checkSync},
		{"A failed Write fails all that follows, and Abort removes the file", func(t testing.TB, s *subject) {
			w := s.broken(t)
			s.requireFailed(t, w)
			require.NoError(t, w.Abort())
			requireMissing(t, s.ctx, s.FS, s.path("file"))
		}},
		{"A failed Close stays failed, and Abort removes the file", func(t testing.TB, s *subject) {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			w := s.create(t, ctx, s.path("file"))
			_, err := w.Write(pattern(1, 10_000))
			require.NoError(t, err)
			cancel()
			requireError(t, w.Close(), s.path("file"), context.Canceled)
			requireError(t, w.Close(), s.path("file"))
			s.requireFailed(t, w)
			require.NoError(t, w.Abort())
			requireMissing(t, s.ctx, s.FS, s.path("file"))
		}},
		{"Close fails if the file was removed while it was written", func(t testing.TB, s *subject) {
			w := s.create(t, s.ctx, s.path("file"))
			_, err := w.Write([]byte("content"))
			require.NoError(t, err)
			require.NoError(t, s.Second(t).Remove(s.ctx, s.path("file")))
			requireError(t, w.Close(), s.path("file"))
			requireError(t, w.Close(), s.path("file"))
			require.NoError(t, w.Abort())
			requireMissing(t, s.ctx, s.FS, s.path("file"))
		}},
		{"Close neither commits over nor harms another file that took the name", func(t testing.TB, s *subject) {
			w := s.usurped(t)
			requireError(t, w.Close(), s.path("file"))
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("of another"))
		}},
		{"A file that is moved while it is written does not come back under its old name", checkMovedWriter},
	}
}

// committed returns a Writer of "file" that was closed.
func (s *subject) committed(t testing.TB, content string) core.Writer {
	t.Helper()
	w := s.create(t, s.ctx, s.path("file"))
	_, err := w.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return w
}

// broken returns a Writer of "file" that failed because its context ended.
func (s *subject) broken(t testing.TB) core.Writer {
	t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	w := s.create(t, ctx, s.path("file"))
	_, err := w.Write(pattern(1, 10_000))
	require.NoError(t, err)
	cancel()
	// Write may buffer and leave the failure to a later call; a megabyte gives a small buffer the chance to show it.
	for range 16 {
		if _, err = w.Write(pattern(2, 64<<10)); err != nil {
			requireError(t, err, s.path("file"), context.Canceled)
			break
		}
	}
	if err == nil {
		requireError(t, w.Sync(), s.path("file"), context.Canceled, errors.ErrUnsupported)
	}
	return w
}

// usurped returns a Writer of "file" whose file was removed and whose name another file has taken.
func (s *subject) usurped(t testing.TB) core.Writer {
	t.Helper()
	second := s.Second(t)
	w := s.create(t, s.ctx, s.path("file"))
	_, err := w.Write([]byte("of the first"))
	require.NoError(t, err)
	require.NoError(t, second.Remove(s.ctx, s.path("file")))
	require.NoError(t, writeFile(s.ctx, second, s.path("file"), []byte("of another"), core.CreateOptions{}))
	return w
}

// requireFailed requires that nothing succeeds any more. Write may still accept bytes, but Close must not.
func (s *subject) requireFailed(t testing.TB, w core.Writer) {
	t.Helper()
	requireError(t, w.Close(), s.path("file"))
	_, err := w.Write([]byte("more"))
	requireError(t, err, s.path("file"))
	requireError(t, w.Sync(), s.path("file"))
	requireError(t, w.Close(), s.path("file"))
}

func checkSync(t testing.TB, s *subject) {
	w := s.create(t, s.ctx, s.path("file"))
	var want []byte
	for i, size := range []int{0, 1, 600, 4096, 70_000, 5} {
		piece := pattern(uint64(i), size)
		_, err := w.Write(piece)
		require.NoError(t, err)
		want = append(want, piece...)
		err = w.Sync()
		if s.caps.Sync {
			require.NoError(t, err)
			require.NoError(t, w.Sync(), "Sync with nothing to do")
		} else {
			requireError(t, err, s.path("file"), errors.ErrUnsupported)
		}
	}
	require.NoError(t, w.Close(), "a refused Sync has no effect on the file")
	requireContent(t, s.ctx, s.Second(t), s.path("file"), want)
}

// checkMovedWriter: fencing moves away the directory in which a former owner writes, and relies on it that nothing of
// this owner appears in a new directory of the old name.
func checkMovedWriter(t testing.TB, s *subject) {
	s.mkdir(t, s.path("dir"))
	w := s.create(t, s.ctx, s.path("dir", "file"))
	_, err := w.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, s.Second(t).Rename(s.ctx, s.path("dir"), s.path("moved"), s.dirMode()))
	s.mkdir(t, s.path("dir"))
	if err := w.Close(); err != nil {
		requireError(t, err, s.path("dir", "file"))
		require.NoError(t, w.Abort())
	} else {
		requireContent(t, s.ctx, s.FS, s.path("moved", "file"), []byte("content"))
	}
	names, err := list(s.ctx, s.FS, s.path("dir"))
	require.NoError(t, err)
	require.Empty(t, names)
}
