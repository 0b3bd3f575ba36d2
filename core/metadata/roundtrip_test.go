package metadata

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// seenAt is what is left of c when it is written at a version and read again.
func seenAt(c *Checkpoint, version int, footer *Footer) *Checkpoint {
	seen := *c
	seen.Version, seen.Footer = version, footer
	if version < firstWithProperties {
		seen.Properties = nil
	}
	seen.Operators = nil
	for _, o := range c.Operators {
		if version < firstWithNames && footer == nil {
			o.Name, o.UID = "", ""
		}
		list := o.Subtasks
		o.Subtasks = nil
		for _, s := range list {
			if s.State != nil {
				state := *s.State
				s.State = &state
				if version < firstWithMergedChannels {
					state.InputChannels = unmerged(state.InputChannels)
					state.ResultSubpartitions = unmerged(state.ResultSubpartitions)
				}
			}
			o.Subtasks = append(o.Subtasks, s)
		}
		seen.Operators = append(seen.Operators, o)
	}
	return &seen
}

func unmerged(list []ChannelHandle) []ChannelHandle {
	var apart []ChannelHandle
	for _, h := range list {
		for _, c := range h.Channels {
			apart = append(apart, NewChannelHandle(h.Subtask, c, h.Delegate))
		}
	}
	return apart
}

// withoutSums takes the checksums away in a copy that went through version 6 without a footer.
func withoutSums(t *testing.T, c *Checkpoint) *Checkpoint {
	data, err := Append(nil, c, WriteOptions{Version: 6})
	require.NoError(t, err)
	bare, err := Parse(data, "file:/dir")
	require.NoError(t, err)
	bare.Version = 0
	return bare
}

// forget drops what Parse remembers of the bytes of the properties.
func forget(c *Checkpoint) *Checkpoint {
	if c.Properties != nil {
		c.Properties.read = nil
	}
	return c
}

func TestCheckpointsSurviveWritingAndReading(t *testing.T) {
	m := newMaker(t)
	for range 100 {
		full := m.checkpoint()
		bare := forget(withoutSums(t, full))
		for version := oldestWritable; version <= newestVersion; version++ {
			data, err := Append(nil, full, WriteOptions{Version: version})
			require.NoError(t, err)
			read, err := Parse(data, "file:/dir")
			require.NoError(t, err)
			again, err := Append([]byte("before"), read, WriteOptions{Version: version})
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, again[len("before"):]))
			require.Equal(t, seenAt(bare, version, nil), forget(read))

			footer := m.footer()
			longer, err := Append(nil, full, WriteOptions{Version: version, Footer: footer})
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(longer, data), "the footer changes the body")
			read, err = Parse(longer, "file:/dir")
			require.NoError(t, err)
			again, err = Append(nil, read, WriteOptions{Version: version, Footer: read.Footer})
			require.NoError(t, err)
			require.True(t, bytes.Equal(longer, again))
			require.Equal(t, seenAt(full, version, footer), forget(read))
		}
	}
}

func TestWriteGivesTheBytesOfAppend(t *testing.T) {
	m := newMaker(t)
	large := large(3, 300)
	for i := range 40 {
		c := m.checkpoint()
		if i == 0 {
			c = large
		}
		opts := WriteOptions{Version: 3 + m.IntN(4)}
		if m.chance(50) {
			opts.Footer = m.footer()
		}
		want, err := Append(nil, c, opts)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, Write(&got, c, opts))
		require.True(t, bytes.Equal(want, got.Bytes()))
	}
}

func TestParsedCheckpointDoesNotReferToTheInput(t *testing.T) {
	m := newMaker(t)
	for range 50 {
		c := m.checkpoint()
		opts := WriteOptions{Version: 6, Footer: m.footer()}
		data, err := Append(nil, c, opts)
		require.NoError(t, err)
		input := bytes.Clone(data)
		read, err := Parse(input, "")
		require.NoError(t, err)
		clear(input)
		again, err := Append(nil, read, opts)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again))
	}
}

func TestSubtaskStatesSurviveTheWayToTheCoordinator(t *testing.T) {
	m := newMaker(t)
	for range 500 {
		s := m.state()
		data, err := AppendSubtask([]byte("before"), s)
		require.NoError(t, err)
		data = data[len("before"):]
		read, err := ParseSubtask(data)
		require.NoError(t, err)
		require.Equal(t, s, read)

		text, err := json.Marshal(s)
		require.NoError(t, err)
		var fromJSON SubtaskState
		require.NoError(t, json.Unmarshal(text, &fromJSON), string(text))
		again, err := AppendSubtask(nil, &fromJSON)
		require.NoError(t, err)
		ownSums, err := AppendSubtask(nil, unshareSums(t, s))
		require.NoError(t, err)
		require.True(t, bytes.Equal(ownSums, again), string(text))
	}
}

// unshareSums returns a copy of s through JSON twice: checksums that handles share are not shared in JSON.
func unshareSums(t *testing.T, s *SubtaskState) *SubtaskState {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var copied SubtaskState
	require.NoError(t, json.Unmarshal(text, &copied))
	require.Equal(t, *s, copied)
	return &copied
}

