package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const inspectLong = `Show what the metadata of a checkpoint or savepoint says: for each operator its name, uid
and id, its parallelism, its operator states, its handles by kind and where their bytes
are; what is large; the totals; the version of the file, its checksum and properties.

The files that the checkpoint needs are not looked at: that is what verify does. The names
of keyed states are inside of the state files, not in the metadata. The names of operators
are there from version 5 on (Flink 2.0), and in what this project's library wrote.`

const inspectExample = `  hdfsckpt inspect /data/flink/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/chk-42
  hdfsckpt inspect --subtasks --largest 20 /ckpt/chk-42
  hdfsckpt inspect --json /ckpt/chk-42 | jq '.result.operators[] | {name, uid, state_bytes}'`

// maxLargest bounds what is kept in order while a file with millions of states is read; --json --subtasks lists them all.
const maxLargest = 1000

// The forms of inspect.
const (
	textFormat  = "text"
	flinkFormat = "flink-dump"
)

func newInspect(s *session) *cobra.Command {
	var opts report.InspectOptions
	var format string
	var pathMap []string
	cmd := &cobra.Command{
		Use: "inspect POINTER", Short: "Show what is in a checkpoint", Long: inspectLong, Example: inspectExample,
		Args: s.arguments("POINTER", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.inspect(ctx, format, opts, pathMap) }),
	}
	cmd.Flags().BoolVar(&opts.Subtasks, "subtasks", false, "list every subtask with its handles and files")
	cmd.Flags().IntVar(&opts.Largest, "largest", 10, "list the `N` largest states, with their files")
	cmd.Flags().StringVar(&format, "format", textFormat, "`FORM` of the output: text, or flink-dump for what Flink reads in the file, as JSON")
	addPathMap(cmd, &pathMap)
	_ = cmd.RegisterFlagCompletionFunc("largest", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{textFormat, flinkFormat}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *verbContext) inspect(ctx context.Context, format string, opts report.InspectOptions, pathMap []string) outcome {
	switch {
	case opts.Largest < 0 || opts.Largest > maxLargest:
		return failed(report.UsageProblem(fmt.Sprintf("--largest is %d: it must be from 0 to %d", opts.Largest, maxLargest), ""))
	case format != textFormat && format != flinkFormat:
		return failed(report.UsageProblem(fmt.Sprintf("--format is %q: it must be %s or %s", format, textFormat, flinkFormat), ""))
	case format == flinkFormat && v.flags.json:
		return failed(report.UsageProblem("--format "+flinkFormat+" and --json exclude each other: each is a form of its own", ""))
	}
	moved, err := v.parsePathMap(pathMap)
	if err != nil {
		return failed(err)
	}
	if len(moved) > 0 {
		opts.Where = moved.Map
	}
	pointer, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	if format == flinkFormat {
		dump, err := ops.DumpFlink(ctx, v.open, follow(pointer))
		if err != nil {
			return failed(err)
		}
		return outcome{show: func(p *text.Printer) { _ = dump(p) }} // the printer's failure is found when it is flushed
	}
	inspection, err := ops.Inspect(ctx, v.open, follow(pointer), opts)
	if err != nil {
		return failed(err)
	}
	return outcome{result: inspection, show: func(p *text.Printer) { text.Inspection(p, inspection) }}
}
