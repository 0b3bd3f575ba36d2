package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// packedSnapshot writes the same states into a pack, and names shared states of the base by placeholders.
func (w *tasks) packedSnapshot(ctx context.Context, t Trigger, task Task) (state *metadata.SubtaskState, err error) {
	pack, err := t.BeginPack(ctx, w.packer)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	write := func(scope core.Scope, part string) (core.StreamHandle, error) {
		return WritePacked(ctx, pack, scope, func(out io.Writer) error {
			_, err := out.Write(content(t.Epoch, t.CheckpointID, task, part))
			return err
		})
	}
	label := fmt.Sprintf("%d-%d", t.Epoch, t.CheckpointID)
	operator := func(delegate core.StreamHandle) *metadata.OperatorHandle {
		return PackedOperator(pack, []metadata.NamedState{{Name: label, Offsets: []int64{0}}}, delegate)
	}
	inline, err := write(core.Exclusive, "inline")
	if err != nil {
		return nil, err
	}
	if task.Operator == feed.ID {
		return &metadata.SubtaskState{ManagedOperator: operator(inline)}, pack.Commit()
	}
	exclusive, err := write(core.Exclusive, "exclusive")
	if err != nil {
		return nil, err
	}
	base := w.known(task, t.Base)
	base = base[max(0, len(base)-sharedFiles+1):]
	files, acked := slices.Clone(base), Placeholders(base)
	handles := make([]core.StreamHandle, len(base))
	for i := range base {
		handles[i] = base[i].Handle
	}
	reused, err := pack.Reuse(ctx, handles)
	if err != nil {
		return nil, err
	}
	for i := range reused {
		if reused[i] != handles[i] || t.Kind == Savepoint {
			files[i].Handle, acked[i].Handle = reused[i], reused[i]
		}
	}
	fresh, err := write(core.Shared, "shared")
	if err != nil {
		return nil, err
	}
	if err := pack.Commit(); err != nil {
		return nil, err
	}
	last := metadata.NamedFile{LocalPath: label, Handle: fresh}
	w.remember(task, t.CheckpointID, append(files, last))
	keyed, err := incremental(t, task, exclusive, append(acked, last))
	return &metadata.SubtaskState{
		ManagedOperator: operator(inline), RawOperator: PackedOperator(pack, nil, nil), ManagedKeyed: keyed,
	}, err
}

// pack lets the tasks pack their states.
func (w *tasks) pack(tb testing.TB) {
	tb.Helper()
	var err error
	w.packer, err = w.storage.NewPacker(core.PackOptions{Worker: "w1"})
	require.NoError(tb, err)
}
