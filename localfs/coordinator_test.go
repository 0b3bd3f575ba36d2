package localfs

import (
	"context"
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// TestACheckpointWhoseLinkIsRepeatedIsCommitted has a coordinator commit on a mount without renames that do not replace, where
// answers are lost.
func TestACheckpointWhoseLinkIsRepeatedIsCommitted(t *testing.T) {
	for _, lost := range []struct {
		op    string
		reply syscall.Errno
	}{{"link", syscall.EEXIST}, {"link", syscall.ETIMEDOUT}, {"rename", syscall.ENOENT}, {"rename", syscall.ETIMEDOUT}} {
		t.Run(lost.op+"/"+lost.reply.Error(), func(t *testing.T) {
			sys, top := newTap(), memoryDir(t)
			sys.system = oldKernel{kernel{}}
			f := openFor(t, sys, top, Options{})
			ctx := t.Context()
			start := func() (*coordinator.Coordinator, *coordinator.Restored) {
				storage, err := core.NewStorage(f, top, core.JobIDOf("test"), core.Options{})
				require.NoError(t, err)
				var c *coordinator.Coordinator
				operator := coordinator.Operator{UID: "source"}
				c, err = coordinator.New(coordinator.Options{
					Storage: storage, Operators: []coordinator.Operator{operator},
					Send: func(ctx context.Context, trigger coordinator.Trigger) error {
						task := coordinator.Task{Operator: coordinator.OperatorIDOf("source")}
						return c.Acknowledge(ctx, trigger.Ack(task, &metadata.SubtaskState{}))
					},
				})
				require.NoError(t, err)
				restored, err := c.Start(ctx)
				require.NoError(t, err)
				return c, restored
			}
			c, _ := start()
			_, err := c.TriggerCheckpoint(ctx)
			require.NoError(t, err)
			linked, hits := "", 0
			sys.hook = func(e event) (bool, error) {
				if e.op == "link" && path.Base(e.to) == core.MetadataName {
					linked = e.path
				}
				if e.op != lost.op || e.path != linked || hits > 0 {
					return false, nil
				}
				hits++
				if e.op == "link" {
					require.NoError(t, os.Link(e.path, e.to))
				} else {
					require.NoError(t, os.Rename(e.path, e.to))
				}
				return true, lost.reply
			}
			committed, err := c.TriggerCheckpoint(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, hits)
			require.FileExists(t, join(committed.Pointer[len("file:"):], core.MetadataName))
			require.NoError(t, c.Close(ctx))
			again, restored := start()
			require.Equal(t, committed.ID, restored.ID)
			require.NoError(t, again.Close(ctx))
		})
	}
}
