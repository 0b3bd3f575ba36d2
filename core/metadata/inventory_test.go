package metadata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// gathered puts the segments of an inventory's files together again.
func gathered(t testing.TB, inv *Inventory) []core.Object {
	t.Helper()
	var objects []core.Object
	index := map[string]int{}
	for f, err := range inv.All() {
		require.NoError(t, err)
		i, known := index[f.Path]
		require.Equal(t, !known, f.First, f.Path)
		require.Equal(t, known, known && len(f.Segments) == 1, "%s came before", f.Path)
		if known {
			objects[i].Segments = append(objects[i].Segments, f.Segments...)
			continue
		}
		index[f.Path] = len(objects)
		objects = append(objects, f.Object)
	}
	for i := range objects {
		if len(objects[i].Segments) > 1 {
			n := len(objects[i].Segments)
			objects[i].Segments = joinSegments(objects[i].Segments)
			require.Len(t, objects[i].Segments, n, "a segment came twice")
		}
	}
	return sortedObjects(objects)
}

func sortedObjects(objects []core.Object) []core.Object {
	slices.SortFunc(objects, func(a, b core.Object) int { return cmp.Compare(a.Path, b.Path) })
	return objects
}

// requireInventory compares the two ways to the files of a checkpoint.
func requireInventory(t testing.TB, data []byte) {
	t.Helper()
	want, wantErr := ReadObjects(data, "file:/dir")
	inv, err := TakeInventory(bytes.NewReader(data), int64(len(data)), "file:/dir", InventoryOptions{})
	if wantErr != nil {
		require.Error(t, err, "%v", wantErr)
		require.Equal(t, errors.Is(wantErr, core.ErrCorrupt), errors.Is(err, core.ErrCorrupt))
		return
	}
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, scopeless(sortedObjects(want)), scopeless(gathered(t, inv)), "an inventory can be gone through again")
	}
	totals := FileTotals{Segments: inv.Files.Segments}
	for _, o := range want {
		one := fileFacts{size: max(o.Size, o.AtLeast), flags: flagSize}
		if o.Directory {
			totals.Directories++
			continue
		}
		totals.Files++
		totals.Bytes = addSizes(totals.Bytes, max(one.size, 0))
		if o.Size == unknownSize {
			totals.UnknownSizes++
		}
	}
	got := inv.Files
	got.Shared, got.SharedBytes, got.Checksummed, got.Segments = 0, 0, 0, totals.Segments
	require.Equal(t, totals, got)
}

// scopeless leaves out what a single segment does not tell of those that are the same run of bytes.
func scopeless(objects []core.Object) []core.Object {
	for i := range objects {
		for k := range objects[i].Segments {
			objects[i].Segments[k].Scope = 0
		}
	}
	return objects
}

func TestInventoryHasTheObjectsOfACheckpoint(t *testing.T) {
	for _, g := range ownGolden(t) {
		t.Run(g.kind+"/"+g.name, func(t *testing.T) { requireInventory(t, g.data(t)) })
	}
	m := newMaker(t)
	for range 200 {
		data, err := Append(nil, m.checkpoint(), WriteOptions{Version: 6, Footer: m.footer()})
		require.NoError(t, err)
		requireInventory(t, data)
	}
}

// meeting makes handles that refer to few files, so that they meet and contradict each other.
func (m maker) meeting() core.StreamHandle {
	path := fmt.Sprint("hdfs://nn/", m.IntN(6))
	size := pick[int64](m, -1, 10, 10, 10)
	if m.chance(8) {
		size = 11
	}
	if m.chance(40) {
		s := &SegmentHandle{Path: path, Offset: int64(m.IntN(4)), Size: int64(m.IntN(6)), Scope: pick(m, ScopeExclusive, ScopeShared)}
		if m.chance(30) {
			s.Checksums = &core.Checksums{ChunkSize: 100}
			if s.Size > 0 {
				s.Checksums.Sums = []uint32{7}
			}
		}
		return s
	}
	f := &core.FileHandle{Path: path, Size: size}
	if m.chance(30) && size > 0 {
		f.Checksums = &core.Checksums{ChunkSize: 100, Sums: []uint32{7}}
	}
	return f
}

