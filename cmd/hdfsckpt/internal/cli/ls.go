package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

// listParallel is how many directories are looked at at the same time.
const listParallel = 8

const lsLong = `List the checkpoints and savepoints at ROOT, which is a base directory (with a directory
for each job id), a job's directory, a directory of savepoints, or a checkpoint itself.

Every metadata file is read, for the sizes and to find damage; --quick leaves that out.
States:

  complete     the metadata is there (and right, unless --quick)
  in progress  there is no metadata: it is being written, or was given up
  broken       the metadata is damaged or cannot be read; the exit code is 1 or 3
  disposing    its disposal has begun: it is no checkpoint any more
  disposed     it was disposed of; its directory is left because of foreign files in it

SIZE is what the metadata records for all files that the checkpoint needs; files that
several checkpoints share count for each. A plus means that some have no recorded size and
may be larger. Names that are not those of checkpoints, savepoints or jobs are passed over
without a look. ls writes nothing and may look at a directory that a job is using.`

const lsExample = `  hdfsckpt ls /data/flink/checkpoints
  hdfsckpt ls file:///data/flink/checkpoints/6bd2fa7d01be4e0250072f87fde49bec
  hdfsckpt ls --json /savepoints | jq -r '.result.entries[] | select(.state == "broken") | .pointer'`

func newLs(s *session) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use: "ls ROOT", Short: "List checkpoints and savepoints", Long: lsLong, Example: lsExample,
		Args: s.arguments("ROOT", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.ls(ctx, quick) }),
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "do not read the metadata: no sizes of objects, no look for damage")
	return cmd
}

func (v *verbContext) ls(ctx context.Context, quick bool) outcome {
	root, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	fsys, name, err := v.open(ctx, follow(root))
	if err != nil {
		return failed(err)
	}
	meter := v.meter("checkpoint")
	facts, problems, err := ops.List(ctx, fsys, name, ops.ListOptions{Quick: quick, Parallel: listParallel, Meter: meter})
	meter.Stop()
	if err != nil {
		return failed(err)
	}
	listing := report.NewListing(ctx, root, facts, v.Now())
	o := outcome{result: listing, show: func(p *text.Printer) { text.Listing(p, listing) }, problems: problems}
	for _, p := range listing.Problems() {
		o.problems = append(o.problems, &p)
	}
	return o
}
