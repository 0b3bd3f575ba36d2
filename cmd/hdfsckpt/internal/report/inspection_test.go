package report

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func file(path string, size int64) *core.FileHandle { return &core.FileHandle{Path: path, Size: size} }

func segment(path string, offset, size int64) *metadata.SegmentHandle {
	return &metadata.SegmentHandle{Path: path, Offset: offset, Size: size}
}

// everyKind is a subtask with a handle of every kind.
func everyKind() *metadata.SubtaskState {
	return &metadata.SubtaskState{
		ManagedOperator: &metadata.OperatorHandle{Delegate: file("file:/a", 1)},
		RawOperator:     &metadata.OperatorHandle{Delegate: metadata.EmptySegment{}, Merging: &metadata.Merging{}},
		ManagedKeyed: &metadata.ChangelogHandle{
			Range: metadata.KeyGroupRange{Count: 1}, PersistedSize: 7,
			Materialized: []metadata.KeyedHandle{
				&metadata.KeyGroupsHandle{Delegate: file("file:/b", 20), Savepoint: true},
				&metadata.IncrementalHandle{
					Meta:   &core.BytesHandle{Data: make([]byte, 3)},
					Shared: []metadata.NamedFile{{Handle: file("file:/c", 400)}}, Private: []metadata.NamedFile{{Handle: segment("file:/d", 10, 5)}},
				},
			},
			Changes: []metadata.KeyedHandle{
				&metadata.ChangelogBytesHandle{Changes: []metadata.StateChange{{Data: make([]byte, 6)}}},
				&metadata.ChangelogFileHandle{Size: 50, Parts: []metadata.ChangelogPart{{Handle: file("file:/e", 50)}}},
			},
		},
		RawKeyed:      &metadata.KeyGroupsHandle{Delegate: &metadata.KeyGroupsHandle{Delegate: &core.RelativeFileHandle{Dir: "file:/x", Name: "f", Size: -1}}},
		InputChannels: []metadata.ChannelHandle{metadata.NewChannelHandle(0, metadata.Channel{Size: 4}, segment("file:/d", 100, 8))},
		ResultSubpartitions: []metadata.ChannelHandle{
			metadata.NewMergedChannelHandle(0, []metadata.Channel{{Size: 2}, {Size: 3}}, file("file:/g", 9)),
		},
	}
}

func TestEveryHandleIsFoundWithTheStreamsBelowIt(t *testing.T) {
	var got []string
	for _, h := range handlesOf(everyKind()) {
		line := fmt.Sprintf("%s %s %d/%d:", h.role, h.kind, h.newBytes, h.bytes)
		for _, s := range h.streams {
			line += fmt.Sprintf(" %s(%s@%d,%d)", s.Storage, s.Path, s.Offset, s.Bytes)
		}
		got = append(got, line)
	}
	require.Equal(t, []string{
		"managed_operator operator_state 1/1: file(file:/a@0,1)",
		"raw_operator merged_operator_state 0/0:",
		"managed_keyed changelog 7/484: file(file:/b@0,20) inline(@0,3) file(file:/c@0,400) segment(file:/d@10,5) inline(@0,6) file(file:/e@0,50)",
		"raw_keyed key_groups -1/-1: relative_file(file:/x/f@0,-1)",
		"input_channels channel 4/4: segment(file:/d@100,8)",
		"result_subpartitions merged_channels 5/5: file(file:/g@0,9)",
	}, got)
	require.Empty(t, handlesOf(&metadata.SubtaskState{}))
}

// inspect writes c and looks at what was written.
func inspect(t *testing.T, c *metadata.Checkpoint, opts InspectOptions) *Inspection {
	t.Helper()
	for i := range c.Operators {
		c.Operators[i].MaxParallelism = 128
	}
	data, err := metadata.Append(nil, c, metadata.WriteOptions{Version: 6})
	require.NoError(t, err)
	in := NewInspector(opts)
	inv, err := metadata.TakeInventory(bytes.NewReader(data), int64(len(data)), "file:/x", metadata.InventoryOptions{Visit: in.Visitor()})
	require.NoError(t, err)
	return in.Finish("file:/x", MetadataFile{Path: "file:/x/_metadata", Bytes: 99}, inv)
}

func TestInspectAddsUpWhatIsKnown(t *testing.T) {
	c := &metadata.Checkpoint{Version: 6, ID: 3, Operators: []metadata.OperatorState{
		{Name: "op", Parallelism: 3, Subtasks: []metadata.Subtask{{Index: 0, State: everyKind()}, {Index: 1}}},
		{FullyFinished: true, Parallelism: 1},
	}}
	c.Operators[0].Subtasks[0].State.RawOperator = nil
	i := inspect(t, c, InspectOptions{Largest: 2, Where: func(path string) string { return "moved:" + path }})
	require.Equal(t, Totals{
		Operators: 2, Subtasks: 2, StateBytes: 1 + 484 + 4 + 5, NewBytes: 1 + 7 + 4 + 5, InlineBytes: 9,
		Inventory: Inventory{
			Objects: 7, Bytes: 1 + 20 + 400 + 108 + 50 + 9, UnknownSizes: 2, Shared: 4, SharedBytes: 20 + 400 + 50 + 108,
		},
	}, i.Totals)
	require.Equal(t, i.Totals.Inventory, i.Operators[0].Files)
	require.Equal(t, 1, i.Operators[0].SubtasksFinished)
	require.Nil(t, i.Operators[0].Subtasks)
	require.Len(t, i.Largest, 2)
	require.Equal(t, "moved:file:/c", i.Largest[0].Path)
	require.Equal(t, "moved:file:/e", i.Largest[1].Path)
	require.False(t, i.Metadata.Checksum)

	i = inspect(t, c, InspectOptions{Subtasks: true})
	require.Len(t, i.Operators[0].Subtasks, 2)
	require.True(t, i.Operators[0].Subtasks[1].Finished)
	require.NotNil(t, i.Largest)
	require.Empty(t, i.Largest)
}

func TestTheLargestStreamsAreInOrderAndASharedFileIsThereOnce(t *testing.T) {
	l := newLargest(3)
	o := &Operator{ID: "o"}
	subtask := 0
	for _, s := range []Stream{
		{Storage: AbsoluteFile, Path: "a", Bytes: 5},
		{Storage: AbsoluteFile, Path: "b", Bytes: 9},
		{Storage: AbsoluteFile, Path: "b", Bytes: 9},
		{Storage: AbsoluteFile, Path: "c", Bytes: 5},
		{Storage: Inline, Bytes: 7},
		{Storage: AbsoluteFile, Path: "d", Bytes: -1},
		{Storage: Segment, Path: "s", Offset: 0, Bytes: 6},
		{Storage: Segment, Path: "s", Offset: 6, Bytes: 6},
	} {
		l.add(o, &subtask, handle{streams: []Stream{s}})
	}
	var got []string
	for _, large := range l.sorted() {
		got = append(got, fmt.Sprintf("%s@%d=%d", large.Path, large.Offset, large.Bytes))
	}
	require.Equal(t, []string{"b@0=9", "@0=7", "s@0=6"}, got)
}
