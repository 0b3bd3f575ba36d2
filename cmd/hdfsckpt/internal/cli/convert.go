package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const convertLong = `Write the metadata of a checkpoint or savepoint in another version of the format, to a
directory that has none yet. The state files are neither copied nor changed.

  3   Flink 1.11 to 1.15
  4   Flink 1.16 and later
  5   Flink 2.0 and later
  6   Flink 2.1 and later

All versions from 2 on are read. Merged handles of data in flight, known from version 6
on, are taken apart. What else the version cannot hold is named, and nothing is written
unless --allow-loss is given.

Paths relative to the checkpoint's directory are made absolute if the target is another
directory, so that what is written can be restored from; --keep-relative leaves them,
for a directory that the files are going to be in. --path-map OLD=NEW rewrites absolute
paths of a tree that was moved.`

const convertExample = `  hdfsckpt convert --version 4 /savepoints/savepoint-6bd2fa-3fc4547e9d48 /savepoints/for-1.20
  hdfsckpt convert --version 6 --keep-relative --path-map hdfs://old/ckpt=hdfs://new/ckpt /ckpt/chk-42 /copy/chk-42
  hdfsckpt convert --version 3 --allow-loss --file /ckpt/chk-42 /tmp/metadata-v3`

func newConvert(s *session) *cobra.Command {
	var opts ops.ConvertOptions
	var pathMap []string
	cmd := &cobra.Command{
		Use: "convert POINTER TARGET", Short: "Write the metadata of a checkpoint in another version", Long: convertLong, Example: convertExample,
		Args: s.two("a POINTER and a TARGET"),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.convert(ctx, opts, pathMap) }),
	}
	cmd.Flags().IntVar(&opts.Version, "version", 0, "`N` of the format to write: 3, 4, 5 or 6")
	cmd.Flags().BoolVar(&opts.AllowLoss, "allow-loss", false, "write although the version cannot hold everything")
	cmd.Flags().BoolVar(&opts.KeepRelative, "keep-relative", false, "leave paths that are relative to the checkpoint's directory as they are")
	cmd.Flags().BoolVar(&opts.File, "file", false, "TARGET is the name of the file, not of a directory for it")
	addPathMap(cmd, &pathMap)
	_ = cmd.RegisterFlagCompletionFunc("version", cobra.FixedCompletions([]string{"3", "4", "5", "6"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *verbContext) convert(ctx context.Context, opts ops.ConvertOptions, pathMap []string) outcome {
	if opts.Version < 3 || opts.Version > 6 {
		return failed(report.UsageProblem("convert needs --version 3, 4, 5 or 6", ""))
	}
	var err error
	if opts.PathMap, err = v.parsePathMap(pathMap); err != nil {
		return failed(err)
	}
	pointers, err := v.locateAll()
	if err != nil {
		return failed(err)
	}
	conversion, err := ops.Convert(ctx, v.open, follow(pointers[0]), pointers[1], opts)
	o := outcome{}
	if conversion != nil {
		o.result, o.show = conversion, func(p *text.Printer) { text.Conversion(p, conversion) }
	}
	if err != nil {
		o.problems = []error{err}
	}
	return o
}
