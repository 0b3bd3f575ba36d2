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

const stateWorkLong = `

All stores are worked on unless --operator, --partition or --store choose. Without --yes
nothing is changed: what would be done is only shown.

A checkpoint that has changed in the last ten minutes is refused: a query may be running.
--offline says that none is. Whatever is said, before each file is published or taken away
the directory is looked at again, and the work ends if anything in it, or in the logs of the
query, is not as it was. What is written is compressed, and has row checksums, as the offset
log pins it, and has the mode, owner and group of what is there; on a local disk the command
must run as the user who owns the directory, or as the superuser.

A directory that was worked on keeps _epoch-<n>, a few hundred bytes, and after a repair
_quarantine. Spark passes over both.`

const stateCompactLong = `Write the snapshot of a version, so that loading it replays no deltas, and delete the files
that no retained version needs. The snapshot is read to its end before anything is deleted.

The version is the one that the query would begin with unless --version says otherwise. A
version above that is refused: the query will write it again.` + stateWorkLong

const stateRepairLong = `Verify the stores, and write every snapshot again that is damaged and that older files make.
The damaged file goes to _quarantine in the store's directory, of which the newest few stay.

What cannot be rebuilt is named, stays as it is, and makes the exit code 1.` + stateWorkLong

const stateRollbackLong = `Drop every version above one, newest first, in all stores: for versions that a run has left
which was given up. If one store does not have the version, nothing is dropped anywhere.

Below the version that the newest batch committed it is refused, because the query could not
be started any more: its logs must go back with the state. With --below-commit it is done;
for version V then take the batches from V on out of commits, and those from V+1 on out of
offsets, each with its hidden .crc where there is one, before the query is started.` + stateWorkLong

// defaultRetain is what Spark's own clean-up leaves by default: minBatchesToRetain versions, and one.
const defaultRetain = 101

func newStateCompact(s *session) *cobra.Command {
	return newStateWork(s, workVerb{
		use: "compact DIR", short: "Write a snapshot and clean up", long: stateCompactLong,
		example: "  hdfsckpt state compact /ckpt/query\n  hdfsckpt state compact --partition 3 --retain 10 --yes /ckpt/query",
		flags: func(cmd *cobra.Command, opts *ops.StateWorkOptions) {
			cmd.Flags().Int64Var(&opts.Version, "version", ops.Newest, "`N`, the version; the default is the one that the query would begin with")
			cmd.Flags().IntVar(&opts.Retain, "retain", defaultRetain, "keep the newest `N` versions loadable")
			cmd.Flags().Lookup("version").DefValue = "0" // which the help does not show
			_ = cmd.RegisterFlagCompletionFunc("version", cobra.NoFileCompletions)
			_ = cmd.RegisterFlagCompletionFunc("retain", cobra.NoFileCompletions)
		},
		check: func(cmd *cobra.Command, opts ops.StateWorkOptions) error {
			switch {
			case opts.Retain < 1:
				return report.UsageProblem(fmt.Sprintf("--retain is %d: it must be at least 1", opts.Retain), "")
			case cmd.Flags().Changed("version") && opts.Version < 1:
				return report.UsageProblem(fmt.Sprintf("--version is %d: it must be at least 1", opts.Version), "")
			}
			return nil
		},
		do: ops.StateCompact,
	})
}

func newStateRepair(s *session) *cobra.Command {
	return newStateWork(s, workVerb{
		use: "repair DIR", short: "Write damaged snapshots again", long: stateRepairLong,
		example: "  hdfsckpt state repair /ckpt/query\n  hdfsckpt state repair --yes --offline /ckpt/query",
		do:      ops.StateRepair,
	})
}

func newStateRollback(s *session) *cobra.Command {
	return newStateWork(s, workVerb{
		use: "rollback DIR --version N", short: "Drop the versions above one", long: stateRollbackLong,
		example: "  hdfsckpt state rollback --version 17 /ckpt/query\n  hdfsckpt state rollback --version 17 --yes /ckpt/query",
		flags: func(cmd *cobra.Command, opts *ops.StateWorkOptions) {
			cmd.Flags().Int64Var(&opts.Version, "version", ops.Newest, "`N`, the version that becomes the newest; 0 drops all")
			cmd.Flags().BoolVar(&opts.BelowCommit, "below-commit", false, "go below the version that the newest batch committed")
			cmd.Flags().Lookup("version").DefValue = "0" // which the help does not show
			_ = cmd.RegisterFlagCompletionFunc("version", cobra.NoFileCompletions)
		},
		check: func(cmd *cobra.Command, opts ops.StateWorkOptions) error {
			switch {
			case !cmd.Flags().Changed("version"):
				return report.UsageProblem("rollback needs a --version", "")
			case opts.Version < 0:
				return report.UsageProblem(fmt.Sprintf("--version is %d: it must not be negative", opts.Version), "")
			}
			return nil
		},
		do: ops.StateRollback,
	})
}

// workVerb is what the writing verbs differ in.
type workVerb struct {
	use, short, long, example string
	flags                     func(*cobra.Command, *ops.StateWorkOptions)
	check                     func(*cobra.Command, ops.StateWorkOptions) error
	do                        func(context.Context, core.Opener, string, ops.StateWorkOptions) (*report.StateWork, []error)
}

func newStateWork(s *session, verb workVerb) *cobra.Command {
	var only onlyFlags
	var opts ops.StateWorkOptions
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use: verb.use, Short: verb.short, Long: verb.long, Example: verb.example,
		Args: s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			if verb.check != nil {
				if err := verb.check(cmd, opts); err != nil {
					return failed(err)
				}
			}
			target, err := v.stateTarget(only.stateFlags)
			if err != nil {
				return failed(err)
			}
			opts.Operator, opts.Partition, opts.Store = only.given(cmd)
			opts.Now, opts.Owner, opts.Meter = v.Now, Name+" "+v.current, v.meter("store")
			work, problems := verb.do(ctx, v.open, target.Checkpoint, opts)
			opts.Meter.Stop()
			return outcome{result: work, show: func(p *text.Printer) { text.StateWork(p, work) }, problems: problems}
		}),
	}
	only.add(cmd)
	if verb.flags != nil {
		verb.flags(cmd, &opts)
	}
	cmd.Flags().BoolVar(&opts.Yes, "yes", false, "do it, and do not only show what would be done")
	cmd.Flags().BoolVar(&opts.Offline, "offline", false, "no query uses the checkpoint, although it has changed lately")
	return cmd
}