func TestHandlesSurviveJSONByThemselves(t *testing.T) {
	m := newMaker(t)
	for range 300 {
		stream := m.stream(0)
		text, err := MarshalStream(stream)
		require.NoError(t, err)
		readStream, err := UnmarshalStream(text)
		require.NoError(t, err, string(text))
		require.Equal(t, stream, readStream)

		keyed := m.keyed(0)
		text, err = json.Marshal(keyed)
		require.NoError(t, err)
		readKeyed, err := UnmarshalKeyed(text)
		require.NoError(t, err, string(text))
		require.Equal(t, keyed, readKeyed)

		channel := m.channelHandle()
		text, err = json.Marshal(channel)
		require.NoError(t, err)
		var readChannel ChannelHandle
		require.NoError(t, json.Unmarshal(text, &readChannel), string(text))
		require.Equal(t, channel, readChannel)

		if operator := m.operatorHandle(); operator != nil {
			text, err = json.Marshal(operator)
			require.NoError(t, err)
			var readOperator OperatorHandle
			require.NoError(t, json.Unmarshal(text, &readOperator), string(text))
			require.Equal(t, *operator, readOperator)
		}
	}
}

func TestJSONOfNoHandleIsNull(t *testing.T) {
	text, err := MarshalStream(nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(text))
	stream, err := UnmarshalStream(text)
	require.NoError(t, err)
	require.Nil(t, stream)

	text, err = MarshalKeyed(nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(text))
	keyed, err := UnmarshalKeyed(text)
	require.NoError(t, err)
	require.Nil(t, keyed)
}

func TestJSONFormIsStable(t *testing.T) {
	s := SubtaskState{
		ManagedKeyed: &KeyGroupsHandle{
			Range: KeyGroupRange{Start: 4, Count: 2}, Offsets: []int64{0, 9}, ID: "id",
			Delegate: &core.RelativeFileHandle{
				Dir: "file:/chk-1", Name: "f\xed\xa0\x80", Size: 10, Checksums: &core.Checksums{ChunkSize: 16, Sums: []uint32{7}},
			},
		},
		RawOperator: &OperatorHandle{
			States: []NamedState{{Name: "s", Mode: Union, Offsets: []int64{0}}}, Delegate: &core.BytesHandle{Name: "n", Data: []byte{1}},
		},
	}
	text, err := json.MarshalIndent(s, "", " ")
	require.NoError(t, err)
	require.JSONEq(t, `{
		"rawOperator": {
			"states": [{"name": "s", "mode": "UNION", "offsets": [0]}],
			"delegate": {"kind": "bytes", "name": "n", "data": "AQ=="}
		},
		"managedKeyed": {
			"kind": "keyGroups", "keyGroups": {"start": 4, "count": 2}, "id": "id", "offsets": [0, 9],
			"delegate": {
				"kind": "relativeFile", "dir": "file:/chk-1", "name": {"base64": "Zu2ggA=="}, "size": 10,
				"checksums": {"chunkSize": 16, "sums": [7]}
			}
		}
	}`, string(text))
}

func TestJSONThatIsNoHandleIsCorrupt(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                  `{`,
		"unknown kind":             `{"managedKeyed": {"kind": "tape", "keyGroups": {"start": 0, "count": 0}}}`,
		"unknown member":           `{"managedKyed": null}`,
		"unknown stream kind":      `{"rawOperator": {"delegate": {"kind": "tape"}}}`,
		"no delegate":              `{"rawOperator": {"delegate": null}}`,
		"offsets do not fit":       `{"rawKeyed": {"kind": "keyGroups", "keyGroups": {"start": 0, "count": 3}, "delegate": {"kind": "emptySegment"}}}`,
		"nested stream without":    `{"rawOperator": {"delegate": {"kind": "keyGroups"}}}`,
		"null in a list":           `{"rawKeyed": {"kind": "changelog", "keyGroups": {"start": 0, "count": 1}, "materialized": [null]}}`,
		"no change":                `{"rawKeyed": {"kind": "changelog", "keyGroups": {"start": 0, "count": 1}, "nonMaterialized": [{"kind": "incremental", "keyGroups": {"start": 0, "count": 0}, "meta": {"kind": "emptySegment"}}]}}`,
		"unknown mode":             `{"rawOperator": {"states": [{"name": "s", "mode": "SOMETIMES"}], "delegate": {"kind": "emptySegment"}}}`,
		"checksums do not fit":     `{"rawOperator": {"delegate": {"kind": "file", "path": "/x", "size": 100, "checksums": {"chunkSize": 10, "sums": [1]}}}}`,
		"channel without channels": `{"inputChannels": [{"subtask": 0, "size": 0, "delegate": {"kind": "emptySegment"}}]}`,
		"no array of bytes":        `{"rawOperator": {"delegate": {"kind": "bytes", "data": "?"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var s SubtaskState
			err := s.UnmarshalJSON([]byte(text))
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.Equal(t, SubtaskState{}, s, "a failure changes the value")
		})
	}
}
