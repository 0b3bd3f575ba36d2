package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestPlanSubsumption(t *testing.T) {
	for _, c := range []struct {
		name     string
		complete []int64
		retain   int
		inUse    []int64
		want     []int64
	}{
		{name: "none", retain: 1},
		{name: "as many as retained", complete: []int64{1, 2}, retain: 2},
		{name: "one more", complete: []int64{1, 2, 3}, retain: 2, want: []int64{1}},
		{name: "many more, numbers not in a row", complete: []int64{1, 8, 9, 10, 99, 100}, retain: 2, want: []int64{1, 8, 9, 10}},
		{name: "in use", complete: []int64{1, 2, 3, 4}, retain: 1, inUse: []int64{2}, want: []int64{1, 3}},
		{name: "in use and retained", complete: []int64{1, 2, 3}, retain: 2, inUse: []int64{3}, want: []int64{1}},
		{name: "the newest is kept whatever is asked for", complete: []int64{1, 2}, retain: 0, want: []int64{1}},
		{name: "a number without limit", complete: []int64{1, 2}, retain: math.MaxInt},
	} {
		t.Run(c.name, func(t *testing.T) {
			inUse := map[int64]bool{}
			for _, id := range c.inUse {
				inUse[id] = true
			}
			require.Equal(t, c.want, planSubsumption(c.complete, c.retain, inUse))
		})
	}
}

func TestTheSavepointThatAJobStopsWithCountsAsRetained(t *testing.T) {
	require.Equal(t, 3, retainBeside(3, false))
	require.Equal(t, 2, retainBeside(3, true))
	require.Equal(t, 1, retainBeside(1, true), "one checkpoint stays in any case")
}

func TestPlanRestore(t *testing.T) {
	entries := []core.CheckpointEntry{
		{ID: 8, State: core.Complete},
		{ID: 9, State: core.Complete},
		{ID: 10, State: core.Complete},
		{ID: 11, State: core.InProgress},
		{ID: 12, State: core.Disposing},
	}
	ids := func(entries []core.CheckpointEntry) (ids []int64) {
		for _, entry := range entries {
			ids = append(ids, entry.ID)
		}
		return ids
	}
	require.Equal(t, []int64{10}, ids(planRestore(entries, Restore{})))
	require.Equal(t, []int64{10, 9, 8}, ids(planRestore(entries, Restore{AllowOlder: true})))
	require.Empty(t, planRestore(entries, Restore{Fresh: true, AllowOlder: true}))
	require.Empty(t, planRestore(entries, Restore{Pointer: "file:/x"}))
	require.Empty(t, planRestore(entries[3:], Restore{}))
}

