package metadata

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func golden(t *testing.T, name string) []byte {
	for _, g := range ownGolden(t) {
		if g.name == name {
			return g.data(t)
		}
	}
	t.Fatal("no golden file " + name)
	return nil
}

// as is a type assertion that fails the test.
func as[T any](t *testing.T, v any) T {
	t.Helper()
	typed, ok := v.(T)
	require.True(t, ok, "%T", v)
	return typed
}

const oldBase = "hdfs://namenode:8020/flink/checkpoints/0123456789abcdef0123456789abcdef"

func TestChannelsOfFlink111AreRead(t *testing.T) {
	c, err := Parse(golden(t, "written-by-1.11.6-channels-v3"), "file:/chk-42")
	require.NoError(t, err)
	require.Equal(t, int64(42), c.ID)
	require.Len(t, c.Operators, 1)
	delegate := &core.RelativeFileHandle{Dir: "file:/chk-42", Name: "11111111-1111-4111-8111-000000000032", Size: 4096}
	s := c.Operators[0].Subtasks[0].State
	require.Equal(t, []ChannelHandle{
		NewChannelHandle(0, Channel{Size: 2000, Offsets: []int64{8, 1024}}, delegate),
		NewChannelHandle(0, Channel{Group: 1, Index: 7, Size: 2000, Offsets: []int64{2048}}, delegate),
	}, s.InputChannels)
	require.Len(t, s.ResultSubpartitions, 1)
	require.Equal(t, Channel{Index: 3, Size: 60, Offsets: []int64{0}}, s.ResultSubpartitions[0].Channels[0])

	// It is written as Flink 1.12 did, which every later Flink reads.
	data, err := Append(nil, c, WriteOptions{Version: 3})
	require.NoError(t, err)
	again, err := Parse(data, "file:/chk-42")
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.Equal(t, len(golden(t, "written-by-1.11.6-channels-v3"))+3*4, len(data))
}

func TestChangelogOfFlink114IsRead(t *testing.T) {
	data := golden(t, "written-by-1.14.6-changelog-v3")
	c, err := Parse(data, "file:/chk-46")
	require.NoError(t, err)
	h := as[*ChangelogHandle](t, c.Operators[0].Subtasks[0].State.ManagedKeyed)
	require.Equal(t, Layout114, h.Layout)
	require.Len(t, h.Materialized, 2)
	require.Equal(t, LayoutV1, as[*KeyGroupsHandle](t, h.Materialized[0]).Layout)
	require.Equal(t, LayoutV1, as[*IncrementalHandle](t, h.Materialized[1]).Layout)
	files := as[*ChangelogFileHandle](t, h.Changes[0])
	require.Equal(t, &ChangelogFileHandle{
		Range: KeyGroupRange{Count: 64}, Size: 1600, PersistedSize: unknownSize, Storage: FilesystemStorage, Layout: Layout114,
		Parts: []ChangelogPart{
			{Offset: 0, Handle: &core.FileHandle{Path: oldBase + "/shared/11111111-1111-4111-8111-000000000014", Size: 700}},
			{Offset: 55, Handle: &core.FileHandle{Path: oldBase + "/shared/11111111-1111-4111-8111-000000000015", Size: 900}},
		},
	}, files)
	inline := as[*ChangelogBytesHandle](t, h.Changes[1])
	require.Equal(t, Layout114, inline.Layout)
	require.Equal(t, []int64{3, 6}, []int64{inline.From, inline.To})
	require.Len(t, inline.Changes, 2)

	objects, err := Objects(c)
	require.NoError(t, err)
	flagged := 0
	for _, o := range objects {
		if o.FlagByte {
			flagged++
		}
	}
	require.Equal(t, 2, flagged)

	t.Run("and kept for Flink 1.14 at version 3", func(t *testing.T) {
		again, err := Append(nil, c, WriteOptions{Version: 3})
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again))
	})
	t.Run("and made readable for others at later versions", func(t *testing.T) {
		first, err := Append(nil, c, WriteOptions{Version: 4})
		require.NoError(t, err)
		second, err := Append(nil, c, WriteOptions{Version: 4})
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, second), "ids are not made up at random")
		read, err := Parse(first, "file:/chk-46")
		require.NoError(t, err)
		got := as[*ChangelogHandle](t, read.Operators[0].Subtasks[0].State.ManagedKeyed)
		ids := map[string]bool{got.ID: true}
		require.Equal(t, LayoutCurrent, got.Layout)
		require.Equal(t, h.StateSize(), got.PersistedSize)
		for _, change := range got.Changes {
			switch change := change.(type) {
			case *ChangelogFileHandle:
				ids[change.ID] = true
				require.Equal(t, int64(1600), change.PersistedSize)
			case *ChangelogBytesHandle:
				ids[change.ID] = true
			}
		}
		require.Len(t, ids, 3, "ids tell handles apart")
		require.Equal(t, h.StateSize(), got.StateSize())
	})
	t.Run("and survives the way between processes", func(t *testing.T) {
		s := c.Operators[0].Subtasks[0].State
		wire, err := AppendSubtask(nil, s)
		require.NoError(t, err)
		read, err := ParseSubtask(wire)
		require.NoError(t, err)
		require.Equal(t, s, read)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var fromJSON SubtaskState
		require.NoError(t, json.Unmarshal(text, &fromJSON))
		require.Equal(t, *s, fromJSON)
	})
	t.Run("but not kept beside handles that Flink 1.14 does not know", func(t *testing.T) {
		c.Operators[0].Subtasks[0].State.RawKeyed = &KeyGroupsHandle{Delegate: EmptySegment{}, ID: "new"}
		mixed, err := Append(nil, c, WriteOptions{Version: 3})
		require.NoError(t, err)
		read, err := Parse(mixed, "file:/chk-46")
		require.NoError(t, err)
		require.Equal(t, LayoutCurrent, as[*ChangelogHandle](t, read.Operators[0].Subtasks[0].State.ManagedKeyed).Layout)
	})
}

func TestHistoricLayoutsAreTriedInVersion3Only(t *testing.T) {
	for _, name := range []string{"written-by-1.11.6-channels-v3", "written-by-1.14.6-changelog-v3"} {
		data := golden(t, name)
		data[7] = 4
		_, err := Parse(append(data, 0xac, 0xed, 0, 5, tcNull), "")
		require.ErrorIs(t, err, core.ErrCorrupt)
	}
}

// A damaged file of version 3 is reported with what is wrong in today's layout.
func TestErrorIsThatOfTodaysLayout(t *testing.T) {
	data := golden(t, "channels-v3")
	_, err := Parse(append(data, 1), "")
	require.ErrorContains(t, err, "1 bytes behind the end")
}

func TestFooterOfAHistoricFileIsRead(t *testing.T) {
	c, err := Parse(golden(t, "written-by-1.14.6-changelog-v3"), "")
	require.NoError(t, err)
	sums := &core.Checksums{ChunkSize: 1000, Sums: []uint32{9}}
	changes := as[*ChangelogHandle](t, c.Operators[0].Subtasks[0].State.ManagedKeyed).Changes
	as[*core.FileHandle](t, as[*ChangelogFileHandle](t, changes[0]).Parts[1].Handle).Checksums = sums
	data, err := Append(nil, c, WriteOptions{Version: 3, Footer: &Footer{}})
	require.NoError(t, err)
	again, err := Parse(data, "")
	require.NoError(t, err)
	require.NotNil(t, again.Footer)
	again.Footer = nil
	require.Equal(t, c, again)
}
