package metadata

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func requireInvalid(t *testing.T, err error, field string) {
	t.Helper()
	require.ErrorIs(t, err, fs.ErrInvalid)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, field, e.Field, "%v", err)
	require.Equal(t, int64(-1), e.Offset)
}

// single is a checkpoint with one operator of one subtask.
func single(s *SubtaskState) *Checkpoint {
	return &Checkpoint{Operators: []OperatorState{{
		Name: "n", UID: "u", Parallelism: 1, MaxParallelism: 128, Subtasks: []Subtask{{State: s}},
	}}}
}

func inOperator(h core.StreamHandle) *SubtaskState {
	return &SubtaskState{ManagedOperator: &OperatorHandle{Delegate: h}}
}

// foreign is a stream handle of nobody.
type foreign struct{}

func (foreign) StateSize() int64 { return 0 }
func (foreign) IsStreamHandle()  {}

func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	var deepStream core.StreamHandle = EmptySegment{}
	some := KeyGroupRange{Count: 1}
	var deepKeyed KeyedHandle = &ChangelogHandle{Range: some}
	for range maxDepth + 1 {
		deepStream = &KeyGroupsHandle{Delegate: deepStream}
		deepKeyed = &ChangelogHandle{Range: some, Materialized: []KeyedHandle{deepKeyed}}
	}
	long := strings.Repeat("文", 21846)
	const (
		subtask  = "operators[0].subtasks[0]"
		delegate = subtask + ".managedOperator.delegate"
	)
	rawOperator := func(h *OperatorHandle) *Checkpoint { return single(&SubtaskState{RawOperator: h}) }
	rawKeyed := func(h KeyedHandle) *Checkpoint { return single(&SubtaskState{RawKeyed: h}) }
	managedKeyed := func(h KeyedHandle) *Checkpoint { return single(&SubtaskState{ManagedKeyed: h}) }
	for name, c := range map[string]struct {
		checkpoint *Checkpoint
		field      string
	}{
		"negative id":            {&Checkpoint{ID: -1}, ""},
		"long master name":       {&Checkpoint{MasterStates: []MasterState{{}, {Name: long}}}, "masterStates[1]"},
		"long operator name":     {&Checkpoint{Operators: []OperatorState{{Name: long}}}, "operators[0].name"},
		"uid that is no text":    {&Checkpoint{Operators: []OperatorState{{UID: "\xff"}}}, "operators[0].uid"},
		"parallelism above most": {&Checkpoint{Operators: []OperatorState{{}, {Parallelism: 2, MaxParallelism: 1}}}, "operators[1]"},
		"negative parallelism":   {&Checkpoint{Operators: []OperatorState{{Parallelism: -1}}}, "operators[0]"},
		"huge max parallelism":   {&Checkpoint{Operators: []OperatorState{{MaxParallelism: MaxKeyGroups + 1}}}, "operators[0]"},
		"subtask beyond":         {&Checkpoint{Operators: []OperatorState{{Subtasks: []Subtask{{}}}}}, subtask},
		"negative subtask":       {&Checkpoint{Operators: []OperatorState{{Parallelism: 1, MaxParallelism: 1, Subtasks: []Subtask{{Index: -1}}}}}, subtask},
		"finished with subtasks": {&Checkpoint{Operators: []OperatorState{{FullyFinished: true, Parallelism: 1, MaxParallelism: 1, Subtasks: []Subtask{{}}}}}, "operators[0]"},
		"finished coordinator":   {&Checkpoint{Operators: []OperatorState{{FullyFinished: true, Coordinator: &core.BytesHandle{}}}}, "operators[0]"},
		"long coordinator name":  {&Checkpoint{Operators: []OperatorState{{Coordinator: &core.BytesHandle{Name: long}}}}, "operators[0].coordinator"},
		"operator delegate":      {single(inOperator(nil)), delegate},
		"foreign handle":         {single(inOperator(foreign{})), delegate},
		"long path":              {single(inOperator(&core.FileHandle{Path: long})), delegate},
		"file of -2 bytes":       {single(inOperator(&core.FileHandle{Path: "/a", Size: -2})), delegate},
		"relative of -2 bytes":   {single(inOperator(&core.RelativeFileHandle{Size: -2})), delegate},
		"no path":                {single(inOperator(&core.FileHandle{})), delegate},
		"no path of a segment":   {single(inOperator(&SegmentHandle{})), delegate},
		"no directory":           {rawOperator(&OperatorHandle{Merging: &Merging{SharedDir: "/a"}}), subtask + ".rawOperator.merging"},
		"negative sequence":      {rawKeyed(&ChangelogBytesHandle{To: -1}), subtask + ".rawKeyed"},
		"segment at -1":          {single(inOperator(&SegmentHandle{Path: "/a", Offset: -1})), delegate},
		"unknown scope":          {single(inOperator(&SegmentHandle{Path: "/a", Scope: 2})), delegate},
		"too few checksums":      {single(inOperator(&core.FileHandle{Path: "/a", Size: 3, Checksums: &core.Checksums{ChunkSize: 2, Sums: []uint32{1}}})), delegate},
		"chunks of no bytes":     {single(inOperator(&core.FileHandle{Path: "/a", Checksums: &core.Checksums{}})), delegate},
		"deep streams":           {single(inOperator(deepStream)), subtask + ".managedOperator" + strings.Repeat(".delegate", maxDepth+1)},
		"unknown mode":           {rawOperator(&OperatorHandle{States: []NamedState{{Mode: 3}}, Delegate: EmptySegment{}}), subtask + ".rawOperator.states[0]"},
		"merging without":        {rawOperator(&OperatorHandle{Merging: &Merging{TaskOwnedDir: "/a", SharedDir: "/b"}, Delegate: &core.BytesHandle{}}), subtask + ".rawOperator.delegate"},
		"long directory":         {rawOperator(&OperatorHandle{Merging: &Merging{TaskOwnedDir: "/a", SharedDir: long}}), subtask + ".rawOperator.merging"},
		"offsets missing":        {rawKeyed(&KeyGroupsHandle{Range: KeyGroupRange{Count: 2}, Offsets: []int64{1}, Delegate: EmptySegment{}}), subtask + ".rawKeyed"},
		"negative key group":     {rawKeyed(&KeyGroupsHandle{Range: KeyGroupRange{Start: -1}, Delegate: EmptySegment{}}), subtask + ".rawKeyed"},
		"key groups beyond":      {rawKeyed(&IncrementalHandle{Range: KeyGroupRange{Start: math.MaxInt32, Count: 2}, Meta: EmptySegment{}}), subtask + ".rawKeyed"},
		"keyed delegate":         {managedKeyed(&KeyGroupsHandle{}), subtask + ".managedKeyed.delegate"},
		"unknown layout":         {managedKeyed(&KeyGroupsHandle{Layout: 9, Delegate: EmptySegment{}}), subtask + ".managedKeyed"},
		"incremental meta":       {managedKeyed(&IncrementalHandle{}), subtask + ".managedKeyed.meta"},
		"incremental file":       {managedKeyed(&IncrementalHandle{Meta: EmptySegment{}, Private: []NamedFile{{}}}), subtask + ".managedKeyed.private[0].handle"},
		"null materialised":      {managedKeyed(&ChangelogHandle{Range: some, Materialized: []KeyedHandle{nil}}), subtask + ".managedKeyed.materialized[0]"},
		"no change":              {managedKeyed(&ChangelogHandle{Range: some, Changes: []KeyedHandle{&ChangelogHandle{}}}), subtask + ".managedKeyed.changes[0]"},
		"no key groups":          {managedKeyed(&ChangelogHandle{}), subtask + ".managedKeyed"},
		"key group -2":           {managedKeyed(&ChangelogBytesHandle{Changes: []StateChange{{KeyGroup: -2}}}), subtask + ".managedKeyed.changes[0]"},
		"changelog part":         {managedKeyed(&ChangelogFileHandle{Parts: []ChangelogPart{{}}}), subtask + ".managedKeyed.parts[0].handle"},
		"deep changelogs":        {managedKeyed(deepKeyed), subtask + ".managedKeyed" + strings.Repeat(".materialized[0]", maxDepth)},
		"no channel":             {single(&SubtaskState{InputChannels: []ChannelHandle{{Delegate: EmptySegment{}}}}), subtask + ".inputChannels[0]"},
		"sizes of channel":       {single(&SubtaskState{ResultSubpartitions: []ChannelHandle{{Size: 1, Channels: []Channel{{}}, Delegate: EmptySegment{}}}}), subtask + ".resultSubpartitions[0]"},
		"channel delegate":       {single(&SubtaskState{InputChannels: []ChannelHandle{{Merged: true}}}), subtask + ".inputChannels[0].delegate"},
		"unknown snapshot type":  {&Checkpoint{Properties: &Properties{Type: SnapshotType{Class: "x"}}}, "properties"},
	} {
		t.Run(name, func(t *testing.T) {
			dst := []byte("before")
			got, err := Append(dst, c.checkpoint, WriteOptions{Version: 6})
			requireInvalid(t, err, c.field)
			require.Equal(t, dst, got)
			require.Error(t, Write(new(countingWriter), c.checkpoint, WriteOptions{Version: 6}))
			if len(c.checkpoint.Operators) == 1 && len(c.checkpoint.Operators[0].Subtasks) == 1 {
				if s := c.checkpoint.Operators[0].Subtasks[0].State; s != nil {
					_, err := AppendSubtask(nil, s)
					requireInvalid(t, err, strings.TrimPrefix(c.field, subtask+"."))
				}
			}
		})
	}
}

