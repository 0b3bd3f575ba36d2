package metadata

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func noteState() *SubtaskState {
	return &SubtaskState{ManagedOperator: &OperatorHandle{
		States: []NamedState{{Name: "s", Mode: Broadcast, Offsets: []int64{1}}},
		Delegate: &core.RelativeFileHandle{
			Dir: "file:/d", Name: "a", Size: 5, Checksums: &core.Checksums{ChunkSize: 3, Sums: []uint32{1, 2}},
		},
	}}
}

// A change of this test is a change of the format: it needs a new version.
func TestTaskSnapshotBytes(t *testing.T) {
	data, err := AppendSubtask(nil, noteState())
	require.NoError(t, err)
	want := "48435453" + "01" + "00000033" +
		"00000001" + "04" + "00000001" + "000173" + "02" + "00000001" + "0000000000000001" + "06" + "000161" + "0000000000000005" +
		"00000000" + "00" + "00" + "00000000" + "00000000" +
		"00000001" + "00000003" + "00000002" + "0000000100000002" + "00000001" + "0000000000000000" +
		"00000001" + "000766696c653a2f64" + "00000001" + "0000000000000000"
	require.Equal(t, want, hex.EncodeToString(data[:len(data)-subtaskTail]))
}

func TestDamagedTaskSnapshotsAreRefused(t *testing.T) {
	data, err := AppendSubtask(nil, noteState())
	require.NoError(t, err)
	for n := range data {
		_, err := ParseSubtask(data[:n])
		require.Error(t, err)
	}
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			_, err := ParseSubtask(data)
			require.Error(t, err)
			data[i] ^= 1 << bit
		}
	}
	_, err = ParseSubtask(append(bytes.Clone(data), 0))
	require.ErrorIs(t, err, core.ErrCorrupt)

	newer := bytes.Clone(data)
	newer[4] = 2
	_, err = ParseSubtask(newer)
	require.ErrorIs(t, err, core.ErrUnsupportedVersion)
}

// With a right checksum, the content is still not believed.
func TestTaskSnapshotsThatContradictThemselvesAreCorrupt(t *testing.T) {
	data, err := AppendSubtask(nil, noteState())
	require.NoError(t, err)
	data = data[:len(data)-subtaskTail]
	const lengthAt, sumsAt = 8, 9 + 0x33
	for name, change := range map[string]func(data []byte) []byte{
		"longer state":   func(d []byte) []byte { d[lengthAt]++; return d },
		"shorter state":  func(d []byte) []byte { d[lengthAt]--; return d },
		"bytes behind":   func(d []byte) []byte { return append(d, 0) },
		"bytes missing":  func(d []byte) []byte { return d[:len(d)-1] },
		"second handle":  func(d []byte) []byte { d[len(d)-5] = 1; return d },
		"second dir":     func(d []byte) []byte { d[len(d)-1] = 1; return d },
		"unfit checksum": func(d []byte) []byte { d[sumsAt+7] = 1; return d },
		"huge list":      func(d []byte) []byte { d[sumsAt] = 0x7f; return d },
	} {
		t.Run(name, func(t *testing.T) {
			e := &encoder{buf: change(bytes.Clone(data))}
			e.u32(e.checksum())
			_, err := ParseSubtask(e.buf)
			requireRefused(t, err)
			require.ErrorIs(t, err, core.ErrCorrupt)
		})
	}
}

func TestEmptyStateIsASnapshotToo(t *testing.T) {
	var s SubtaskState
	require.True(t, s.Empty())
	require.False(t, noteState().Empty())
	data, err := AppendSubtask(nil, &s)
	require.NoError(t, err)
	read, err := ParseSubtask(data)
	require.NoError(t, err)
	require.Equal(t, &s, read)
	require.Zero(t, read.StateSize())
}

func TestSizesAreThoseOfFlink(t *testing.T) {
	s := &SubtaskState{
		ManagedOperator: &OperatorHandle{Delegate: &core.FileHandle{Size: 10}},
		RawOperator:     &OperatorHandle{Delegate: &core.BytesHandle{Data: make([]byte, 3)}},
		ManagedKeyed: &IncrementalHandle{
			PersistedSize: 1, Meta: &core.FileHandle{Size: 100}, Shared: []NamedFile{{Handle: &core.FileHandle{Size: 200}}},
			Private: []NamedFile{{Handle: &core.FileHandle{Size: -1}}},
		},
		RawKeyed:      &KeyGroupsHandle{Delegate: &SegmentHandle{Size: 1000}},
		InputChannels: []ChannelHandle{{Size: 10_000, Delegate: &core.FileHandle{Size: 9}}},
	}
	require.Equal(t, int64(10+3+299+1000+10_000), s.StateSize())
	require.Equal(t, int64(10+3+1+1000+10_000), s.CheckpointedSize())
	as[*IncrementalHandle](t, s.ManagedKeyed).PersistedSize = unknownSize
	require.Equal(t, s.StateSize(), s.CheckpointedSize())

	o := OperatorState{Coordinator: &core.BytesHandle{Data: make([]byte, 7)}, Subtasks: []Subtask{{State: s}, {}}}
	c := Checkpoint{Operators: []OperatorState{o, o}}
	require.Equal(t, 2*(s.StateSize()+7), c.StateSize())
	require.Equal(t, 2*(s.CheckpointedSize()+7), c.CheckpointedSize())
}
