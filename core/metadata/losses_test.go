package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestLossesNameWhatAVersionCannotHold(t *testing.T) {
	segment := &SegmentHandle{Path: "/a", Size: 1}
	file := &core.FileHandle{Path: "/a"}
	merging := &Merging{TaskOwnedDir: "/a", SharedDir: "/b", Empty: true}
	for name, tt := range map[string]struct {
		state *SubtaskState
		lost3 string // in version 3; in the others nothing is lost
		field string
	}{
		"no state":         {&SubtaskState{}, "", ""},
		"file":             {inOperator(file), "", ""},
		"operator segment": {inOperator(segment), lossOfSegments, "operators[0].subtasks[0]"},
		"merged operator":  {&SubtaskState{RawOperator: &OperatorHandle{Merging: merging, Delegate: EmptySegment{}}}, lossOfSegments, "operators[0].subtasks[0]"},
		"key groups":       {&SubtaskState{RawKeyed: &KeyGroupsHandle{Delegate: &KeyGroupsHandle{Delegate: segment}}}, lossOfSegments, "operators[0].subtasks[0]"},
		"shared file":      {&SubtaskState{ManagedKeyed: &IncrementalHandle{Meta: file, Shared: []NamedFile{{Handle: segment}}}}, lossOfSegments, "operators[0].subtasks[0]"},
		"channel":          {&SubtaskState{InputChannels: []ChannelHandle{NewChannelHandle(0, Channel{}, segment)}}, lossOfSegments, "operators[0].subtasks[0]"},
		"merged channels":  {&SubtaskState{InputChannels: []ChannelHandle{NewMergedChannelHandle(0, []Channel{{}, {}}, file)}}, "", ""},
		"changelog":        {&SubtaskState{ManagedKeyed: &ChangelogHandle{}}, lossOfChangelog, "operators[0].subtasks[0]"},
		"old changelog":    {&SubtaskState{ManagedKeyed: &ChangelogHandle{Layout: LayoutV1}}, "", ""},
		"changes": {&SubtaskState{ManagedKeyed: &ChangelogHandle{Layout: LayoutV1, Changes: []KeyedHandle{
			&ChangelogFileHandle{},
		}}}, lossOfChangelog, "operators[0].subtasks[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := single(tt.state)
			if tt.lost3 == "" {
				require.Empty(t, Losses(c, 3, true))
			} else {
				require.Equal(t, []Loss{{Field: tt.field, Count: 1, Reason: tt.lost3, Unreadable: true}}, Losses(c, 3, true))
			}
			for version := 4; version <= newestVersion; version++ {
				require.Empty(t, Losses(c, version, true))
			}
		})
	}
}

func TestLossesBesideTheState(t *testing.T) {
	c := single(&SubtaskState{})
	c.Operators = append(c.Operators, c.Operators[0], OperatorState{})
	c.Properties, c.Footer = SavepointProperties(true), &Footer{}
	names := Loss{Field: "operators[0].name", Count: 2, Reason: lossOfNames}
	properties := Loss{Field: "properties", Count: 1, Reason: lossOfProperties}
	footer := Loss{Field: "footer", Count: 1, Reason: lossOfFooter}
	require.Equal(t, []Loss{names, properties, footer}, Losses(c, 3, false))
	require.Equal(t, []Loss{properties}, Losses(c, 3, true))
	require.Equal(t, []Loss{names, footer}, Losses(c, 4, false))
	require.Equal(t, []Loss{footer}, Losses(c, 5, false))
	require.Empty(t, Losses(c, 4, true))
	c.Properties = &Properties{Null: true}
	require.Empty(t, Losses(c, 3, true))
}