func TestVersionsThatAreNotWritten(t *testing.T) {
	for _, version := range []int{-1, 1, 2, 7} {
		_, err := Append(nil, &Checkpoint{}, WriteOptions{Version: version})
		require.ErrorIs(t, err, core.ErrUnsupportedVersion)
	}
	data, err := Append(nil, &Checkpoint{}, WriteOptions{})
	require.NoError(t, err)
	c, err := Parse(data, "")
	require.NoError(t, err)
	require.Equal(t, defaultVersion, c.Version)
}

func TestTextsOfGreatestLength(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 65535), strings.Repeat("文", 21845), strings.Repeat("\x00", 32767)} {
		c := &Checkpoint{Operators: []OperatorState{{Name: name}}}
		data, err := Append(nil, c, WriteOptions{Version: 5})
		require.NoError(t, err)
		read, err := Parse(data, "")
		require.NoError(t, err)
		require.Equal(t, name, read.Operators[0].Name)

		c.Operators[0].Name += "x\x00"
		_, err = Append(nil, c, WriteOptions{Version: 5})
		requireInvalid(t, err, "operators[0].name")
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

var errDisk = errors.New("disk")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	c := large(2, 400)
	data, err := Append(nil, c, WriteOptions{})
	require.NoError(t, err)
	for left := 0; left < len(data); left += 50_000 {
		require.ErrorIs(t, Write(&failingWriter{left}, c, WriteOptions{Footer: &Footer{}}), errDisk)
	}
	require.NoError(t, Write(&failingWriter{len(data)}, c, WriteOptions{}))
}