func TestNextID(t *testing.T) {
	entries := []core.CheckpointEntry{{ID: 3, State: core.Complete}, {ID: 5, State: core.InProgress}}
	for _, c := range []struct {
		entries  []core.CheckpointEntry
		restored int64
		want     int64
	}{{nil, 0, 1}, {nil, 7, 8}, {entries, 3, 6}, {entries, 9, 10}} {
		got, err := nextID(c.entries, c.restored)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := nextID(nil, math.MaxInt64)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = nextID([]core.CheckpointEntry{{ID: math.MaxInt64}}, 0)
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// After Flink's CheckpointMetadataLoadingTest.
func TestMatchOperators(t *testing.T) {
	withState := []metadata.Subtask{{Index: 0, State: &metadata.SubtaskState{ManagedOperator: &metadata.OperatorHandle{}}}}
	other := OperatorIDOf("other")
	for _, c := range []struct {
		name  string
		state metadata.OperatorState
		allow bool
		want  string
		drops bool
	}{
		{name: "the same", state: metadata.OperatorState{ID: counter.ID, Parallelism: 2, MaxParallelism: 8, Subtasks: withState}},
		{name: "another parallelism", state: metadata.OperatorState{ID: counter.ID, Parallelism: 7, MaxParallelism: 8, Subtasks: withState}},
		{
			name:  "another max parallelism",
			state: metadata.OperatorState{ID: counter.ID, UID: "counter", Parallelism: 2, MaxParallelism: 16},
			allow: true, want: `"counter" (` + counter.ID.String() + `) has max parallelism 16 in the checkpoint and 8 in the job`,
		},
		{name: "no longer there", state: metadata.OperatorState{ID: other, MaxParallelism: 8, Subtasks: withState}, want: "which the job does not have"},
		{name: "no longer there, allowed", state: metadata.OperatorState{ID: other, MaxParallelism: 8, Subtasks: withState}, allow: true, drops: true},
		{
			name:  "no longer there, without state",
			state: metadata.OperatorState{ID: other, Subtasks: []metadata.Subtask{{Index: 0}, {Index: 1, State: &metadata.SubtaskState{}}}},
		},
		{
			name:  "no longer there, with the state of its coordinator only",
			state: metadata.OperatorState{ID: other, Coordinator: &core.BytesHandle{Data: []byte("x")}}, want: "which the job does not have",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dropped, err := matchOperators(&metadata.Checkpoint{Operators: []metadata.OperatorState{c.state}}, operators, c.allow)
			require.Equal(t, c.drops, len(dropped) > 0)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, fs.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestTheTimeOfTheNextTrigger(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	for _, c := range []struct {
		name string
		s    schedule
		want time.Time
	}{
		{"an interval after the last trigger", schedule{interval: 10 * time.Second, lastTrigger: at(100)}, at(110)},
		{"whatever ended meanwhile", schedule{interval: 10 * time.Second, lastTrigger: at(100), lastEnd: at(109)}, at(110)},
		{"not before the pause", schedule{interval: 10 * time.Second, minPause: 5 * time.Second, lastTrigger: at(100), lastEnd: at(109)}, at(114)},
		{"a pause that is over", schedule{interval: 10 * time.Second, minPause: 5 * time.Second, lastTrigger: at(100), lastEnd: at(101)}, at(110)},
		{"no pause before the first", schedule{interval: time.Second, minPause: time.Hour, lastTrigger: at(100)}, at(101)},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.s.next()) })
	}
}

func TestHowManyFailuresAreTooMany(t *testing.T) {
	require.True(t, tooMany(1, 0))
	require.False(t, tooMany(2, 2))
	require.True(t, tooMany(3, 2))
	require.False(t, tooMany(1<<30, UnlimitedFailures))
}

func TestWhatTheDisposalOfAnAbortedCheckpointMeans(t *testing.T) {
	problem := errors.New("a problem")
	for _, c := range []struct {
		published progress
		disposal  error
		want      leftover
	}{
		{unpublished, nil, nothingLeft},
		{maybePublished, nil, nothingLeft},
		{unpublished, problem, directoryLeft},
		{maybePublished, problem, outcomeUnclear},
		{unpublished, fmt.Errorf("x: %w", core.ErrFenced), fencedOff},
		{maybePublished, core.ErrFenced, fencedOff},
	} {
		require.Equal(t, c.want, afterDisposal(c.published, c.disposal))
	}
	require.Equal(t, occupied, progressOf(fs.ErrExist, maybePublished))
	require.Equal(t, maybePublished, progressOf(problem, maybePublished))
	require.Equal(t, unpublished, progressOf(errors.Join(core.ErrFenced, fs.ErrExist), unpublished))
}

func TestWhatIsDiscardedOfACheckpointWithoutAGoodOutcome(t *testing.T) {
	objects := []core.Object{
		{Path: "mem:/shared/new"},
		{Path: "mem:/shared/needed"},
		{Path: "mem:/shared/new"},
		{Path: "mem:/shared/dir", Directory: true},
		{Path: "mem:/shared/needed-dir/x"},
		{Path: "no path"},
	}
	r := newRegistry()
	r.hold(1, []core.Object{{Path: "mem:/shared/needed"}, {Path: "mem:/shared/needed-dir", Directory: true}}, nil)
	require.Equal(t, []string{"mem:/shared/new"}, r.unneeded(objects, nil))
	require.Empty(t, r.unneeded(objects, []core.Object{{Path: "mem:/shared/new"}}), "it was written for another checkpoint")
	require.Empty(t, r.unneeded(objects, []core.Object{{Path: "no path"}}))
	r.hold(2, []core.Object{{Path: "no path"}}, nil)
	require.Empty(t, r.unneeded(objects, nil), "it is not known what is needed")
}
