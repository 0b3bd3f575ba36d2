package coordinator

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// Whoever moves a checkpoint, or restores it from a backup, may leave a link in its place. Going back to an older one in silence
// would lose what is in it, and delete what it needs.
func TestWhatStandsInThePlaceOfTheNewestCheckpointIsNotPassedOver(t *testing.T) {
	for what, replace := range map[string]func(t *testing.T, metadata string){
		"a link to the metadata": func(t *testing.T, metadata string) {
			require.NoError(t, os.Rename(metadata, metadata+".moved"))
			require.NoError(t, os.Symlink(path.Base(metadata)+".moved", metadata))
		},
		"a directory": func(t *testing.T, metadata string) {
			require.NoError(t, os.Rename(metadata, metadata+".moved"))
			require.NoError(t, os.Mkdir(metadata, 0o755))
		},
		"a link to the checkpoint's directory": func(t *testing.T, metadata string) {
			dir := path.Dir(metadata)
			require.NoError(t, os.Rename(dir, dir+".moved"))
			require.NoError(t, os.Symlink(path.Base(dir)+".moved", dir))
		},
	} {
		t.Run(what, func(t *testing.T) {
			fsys, err := localfs.Open(t.TempDir(), localfs.Options{UnsafeNoFsync: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, fsys.Close()) }()
			storage, err := core.NewStorage(fsys, fsys.Base(), core.JobIDOf("odd"), core.Options{})
			require.NoError(t, err)
			job := oneTask(t, storage)
			_, err = job.Start(t.Context())
			require.NoError(t, err)
			for range 2 {
				_, err = job.TriggerCheckpoint(t.Context())
				require.NoError(t, err)
			}
			require.NoError(t, job.Close(t.Context()))
			replace(t, filepath.Join(storage.JobDir(), core.CheckpointDirName(2), core.MetadataName))

			_, err = oneTask(t, storage).Start(t.Context())
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, "cannot restore checkpoint 2")
		})
	}
}

// oneTask is a job of one task without files.
func oneTask(t *testing.T, storage *core.Storage) *Coordinator {
	var c *Coordinator
	c, err := New(Options{
		Storage: storage, Operators: []Operator{{UID: "counter"}}, Retain: 3,
		Send: func(ctx context.Context, tr Trigger) error {
			state, err := tr.WriteState(ctx, storage, core.Exclusive, func(w io.Writer) error { _, err := w.Write([]byte("1")); return err })
			if err != nil {
				return err
			}
			named := metadata.NewOperatorHandle([]metadata.NamedState{{Name: "n", Offsets: []int64{0}}}, state)
			return c.Acknowledge(ctx, tr.Ack(Task{Operator: OperatorIDOf("counter")}, &metadata.SubtaskState{ManagedOperator: named}))
		},
	})
	require.NoError(t, err)
	return c
}