func TestOperatorID(t *testing.T) {
	id, err := ParseOperatorID("bc764cd8ddf7a0cff126f51c16239658")
	require.NoError(t, err)
	require.Equal(t, "bc764cd8ddf7a0cff126f51c16239658", id.String())
	text, err := id.MarshalText()
	require.NoError(t, err)
	var again OperatorID
	require.NoError(t, again.UnmarshalText(text))
	require.Equal(t, id, again)
	for _, bad := range []string{"", "bc", "bc764cd8ddf7a0cff126f51c1623965", "bc764cd8ddf7a0cff126f51c162396580", "xc764cd8ddf7a0cff126f51c16239658"} {
		require.Error(t, again.UnmarshalText([]byte(bad)))
	}
	require.Equal(t, id, again, "a failure changes the value")
}

func TestLastSubtaskOfAnIndexHolds(t *testing.T) {
	o := OperatorState{Parallelism: 3, MaxParallelism: 3, Subtasks: []Subtask{
		{Index: 1, State: &SubtaskState{}}, {Index: 0}, {Index: 1},
	}}
	s, found := o.Subtask(1)
	require.True(t, found)
	require.True(t, s.Finished())
	_, found = o.Subtask(2)
	require.False(t, found)

	data, err := Append(nil, &Checkpoint{Operators: []OperatorState{o}}, WriteOptions{})
	require.NoError(t, err)
	c, err := Parse(data, "")
	require.NoError(t, err)
	require.Equal(t, o, c.Operators[0], "the order of the file is kept")
}
