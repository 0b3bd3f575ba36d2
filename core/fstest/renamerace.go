package fstest

import (
	"bytes"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func renameRaceRules() []rule {
	return []rule{
		{"RenameNoReplace of 16 files to one name has exactly one winner", func(t testing.TB, s *subject) {
			if s.caps.NoReplaceFiles {
				s.requireOneTarget(t, false)
			} else {
				s.requireFileMoves(t, core.RenameNoReplace, false)
			}
		}},
		{"RenameNoReplace of 16 directories to one name has exactly one winner", func(t testing.TB, s *subject) {
			if s.caps.NoReplaceDirs {
				s.requireOneTarget(t, true)
			} else {
				s.requireDirMoves(t, core.RenameNoReplace, false)
			}
		}},
		{"RenameNoReplace and Create of one name have exactly one winner", func(t testing.TB, s *subject) {
			if s.caps.NoReplaceFiles {
				checkRenameCreateRace(t, s)
			} else {
				s.requireFileMoves(t, core.RenameNoReplace, false)
			}
		}},
		{"Rename of one file to 16 names has exactly one winner", func(t testing.TB, s *subject) { s.requireOneSource(t, false) }},
		{"Rename of one directory to 16 names has exactly one winner", func(t testing.TB, s *subject) { s.requireOneSource(t, true) }},
		{"RenameReplace under readers shows the old file or the new one", checkReplaceUnderReaders},
	}
}

// plantSource makes a file, or a directory with a file, that says who made it.
func (s *subject) plantSource(t testing.TB, name string, dir bool, content []byte) {
	t.Helper()
	if dir {
		s.mkdir(t, name)
		name += "/content"
	}
	s.write(t, name, content)
}

func (s *subject) requireSource(t testing.TB, name string, dir bool, content []byte) {
	t.Helper()
	if dir {
		names, err := list(s.ctx, s.FS, name)
		require.NoError(t, err)
		require.Equal(t, []string{"content"}, names)
		name += "/content"
	}
	requireContent(t, s.ctx, s.FS, name, content)
}

func (s *subject) requireOneTarget(t testing.TB, dir bool) {
	t.Helper()
	clients := []core.FileSystem{s.FS, s.Second(t)}
	source := func(i int) string { return s.path(fmt.Sprintf("source-%d", i)) }
	content := func(i int) []byte { return fmt.Appendf(nil, "content of %d", i) }
	for i := range racers {
		s.plantSource(t, source(i), dir, content(i))
	}
	for round := range s.rounds {
		target := s.path(fmt.Sprintf("target-%d", round))
		errs := race(racers, func(i int) error {
			return clients[i%2].Rename(s.ctx, source(i), target, core.RenameNoReplace)
		})
		winner := requireOneWinner(t, errs, source, fs.ErrExist)
		s.requireSource(t, target, dir, content(winner))
		requireMissing(t, s.ctx, s.FS, source(winner))
		if round == 0 {
			for i := range racers {
				if i != winner {
					s.requireSource(t, source(i), dir, content(i))
				}
			}
		}
		s.plantSource(t, source(winner), dir, content(winner))
	}
	for i := range racers {
		s.requireSource(t, source(i), dir, content(i))
	}
}

func (s *subject) requireOneSource(t testing.TB, dir bool) {
	t.Helper()
	clients := []core.FileSystem{s.FS, s.Second(t)}
	mode := s.fileMode()
	if dir {
		mode = s.dirMode()
	}
	for round := range s.rounds {
		source := s.path(fmt.Sprintf("source-%d", round))
		target := func(i int) string { return s.path(fmt.Sprintf("target-%d-%d", round, i)) }
		s.plantSource(t, source, dir, []byte("content"))
		errs := race(racers, func(i int) error { return clients[i%2].Rename(s.ctx, source, target(i), mode) })
		winner := requireOneWinner(t, errs, func(int) string { return source }, fs.ErrNotExist)
		for i := range racers {
			if i == winner {
				s.requireSource(t, target(i), dir, []byte("content"))
			} else {
				requireMissing(t, s.ctx, s.FS, target(i))
			}
		}
		require.NoError(t, s.FS.RemoveAll(s.ctx, target(winner)))
	}
}

func checkRenameCreateRace(t testing.TB, s *subject) {
	clients := []core.FileSystem{s.FS, s.Second(t)}
	for round := range s.rounds {
		source, target := s.path("source"), s.path(fmt.Sprintf("target-%d", round))
		s.write(t, source, []byte("renamed"))
		errs := race(2, func(i int) error {
			if (i+round)%2 == 0 {
				return clients[i].Rename(s.ctx, source, target, core.RenameNoReplace)
			}
			return writeFile(s.ctx, clients[i], target, []byte("created"), core.CreateOptions{})
		})
		path := func(i int) string {
			if (i+round)%2 == 0 {
				return source
			}
			return target
		}
		winner := requireOneWinner(t, errs, path, fs.ErrExist)
		if path(winner) == source {
			requireContent(t, s.ctx, s.FS, target, []byte("renamed"))
		} else {
			requireContent(t, s.ctx, s.FS, target, []byte("created"))
			require.NoError(t, s.FS.Remove(s.ctx, source))
		}
	}
}

// versioned returns content of which every byte and the length tell the version.
func versioned(version int) []byte {
	return bytes.Repeat([]byte{byte(version)}, 70_000+version)
}

// replacement is a file that one goroutine replaces again and again while others read it.
type replacement struct {
	name     string
	newest   atomic.Int64  // the version whose replacement has begun
	reads    atomic.Int64  // how many versions were read whole
	read     chan struct{} // has a token if there was an attempt to read since the last replacement
	broken   chan struct{} // closed when a reader gives up
	finished atomic.Bool
}

// checkReplaceUnderReaders requires that the file is always there and always whole.
func checkReplaceUnderReaders(t testing.TB, s *subject) {
	const readers = 4
	second := s.Second(t)
	r := &replacement{name: s.path("file"), read: make(chan struct{}, 1), broken: make(chan struct{})}
	s.write(t, r.name, versioned(0))
	var giveUp sync.Once
	errs := race(readers+1, func(i int) error {
		if i == readers {
			return r.replace(s)
		}
		err := r.follow(s, second)
		if err != nil {
			giveUp.Do(func() { close(r.broken) })
		}
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, r.reads.Load(), int64(readers), "too few reads succeeded to prove anything")
	requireContent(t, s.ctx, s.FS, r.name, versioned(s.rounds))
}

// replace waits for a reader between two replacements: without, all might be over before the first has begun.
func (r *replacement) replace(s *subject) error {
	defer r.finished.Store(true)
	for version := 1; version <= s.rounds; version++ {
		temporary := s.path(fmt.Sprintf("temporary-%d", version))
		if err := writeFile(s.ctx, s.FS, temporary, versioned(version), core.CreateOptions{}); err != nil {
			return err
		}
		select {
		case <-r.read:
		case <-r.broken:
			return nil
		}
		r.newest.Store(int64(version))
		if err := s.FS.Rename(s.ctx, temporary, r.name, core.RenameReplace); err != nil {
			return err
		}
	}
	return nil
}

// follow reads the file until it is not replaced any more, and once again after that.
func (r *replacement) follow(s *subject, fsys core.FileSystem) error {
	oldest := 0
	for last := false; !last; {
		last = r.finished.Load()
		version, err := readVersion(s, fsys, r.name)
		if err != nil {
			return err
		}
		select {
		case r.read <- struct{}{}:
		default:
		}
		if version < 0 {
			continue
		}
		if version < oldest || int64(version) > r.newest.Load() {
			return fmt.Errorf("version %d after version %d", version, oldest)
		}
		oldest = version
		r.reads.Add(1)
	}
	return nil
}

// readVersion returns the version of a file that was read whole, or -1 where the bytes of a replaced file are gone, which a
// Reader is allowed to report.
func readVersion(s *subject, fsys core.FileSystem, name string) (int, error) {
	info, err := fsys.Stat(s.ctx, name)
	if err != nil {
		return 0, fmt.Errorf("while the file is replaced: %w", err)
	}
	if info.Size < 70_000 {
		return 0, fmt.Errorf("the file has %d bytes while it is replaced", info.Size)
	}
	r, err := fsys.Open(s.ctx, name)
	if err != nil {
		return 0, fmt.Errorf("while the file is replaced: %w", err)
	}
	defer func() { _ = r.Close() }() // what was read has been judged
	data := make([]byte, r.Size())
	version := int(r.Size()) - 70_000
	n, err := r.ReadAt(data, 0)
	if version < 0 || !bytes.HasPrefix(versioned(version), data[:n]) {
		return 0, fmt.Errorf("a mix of two versions in %d bytes", len(data))
	}
	if n < len(data) {
		return -1, checkError(err, name)
	}
	return version, nil
}
