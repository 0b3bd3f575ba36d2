package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const disposeLong = `Delete checkpoints or savepoints and what they alone own. Without --yes nothing is
changed: what would be deleted and what would be kept, and why, is only shown.

What goes: the metadata first, so that from then on it is no checkpoint; then the files
that it names in the checkpoint's own directory and, if no other checkpoint needs them, in
the job's shared directory; files in its own directory that have the form of state files;
the directory, if it is empty then. Foreign files are kept and named, and with them stays
._metadata.emptied, which says what the directory was. If a sibling checkpoint cannot be
read, what it might need is kept.

Make sure that no job restores from the checkpoint, is to be restored from it, or writes
to it: that cannot be seen from outside. The newest complete checkpoint of a job is
refused unless --force.

It may be repeated: what is gone already is success, and a disposal that was interrupted
is taken up where it stopped. If not everything could be deleted, the exit code is 1 and
what is left is named.

If the metadata is damaged, it cannot say what to delete, and the disposal is refused.
--ignore-metadata then deletes what has the form of a state file in the checkpoint's own
directory, and nothing else.`

const disposeExample = `  hdfsckpt dispose /data/savepoints/savepoint-6bd2fa-3fc4547e9d48
  hdfsckpt dispose --yes /data/savepoints/savepoint-6bd2fa-3fc4547e9d48
  hdfsckpt dispose --yes --ignore-metadata /ckpt/6bd2fa7d01be4e0250072f87fde49bec/chk-41`

func newDispose(s *session) *cobra.Command {
	var opts ops.DisposeOptions
	cmd := &cobra.Command{
		Use: "dispose POINTER…", Short: "Delete a checkpoint and what it alone owns", Long: disposeLong, Example: disposeExample,
		Args: s.arguments("POINTER", true),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.dispose(ctx, opts) }),
	}
	cmd.Flags().BoolVar(&opts.Yes, "yes", false, "do it, and do not only show what would be done")
	cmd.Flags().BoolVar(&opts.Force, "force", false, "dispose even of the newest complete checkpoint of a job")
	cmd.Flags().BoolVar(&opts.IgnoreMetadata, "ignore-metadata", false, "for damaged metadata: delete what has the form of state files in its own directory")
	return cmd
}

func (v *verbContext) dispose(ctx context.Context, opts ops.DisposeOptions) outcome {
	pointers, err := v.locateAll()
	if err != nil {
		return failed(err)
	}
	disposal, problems := ops.Dispose(ctx, v.open, pointers, opts)
	return outcome{result: disposal, show: func(p *text.Printer) { text.Disposal(p, disposal) }, problems: problems}
}
