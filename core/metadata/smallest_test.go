package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// What a list may announce is bounded by the least size of its elements. Were that too large, a good file could be refused.
func TestLeastSizesAreThoseOfTheSmallestElements(t *testing.T) {
	empty := EmptySegment{}
	old := &encoder{version: 3, keep114: true}
	for name, c := range map[string]struct {
		least int
		write func(e *encoder)
	}{
		"master state":          {minMaster, func(e *encoder) { e.master(&MasterState{}) }},
		"operator":              {minOperatorV3, func(e *encoder) { e.version = 4; e.operator(&OperatorState{}) }},
		"operator with names":   {minOperatorV5, func(e *encoder) { e.version = 5; e.operator(&OperatorState{}) }},
		"state name":            {minNamedState, func(e *encoder) { e.text(""); e.u8(0); e.i32(0) }},
		"offset":                {minOffset, func(e *encoder) { e.i64(0) }},
		"channel":               {minChannel, func(e *encoder) { e.channel(&ChannelHandle{Delegate: empty}, &Channel{}) }},
		"channel of Flink 1.11": {minChannel111 + 4, func(e *encoder) { e.channel(&ChannelHandle{Delegate: empty}, &Channel{}) }},
		"tagged channel":        {minTaggedChannel, func(e *encoder) { e.u8(tagMergedInput); e.mergedChannel(&ChannelHandle{Delegate: empty}) }},
		"channel in a merged":   {minMergedChannel, func(e *encoder) { e.channelOffsets(make([]Channel, 1)); e.buf = e.buf[4:] }},
		"keyed handle":          {minKeyed, func(e *encoder) { e.keyed(&KeyGroupsHandle{Savepoint: true, Delegate: empty}) }},
		"no keyed handle":       {minNoKeyed, func(e *encoder) { e.keyed(nil) }},
		"named file":            {minNamedFile, func(e *encoder) { e.namedFiles("", []NamedFile{{Handle: empty}}); e.buf = e.buf[4:] }},
		"change":                {minChange, func(e *encoder) { e.i32(0); e.blob(nil) }},
		"part of a change":      {minChangePart, func(e *encoder) { e.i64(0); e.stream(empty) }},
		"changes of Flink 1.14": {minChanges, func(e *encoder) { e.keep114 = true; e.changelogFile(&ChangelogFileHandle{Layout: Layout114}) }},
		"names in the footer":   {minNames, func(e *encoder) { e.i32(0); e.text(""); e.text("") }},
		"checksums": {minSums, func(e *encoder) {
			(&annexWriter{sums: []*core.Checksums{{}}}).append(e)
			e.buf = e.buf[4 : len(e.buf)-4]
		}},
		"reference to checksums": {sizeRef, func(e *encoder) { e.refs(make([]annexRef, 1)); e.buf = e.buf[4:] }},
		"footer":                 {minFooter, func(e *encoder) { e.footer(&Checkpoint{}, &Footer{}) }},
	} {
		e := &encoder{version: newestVersion}
		c.write(e)
		require.Nil(t, e.err, name)
		require.Len(t, e.buf, c.least, name)
	}
	for _, h := range []KeyedHandle{
		&KeyGroupsHandle{Layout: LayoutV1, Delegate: empty}, &IncrementalHandle{Layout: LayoutV1, Meta: empty},
		&ChangelogHandle{Layout: Layout114, Range: KeyGroupRange{Count: 1}}, &ChangelogBytesHandle{Layout: Layout114},
		&ChangelogFileHandle{Layout: Layout114},
	} {
		old.buf = old.buf[:0]
		old.keyed(h)
		require.Nil(t, old.err)
		require.GreaterOrEqual(t, len(old.buf), minKeyed, "%T", h)
		if isChange(h) {
			require.GreaterOrEqual(t, len(old.buf), minChanges, "%T", h)
		}
	}
}

// The smallest file of each version, with lists of the smallest elements at its end where bytes that follow cannot hide that
// too many are asked for.
func TestSmallestListsAreReadToTheLastByte(t *testing.T) {
	empty := EmptySegment{}
	for name, s := range map[string]*SubtaskState{
		"nothing":        {},
		"a channel":      {ResultSubpartitions: []ChannelHandle{NewChannelHandle(0, Channel{}, empty)}},
		"two channels":   {ResultSubpartitions: []ChannelHandle{NewChannelHandle(0, Channel{}, empty), NewChannelHandle(0, Channel{}, empty)}},
		"merged channel": {ResultSubpartitions: []ChannelHandle{NewMergedChannelHandle(0, nil, empty)}},
		"merged one":     {ResultSubpartitions: []ChannelHandle{NewMergedChannelHandle(0, []Channel{{}}, empty)}},
	} {
		c := &Checkpoint{Operators: []OperatorState{{Parallelism: 1, MaxParallelism: 1, Subtasks: []Subtask{{State: s}}}}}
		requireStable(t, c, 3)
		data, err := AppendSubtask(nil, s)
		require.NoError(t, err)
		read, err := ParseSubtask(data)
		require.NoError(t, err, name)
		require.Equal(t, s, read)
	}
	requireStable(t, &Checkpoint{}, 3)
	requireStable(t, &Checkpoint{MasterStates: make([]MasterState, 1)}, 3)
	requireStable(t, &Checkpoint{Operators: make([]OperatorState, 2)}, 3)
	requireStable(t, &Checkpoint{Operators: []OperatorState{{FullyFinished: true}}}, 3)
	requireStable(t, &Checkpoint{Operators: []OperatorState{{Parallelism: 1, MaxParallelism: 1, Subtasks: []Subtask{{}}}}}, 3)
}

func TestSmallestFileOfVersion2IsRead(t *testing.T) {
	data := hostileFile(2, func(e *encoder) {
		e.i32(1)
		e.buf = append(e.buf, make([]byte, 16)...)
		e.i32(2)
		e.i32(2)
		e.i32(1)
		e.i32(2)
		for index := range 2 {
			e.i32(index)
			e.i64(-1)
			e.i32(0)
			e.buf = append(e.buf, make([]byte, 4+4+1+1)...)
		}
	})
	c, err := Parse(data, "")
	require.NoError(t, err)
	require.Equal(t, []Subtask{{Index: 0, State: &SubtaskState{}}, {Index: 1, State: &SubtaskState{}}}, c.Operators[0].Subtasks)
	require.Len(t, data, headerLength+8+4+4+minOperatorV2+2*minSubtaskV2)

	data[len(data)-minSubtaskV2+15] = 1
	_, err = Parse(data, "")
	require.ErrorIs(t, err, core.ErrCorrupt)
	require.ErrorContains(t, err, "states of Flink 1.1")
}
