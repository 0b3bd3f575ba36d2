package memfs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestTheJournalForgetsDirectoriesThatAreGone(t *testing.T) {
	f := New(Options{})
	for i := range 2000 {
		dir := fmt.Sprintf("/dir-%d", i)
		require.NoError(t, f.MkdirAll(t.Context(), dir))
		for j := range 5 {
			w, err := f.Create(t.Context(), fmt.Sprintf("%s/%d", dir, j), core.CreateOptions{Durability: core.Unsynced})
			require.NoError(t, err)
			require.NoError(t, w.Close())
		}
		require.NoError(t, f.RemoveAll(t.Context(), dir))
	}
	require.Empty(t, f.Tree())
	require.LessOrEqual(t, len(f.journal.pending), 2*minCompact)
}

func TestTheJournalKeepsWhatCanStillBeReached(t *testing.T) {
	f := New(Options{})
	require.NoError(t, f.MkdirAll(t.Context(), "/kept"))
	for i := range 3 * minCompact {
		w, err := f.Create(t.Context(), fmt.Sprintf("/kept/%d", i), core.CreateOptions{Durability: core.Unsynced})
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	require.Len(t, f.journal.pending, 3*minCompact)
	require.Len(t, f.CrashClone(CrashConfig{UnsyncedPercent: 100}).Tree(), 1+3*minCompact)
}

func TestASyncTakesTheChangesItDependsOn(t *testing.T) {
	now := New(Options{}).now()
	x, y, z, other := newDir(now), newDir(now), newDir(now), newDir(now)
	file, dir, moved := newFile(now), newDir(now), newDir(now)
	rename := func(from, to *node, name string, n *node) change {
		return change{edits: []edit{{slot{from, name}, nil}, {slot{to, name}, n}}, movesDir: n.isDir()}
	}
	link := func(parent *node, name string, n *node) change {
		return change{edits: []edit{{slot{parent, name}, n}}}
	}
	for _, test := range []struct {
		name    string
		pending []change
		sync    *node
		left    int
	}{
		{"nothing of another directory", []change{link(x, "a", file)}, z, 1},
		{"all of its own", []change{link(z, "a", file), link(z, "b", nil), link(x, "a", file)}, z, 1},
		{"the earlier rename of the same file", []change{rename(x, y, "a", file), rename(y, z, "a", file)}, z, 0},
		{"what was in the way of a rename", []change{link(y, "a", nil), rename(x, y, "a", file), rename(y, z, "a", file)}, z, 0},
		{"not the later use of a slot", []change{rename(x, z, "a", file), link(x, "a", dir)}, z, 1},
		{"the making of a directory that was worked in", []change{link(other, "d", x), rename(x, z, "a", file)}, z, 0},
		{"the making of its own directory", []change{link(other, "d", z), link(z, "a", file)}, z, 0},
		{"an earlier move of any directory", []change{rename(x, y, "d", dir), rename(other, z, "e", moved)}, z, 0},
		{"no other change for a move of a directory", []change{link(x, "a", file), rename(other, z, "e", moved)}, z, 1},
		{"not a move of a directory for a file", []change{rename(x, y, "d", dir), rename(other, z, "a", file)}, z, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := journal{pending: slices.Clone(test.pending)}
			j.syncEntries(test.sync)
			require.Len(t, j.pending, test.left)
		})
	}
}

func TestNoChangeOutlivesOneItDependsOn(t *testing.T) {
	now := New(Options{}).now()
	x, y, z := newDir(now), newDir(now), newDir(now)
	file, dir := newFile(now), newDir(now)
	move := func(from, to *node, name string, n *node) change {
		return change{edits: []edit{{slot{from, name}, nil}, {slot{to, name}, n}}, movesDir: n.isDir()}
	}
	link := func(parent *node, name string, n *node) change {
		return change{edits: []edit{{slot{parent, name}, n}}}
	}
	for _, test := range []struct {
		name    string
		pending []change
		lost    int // the first of them
		kept    int
	}{
		{"a rename after a rename", []change{move(x, y, "a", file), move(y, z, "a", file)}, 1, 0},
		{"a name made after a removal", []change{link(x, "a", nil), link(x, "a", file)}, 1, 0},
		{"a name in a directory that was never made", []change{link(x, "d", dir), link(dir, "a", file)}, 1, 0},
		{"a move of a directory after another", []change{move(x, y, "d", dir), move(x, z, "e", y)}, 1, 0},
		{"another name", []change{link(x, "a", file), link(x, "b", file), link(y, "a", file)}, 1, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			draws := 0
			kept := (&journal{pending: test.pending}).survivors(func() bool {
				draws++
				return draws > test.lost
			})
			require.Len(t, kept, test.kept)
		})
	}
}
