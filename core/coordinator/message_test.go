package coordinator

import (
	"encoding/json"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func someTriggers() []Trigger {
	return []Trigger{
		{Timestamp: time.UnixMilli(0).UTC()},
		{CheckpointID: 7, Epoch: 3, Base: 6, Timestamp: time.UnixMilli(1700000000123).UTC()},
		{
			CheckpointID: math.MaxInt64, Epoch: math.MaxUint64, Kind: Savepoint, Stop: true,
			Reference: core.EncodeReference("hdfs://ns1/savepoints/savepoint-aaaaaa-bbbbbbbbbbbb"), Timestamp: time.UnixMilli(-1).UTC(),
		},
	}
}

func someAcks() []Ack {
	task := Task{Operator: counter.ID, Subtask: 1}
	sums := &core.Checksums{ChunkSize: core.ChecksumChunk, Sums: []uint32{5}}
	state := &metadata.SubtaskState{
		ManagedOperator: metadata.NewOperatorHandle(
			[]metadata.NamedState{{Name: "a", Offsets: []int64{0, 9}}}, &core.BytesHandle{Name: "mem:/x/y", Data: []byte("abc")}),
		ManagedKeyed: &metadata.KeyGroupsHandle{
			Range: metadata.KeyGroupRange{Start: 4, Count: 1}, Offsets: []int64{0}, ID: "a6c3a1c2-0000-4000-8000-000000000000",
			Delegate: &core.RelativeFileHandle{Dir: "mem:/checkpoints/chk-7", Name: "0b7c", Size: 10, Checksums: sums},
		},
		RawKeyed: &metadata.KeyGroupsHandle{
			Range: metadata.KeyGroupRange{Start: 4, Count: 1}, Offsets: []int64{0}, ID: "a6c3a1c2-0000-4000-8000-000000000001",
			Delegate: &core.FileHandle{Path: "mem:/checkpoints/shared/0b7d", Size: 10, Checksums: sums},
		},
	}
	packed := &core.SegmentHandle{
		Path: "mem:/checkpoints/shared/p/0b7e", Offset: 7, Size: 9, Scope: core.Shared, LogicalID: "0b7f", Checksums: sums,
	}
	referring := &metadata.SubtaskState{ManagedKeyed: &metadata.IncrementalHandle{
		Range: metadata.KeyGroupRange{Start: 4, Count: 1}, ID: "a6c3a1c2-0000-4000-8000-000000000002", Meta: core.EmptySegment{},
		BackendID: "7d8f4b5e-0000-4000-8000-000000000000",
		Shared: append(Placeholders([]metadata.NamedFile{
			{LocalPath: "1.sst", Handle: packed}, {LocalPath: "2.sst", Handle: &core.FileHandle{Path: "mem:/checkpoints/shared/0b7d", Size: 10}},
		}), metadata.NamedFile{LocalPath: "3.sst", Handle: packed}),
	}}
	return []Ack{
		{CheckpointID: 7, Epoch: 3, Task: task, State: referring},
		{CheckpointID: 7, Epoch: 3, Task: task},
		{CheckpointID: 7, Epoch: 3, Task: task, Finished: true},
		{CheckpointID: 7, Epoch: 3, Task: task, State: &metadata.SubtaskState{}},
		{CheckpointID: 7, Epoch: 3, Task: task, State: state},
	}
}

func someDeclines() []Decline {
	return []Decline{
		{},
		{CheckpointID: 7, Epoch: 3, Task: Task{Operator: feed.ID, Subtask: math.MaxInt32}, Reason: "zu früh"},
	}
}

func someNotices() []Notice {
	return []Notice{
		{},
		{CheckpointID: 7, Epoch: 3, Kind: Savepoint, News: NewsCommitted},
		{CheckpointID: math.MaxInt64, Epoch: math.MaxUint64, News: NewsSubsumed},
	}
}

func TestMessagesSurviveTheirBinaryAndTheirJSONForm(t *testing.T) {
	for _, message := range someTriggers() {
		roundTrip(t, message, &Trigger{})
	}
	for _, message := range someAcks() {
		roundTrip(t, message, &Ack{})
	}
	for _, message := range someDeclines() {
		roundTrip(t, message, &Decline{})
	}
	for _, message := range someNotices() {
		roundTrip(t, message, &Notice{})
	}
}

type binaryForm interface {
	MarshalBinary() ([]byte, error)
}

func roundTrip[M binaryForm](t *testing.T, message M, into interface{ UnmarshalBinary(data []byte) error }) {
	t.Helper()
	data, err := message.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, into.UnmarshalBinary(data))
	require.Equal(t, &message, into)

	text, err := json.Marshal(message)
	require.NoError(t, err)
	var decoded M
	require.NoError(t, json.Unmarshal(text, &decoded))
	require.Equal(t, message, decoded, "%s", text)
}

