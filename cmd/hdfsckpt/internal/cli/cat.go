package cli

import (
	"context"
	"path"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

const catLong = `Write the bytes of one file that a checkpoint needs to the standard output. FILE is its
path, or the end of it from some slash on, as inspect --subtasks shows it.

Where checksums are recorded, no byte of a chunk is written before the chunk was found
right: a damaged one ends the output, and the exit code is 1. Of a file of merged states
only a segment is the checkpoint's; if it needs several, --segment chooses one by where it
begins.`

const catExample = `  hdfsckpt cat /ckpt/chk-42 0b7c5e0e-7a6a-4c5a-9d0e-1f2e3d4c5b6a > state
  hdfsckpt cat --segment 6626 /ckpt/chk-42 92e161fc-1dc3-42b3-b571-f77d87a050b4 | xxd`

func newCat(s *session) *cobra.Command {
	var opts ops.CatOptions
	var pathMap []string
	cmd := &cobra.Command{
		Use: "cat POINTER FILE", Short: "Write the bytes of one state file", Long: catLong, Example: catExample,
		Args: s.two("a POINTER and a FILE"),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.cat(ctx, opts, pathMap) }),
	}
	cmd.Flags().Int64Var(&opts.Segment, "segment", -1, "`OFFSET` at which the segment begins")
	addPathMap(cmd, &pathMap)
	_ = cmd.RegisterFlagCompletionFunc("segment", cobra.NoFileCompletions)
	return cmd
}

func (v *verbContext) cat(ctx context.Context, opts ops.CatOptions, pathMap []string) outcome {
	if v.flags.json {
		return failed(report.UsageProblem("cat writes bytes: it has no --json", ""))
	}
	var err error
	if opts.PathMap, err = v.parsePathMap(pathMap); err != nil {
		return failed(err)
	}
	pointer, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	opts.Object = v.args[1]
	if hasScheme(opts.Object) || path.IsAbs(opts.Object) {
		if opts.Object, err = v.locate(opts.Object); err != nil {
			return failed(err)
		}
	}
	if err := ops.Cat(ctx, v.open, follow(pointer), opts, v.stdout); err != nil {
		return failed(err)
	}
	return outcome{}
}
