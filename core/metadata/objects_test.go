package metadata

import (
	"io/fs"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestObjectsAreEveryFileOnce(t *testing.T) {
	sums := &core.Checksums{ChunkSize: 100, Sums: []uint32{1}}
	relative := func(name string, size int64) core.StreamHandle {
		return &core.RelativeFileHandle{Dir: "file:/ckpt/chk-7", Name: name, Size: size}
	}
	file := func(path string, size int64) core.StreamHandle { return &core.FileHandle{Path: path, Size: size} }
	c := &Checkpoint{Operators: []OperatorState{
		{
			Coordinator: &core.BytesHandle{Name: "hdfs://nn/looks-like-a-path"},
			Subtasks: []Subtask{
				{Index: 0},
				{Index: 1, State: &SubtaskState{
					ManagedOperator: &OperatorHandle{Delegate: relative("op", 1)},
					RawOperator: &OperatorHandle{
						Merging:  &Merging{TaskOwnedDir: "hdfs://nn/to/", SharedDir: "hdfs://nn//shared"},
						Delegate: &SegmentHandle{Path: "hdfs://nn/to/physical", Offset: 5, Size: 10},
					},
					ManagedKeyed: &IncrementalHandle{
						Meta:    relative("sub/meta", 2),
						Shared:  []NamedFile{{Handle: file("hdfs://nn/shared/sst", 3)}, {Handle: &core.BytesHandle{Name: "hdfs://nn/inline"}}},
						Private: []NamedFile{{Handle: relative("current", 4)}, {Handle: file("hdfs://nn//shared//sst", 3)}},
					},
					RawKeyed: &ChangelogHandle{
						Materialized: []KeyedHandle{&KeyGroupsHandle{Delegate: &KeyGroupsHandle{Delegate: file("/nested", 5)}}},
						Changes: []KeyedHandle{
							&ChangelogBytesHandle{},
							&ChangelogFileHandle{Parts: []ChangelogPart{
								{Handle: file("file:///dstl/1", 6)}, {Offset: 5, Handle: file("file:/dstl/1", 6)}, {Handle: &core.BytesHandle{}},
							}},
						},
					},
				}},
			},
		},
		{Subtasks: []Subtask{{State: &SubtaskState{
			ManagedOperator: &OperatorHandle{
				Merging: &Merging{TaskOwnedDir: "hdfs://nn/to", SharedDir: "hdfs://nn/other", Empty: true}, Delegate: EmptySegment{},
			},
			InputChannels: []ChannelHandle{
				NewChannelHandle(0, Channel{Size: 1}, file("hdfs://nn/in-flight", -1)),
				NewChannelHandle(0, Channel{Size: 1}, &core.FileHandle{Path: "hdfs://nn/in-flight", Size: 7, Checksums: sums}),
			},
			ResultSubpartitions: []ChannelHandle{
				NewMergedChannelHandle(0, nil, &SegmentHandle{Path: "hdfs://nn/in-flight", Offset: 1, Size: 2}),
				NewMergedChannelHandle(0, nil, &SegmentHandle{Path: "hdfs://nn/to/physical"}),
				NewMergedChannelHandle(0, nil, file("file:/ckpt/chk-7/op", 1)),
			},
		}}}},
		{FullyFinished: true},
	}}
	want := []core.Object{
		{Path: "file:/ckpt/chk-7/op", Size: 1, Relative: true},
		{Path: "hdfs://nn/to", Size: -1, Directory: true},
		{Path: "hdfs://nn/shared", Size: -1, Directory: true},
		{Path: "hdfs://nn/to/physical", Size: -1, AtLeast: 15, Segments: []core.Segment{{}, {Offset: 5, Size: 10}}},
		{Path: "file:/ckpt/chk-7/sub/meta", Size: 2, Relative: true},
		{Path: "hdfs://nn/shared/sst", Size: 3},
		{Path: "file:/ckpt/chk-7/current", Size: 4, Relative: true},
		{Path: "/nested", Size: 5},
		{Path: "file:/dstl/1", Size: 6, FlagByte: true},
		{Path: "hdfs://nn/other", Size: -1, Directory: true},
		{Path: "hdfs://nn/in-flight", Size: 7, Checksums: sums},
	}
	got, err := Objects(c)
	require.NoError(t, err)
	require.Equal(t, want, got)

	got, err = ObjectsOfSubtask(c.Operators[1].Subtasks[0].State)
	require.NoError(t, err)
	require.Len(t, got, 5)
}

func TestObjectsOfBytesAreThoseOfTheCheckpoint(t *testing.T) {
	c := single(inOperator(&core.RelativeFileHandle{Name: "a b%20é", Size: 3}))
	data, err := Append(nil, c, WriteOptions{})
	require.NoError(t, err)
	objects, err := ReadObjects(data, "file:///ckpt/chk-1/")
	require.NoError(t, err)
	require.Equal(t, []core.Object{{Path: "file:/ckpt/chk-1/a b%20é", Size: 3, Relative: true}}, objects)

	_, err = ReadObjects(data, "")
	require.ErrorIs(t, err, fs.ErrInvalid, "there is nothing to resolve it against")
	_, err = ReadObjects(data[:len(data)-1], "file:/ckpt")
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func TestNamesThatLeadOutOfTheDirectoryAreRefused(t *testing.T) {
	for _, name := range []string{
		"", "/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./a", "a/.", "a//b", "a/", "//nn/x", "hdfs://nn/x", "a\\b", "..\\x", "a\x00b",
		"\x00",
	} {
		h := &core.RelativeFileHandle{Name: name, Size: 1}
		data, err := Append(nil, single(inOperator(h)), WriteOptions{})
		require.NoError(t, err)
		c, err := Parse(data, "file:/ckpt/chk-1")
		require.NoError(t, err, "the file can be looked at")
		read := as[*core.RelativeFileHandle](t, c.Operators[0].Subtasks[0].State.ManagedOperator.Delegate)
		require.Equal(t, name, read.Name)

		_, err = Objects(c)
		require.ErrorIs(t, err, core.ErrCorrupt, "%q", name)
		require.ErrorContains(t, err, "operators[0].subtasks[0].managedOperator.delegate: ")
		_, err = Resolve(read)
		require.ErrorIs(t, err, core.ErrCorrupt, "%q", name)
	}
	for _, name := range []string{"a", "sub/dir/a", "...", "a..b", ".hidden", "naïve 😀.bin", "a b"} {
		path, err := Resolve(&core.RelativeFileHandle{Dir: "file:/ckpt", Name: name})
		require.NoError(t, err)
		require.Equal(t, "file:/ckpt/"+name, path)
	}
}

// The same with the overlong forms of Java's encoding, which only a crafted file has.
func TestOverlongDotsAreRefused(t *testing.T) {
	data, err := Append(nil, single(inOperator(&core.RelativeFileHandle{Name: "aabb/x", Size: 1})), WriteOptions{Version: 3})
	require.NoError(t, err)
	for i := range data {
		if string(data[i:min(i+4, len(data))]) == "aabb" {
			copy(data[i:], "\xc0\xae\xc0\xae")
		}
	}
	c, err := Parse(data, "file:/ckpt")
	require.NoError(t, err)
	require.Equal(t, "../x", as[*core.RelativeFileHandle](t, c.Operators[0].Subtasks[0].State.ManagedOperator.Delegate).Name)
	_, err = Objects(c)
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func TestPathsThatNameNoFileAreRefused(t *testing.T) {
	for _, path := range []string{"", "/", "hdfs://nn", "hdfs://nn/", "file:///", "/a/..", "hdfs://nn/../x", "../x", "..", "/..", "/a\x00b", "."} {
		for _, h := range []core.StreamHandle{&core.FileHandle{Path: path}, &SegmentHandle{Path: path}} {
			_, err := Objects(single(inOperator(h)))
			require.ErrorIs(t, err, core.ErrCorrupt, "%q", path)
		}
		for field, m := range map[string]*Merging{
			"taskOwnedDir": {TaskOwnedDir: path, SharedDir: "/ok"},
			"sharedDir":    {TaskOwnedDir: "/ok", SharedDir: path},
		} {
			_, err := Objects(single(&SubtaskState{RawOperator: &OperatorHandle{Merging: m, Delegate: EmptySegment{}}}))
			require.ErrorIs(t, err, core.ErrCorrupt, "%q", path)
			require.ErrorContains(t, err, "rawOperator.merging."+field)
		}
	}
}

func TestHandlesThatContradictEachOtherAreCorrupt(t *testing.T) {
	two := func(a, b core.StreamHandle) *Checkpoint {
		return single(&SubtaskState{ManagedOperator: &OperatorHandle{Delegate: a}, RawOperator: &OperatorHandle{Delegate: b}})
	}
	_, err := Objects(two(&core.FileHandle{Path: "/a", Size: 1}, &core.FileHandle{Path: "/a", Size: 2}))
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "rawOperator.delegate: /a has 1 and also 2 bytes")

	c := two(&core.FileHandle{Path: "/a", Size: 1}, EmptySegment{})
	c.Operators[0].Subtasks[0].State.RawOperator.Merging = &Merging{TaskOwnedDir: "/a", SharedDir: "/b"}
	_, err = Objects(c)
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "file and a directory")
}

func TestErrorsOfObjectsSayWhere(t *testing.T) {
	bad := &core.FileHandle{}
	for field, s := range map[string]*SubtaskState{
		"rawOperator.delegate":              {RawOperator: &OperatorHandle{Delegate: bad}},
		"managedKeyed.delegate":             {ManagedKeyed: &KeyGroupsHandle{Delegate: bad}},
		"managedKeyed.delegate.delegate":    {ManagedKeyed: &KeyGroupsHandle{Delegate: &KeyGroupsHandle{Delegate: bad}}},
		"rawKeyed.meta":                     {RawKeyed: &IncrementalHandle{Meta: bad}},
		"rawKeyed.shared[1].handle":         {RawKeyed: &IncrementalHandle{Shared: []NamedFile{{}, {Handle: bad}}}},
		"rawKeyed.private[0].handle":        {RawKeyed: &IncrementalHandle{Private: []NamedFile{{Handle: bad}}}},
		"rawKeyed.materialized[0].delegate": {RawKeyed: &ChangelogHandle{Materialized: []KeyedHandle{&KeyGroupsHandle{Delegate: bad}}}},
		"rawKeyed.changes[0].parts[0].handle": {RawKeyed: &ChangelogHandle{Changes: []KeyedHandle{
			&ChangelogFileHandle{Parts: []ChangelogPart{{Handle: bad}}},
		}}},
		"inputChannels[1].delegate":       {InputChannels: []ChannelHandle{{}, {Delegate: bad}}},
		"resultSubpartitions[0].delegate": {ResultSubpartitions: []ChannelHandle{{Delegate: bad}}},
	} {
		_, err := ObjectsOfSubtask(s)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, field, e.Field)
	}
	_, err := ObjectsOfSubtask(inOperator(foreign{}))
	require.ErrorIs(t, err, fs.ErrInvalid, "it may refer to anything")

	var deep KeyedHandle = &ChangelogHandle{}
	for range maxDepth + 1 {
		deep = &ChangelogHandle{Materialized: []KeyedHandle{deep}}
	}
	_, err = ObjectsOfSubtask(&SubtaskState{RawKeyed: deep})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestResolveNeedsAFile(t *testing.T) {
	for _, h := range []core.StreamHandle{nil, &core.BytesHandle{Name: "hdfs://nn/x"}, EmptySegment{}, &KeyGroupsHandle{}, foreign{}} {
		_, err := Resolve(h)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	path, err := Resolve(&SegmentHandle{Path: "hdfs://nn//a"})
	require.NoError(t, err)
	require.Equal(t, "hdfs://nn/a", path)
}

func TestTheSegmentsOfAFileAreJoined(t *testing.T) {
	sums := &core.Checksums{ChunkSize: 100, Sums: []uint32{1}}
	segment := func(offset, size int64, scope core.Scope, sums *core.Checksums) core.StreamHandle {
		return &SegmentHandle{Path: "hdfs://nn/p", Offset: offset, Size: size, Scope: scope, Checksums: sums}
	}
	of := func(handles ...core.StreamHandle) ([]core.Object, error) {
		h := &IncrementalHandle{Meta: EmptySegment{}}
		for _, handle := range handles {
			h.Private = append(h.Private, NamedFile{Handle: handle})
		}
		return ObjectsOfSubtask(&SubtaskState{ManagedKeyed: h})
	}
	got, err := of(
		segment(20, 10, core.Exclusive, nil), segment(0, 10, core.Exclusive, sums), segment(20, 10, core.Shared, sums),
		segment(20, 5, core.Exclusive, nil), segment(40, -1, core.Exclusive, nil),
	)
	require.NoError(t, err)
	require.Equal(t, []core.Object{{Path: "hdfs://nn/p", Size: -1, AtLeast: 40, Segments: []core.Segment{
		{Offset: 0, Size: 10, Checksums: sums},
		{Offset: 20, Size: 5},
		{Offset: 20, Size: 10, Scope: core.Shared, Checksums: sums},
		{Offset: 40, Size: -1},
	}}}, got)

	whole := &core.FileHandle{Path: "hdfs://nn/p", Size: 30}
	got, err = of(segment(20, 10, core.Exclusive, nil), whole, segment(0, 1, core.Exclusive, nil))
	require.NoError(t, err)
	require.Equal(t, []core.Object{{Path: "hdfs://nn/p", Size: 30}}, got, "it is needed as a whole")
	_, err = of(segment(21, 10, core.Exclusive, nil), whole)
	require.ErrorIs(t, err, core.ErrCorrupt)
	got, err = of(segment(math.MaxInt64, math.MaxInt64, core.Exclusive, nil))
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), got[0].AtLeast)
}
