package fstest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// manyEntries is more than two pages of a server that sends 1,000 entries at a time.
const manyEntries = 2_600

func listRules() []rule {
	return []rule{
		{"List yields the direct children with their kinds and sizes", func(t testing.TB, s *subject) {
			s.plant(t)
			var got []string
			for info, err := range s.FS.List(s.ctx, s.Root) {
				require.NoError(t, err)
				line := info.Name + "/"
				if !info.IsDir() {
					require.True(t, info.IsRegular())
					line = fmt.Sprintf("%s %d", info.Name, info.Size)
				}
				got = append(got, line)
			}
			require.Equal(t, []string{"dir/", "empty/", "file 15", "other 25"}, got)
		}},
		{"List of an empty directory yields nothing", func(t testing.TB, s *subject) {
			names, err := list(s.ctx, s.FS, s.Root)
			require.NoError(t, err)
			require.Empty(t, names)
		}},
		{"List is in byte order, which is not the order of words or of UTF-16", func(t testing.TB, s *subject) {
			want := []string{
				" ", "!", "-", ".a", "0", "10", "2", "A", "B", "Z", "c", "c b", "c!", "c-", "c.", "c0", "cc", "d", "x", "~",
				"é", "€", "\ufffd", "😀",
			}
			require.True(t, slices.IsSorted(want))
			for i := range want {
				s.mkdir(t, s.path(want[(i*7)%len(want)]))
			}
			names, err := list(s.ctx, s.FS, s.Root)
			require.NoError(t, err)
			require.Equal(t, want, names)
		}},
		{"List is complete and ordered past 2,500 entries, and may stop anywhere", checkLongList},
		{"List yields what stays exactly once while other entries come and go", checkListUnderChange},
		{"List of one directory may be repeated", func(t testing.TB, s *subject) {
			s.plant(t)
			sequence := s.FS.List(s.ctx, s.Root)
			for range 2 {
				var names []string
				for info, err := range sequence {
					require.NoError(t, err)
					names = append(names, info.Name)
				}
				require.Equal(t, []string{"dir", "empty", "file", "other"}, names)
			}
		}},
		{"List ends after an error, which comes with a zero FileInfo", func(t testing.TB, s *subject) {
			yields := 0
			for info, err := range s.FS.List(s.ctx, s.path("missing")) {
				yields++
				requireError(t, err, s.path("missing"), fs.ErrNotExist)
				require.Zero(t, info)
			}
			require.Equal(t, 1, yields)
		}},
		{"List is complete or ends in an error when its context ends meanwhile", checkListCancelled},
		{"List at another client sees what was made and removed", func(t testing.TB, s *subject) {
			second := s.Second(t)
			s.plant(t)
			names, err := list(s.ctx, second, s.Root)
			require.NoError(t, err)
			require.Equal(t, []string{"dir", "empty", "file", "other"}, names)
			require.NoError(t, s.FS.RemoveAll(s.ctx, s.path("dir")))
			require.NoError(t, s.FS.Remove(s.ctx, s.path("file")))
			names, err = list(s.ctx, second, s.Root)
			require.NoError(t, err)
			require.Equal(t, []string{"empty", "other"}, names)
		}},
	}
}

// plantMany makes n entries as cheaply as the file system can and returns their names in order.
func (s *subject) plantMany(t testing.TB, dir string, n int) []string {
	t.Helper()
	s.mkdir(t, dir)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("entry-%05d", i)
	}
	opts := core.CreateOptions{Durability: core.Unsynced}
	_, files := s.caps.Resolve(core.Unsynced)
	const makers = 8
	for _, err := range race(makers, func(maker int) error {
		for i := maker; i < n; i += makers {
			name := dir + "/" + names[(i*997)%n]
			var err error
			if files {
				err = writeFile(s.ctx, s.FS, name, nil, opts)
			} else {
				err = s.FS.MkdirAll(s.ctx, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	return names
}

func checkLongList(t testing.TB, s *subject) {
	want := s.plantMany(t, s.path("dir"), manyEntries)
	names, err := list(s.ctx, s.FS, s.path("dir"))
	require.NoError(t, err)
	require.Equal(t, len(want), len(names))
	require.Equal(t, want, names)
	for _, stop := range []int{1, 2, 999, 1000, 1001, 2000, 2001, manyEntries - 1} {
		seen := 0
		for info, err := range s.FS.List(s.ctx, s.path("dir")) {
			require.NoError(t, err)
			require.Equal(t, want[seen], info.Name)
			if seen++; seen == stop {
				break
			}
		}
		require.Equal(t, stop, seen)
	}
}

// checkListUnderChange removes and makes entries before, at and behind the point that the listing has reached.
func checkListUnderChange(t testing.TB, s *subject) {
	dir := s.path("dir")
	all := s.plantMany(t, dir, manyEntries)
	stays := func(i int) bool { return i%3 == 0 }
	seen := map[string]int{}
	last, next := "", 0
	for info, err := range s.FS.List(s.ctx, dir) {
		require.NoError(t, err)
		require.Less(t, last, info.Name, "out of order")
		last = info.Name
		seen[info.Name]++
		if len(seen)%100 != 1 {
			continue
		}
		for _, i := range []int{next, manyEntries/2 + next, manyEntries - 1 - next} {
			if !stays(i) {
				require.NoError(t, s.FS.RemoveAll(s.ctx, dir+"/"+all[i]))
			}
		}
		next++
		require.NoError(t, s.FS.MkdirAll(s.ctx, fmt.Sprintf("%s/a-new-%d", dir, next)))
		require.NoError(t, s.FS.MkdirAll(s.ctx, fmt.Sprintf("%s/z-new-%d", dir, next)))
	}
	for i, name := range all {
		if stays(i) {
			require.Equal(t, 1, seen[name], "%s was there all the time", name)
		}
	}
}

func checkListCancelled(t testing.TB, s *subject) {
	want := s.plantMany(t, s.path("dir"), manyEntries)
	for _, at := range []int{1, 1000, 1500, manyEntries} {
		ctx, cancel := context.WithCancel(s.ctx)
		var names []string
		var failure error
		for info, err := range s.FS.List(ctx, s.path("dir")) {
			require.NoError(t, failure, "List went on after an error")
			if err != nil {
				require.Zero(t, info)
				failure = err
				continue
			}
			names = append(names, info.Name)
			if len(names) == at {
				cancel()
			}
		}
		cancel()
		if failure != nil {
			requireError(t, failure, s.path("dir"), context.Canceled)
		} else {
			require.Equal(t, len(want), len(names), "the listing was cut short in silence")
		}
	}
}
