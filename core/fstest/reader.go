package fstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func readerRules() []rule {
	rules := []rule{
		{"Read, ReadAt and Seek behave as io says", func(t testing.TB, s *subject) {
			for _, size := range []int{1, 4097, 70_000} {
				name := s.path(fmt.Sprintf("file-%d", size))
				s.write(t, name, pattern(1, size))
				require.NoError(t, iotest.TestReader(s.open(t, name), pattern(1, size)))
			}
		}},
		{"Read ends in a bare io.EOF, again and again", func(t testing.TB, s *subject) {
			s.write(t, s.path("file"), pattern(1, 5000))
			s.write(t, s.path("empty"), nil)
			for _, name := range []string{"file", "empty"} {
				r := s.open(t, s.path(name))
				_, err := io.Copy(io.Discard, r)
				require.NoError(t, err)
				for range 3 {
					n, err := r.Read(make([]byte, 10))
					require.Zero(t, n)
					require.Equal(t, io.EOF, err)
				}
			}
		}},
		{"ReadAt at and past the end is a bare io.EOF", checkReadAtEnd},
		{"ReadAt with a negative offset is ErrInvalid", func(t testing.TB, s *subject) {
			r := s.reader(t, 100)
			for _, off := range []int64{-1, -100, -1 << 62} {
				n, err := r.ReadAt(make([]byte, 10), off)
				require.Zero(t, n)
				requireError(t, err, s.path("file"), fs.ErrInvalid)
			}
		}},
		{"ReadAt does not move the position of Read", func(t testing.TB, s *subject) {
			r := s.reader(t, 200_000)
			var got []byte
			for part := make([]byte, 30_000); len(got) <= 200_000; {
				_, err := r.ReadAt(make([]byte, 1000), 150_000)
				require.NoError(t, err)
				n, err := r.Read(part)
				got = append(got, part[:n]...)
				if err == io.EOF { //nolint:errorlint // the contract is a bare io.EOF
					break
				}
				require.NoError(t, err)
			}
			requireBytes(t, pattern(1, 200_000), got, "Read between ReadAt")
		}},
		{"ReadAt serves 16 goroutines at once", checkConcurrentReadAt},
		{"Seek reaches every position", checkSeek},
		{"Seek past the end is allowed and Read is then io.EOF", func(t testing.TB, s *subject) {
			r := s.reader(t, 100)
			at, err := r.Seek(1000, io.SeekEnd)
			require.NoError(t, err)
			require.EqualValues(t, 1100, at)
			n, err := r.Read(make([]byte, 10))
			require.Zero(t, n)
			require.Equal(t, io.EOF, err)
		}},
		{"Seek to before the beginning or with an unknown whence is ErrInvalid and moves nothing", func(t testing.TB, s *subject) {
			r := s.reader(t, 100)
			_, err := r.Seek(10, io.SeekStart)
			require.NoError(t, err)
			for _, try := range []struct {
				offset int64
				whence int
			}{{-1, io.SeekStart}, {-11, io.SeekCurrent}, {-101, io.SeekEnd}, {0, 3}, {0, -1}} {
				_, err := r.Seek(try.offset, try.whence)
				requireError(t, err, s.path("file"), fs.ErrInvalid)
			}
			at, err := r.Seek(0, io.SeekCurrent)
			require.NoError(t, err)
			require.EqualValues(t, 10, at)
		}},
		{"Close is idempotent, and everything after it is ErrClosed", func(t testing.TB, s *subject) {
			r := s.reader(t, 100)
			require.NoError(t, r.Close())
			require.NoError(t, r.Close())
			_, err := r.Read(make([]byte, 10))
			requireError(t, err, s.path("file"), fs.ErrClosed)
			_, err = r.ReadAt(make([]byte, 10), 0)
			requireError(t, err, s.path("file"), fs.ErrClosed)
			_, err = r.Seek(0, io.SeekStart)
			requireError(t, err, s.path("file"), fs.ErrClosed)
		}},
		{"A file that is still written is read as it was when it was opened", checkReadWhileWritten},
	}
	for _, change := range readerChanges() {
		rules = append(rules, rule{"An open Reader never mixes: " + change.what, change.check})
	}
	return rules
}

// reader returns a Reader of "file", which has pattern(1, size).
func (s *subject) reader(t testing.TB, size int) core.Reader {
	t.Helper()
	s.write(t, s.path("file"), pattern(1, size))
	r := s.open(t, s.path("file"))
	require.EqualValues(t, size, r.Size())
	return r
}

func checkReadAtEnd(t testing.TB, s *subject) {
	const size = 5000
	r := s.reader(t, size)
	for _, try := range []struct{ off, length, want int }{
		{0, size + 1, size},
		{size - 1, 2, 1},
		{size - 10, 100, 10},
		{size, 1, 0},
		{size, 100_000, 0},
		{size + 1, 1, 0},
		{size + 1_000_000, 10, 0},
	} {
		part := make([]byte, try.length)
		n, err := r.ReadAt(part, int64(try.off))
		require.Equal(t, io.EOF, err, "%+v", try)
		require.Equal(t, try.want, n, "%+v", try)
		if n > 0 {
			requireBytes(t, pattern(1, size)[try.off:], part[:n], fmt.Sprintf("%+v", try))
		}
	}
	part := make([]byte, 10)
	n, err := r.ReadAt(part, size-10)
	require.Equal(t, 10, n)
	if err != nil {
		require.Equal(t, io.EOF, err)
	}
}

