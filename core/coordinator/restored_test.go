package coordinator

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func restoredOf(op metadata.OperatorState) *Restored {
	return &Restored{Checkpoint: &metadata.Checkpoint{Operators: []metadata.OperatorState{op}}, open: core.OnlyOn(nil)}
}

func fullState(groups metadata.KeyGroupRange) *metadata.KeyGroupsHandle {
	h := &metadata.KeyGroupsHandle{Range: groups, Delegate: &core.BytesHandle{Name: groups.String()}}
	for i := range groups.Count {
		h.Offsets = append(h.Offsets, int64(groups.Start+i)*10)
	}
	return h
}

func TestKeyedStateGoesToTheSubtasksThatOwnItsKeyGroups(t *testing.T) {
	for _, old := range []int{1, 2, 3, 5, 8} {
		for _, now := range []int{1, 2, 3, 4, 7, 8} {
			op := metadata.OperatorState{ID: counter.ID, Parallelism: old, MaxParallelism: 8}
			for i := range old {
				groups, err := metadata.KeyGroupsOfSubtask(i, old, 8)
				require.NoError(t, err)
				op.Subtasks = append(op.Subtasks, metadata.Subtask{Index: i, State: &metadata.SubtaskState{
					ManagedKeyed: fullState(groups), RawKeyed: fullState(groups),
				}})
			}
			r := restoredOf(op)
			given := map[bool][]int64{}
			for i := range now {
				wanted, err := metadata.KeyGroupsOfSubtask(i, now, 8)
				require.NoError(t, err)
				parts, err := r.KeyedParts(counter.ID, now, i)
				require.NoError(t, err)
				for _, part := range parts {
					require.Positive(t, part.Groups.Count)
					require.Equal(t, part.Groups, part.Groups.Intersect(wanted))
					require.Len(t, part.Offsets, int(part.Groups.Count))
					require.Equal(t, int64(part.Groups.Start)*10, part.Offsets[0])
					given[part.Raw] = append(given[part.Raw], part.Offsets...)
				}
			}
			for _, raw := range []bool{false, true} {
				require.Equal(t, []int64{0, 10, 20, 30, 40, 50, 60, 70}, given[raw], "from %d to %d", old, now)
			}
		}
	}
}

func TestKeyedStateWithoutOffsetsIsGivenAsAWhole(t *testing.T) {
	whole := &metadata.IncrementalHandle{Range: metadata.KeyGroupRange{Start: 0, Count: 8}}
	r := restoredOf(metadata.OperatorState{ID: counter.ID, Parallelism: 1, MaxParallelism: 8, Subtasks: []metadata.Subtask{
		{Index: 0, State: &metadata.SubtaskState{ManagedKeyed: whole}},
	}})
	parts, err := r.KeyedParts(counter.ID, 2, 1)
	require.NoError(t, err)
	require.Equal(t, []KeyedPart{{Handle: whole, Groups: metadata.KeyGroupRange{Start: 4, Count: 4}}}, parts)
}

func TestPartsOfAnOperatorWithoutState(t *testing.T) {
	finished := restoredOf(metadata.OperatorState{ID: counter.ID, Parallelism: 2, MaxParallelism: 8, Subtasks: []metadata.Subtask{{Index: 1}}})
	for _, r := range []*Restored{{}, finished} {
		keyed, err := r.KeyedParts(counter.ID, 2, 1)
		require.NoError(t, err)
		require.Empty(t, keyed)
		parts, err := r.OperatorParts(counter.ID, 2, 1)
		require.NoError(t, err)
		require.Empty(t, parts)
	}
	require.True(t, (&Restored{}).Empty())
	require.False(t, finished.Empty())
}

func TestPartsOfSubtasksThatCannotBe(t *testing.T) {
	groups := metadata.KeyGroupRange{Start: 0, Count: 8}
	r := restoredOf(metadata.OperatorState{ID: counter.ID, Parallelism: 1, MaxParallelism: 8, Subtasks: []metadata.Subtask{
		{Index: 0, State: &metadata.SubtaskState{ManagedKeyed: &metadata.KeyGroupsHandle{Range: groups, Offsets: []int64{1}}}},
	}})
	for _, c := range []struct{ parallelism, subtask int }{{0, 0}, {2, 2}, {2, -1}, {-1, 0}} {
		_, err := r.KeyedParts(counter.ID, c.parallelism, c.subtask)
		require.Error(t, err)
		_, err = r.OperatorParts(counter.ID, c.parallelism, c.subtask)
		require.Error(t, err)
	}
	_, err := r.KeyedParts(counter.ID, 9, 0)
	require.Error(t, err, "more subtasks than key groups")
	_, err = r.KeyedParts(counter.ID, 1, 0)
	require.ErrorIs(t, err, core.ErrCorrupt, "fewer offsets than key groups")
}

