package coordinator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestACheckpointThatMayHaveBeenCommittedIsNotReportedAsAborted(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	writeFile(t, fsys, jobDir+"/chk-1/notes.txt", "x")
	w.checkpoint()
	w.checkpoint()
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-2"))
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-4"))
	writeFile(t, fsys, jobDir+"/chk-5/._metadata.emptied", "x")
	writeFile(t, fsys, jobDir+"/chk-5/notes.txt", "x")
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-6"))
	for range 2 {
		require.NotSubset(t, startWorld(t, fsys, nil).abortedIDs(), []int64{1})
	}
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-2"))
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-4"))
	require.NoError(t, fsys.MkdirAll(t.Context(), jobDir+"/chk-6"))
	require.Equal(t, []int64{6}, startWorld(t, fsys, nil).abortedIDs())
}

func TestALateAcknowledgementDeletesNothingOnceTheClaimIsLost(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		return w.c.Decline(ctx, tr.Decline(Task{feed.ID, 0}, "no"))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	startWorld(t, fsys, nil)
	name := jobDir + "/shared/7d8f4b5e-0000-4000-8000-000000000001"
	writeFile(t, fsys, name, "x")
	state := &metadata.SubtaskState{}
	state.InputChannels = append(state.InputChannels, metadata.NewChannelHandle(0, metadata.Channel{}, &core.FileHandle{Path: "mem:" + name, Size: 1}))
	require.ErrorIs(t, w.c.Acknowledge(t.Context(), w.lastTrigger().Ack(Task{counter.ID, 0}, state)), core.ErrFenced)
	require.Contains(t, tree(t, fsys, jobDir), name)
	_, err = w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, core.ErrFenced)
}

func TestNothingIsDiscardedWhereAnotherMetadataFileIsInPlace(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		writeFile(t, fsys, metadataName(1), "another")
		return w.ackAll(ctx, tr)
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.Error(t, err)
	require.Len(t, tree(t, fsys, jobDir+"/shared"), 2)
}