func checkConcurrentReadAt(t testing.TB, s *subject) {
	const size, piece = 2<<20 + 17, 10_007
	data := pattern(1, size)
	r := s.reader(t, size)
	for _, err := range race(racers, func(i int) error {
		part := make([]byte, piece)
		for off := i * 1009; off < size; off += 5 * piece {
			n, err := r.ReadAt(part, int64(off))
			if err != nil && !(errors.Is(err, io.EOF) && off+n == size) {
				return err
			}
			if want := data[off:min(off+piece, size)]; !bytes.Equal(want, part[:n]) {
				return fmt.Errorf("wrong bytes at offset %d", off)
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

func checkSeek(t testing.TB, s *subject) {
	const size = 200_000
	data := pattern(1, size)
	r := s.reader(t, size)
	position := int64(0)
	for _, step := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, io.SeekEnd, size},
		{0, io.SeekStart, 0},
		{100_000, io.SeekStart, 100_000},
		{-50_000, io.SeekCurrent, 50_100},
		{65_436, io.SeekCurrent, 115_636},
		{-1, io.SeekEnd, size - 1},
		{512, io.SeekStart, 512},
		{0, io.SeekCurrent, 612},
	} {
		at, err := r.Seek(step.offset, step.whence)
		require.NoError(t, err)
		require.Equal(t, step.want, at, "%+v from %d", step, position)
		part := make([]byte, min(100, size-at))
		_, err = io.ReadFull(r, part)
		require.NoError(t, err)
		requireBytes(t, data[at:at+int64(len(part))], part, fmt.Sprintf("after %+v", step))
		position = at + int64(len(part))
	}
}

func checkReadWhileWritten(t testing.TB, s *subject) {
	data := pattern(1, 300_000)
	w := s.create(t, s.ctx, s.path("file"))
	_, err := w.Write(data[:100_000])
	require.NoError(t, err)
	if s.caps.Sync {
		require.NoError(t, w.Sync())
	}
	r, err := s.Second(t).Open(s.ctx, s.path("file"))
	if err != nil {
		// Nothing is promised of a file before Close, and yet the error has to have the form.
		requireError(t, err, s.path("file"))
		return
	}
	defer func() { require.NoError(t, r.Close()) }()
	size := r.Size()
	require.GreaterOrEqual(t, size, int64(0))
	require.LessOrEqual(t, size, int64(100_000))
	_, err = w.Write(data[100_000:])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, size, r.Size())
	got, err := readAll(r)
	require.NoError(t, err)
	requireBytes(t, data[:size], got, "the file as it was when it was opened")
	n, err := r.ReadAt(make([]byte, 10), size)
	require.Zero(t, n)
	require.Equal(t, io.EOF, err)
}

// readerChange is something that happens to a file while it is read.
type readerChange struct {
	what string
	do   func(t testing.TB, s *subject)
}

func readerChanges() []readerChange {
	return []readerChange{
		{"the file is renamed", func(t testing.TB, s *subject) {
			require.NoError(t, s.FS.Rename(s.ctx, s.path("dir", "file"), s.path("new"), s.fileMode()))
			s.write(t, s.path("dir", "file"), pattern(2, 250_000))
		}},
		{"the file is replaced", func(t testing.TB, s *subject) {
			s.write(t, s.path("other"), pattern(2, 250_000))
			require.NoError(t, s.FS.Rename(s.ctx, s.path("other"), s.path("dir", "file"), core.RenameReplace))
		}},
		{"the file is removed and made again", func(t testing.TB, s *subject) {
			require.NoError(t, s.FS.Remove(s.ctx, s.path("dir", "file")))
			s.write(t, s.path("dir", "file"), pattern(2, 250_000))
		}},
		{"its directory is renamed", func(t testing.TB, s *subject) {
			require.NoError(t, s.FS.Rename(s.ctx, s.path("dir"), s.path("moved"), s.dirMode()))
			s.mkdir(t, s.path("dir"))
			s.write(t, s.path("dir", "file"), pattern(2, 250_000))
		}},
		{"its directory is removed and made again", func(t testing.TB, s *subject) {
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("dir")))
			s.mkdir(t, s.path("dir"))
			s.write(t, s.path("dir", "file"), pattern(2, 250_000))
		}},
	}
}

// check requires the bytes of the file that was opened or an error, from the position of Read and from anywhere else.
func (c readerChange) check(t testing.TB, s *subject) {
	const size = 300_000
	data := pattern(1, size)
	s.mkdir(t, s.path("dir"))
	s.write(t, s.path("dir", "file"), data)
	r := s.open(t, s.path("dir", "file"))
	head := make([]byte, 1000)
	_, err := io.ReadFull(r, head)
	require.NoError(t, err)
	requireBytes(t, data[:1000], head, "before the change")

	c.do(t, s)

	require.EqualValues(t, size, r.Size())
	rest, err := readAll(r)
	requirePrefix(t, data[1000:], rest, "the rest of the file")
	if err != nil {
		requireError(t, err, s.path("dir", "file"))
	} else {
		require.Len(t, rest, size-1000)
	}
	for _, off := range []int{0, 100_000, 200_000, size - 1000} {
		part := make([]byte, 1000)
		n, err := r.ReadAt(part, int64(off))
		requirePrefix(t, data[off:], part[:n], fmt.Sprintf("at offset %d", off))
		if err != nil && err != io.EOF { //nolint:errorlint // the contract is a bare io.EOF
			requireError(t, err, s.path("dir", "file"))
		}
	}
	requireContent(t, s.ctx, s.FS, s.path("dir", "file"), pattern(2, 250_000))
}
