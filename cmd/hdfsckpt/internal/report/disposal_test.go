package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestGuardNewestRefusesTheNewestCompleteCheckpointOnly(t *testing.T) {
	siblings := []core.CheckpointEntry{
		{ID: 1, Dir: "/j/chk-1", State: core.Complete},
		{ID: 2, Dir: "/j/chk-2", State: core.Complete},
		{ID: 3, Dir: "/j/chk-3", State: core.InProgress},
		{ID: 4, Dir: "/j/chk-4", State: core.Disposing},
	}
	for dir, refused := range map[string]bool{"/j/chk-1": false, "/j/chk-2": true, "/j/chk-3": false, "/j/chk-4": false, "/j/chk-5": false} {
		p := GuardNewest("file:"+dir, dir, siblings)
		require.Equal(t, refused, p != nil, dir)
	}
	require.Nil(t, GuardNewest("file:/j/chk-4", "/j/chk-4", siblings[3:]))
}

func TestAFailedDisposalSaysWhetherItHasBegun(t *testing.T) {
	for _, tt := range []struct {
		name        string
		kind        Kind
		uncommitted bool
		removed     []string
		status      DisposalStatus
		want        Kind
		left        bool
	}{
		{"no permission to begin", Permission, false, nil, DisposalError, Permission, false},
		{"a file stays", Permission, true, []string{"/a"}, HalfDisposed, Incomplete, true},
		{"nothing could be removed", Permission, true, nil, HalfDisposed, Incomplete, true},
		{"interrupted after it began", Interrupted, true, nil, HalfDisposed, Interrupted, true},
		{"interrupted before", Interrupted, false, nil, DisposalError, Interrupted, false},
		{"never complete", Invalid, true, nil, NotDisposed, Refused, false},
		{"damaged", Damaged, false, nil, DisposalError, Damaged, false},
	} {
		d := NewDisposedCheckpoint("file:/x")
		d.Status, d.Removed = DisposalError, append(d.Removed, tt.removed...)
		p := Problem{Kind: tt.kind, Message: "why"}
		d.Fail(&p, tt.uncommitted, []string{"/left"})
		require.Equal(t, tt.status, d.Status, tt.name)
		require.Equal(t, tt.want, p.Kind, tt.name)
		require.Equal(t, tt.left, len(d.Left) == 1, tt.name)
		require.Equal(t, tt.left, len(p.Left) == 1, tt.name)
	}
}

func TestTheSizesOfADisposalAreThoseThatAreRecorded(t *testing.T) {
	d := NewDisposedCheckpoint("file:/x")
	d.Take(&core.DisposalReport{Removed: []string{"/x/a", "/x/b", "/x/c"}}, "file://", map[string]int64{"file:/x/a": 5, "file:/x/b": -1, "file:/y": 9})
	require.Equal(t, int64(5), d.RemovedBytes)
	d.Take(nil, "file://", nil)
	require.Len(t, d.Removed, 3)
}
