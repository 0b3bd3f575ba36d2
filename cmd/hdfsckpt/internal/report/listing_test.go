package report

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewListingSortsByJobKindAndIDWithTheNewestLast(t *testing.T) {
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	l := NewListing(t.Context(), "file:/r", []Facts{
		{Pointer: "file:/r/b/chk-2", Job: "b", Time: late},
		{Pointer: "file:/r/a/savepoint-aaaaaa-000000000001", Job: "a", Time: late, Content: &Content{ID: 3}},
		{Pointer: "file:/r/a/savepoint-aaaaaa-000000000002", Job: "a", Time: early, Content: &Content{ID: 7}},
		{Pointer: "file:/r/a/chk-10", Job: "a", Time: early},
		{Pointer: "file:/r/a/chk-9", Job: "a", Time: late},
		{Pointer: "file:/r/chk-1", Time: late},
	}, late)
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Job+"/"+e.Name())
	}
	require.Equal(t, []string{
		"/chk-1", "a/chk-9", "a/chk-10", "a/savepoint-aaaaaa-000000000002", "a/savepoint-aaaaaa-000000000001", "b/chk-2",
	}, names)
	require.Equal(t, int64(1000), l.Entries[2].AgeSeconds)
	require.Equal(t, "aaaaaa", l.Entries[3].Prefix)
}

func TestTheStateOfAnEntryFollowsFromWhatWasSeen(t *testing.T) {
	unreadable := &fs.PathError{Op: "open", Path: "/x/_metadata", Err: fs.ErrPermission}
	for _, tt := range []struct {
		facts Facts
		want  State
	}{
		{Facts{}, InProgress},
		{Facts{Disposing: true}, Disposing},
		{Facts{HasMetadata: true}, Complete},
		{Facts{HasMetadata: true, Disposing: true}, Complete},
		{Facts{HasMetadata: true, Err: unreadable}, Broken},
		{Facts{Err: unreadable}, Broken},
	} {
		tt.facts.Pointer = "file:/x/chk-1"
		l := NewListing(t.Context(), "", []Facts{tt.facts}, time.Time{})
		e := l.Entries[0]
		require.Equal(t, tt.want, e.State)
		require.Equal(t, tt.facts.HasMetadata, e.MetadataBytes != nil)
		require.Nil(t, e.Objects)
		require.Equal(t, tt.want == Broken, len(l.Problems()) == 1)
	}
}

func TestAnEntryOfTheFutureIsNotOld(t *testing.T) {
	l := NewListing(t.Context(), "", []Facts{{Pointer: "file:/x/chk-1", Time: time.Unix(2000, 0)}}, time.Unix(1000, 0))
	require.Zero(t, l.Entries[0].AgeSeconds)
}