func TestAMessageThatIsDamagedIsRefused(t *testing.T) {
	ack, err := someAcks()[4].MarshalBinary()
	require.NoError(t, err)
	trigger, err := someTriggers()[2].MarshalBinary()
	require.NoError(t, err)
	for i := range ack {
		require.ErrorIs(t, new(Ack).UnmarshalBinary(ack[:i]), core.ErrCorrupt, "cut at %d", i)
		flipped := append([]byte(nil), ack...)
		flipped[i] ^= 4
		require.Error(t, new(Ack).UnmarshalBinary(flipped), "bit flipped at %d", i)
	}
	require.ErrorIs(t, new(Ack).UnmarshalBinary(append(ack[:len(ack):len(ack)], 0)), core.ErrCorrupt)
	require.ErrorIs(t, new(Ack).UnmarshalBinary(trigger), core.ErrCorrupt, "another message")
	require.ErrorIs(t, new(Trigger).UnmarshalBinary(ack), core.ErrCorrupt, "another message")
	require.ErrorIs(t, new(Decline).UnmarshalBinary(ack), core.ErrCorrupt, "another message")

	for name, change := range map[string]func(b []byte){
		"unknown kind":         func(b []byte) { b[22] = 9 },
		"unknown flag":         func(b []byte) { b[23] = 0x82 },
		"reference longer":     func(b []byte) { b[43]++ },
		"reference far longer": func(b []byte) { b[40] = 0x7f },
		"reference shorter":    func(b []byte) { b[43]-- },
	} {
		changed := append([]byte(nil), trigger[:len(trigger)-messageTail]...)
		change(changed)
		require.ErrorIs(t, new(Trigger).UnmarshalBinary(endMessage(changed)), core.ErrCorrupt, name)
	}
	newer := append([]byte(nil), trigger[:len(trigger)-messageTail]...)
	newer[5] = messageVersion + 1
	require.ErrorIs(t, new(Trigger).UnmarshalBinary(endMessage(newer)), core.ErrUnsupportedVersion)
}

func TestAMessageThatCannotBeWritten(t *testing.T) {
	for _, message := range []binaryForm{
		Trigger{Kind: Savepoint + 1},
		Trigger{Reference: make([]byte, maxReference+1)},
		Ack{Task: Task{Subtask: -1}},
		Ack{State: &metadata.SubtaskState{ManagedOperator: &metadata.OperatorHandle{}}},
		Decline{Task: Task{Subtask: math.MaxInt32 + 1}},
		Notice{Kind: Savepoint + 1},
		Notice{News: NewsSubsumed + 1},
	} {
		_, err := message.MarshalBinary()
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err := json.Marshal(Trigger{Kind: Savepoint + 1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Error(t, json.Unmarshal([]byte(`{"kind":"nonsense"}`), new(Trigger)))
	_, err = json.Marshal(Notice{News: NewsSubsumed + 1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Error(t, json.Unmarshal([]byte(`{"news":"nonsense"}`), new(Notice)))
}

func TestALongReasonIsCutOffBetweenCharacters(t *testing.T) {
	data, err := Decline{Reason: strings.Repeat("ü", MaxReason)}.MarshalBinary()
	require.NoError(t, err)
	var decoded Decline
	require.NoError(t, decoded.UnmarshalBinary(data))
	require.Equal(t, strings.Repeat("ü", MaxReason/2), decoded.Reason)
	data, err = Decline{Reason: "x" + strings.Repeat("ü", MaxReason)}.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, decoded.UnmarshalBinary(data))
	require.Equal(t, "x"+strings.Repeat("ü", MaxReason/2-1), decoded.Reason)
}

// What is read can be written again and is read as the same.
func fuzzMessage[M any, P interface {
	*M
	UnmarshalBinary(data []byte) error
	MarshalBinary() ([]byte, error)
}](f *testing.F, seeds []M) {
	for i := range seeds {
		data, err := P(&seeds[i]).MarshalBinary()
		require.NoError(f, err)
		f.Add(data[:len(data)-messageTail])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var message M
		_ = P(&message).UnmarshalBinary(body) // without a checksum: must not panic
		if P(&message).UnmarshalBinary(endMessage(append([]byte(nil), body...))) != nil {
			return
		}
		data, err := P(&message).MarshalBinary()
		require.NoError(t, err)
		var again M
		require.NoError(t, P(&again).UnmarshalBinary(data))
		require.Equal(t, message, again)
	})
}

func FuzzTrigger(f *testing.F) { fuzzMessage[Trigger, *Trigger](f, someTriggers()) }

func FuzzAck(f *testing.F) { fuzzMessage[Ack, *Ack](f, someAcks()) }

func FuzzNotice(f *testing.F) { fuzzMessage[Notice, *Notice](f, someNotices()) }

func FuzzDecline(f *testing.F) { fuzzMessage[Decline, *Decline](f, someDeclines()) }
