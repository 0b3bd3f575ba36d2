package cli

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestDiffShowsWhatIsDifferent(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(7)
	j.checkpoint(8)
	from, to := path.Join(j.dir(), "chk-7"), path.Join(j.dir(), "chk-8")
	r.golden("diff.txt", "diff", "--files", "2", from, to)
	r.golden("diff.json", "diff", "--json", "--files", "1", from, to)

	var same report.Comparison
	require.Equal(t, 0, r.json(&same, "diff", from, from).ExitCode)
	require.Equal(t, report.FileChanges{Kept: 4, KeptBytes: same.Files.KeptBytes}, same.Files)
	for _, o := range same.Operators {
		require.Equal(t, report.Same, o.Change)
	}
	require.Equal(t, 3, r.run("diff", from, "nowhere").code)
	require.Equal(t, 3, r.run("diff", "nowhere", to).code)
}

func TestDiffTellsOperatorsAndStatesThatCameAndWent(t *testing.T) {
	r := newRig(t)
	operator := func(id byte, name string, parallelism int, states ...metadata.NamedState) metadata.OperatorState {
		o := metadata.OperatorState{ID: metadata.OperatorID{id}, Name: name, Parallelism: parallelism, MaxParallelism: 128}
		for i := range parallelism {
			o.Subtasks = append(o.Subtasks, metadata.Subtask{Index: i, State: &metadata.SubtaskState{
				ManagedOperator: metadata.NewOperatorHandle(states, &core.BytesHandle{Data: make([]byte, 10*len(states))}),
			}})
		}
		return o
	}
	state := func(name string, mode metadata.Mode, parts int) metadata.NamedState {
		return metadata.NamedState{Name: name, Mode: mode, Offsets: make([]int64, parts)}
	}
	from := r.write("from", &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{
		operator(1, "stays", 2, state("list", metadata.SplitDistribute, 1), state("old", metadata.Union, 1)),
		operator(2, "goes", 1),
	}})
	to := r.write("to", &metadata.Checkpoint{ID: 2, Operators: []metadata.OperatorState{
		operator(3, "comes", 1),
		operator(1, "stays", 3, state("list", metadata.Broadcast, 2), state("new", metadata.Union, 1)),
	}})
	r.golden("diff-operators.txt", "diff", from, to)
	var c report.Comparison
	require.Equal(t, 0, r.json(&c, "diff", from, to).ExitCode)
	require.Len(t, c.Operators, 3)
	require.Equal(t, []report.Change{report.Changed, report.Removed, report.Added}, []report.Change{
		c.Operators[0].Change, c.Operators[1].Change, c.Operators[2].Change,
	})
	require.Len(t, c.Operators[0].States, 3)
}

func TestDiffOfAMovedTreeGoesByPathMap(t *testing.T) {
	r := newRig(t)
	file := func(dir string) metadata.KeyedHandle {
		return keyGroups(0, &core.FileHandle{Path: "file:/" + dir + "/shared/a", Size: 3})
	}
	old, moved := r.bare("chk-1", file("old")), r.bare("chk-2", file("new"))
	var c report.Comparison
	r.json(&c, "diff", old, moved)
	require.Equal(t, 1, c.Files.Added)
	require.Equal(t, 1, c.Files.Removed)
	c = report.Comparison{}
	r.json(&c, "diff", "--path-map", "/old=/new", old, moved)
	require.Equal(t, report.FileChanges{Kept: 1, KeptBytes: 3}, c.Files)
}

// write writes the metadata of a checkpoint to a directory below the root.
func (r *rig) write(dir string, c *metadata.Checkpoint) string {
	r.t.Helper()
	data, err := metadata.Append(nil, c, metadata.WriteOptions{Version: 6})
	require.NoError(r.t, err)
	r.file(path.Join(dir, core.MetadataName), data)
	return r.path(dir)
}
