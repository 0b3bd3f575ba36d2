package core_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// oddJob is a job directory with many names, of which two are complete checkpoints.
func oddJob(t *testing.T) (*memfs.FS, string) {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	dir := "/job"
	for name, content := range map[string]string{
		"chk-9/_metadata":                         "nine",
		"chk-10/_metadata":                        "the tenth",
		"chk-11/0b7c0b7c-0000-4000-8000-00000000": "state of a checkpoint in progress",
		"chk-12/._metadata_temp":                  "an unfinished one",
		"chk-14/._metadata.disposed":              "being disposed of",
		"chk-15/._metadata.emptied":               "nearly gone",
		"chk-16/_metadata/x":                      "a directory in place of the metadata",
		"chk-013/_metadata":                       "foreign",
		"chk-abc/_metadata":                       "foreign",
		"chk--1/_metadata":                        "foreign",
		"chk-99999999999999999999/_metadata":      "foreign",
		"Chk-30/_metadata":                        "foreign",
		"chk-20":                                  "a file",
		"savepoint-0a1b2c-0123456789ab/_metadata": "a savepoint",
		"shared/x":                                "x",
		"taskowned/x":                             "x",
		"README":                                  "x",
	} {
		put(t, mem, dir+"/"+name, content)
	}
	return mem, dir
}

func TestListingFindsTheCheckpointsAmongOddNames(t *testing.T) {
	mem, dir := oddJob(t)
	entries, err := core.ListCheckpoints(context.Background(), mem, dir)
	require.NoError(t, err)
	states := map[int64]core.CheckpointState{}
	last := int64(-1)
	for _, e := range entries {
		require.Greater(t, e.ID, last, "ascending")
		last = e.ID
		states[e.ID] = e.State
		require.Equal(t, dir+"/"+core.CheckpointDirName(e.ID), e.Dir)
		require.Equal(t, e.State == core.Complete, e.Completed != nil)
		require.False(t, e.Time.IsZero())
	}
	require.Equal(t, map[int64]core.CheckpointState{
		9: core.Complete, 10: core.Complete, 11: core.InProgress, 12: core.InProgress, 14: core.Disposing, 15: core.Disposed, 16: core.Complete, 20: core.Foreign,
	}, states)

	odd, ok := core.Latest(entries)
	require.True(t, ok)
	require.Equal(t, int64(16), odd.ID, "its metadata is a directory: that it is no checkpoint cannot be known")
	_, err = odd.Completed.ReadMetadata(context.Background())
	require.ErrorIs(t, err, core.ErrCorrupt)
	latest, ok := core.Latest(slices.DeleteFunc(entries, func(e core.CheckpointEntry) bool { return e.ID == odd.ID }))
	require.True(t, ok)
	require.Equal(t, int64(10), latest.ID)
	require.Equal(t, int64(len("the tenth")), latest.MetadataSize)
	require.Equal(t, "mem:/job/chk-10", latest.Completed.Pointer)
	id, ok := latest.Completed.ID()
	require.True(t, ok)
	require.Equal(t, int64(10), id)
	data, err := latest.Completed.ReadMetadata(context.Background())
	require.NoError(t, err)
	require.Equal(t, "the tenth", string(data))

	next, err := core.NextID(entries)
	require.NoError(t, err)
	require.Equal(t, int64(21), next, "also a file takes its id away")
	require.False(t, exists(t, mem, dir+"/"+core.CheckpointDirName(next)))
}

func TestListingOfNothing(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	ctx := context.Background()
	_, err := core.ListCheckpoints(ctx, mem, "/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	put(t, mem, "/file", "x")
	_, err = core.ListCheckpoints(ctx, mem, "/file")
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, mem.MkdirAll(ctx, "/empty"))
	entries, err := core.ListCheckpoints(ctx, mem, "/empty")
	require.NoError(t, err)
	require.Empty(t, entries)
	_, ok := core.Latest(entries)
	require.False(t, ok)
	next, err := core.NextID(entries)
	require.NoError(t, err)
	require.Equal(t, int64(1), next)
}

func TestListingSortsByNumberNotByName(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	for _, id := range []int64{100, 9, 20, 1000, 0} {
		put(t, mem, "/job/"+core.CheckpointDirName(id)+"/_metadata", "x")
	}
	require.Equal(t, []int64{0, 9, 20, 100, 1000}, completeIDs(t, mem, "/job"))
}

