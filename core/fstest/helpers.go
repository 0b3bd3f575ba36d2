package fstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// path returns a name below the root of the subtest.
func (s *subject) path(parts ...string) string {
	return path.Join(append([]string{s.Root}, parts...)...)
}

// create opens a Writer that is aborted at the latest when the rule ends.
func (s *subject) create(t testing.TB, ctx context.Context, name string) core.Writer {
	t.Helper()
	w, err := s.FS.Create(ctx, name, core.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Abort() }) // whether it had ended is the rule's business
	return w
}

// open opens a Reader that is closed at the latest when the rule ends.
func (s *subject) open(t testing.TB, name string) core.Reader {
	t.Helper()
	r, err := s.FS.Open(s.ctx, name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() }) // whether it had ended is the rule's business
	return r
}

func (s *subject) write(t testing.TB, name string, data []byte) {
	t.Helper()
	require.NoError(t, writeFile(s.ctx, s.FS, name, data, core.CreateOptions{}))
}

func (s *subject) mkdir(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, s.FS.MkdirAll(s.ctx, dir))
}

// fileMode is the rename mode for files that the file system has.
func (s *subject) fileMode() core.RenameMode {
	if s.caps.NoReplaceFiles {
		return core.RenameNoReplace
	}
	return core.RenameReplace
}

// dirMode is the rename mode for directories that the file system has.
func (s *subject) dirMode() core.RenameMode {
	if s.caps.NoReplaceDirs {
		return core.RenameNoReplace
	}
	return core.RenameReplace
}

func writeFile(ctx context.Context, fsys core.FileSystem, name string, data []byte, opts core.CreateOptions) error {
	w, err := fsys.Create(ctx, name, opts)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func readFile(ctx context.Context, fsys core.FileSystem, name string) ([]byte, error) {
	r, err := fsys.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	return data, err
}

// readAll reads up to one byte more than the Reader says that there are: enough to notice, and it ends.
func readAll(r core.Reader) ([]byte, error) {
	size := max(0, r.Size())
	var data bytes.Buffer
	data.Grow(int(min(size, 16<<20)) + bytes.MinRead) // so that nothing is copied twice
	_, err := data.ReadFrom(io.LimitReader(r, size+1))
	return data.Bytes(), err
}

// list returns the names that List yields.
func list(ctx context.Context, fsys core.FileSystem, dir string) ([]string, error) {
	var names []string
	for info, err := range fsys.List(ctx, dir) {
		if err != nil {
			return names, err
		}
		names = append(names, info.Name)
	}
	return names, nil
}

// pattern returns bytes that differ for every seed and do not repeat at any border.
func pattern(seed uint64, size int) []byte {
	data := make([]byte, size)
	var key [32]byte
	key[0], key[1], key[2] = byte(seed), byte(seed>>8), byte(seed>>16)
	_, _ = rand.NewChaCha8(key).Read(data) // documented never to fail
	return data
}

func requireBytes(t testing.TB, want, got []byte, what string) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	require.FailNow(t, "wrong bytes", "%s: want %d bytes, got %d; they differ from byte %d on", what, len(want), len(got), at)
}

// requirePrefix requires that got is where want begins.
func requirePrefix(t testing.TB, want, got []byte, what string) {
	t.Helper()
	requireBytes(t, want[:min(len(want), len(got))], got, what)
}

func requireContent(t testing.TB, ctx context.Context, fsys core.FileSystem, name string, want []byte) {
	t.Helper()
	got, err := readFile(ctx, fsys, name)
	require.NoError(t, err)
	requireBytes(t, want, got, name)
}

func requireMissing(t testing.TB, ctx context.Context, fsys core.FileSystem, name string) {
	t.Helper()
	_, err := fsys.Stat(ctx, name)
	requireError(t, err, name, fs.ErrNotExist)
}

// requireError requires an *fs.PathError with the given path and one of the causes.
func requireError(t testing.TB, err error, name string, causes ...error) {
	t.Helper()
	require.NoError(t, checkError(err, name, causes...))
}

// checkError is requireError for other goroutines.
func checkError(err error, name string, causes ...error) error {
	if err == nil {
		return fmt.Errorf("want an error that is %v, got nil", causes)
	}
	pathError, ok := err.(*fs.PathError) //nolint:errorlint // the contract is about the outermost error
	switch {
	case !ok:
		return fmt.Errorf("want an *fs.PathError, got a %T: %w", err, err)
	case pathError.Op == "":
		return fmt.Errorf("the error names no operation: %w", err)
	case pathError.Path != name:
		return fmt.Errorf("the error names the path %q instead of %q: %w", pathError.Path, name, err)
	case len(causes) == 0:
		return nil
	}
	for _, cause := range causes {
		if errors.Is(err, cause) {
			return nil
		}
	}
	return fmt.Errorf("want an error that is %v, got: %w", causes, err)
}

// race calls f for 0 … n-1 in as many goroutines that start together, and returns what they returned.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			errs[i] = f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return errs
}

// requireOneWinner returns the index of the only nil; the other errors must be in order for their path and cause.
func requireOneWinner(t testing.TB, errs []error, path func(i int) string, cause error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "more than one of %d racing calls succeeded", len(errs))
			winner = i
			continue
		}
		requireError(t, err, path(i), cause)
	}
	require.NotEqual(t, -1, winner, "none of %d racing calls succeeded", len(errs))
	return winner
}

// snapshot describes everything below the root: a call without effect must leave it as it is.
func (s *subject) snapshot(t testing.TB) []string {
	t.Helper()
	return s.appendSnapshot(t, nil, s.Root)
}

func (s *subject) appendSnapshot(t testing.TB, lines []string, dir string) []string {
	t.Helper()
	for info, err := range s.FS.List(s.ctx, dir) {
		require.NoError(t, err)
		name := path.Join(dir, info.Name)
		switch {
		case info.IsDir():
			lines = s.appendSnapshot(t, append(lines, name+"/"), name)
		case info.IsRegular():
			data, err := readFile(s.ctx, s.FS, name)
			require.NoError(t, err)
			lines = append(lines, fmt.Sprintf("%s %d bytes %08x", name, len(data), crc32.ChecksumIEEE(data)))
		default:
			lines = append(lines, name+" "+info.Mode.String())
		}
	}
	return lines
}

// short cuts a name for messages.
func short(name string) string {
	const limit = 60
	if len(name) > limit {
		name = name[:limit] + "…"
	}
	return strings.ToValidUTF8(name, "?")
}
