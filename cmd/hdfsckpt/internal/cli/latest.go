package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
	"github.com/hdfsckpt/hdfsckpt/core"
)

const latestLong = `Print the pointer of the newest complete checkpoint of a job, and nothing else: the one
with the highest id, whose metadata was read and is right.

ROOT is a job's directory, or a base directory in which one job has complete checkpoints;
of several, --job chooses. Savepoints do not count.

If the metadata of the newest complete checkpoint is damaged, that is an error: an older
checkpoint is a different state, and whether that will do is for you to decide.
--allow-older then takes the newest one whose metadata can be used, and says what it
passed over. A checkpoint that cannot be read at the moment is never passed over.`

const latestExample = `  hdfsckpt latest /data/flink/checkpoints/6bd2fa7d01be4e0250072f87fde49bec
  hdfsckpt latest --job 6bd2fa7d01be4e0250072f87fde49bec /data/flink/checkpoints
  flink run -s "$(hdfsckpt latest /ckpt)" job.jar`

func newLatest(s *session) *cobra.Command {
	var opts ops.LatestOptions
	cmd := &cobra.Command{
		Use: "latest ROOT", Short: "Print the pointer of a job's newest complete checkpoint", Long: latestLong, Example: latestExample,
		Args: s.arguments("ROOT", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.latest(ctx, opts) }),
	}
	cmd.Flags().StringVar(&opts.Job, "job", "", "`ID` of the job, the name of its directory below ROOT")
	cmd.Flags().BoolVar(&opts.AllowOlder, "allow-older", false, "if the newest checkpoint is damaged, take an older one")
	_ = cmd.RegisterFlagCompletionFunc("job", cobra.NoFileCompletions)
	return cmd
}

func (v *verbContext) latest(ctx context.Context, opts ops.LatestOptions) outcome {
	if opts.Job != "" {
		if _, err := core.ParseJobID(opts.Job); err != nil {
			return failed(report.UsageProblem(fmt.Sprintf("--job: %v", err), "ls shows the jobs"))
		}
	}
	root, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	fsys, name, err := v.open(ctx, follow(root))
	if err != nil {
		return failed(err)
	}
	latest, err := ops.Latest(ctx, fsys, name, opts)
	if err != nil {
		return failed(err)
	}
	o := outcome{result: latest, show: func(p *text.Printer) { p.Line("%s", latest.Pointer) }}
	for _, skipped := range latest.Skipped {
		o.notes = append(o.notes, fmt.Sprintf("passed over %s: %s", skipped.Pointer, skipped.Problem.Message))
	}
	return o
}