// A passing error of any call is the caller's to see: the newest checkpoint is never skipped for an older one.
func TestListingNeverGoesBackInTimeForAPassingError(t *testing.T) {
	ctx := context.Background()
	mem, dir := oddJob(t)
	clean := faultfs.Wrap(mem, nil)
	_, err := core.ListCheckpoints(ctx, clean, dir)
	require.NoError(t, err)
	require.Greater(t, clean.Count(), 10)
	for _, cause := range []error{core.ErrUnavailable, fs.ErrPermission, context.DeadlineExceeded, errors.New("standby")} {
		for i := range clean.Count() {
			entries, err := core.ListCheckpoints(ctx, faultfs.Wrap(mem, faultfs.Nth(i, faultfs.Fault{Err: cause})), dir)
			require.ErrorIs(t, err, cause, "%v", clean.Calls()[i])
			require.Nil(t, entries)
		}
		entries, err := core.ListCheckpoints(ctx, faultfs.Wrap(mem, faultfs.OnOp(faultfs.OpList, faultfs.Fault{Err: cause, Tear: 3})), dir)
		require.ErrorIs(t, err, cause, "a listing that is cut off")
		require.Nil(t, entries)
	}
}

func TestListingGoesOnBehindADirectoryThatVanishes(t *testing.T) {
	ctx := context.Background()
	mem, dir := oddJob(t)
	var once bool
	flaky := faultfs.Wrap(mem, func(c faultfs.Call) faultfs.Fault {
		if !once && c.Op == faultfs.OpStat && c.Name == dir+"/chk-11/_metadata" {
			once = true
			if err := mem.RemoveAll(ctx, dir+"/chk-11"); err != nil {
				return faultfs.Fault{Err: err}
			}
		}
		return faultfs.Fault{}
	})
	entries, err := core.ListCheckpoints(ctx, flaky, dir)
	require.NoError(t, err)
	require.True(t, once)
	latest, ok := core.Latest(entries)
	require.True(t, ok)
	require.Equal(t, int64(16), latest.ID)
}

func TestLatestIsTheHighestCompleteIdInAnyOrder(t *testing.T) {
	entry := func(id int64, state core.CheckpointState) core.CheckpointEntry {
		return core.CheckpointEntry{ID: id, State: state, Time: time.Unix(1000-id, 0)}
	}
	for _, c := range []struct {
		entries []core.CheckpointEntry
		want    int64
		ok      bool
	}{
		{nil, 0, false},
		{[]core.CheckpointEntry{entry(1, core.InProgress), entry(2, core.Disposing), entry(3, core.Foreign)}, 0, false},
		{[]core.CheckpointEntry{entry(0, core.Complete)}, 0, true},
		{[]core.CheckpointEntry{entry(9, core.Complete), entry(7, core.Complete), entry(12, core.Disposing)}, 9, true},
	} {
		latest, ok := core.Latest(c.entries)
		require.Equal(t, c.ok, ok)
		require.Equal(t, c.want, latest.ID)
	}
}

func TestNextIDIsAboveEveryEntry(t *testing.T) {
	for _, c := range []struct {
		ids  []int64
		want int64
	}{{nil, 1}, {[]int64{0}, 1}, {[]int64{5, 3}, 6}, {[]int64{math.MaxInt64 - 1}, math.MaxInt64}} {
		var entries []core.CheckpointEntry
		for _, id := range c.ids {
			entries = append(entries, core.CheckpointEntry{ID: id, State: core.InProgress})
		}
		next, err := core.NextID(entries)
		require.NoError(t, err)
		require.Equal(t, c.want, next)
	}
	_, err := core.NextID([]core.CheckpointEntry{{ID: math.MaxInt64, Dir: "/job/chk-last"}, {ID: 1}})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "/job/chk-last")
}

func TestCheckpointStatesHaveNames(t *testing.T) {
	var names []string
	for state := core.InProgress; state <= core.Foreign+1; state++ {
		names = append(names, state.String())
	}
	require.Equal(t, "in progress|complete|disposing|disposed|foreign|invalid", strings.Join(names, "|"))
}
