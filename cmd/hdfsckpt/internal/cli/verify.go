package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const verifyLong = `Check that checkpoints or savepoints can be restored as a whole: their metadata is right
to the last byte, and every file that they need is there with its recorded size. With
--deep every byte is read as well, and compared with checksums where they are recorded:
this project's library records them, Flink does not. --checksums compares the recorded
checksums with those that the file system keeps, and reads nothing.
A local disk keeps none.

One line for each finding:

  missing     there is no such file
  short       it has fewer bytes than recorded
  long        it has more bytes than recorded
  corrupt     bytes are there but wrong, or it is no regular file
  unreadable  it could not be looked at: no permission, storage unavailable, unknown file
              system

and one for each checkpoint with the verdict: sound; damaged (exit code 1); or unknown, if
something could not be looked at and nothing is known to be wrong (exit code 3). A file
whose size the metadata does not record must only be there; of a file with merged
segments, every needed segment must be.

A checkpoint that was moved may hold the absolute paths of its old place: --path-map
OLD=NEW says where a directory is now, and may be given several times; the first that fits
a path is used.`

const verifyExample = `  hdfsckpt verify /data/flink/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/chk-42
  hdfsckpt verify --deep --parallel 32 /data/savepoints/savepoint-6bd2fa-3fc4547e9d48
  hdfsckpt verify --path-map hdfs://old/flink=/backup/flink /backup/flink/6bd2fa7d01be4e0250072f87fde49bec/chk-42
  hdfsckpt verify --json /ckpt/*/chk-* | jq '.result.checkpoints[] | select(.verdict != "sound")'`

// maxParallel keeps a slip of the finger from flooding a NameNode.
const maxParallel = 1024

func newVerify(s *session) *cobra.Command {
	var opts ops.VerifyOptions
	var pathMap []string
	cmd := &cobra.Command{
		Use: "verify POINTER…", Short: "Check that a checkpoint is all there", Long: verifyLong, Example: verifyExample,
		Args: s.arguments("POINTER", true),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.verify(ctx, opts, pathMap) }),
	}
	cmd.Flags().BoolVar(&opts.Deep, "deep", false, "read every byte, and compare with checksums where they are recorded")
	cmd.Flags().IntVar(&opts.Parallel, "parallel", 8, "check `N` files at the same time")
	addPathMap(cmd, &pathMap)
	cmd.Flags().BoolVar(&opts.Checksums, "checksums", false, "compare recorded checksums with those that the file system keeps, without reading the bytes")
	cmd.Flags().IntVar(&opts.MaxFindings, "max-findings", 10_000, "list at most `N` findings of a checkpoint, and count the others; 0 is all")
	_ = cmd.RegisterFlagCompletionFunc("parallel", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("max-findings", cobra.NoFileCompletions)
	return cmd
}

func (v *verbContext) verify(ctx context.Context, opts ops.VerifyOptions, pathMap []string) outcome {
	if opts.Parallel < 1 || opts.Parallel > maxParallel {
		return failed(report.UsageProblem(fmt.Sprintf("--parallel is %d: it must be from 1 to %d", opts.Parallel, maxParallel), ""))
	}
	if opts.MaxFindings < 0 {
		return failed(report.UsageProblem(fmt.Sprintf("--max-findings is %d: it must not be negative", opts.MaxFindings), ""))
	}
	var err error
	if opts.PathMap, err = v.parsePathMap(pathMap); err != nil {
		return failed(err)
	}
	pointers, err := v.locateAll()
	if err != nil {
		return failed(err)
	}
	for i := range pointers {
		pointers[i] = follow(pointers[i])
	}
	opts.Meter = v.meter("object")
	verification, problems := ops.Verify(ctx, v.open, pointers, opts)
	opts.Meter.Stop()
	o := outcome{
		result: verification, show: func(p *text.Printer) { text.Verification(p, verification) },
		problems: problems, code: verification.ExitCode(),
	}
	if verification.LooksMoved() {
		o.notes = append(o.notes, "files are missing outside of the job's directory; if the tree was moved, say where it was with --path-map OLD=NEW")
	}
	return o
}

// addPathMap adds the flag of all verbs that go by the paths in the metadata.
func addPathMap(cmd *cobra.Command, pathMap *[]string) {
	cmd.Flags().StringArrayVar(pathMap, "path-map", nil, "`OLD=NEW`: look below NEW for what is recorded below OLD")
}

func (v *verbContext) parsePathMap(args []string) (ops.PathMap, error) {
	var m ops.PathMap
	for _, arg := range args {
		from, to, found := strings.Cut(arg, "=")
		if !found || from == "" || to == "" {
			return nil, report.UsageProblem(fmt.Sprintf("--path-map is %q: it must be OLD=NEW", arg), "")
		}
		var sides [2]string
		for i, side := range [...]string{from, to} {
			var err error
			if sides[i], err = v.locate(side); err != nil {
				return nil, err
			}
		}
		mapping, err := ops.NewMapping(sides[0], sides[1])
		if err != nil {
			return nil, report.UsageProblem(fmt.Sprintf("--path-map: %v", err), "")
		}
		m = append(m, mapping)
	}
	return m, nil
}
