package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const diffLong = `Compare what the metadata of two checkpoints or savepoints says: which operators there
are, their parallelism, operator states, handles and sizes, and which files both need or
only one does. Operators are told apart by their ids.

What is different is no finding: the exit code is 0.`

const diffExample = `  hdfsckpt diff /ckpt/chk-41 /ckpt/chk-42
  hdfsckpt diff --files 20 /ckpt/chk-41 /ckpt/chk-42
  hdfsckpt diff --json /ckpt/chk-41 /ckpt/chk-42 | jq .result.files`

// maxDiffFiles bounds what is kept of a comparison.
const maxDiffFiles = 100_000

func newDiff(s *session) *cobra.Command {
	var opts ops.DiffOptions
	var pathMap []string
	cmd := &cobra.Command{
		Use: "diff FROM TO", Short: "Show what is different between two checkpoints", Long: diffLong, Example: diffExample,
		Args: s.two("two POINTERs"),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.diff(ctx, opts, pathMap) }),
	}
	cmd.Flags().IntVar(&opts.Files, "files", 0, "list the first `N` of the files that were added, and of those that were removed")
	addPathMap(cmd, &pathMap)
	_ = cmd.RegisterFlagCompletionFunc("files", cobra.NoFileCompletions)
	return cmd
}

// two checks that there are two arguments, none of them empty.
func (s *session) two(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		s.setCurrent(cmd)
		if len(args) != 2 {
			return report.UsageProblem(fmt.Sprintf("%s needs %s, not %d", cmd.Name(), what, len(args)), "")
		}
		return s.arguments("POINTER", true)(cmd, args)
	}
}

func (v *verbContext) diff(ctx context.Context, opts ops.DiffOptions, pathMap []string) outcome {
	if opts.Files < 0 || opts.Files > maxDiffFiles {
		return failed(report.UsageProblem(fmt.Sprintf("--files is %d: it must be from 0 to %d", opts.Files, maxDiffFiles), ""))
	}
	var err error
	if opts.PathMap, err = v.parsePathMap(pathMap); err != nil {
		return failed(err)
	}
	pointers, err := v.locateAll()
	if err != nil {
		return failed(err)
	}
	comparison, err := ops.Diff(ctx, v.open, follow(pointers[0]), follow(pointers[1]), opts)
	if err != nil {
		return failed(err)
	}
	return outcome{result: comparison, show: func(p *text.Printer) { text.Comparison(p, comparison) }}
}
