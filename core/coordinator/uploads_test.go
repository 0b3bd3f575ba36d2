package coordinator

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func uploaded(paths ...string) []metadata.NamedFile {
	var files []metadata.NamedFile
	for _, path := range paths {
		files = append(files, metadata.NamedFile{LocalPath: path, Handle: &core.FileHandle{Path: "mem:/shared/" + path, Size: 1}})
	}
	return files
}

func TestOnlyFilesOfTheBaseAreReferredToAgain(t *testing.T) {
	var u Uploads
	reused, missing := u.Plan(0, []string{"a", "b"})
	require.Empty(t, reused)
	require.Equal(t, []string{"a", "b"}, missing)

	u.Record(5, uploaded("a", "b"))
	u.Record(6, uploaded("b", "c"))
	u.Record(0, uploaded("z"))
	for _, c := range []struct {
		base    int64
		reused  []metadata.NamedFile
		missing []string
	}{
		{0, nil, []string{"c", "b", "a", "z"}}, // 0 is no checkpoint
		{5, append(uploaded("b"), uploaded("a")...), []string{"c", "z"}},
		{6, append(uploaded("c"), uploaded("b")...), []string{"a", "z"}},
		{7, nil, []string{"c", "b", "a", "z"}},
	} {
		reused, missing = u.Plan(c.base, []string{"c", "b", "a", "z"})
		require.Equal(t, c.reused, reused)
		require.Equal(t, c.missing, missing)
	}
	u.Notice(Notice{CheckpointID: 5, News: NewsCommitted})
	reused, _ = u.Plan(5, []string{"a"})
	require.Len(t, reused, 1)
	for _, n := range []Notice{{CheckpointID: 5, News: NewsSubsumed}, {CheckpointID: 6, News: NewsAborted}} {
		u.Notice(n)
		reused, _ = u.Plan(n.CheckpointID, []string{"a", "b", "c"})
		require.Empty(t, reused)
	}
}

func TestUploadsForgetWhatIsLongAgo(t *testing.T) {
	var u Uploads
	for id := range int64(100) {
		u.Record(id+1, uploaded(fmt.Sprint(id)))
	}
	require.Len(t, u.checkpoints, maxRecorded)
	reused, _ := u.Plan(100, []string{"99"})
	require.Len(t, reused, 1)
}

func TestPlaceholdersLeaveOutAllButTheName(t *testing.T) {
	files := append(uploaded("a"),
		metadata.NamedFile{Handle: &core.SegmentHandle{Path: "mem:/p", Offset: 3, Size: 9, Scope: core.Shared, LogicalID: "l", Checksums: sums(1)}},
		metadata.NamedFile{Handle: &core.BytesHandle{Name: "inline"}})
	short := Placeholders(files)
	require.Equal(t, &core.FileHandle{Path: "mem:/shared/a", Size: -1}, short[0].Handle)
	require.Equal(t, &core.SegmentHandle{Path: "mem:/p", Offset: 3, Size: -1, Scope: core.Shared, LogicalID: "l"}, short[1].Handle)
	require.Same(t, files[2].Handle, short[2].Handle)
	require.Equal(t, int64(1), files[0].Handle.StateSize(), "the given files are not changed")
	for i, want := range []bool{true, true, false} {
		require.Equal(t, want, core.IsPlaceholder(short[i].Handle))
		require.False(t, core.IsPlaceholder(files[i].Handle))
	}
}

// Workers are told every outcome, and a task that keeps its uploads sends no file twice.
func TestWorkersAreToldWhatBecameOfACheckpoint(t *testing.T) {
	fsys := newFS(t)
	var notices []Notice
	w := startWorld(t, fsys, func(o *Options) {
		o.Notify = func(_ context.Context, n Notice) { notices = append(notices, n) }
	})
	w.checkpoint()
	w.setSend(func(_ context.Context, tr Trigger) error {
		return w.c.Decline(t.Context(), tr.Decline(Task{feed.ID, 0}, "no"))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	w.setSend(nil)
	_, err = w.c.TriggerSavepoint(t.Context(), "")
	require.NoError(t, err)
	w.checkpoint()
	require.Equal(t, []Notice{
		{CheckpointID: 1, Epoch: 1, News: NewsCommitted},
		{CheckpointID: 2, Epoch: 1, News: NewsAborted},
		{CheckpointID: 3, Epoch: 1, Kind: Savepoint, News: NewsCommitted},
		{CheckpointID: 4, Epoch: 1, News: NewsCommitted},
		{CheckpointID: 1, Epoch: 1, News: NewsSubsumed},
	}, notices)
}
