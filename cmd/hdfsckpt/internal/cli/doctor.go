package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
	"github.com/hdfsckpt/hdfsckpt/core"
)

const doctorLong = `Look whether checkpoints can be kept at URL, step by step, and say in plain words what is
in the way and what can be done about it.

On HDFS it shows the configuration as it is understood (files, nameservice, NameNodes,
security), the state of each NameNode, the login, and safe mode. There and on a local disk
it then writes a file with the strongest durability that the file system has, reads it,
tries what must be refused (names that are taken), renames it, and removes it. If the
directory is not there yet, the nearest one above it is used.

The probe is in a directory of its own with a fresh name, .hdfsckpt-doctor-…, and is
removed at the end, also after a failure or an interruption. Nothing else is changed.`

const doctorExample = `  hdfsckpt doctor hdfs://ns1/flink/checkpoints
  HADOOP_CONF_DIR=/etc/hadoop/conf hdfsckpt doctor hdfs://ns1/flink/checkpoints
  hdfsckpt doctor /data/checkpoints
  hdfsckpt doctor --json hdfs://ns1/ckpt | jq -r '.result.steps[] | select(.status == "failed") | .name'`

// doctorRetry is how long the probe's calls wait for a better state of HDFS: other verbs wait it out, doctor is to tell of it.
const doctorRetry = 3 * time.Second

func newDoctor(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "doctor URL", Short: "Look whether checkpoints can be kept at a place", Long: doctorLong, Example: doctorExample,
		Args: s.arguments("URL", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome { return v.doctor(ctx) }),
	}
}

func (v *verbContext) doctor(ctx context.Context) outcome {
	url, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	url = follow(url)
	uri, _, err := core.SplitQualified(url)
	if err != nil {
		return failed(err)
	}
	opts := v.flags.access.options(v.Getenv)
	opts.RetryFor = doctorRetry
	var steps []report.Step
	if cluster := v.Cluster(ctx, uri, opts); cluster != nil {
		steps = cluster.Steps(ctx)
	}
	probed := ""
	if report.NewExamination(url, "", steps).Healthy {
		open, closer, err := v.Connect(opts)
		if err != nil {
			return failed(err)
		}
		defer v.close(closer)
		fsys, name, err := open(ctx, url)
		if err != nil {
			return failed(err)
		}
		var more []report.Step
		more, probed = ops.Examine(ctx, fsys, name, v.Now)
		steps = append(steps, more...)
		if probed != "" {
			probed = core.Qualify(uri, probed)
		}
	}
	examination := report.NewExamination(url, probed, steps)
	o := outcome{result: examination, show: func(p *text.Printer) { text.Examination(p, examination) }}
	for _, p := range examination.Problems() {
		o.problems = append(o.problems, &p)
	}
	return o
}