func TestInventoryJoinsWhatSeveralHandlesSay(t *testing.T) {
	m := newMaker(t)
	sound := 0
	for range 2000 {
		s := &SubtaskState{}
		for range 1 + m.IntN(8) {
			s.InputChannels = append(s.InputChannels, NewChannelHandle(0, Channel{}, m.meeting()))
		}
		if m.chance(5) {
			s.RawOperator = &OperatorHandle{Delegate: EmptySegment{}, Merging: &Merging{TaskOwnedDir: "hdfs://nn/0", SharedDir: "hdfs://nn/s"}}
		}
		data, err := Append(nil, single(s), WriteOptions{Version: 6, Footer: &Footer{}})
		require.NoError(t, err)
		requireInventory(t, data)
		if _, err := ReadObjects(data, ""); err == nil {
			sound++
		}
	}
	require.Greater(t, sound, 200)
	require.Less(t, sound, 1950)
}

func TestInventoryTellsWhoNeedsAFileAndWhatFor(t *testing.T) {
	file := func(name string, size int64) *core.FileHandle {
		return &core.FileHandle{Path: "hdfs://nn/" + name, Size: size}
	}
	summed := file("summed", 3)
	summed.Checksums = &core.Checksums{ChunkSize: 4, Sums: []uint32{1}}
	c := &Checkpoint{Operators: []OperatorState{
		{ID: OperatorID{1}, Name: "first", UID: "1", Parallelism: 8, MaxParallelism: 8, Subtasks: []Subtask{
			{Index: 3, State: &SubtaskState{
				ManagedOperator: &OperatorHandle{Delegate: summed},
				ManagedKeyed: &IncrementalHandle{
					Meta: file("meta", 1), Shared: []NamedFile{{Handle: file("sst", 20)}}, Private: []NamedFile{{Handle: file("current", 2)}},
				},
			}},
			{Index: 5, State: &SubtaskState{RawKeyed: &ChangelogHandle{
				Range: KeyGroupRange{Count: 1}, Materialized: []KeyedHandle{&KeyGroupsHandle{Delegate: file("base", 5)}},
				Changes: []KeyedHandle{&ChangelogFileHandle{Parts: []ChangelogPart{{Handle: file("changes", 6)}}}},
			}}},
		}},
		{ID: OperatorID{2}, Parallelism: 1, MaxParallelism: 8, Subtasks: []Subtask{{State: &SubtaskState{
			ManagedKeyed:  &IncrementalHandle{Meta: file("meta 2", 1), Shared: []NamedFile{{Handle: file("sst", 20)}}},
			InputChannels: []ChannelHandle{NewChannelHandle(0, Channel{}, &SegmentHandle{Path: "hdfs://nn/packed", Offset: 90, Size: 10})},
		}}}},
	}}
	data, err := Append(nil, c, WriteOptions{Footer: &Footer{}})
	require.NoError(t, err)
	inv, err := TakeInventory(bytes.NewReader(data), int64(len(data)), "", InventoryOptions{})
	require.NoError(t, err)
	var seen []string
	for f, err := range inv.All() {
		require.NoError(t, err)
		seen = append(seen, fmt.Sprintf("%s %v %d/%d shared=%t sums=%t flag=%t", f.Path, f.Kind, f.Operator, f.Subtask, f.Shared, f.Checksummed, f.FlagByte))
	}
	require.Equal(t, []string{
		"hdfs://nn/summed operator 0/3 shared=false sums=true flag=false",
		"hdfs://nn/meta incremental 0/3 shared=false sums=false flag=false",
		"hdfs://nn/sst incremental 0/3 shared=true sums=false flag=false",
		"hdfs://nn/current incremental 0/3 shared=false sums=false flag=false",
		"hdfs://nn/base key_groups 0/5 shared=true sums=false flag=false",
		"hdfs://nn/changes changelog 0/5 shared=true sums=false flag=true",
		"hdfs://nn/meta 2 incremental 1/0 shared=false sums=false flag=false",
		"hdfs://nn/packed channel 1/0 shared=false sums=false flag=false",
	}, seen)
	require.Equal(t, []OperatorFiles{
		{ID: OperatorID{1}, Name: "first", UID: "1", FileTotals: FileTotals{Files: 6, Bytes: 37, Shared: 3, SharedBytes: 31, Checksummed: 1}},
		{ID: OperatorID{2}, FileTotals: FileTotals{Files: 2, Bytes: 101, UnknownSizes: 1}},
	}, inv.Operators)
	require.Equal(t, FileTotals{Files: 8, Bytes: 138, UnknownSizes: 1, Shared: 3, SharedBytes: 31, Checksummed: 1, Segments: 1}, inv.Files)

	n := 0
	for _, err := range inv.All() {
		require.NoError(t, err)
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
	require.Equal(t, "invalid", FileKind(99).String())
	size, needed := inv.Lookup("hdfs://nn/sst")
	require.True(t, needed)
	require.Equal(t, int64(20), size)
	_, needed = inv.Lookup("hdfs://nn/")
	require.False(t, needed)

	inv, err = TakeInventory(bytes.NewReader(data), int64(len(data)), "", InventoryOptions{Where: func(path string) string {
		return "file:/copy" + path[len("hdfs://nn"):]
	}})
	require.NoError(t, err)
	for f, err := range inv.All() {
		require.NoError(t, err)
		require.Equal(t, "file:/copy/summed", f.Path)
		break
	}
	_, needed = inv.Lookup("file:/copy/packed")
	require.True(t, needed)
}

func TestErrorsOfAnInventoryAreThoseOfObjects(t *testing.T) {
	bad := single(inOperator(&core.RelativeFileHandle{Name: "../x"}))
	data, err := Append(nil, bad, WriteOptions{})
	require.NoError(t, err)
	_, want := ReadObjects(data, "file:/dir")
	_, err = TakeInventory(bytes.NewReader(data), int64(len(data)), "file:/dir", InventoryOptions{})
	require.Equal(t, want, err)

	_, err = TakeInventory(brokenReader{bytes.NewReader(data), 20}, int64(len(data)), "file:/dir", InventoryOptions{})
	require.ErrorIs(t, err, fs.ErrPermission)

	good, err := Append(nil, single(inOperator(&core.FileHandle{Path: "/a"})), WriteOptions{})
	require.NoError(t, err)
	inv, err := TakeInventory(bytes.NewReader(good), int64(len(good)), "", InventoryOptions{})
	require.NoError(t, err)
	inv.src = brokenReader{bytes.NewReader(good), 20}
	calls := 0
	for _, err := range inv.All() {
		calls++
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	require.Equal(t, 1, calls)
}

func TestFileTableKeepsManyFilesApart(t *testing.T) {
	var table fileTable
	const n = 100_000
	for i := range n {
		facts := table.at(table.ofPath(fmt.Sprint(i)))
		require.Zero(t, facts.flags)
		*facts = fileFacts{size: int64(i), flags: flagPresent}
	}
	slots := 0
	for i := range table.shards {
		slots += len(table.shards[i].keys)
	}
	require.Less(t, slots, n*3/2, "more than a third is free")
	for i := range n {
		require.Equal(t, int64(i), table.known(table.ofPath(fmt.Sprint(i))).size)
		require.Nil(t, table.known(table.ofPath(fmt.Sprint(-i-1))))
		require.Nil(t, table.known(table.ofSegment(fmt.Sprint(i), 0, 0)))
	}
	visited := 0
	table.each(func(*fileFacts) { visited++ })
	require.Equal(t, n, visited)
}

func TestInventoriesOfMoreGoldenFiles(t *testing.T) {
	dir := os.Getenv(goldenEnv)
	if dir == "" {
		t.Skip(goldenEnv + " names no directory")
	}
	n := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "_metadata" {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			n++
			requireScanIsParse(t, data, 64)
			requireInventory(t, data)
		}
		return err
	}))
	require.NotZero(t, n)
	t.Logf("%d files", n)
}

func BenchmarkInventory(b *testing.B) {
	data, err := Append(nil, large(100, 1000), WriteOptions{Version: 6})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := TakeInventory(bytes.NewReader(data), int64(len(data)), "file:/dir", InventoryOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