func TestAnInlineStateIsOpened(t *testing.T) {
	r := &Restored{open: core.OnlyOn(nil)}
	reader, err := r.Open(t.Context(), &core.BytesHandle{Data: []byte("abc")})
	require.NoError(t, err)
	require.Equal(t, int64(3), reader.Size())
	require.NoError(t, reader.Close())
}

// The file testdata/operator-state.txt says how it was made.
func TestOperatorStateIsDealtOutAsFlinkDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/operator-state.txt")
	require.NoError(t, err)
	cases := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cases++
		input, want, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=>")
		require.True(t, found)
		op, now := parseDeal(t, input)
		for i, expected := range strings.Split(want, "|")[1:] {
			parts, err := restoredOf(op).OperatorParts(counter.ID, now, i)
			require.NoError(t, err)
			require.Equal(t, expected, formatParts(parts), "subtask %d of %s", i, input)
		}
	}
	require.Equal(t, 60, cases)
}

func parseDeal(t *testing.T, input string) (op metadata.OperatorState, now int) {
	t.Helper()
	fields := strings.Split(input, "|")
	op = metadata.OperatorState{ID: counter.ID, MaxParallelism: 128}
	head := strings.Fields(fields[0])
	var err error
	op.Parallelism, err = strconv.Atoi(strings.TrimPrefix(head[0], "old="))
	require.NoError(t, err)
	now, err = strconv.Atoi(strings.TrimPrefix(head[1], "new="))
	require.NoError(t, err)
	for _, field := range fields[1:] {
		items := strings.Split(field, ";")
		index, err := strconv.Atoi(items[0])
		require.NoError(t, err)
		handle := &metadata.OperatorHandle{Delegate: &core.BytesHandle{Name: items[0]}}
		for _, item := range items[1:] {
			part := strings.Split(item, "/")
			mode, err := strconv.Atoi(part[1])
			require.NoError(t, err)
			state := metadata.NamedState{Name: part[0], Mode: metadata.Mode(mode)}
			for _, offset := range strings.FieldsFunc(part[2], func(r rune) bool { return r == ',' }) {
				n, err := strconv.ParseInt(offset, 10, 64)
				require.NoError(t, err)
				state.Offsets = append(state.Offsets, n)
			}
			handle.States = append(handle.States, state)
		}
		op.Subtasks = append(op.Subtasks, metadata.Subtask{Index: index, State: &metadata.SubtaskState{ManagedOperator: handle}})
	}
	return op, now
}

func formatParts(parts []OperatorPart) string {
	var items []string
	for _, part := range parts {
		name := part.Delegate.(*core.BytesHandle).Name //nolint:forcetypeassert // made by parseDeal
		for _, state := range part.States {
			var offsets []string
			for _, offset := range state.Offsets {
				offsets = append(offsets, strconv.FormatInt(offset, 10))
			}
			if len(offsets) > 0 {
				items = append(items, name+"/"+state.Name+"/"+strings.Join(offsets, ","))
			}
		}
	}
	// As java.util.TreeSet sorts, by UTF-16 units; the names have none beyond the basic plane.
	slices.Sort(items)
	return strings.Join(items, ";")
}

func TestABroadcastStateOfSomeSubtasksIsGivenOnceToEach(t *testing.T) {
	state := func(name string) *metadata.SubtaskState {
		return &metadata.SubtaskState{ManagedOperator: &metadata.OperatorHandle{
			Delegate: &core.BytesHandle{Name: name}, States: []metadata.NamedState{{Name: "rules", Mode: metadata.Broadcast, Offsets: []int64{7}}},
		}}
	}
	r := restoredOf(metadata.OperatorState{ID: counter.ID, Parallelism: 3, MaxParallelism: 8, Subtasks: []metadata.Subtask{
		{Index: 0, State: state("0")}, {Index: 1}, {Index: 2, State: state("2")},
	}})
	for i, want := range []string{"0/rules/7", "2/rules/7", "2/rules/7"} {
		parts, err := r.OperatorParts(counter.ID, 3, i)
		require.NoError(t, err)
		require.Equal(t, want, formatParts(parts))
	}
}

func TestRawOperatorStateIsMarked(t *testing.T) {
	handle := &metadata.OperatorHandle{
		Delegate: &core.BytesHandle{Name: "0"}, States: []metadata.NamedState{{Name: metadata.RawStateName, Offsets: []int64{1, 2}}},
	}
	r := restoredOf(metadata.OperatorState{ID: counter.ID, Parallelism: 1, MaxParallelism: 8, Subtasks: []metadata.Subtask{
		{Index: 0, State: &metadata.SubtaskState{RawOperator: handle}},
	}})
	for i := range 2 {
		parts, err := r.OperatorParts(counter.ID, 2, i)
		require.NoError(t, err)
		require.Len(t, parts, 1)
		require.True(t, parts[0].Raw)
		require.Equal(t, []int64{int64(i + 1)}, parts[0].States[0].Offsets)
	}
}
