package fstest

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func createRules() []rule {
	return []rule{
		{"Create has exactly one winner of 16 callers on two clients", checkCreateRace},
		{"Create claims the name before Close", func(t testing.TB, s *subject) {
			second := s.Second(t)
			w := s.create(t, s.ctx, s.path("file"))
			_, err := w.Write([]byte("half"))
			require.NoError(t, err)
			for _, fsys := range []core.FileSystem{s.FS, second} {
				_, err = fsys.Create(s.ctx, s.path("file"), core.CreateOptions{})
				requireError(t, err, s.path("file"), fs.ErrExist)
			}
			_, err = w.Write([]byte(" and half"))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			requireContent(t, s.ctx, second, s.path("file"), []byte("half and half"))
		}},
		{"Create that finds the name taken leaves the file as it is", func(t testing.TB, s *subject) {
			s.write(t, s.path("file"), []byte("old"))
			requireError(t, s.tryCreate(s.path("file"), core.CreateOptions{}), s.path("file"), fs.ErrExist)
			requireContent(t, s.ctx, s.FS, s.path("file"), []byte("old"))
		}},
		{"Create and MkdirAll of one name have exactly one winner", checkCreateMkdirRace},
		{"Files are written side by side", func(t testing.TB, s *subject) {
			writers := make([]core.Writer, racers)
			for i := range writers {
				writers[i] = s.create(t, s.ctx, s.path(fmt.Sprintf("file-%d", i)))
				_, err := writers[i].Write(pattern(uint64(i), 100_000+i)[:1000])
				require.NoError(t, err)
			}
			for _, err := range race(racers, func(i int) error {
				_, err := writers[i].Write(pattern(uint64(i), 100_000+i)[1000:])
				if err == nil {
					err = writers[i].Close()
				}
				return err
			}) {
				require.NoError(t, err)
			}
			for i := range racers {
				requireContent(t, s.ctx, s.FS, s.path(fmt.Sprintf("file-%d", i)), pattern(uint64(i), 100_000+i))
			}
		}},
	}
}

// checkCreateRace lets two clients race, because exclusivity inside of one process proves little.
func checkCreateRace(t testing.TB, s *subject) {
	clients := []core.FileSystem{s.FS, s.Second(t)}
	for round := range s.rounds {
		name := s.path(fmt.Sprintf("file-%d", round))
		writers := make([]core.Writer, racers)
		errs := race(racers, func(i int) (err error) {
			writers[i], err = clients[i%2].Create(s.ctx, name, core.CreateOptions{})
			return err
		})
		for i, w := range writers {
			if errs[i] == nil {
				t.Cleanup(func() { _ = w.Abort() }) // a no-op unless the rule has failed
			}
		}
		winner := requireOneWinner(t, errs, func(int) string { return name }, fs.ErrExist)
		_, err := fmt.Fprintf(writers[winner], "from %d", winner)
		require.NoError(t, err)
		require.NoError(t, writers[winner].Close())
		requireContent(t, s.ctx, clients[(winner+1)%2], name, fmt.Appendf(nil, "from %d", winner))
	}
}

// checkCreateMkdirRace: Create must not make a file where a directory is, nor MkdirAll be content with a file.
func checkCreateMkdirRace(t testing.TB, s *subject) {
	clients := []core.FileSystem{s.FS, s.Second(t)}
	for round := range s.rounds {
		name := s.path(fmt.Sprintf("name-%d", round))
		errs := race(2, func(i int) error {
			if (i+round)%2 == 0 {
				return clients[i].MkdirAll(s.ctx, name)
			}
			return writeFile(s.ctx, clients[i], name, []byte("x"), core.CreateOptions{})
		})
		info, err := s.FS.Stat(s.ctx, name)
		require.NoError(t, err)
		mkdirErr, createErr := errs[round%2], errs[(round+1)%2]
		if info.IsDir() {
			require.NoError(t, mkdirErr)
			requireError(t, createErr, name, fs.ErrExist)
		} else {
			require.NoError(t, createErr)
			requireError(t, mkdirErr, name, fs.ErrInvalid)
		}
		require.NotErrorIs(t, mkdirErr, fs.ErrExist, "MkdirAll is not a lock")
	}
}
