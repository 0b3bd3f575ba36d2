package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// globalFlags are those that every verb has.
type globalFlags struct {
	json     bool
	fs       string
	noColor  bool
	progress bool
	timeout  time.Duration
	access   access
}

const defaultFS = "file://"

const rootLong = `hdfsckpt looks at the checkpoints and savepoints of Apache Flink, and of jobs that use
this project's library: what is there, what is in it, whether it is all there. It can
dispose of them. It needs no JVM.

A ROOT is a directory that holds checkpoints; a POINTER is the directory of one checkpoint
or savepoint, or its _metadata file. Both are URLs (file:///ckpt) or plain paths. A plain
path is local, unless --fs names another file system. hdfs://ns1/ckpt is on the cluster of
a nameservice of the Hadoop configuration, hdfs://host:8020/ckpt on that of a NameNode.

Nothing but "dispose --yes" and, of a Spark query's state, "state compact", "repair" and
"rollback" with --yes changes anything; "convert" writes a new file, and "doctor" a
probe that it removes.

Exit codes:
  0    all that was asked was done, and nothing is wrong
  1    something is wrong with the data, or not all that was asked was done
  2    the command line is wrong
  3    the surroundings are: no such path, no permission, storage unavailable, out of time
  130  interrupted
  141  the reader of the standard output went away`

const rootExample = `  hdfsckpt ls /data/flink/checkpoints
  flink run -s "$(hdfsckpt latest /data/flink/checkpoints/6bd2fa7d01be4e0250072f87fde49bec)" job.jar
  hdfsckpt inspect /ckpt/6bd2fa7d01be4e0250072f87fde49bec/chk-42
  hdfsckpt verify --deep /ckpt/6bd2fa7d01be4e0250072f87fde49bec/chk-42
  hdfsckpt dispose /savepoints/savepoint-6bd2fa-3fc4547e9d48`

func newRoot(s *session) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use: Name, Short: "Look at, verify and dispose of checkpoints",
		Long: rootLong, Example: rootExample,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !version {
				return cmd.Help()
			}
			s.current = "version"
			s.finish(cmd.Context(), outcome{result: s.Version, show: s.Version.show})
			return nil
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version and exit")
	flags := root.PersistentFlags()
	flags.BoolVar(&s.flags.json, "json", false, "write one JSON document, also when something fails (see docs/command.md)")
	flags.StringVar(&s.flags.fs, "fs", defaultFS, "`URL` of the file system that plain paths are on; the default is the local one")
	flags.BoolVar(&s.flags.noColor, "no-color", false, "no colours; there are none either if NO_COLOR is set or the output is no terminal")
	flags.BoolVar(&s.flags.progress, "progress", false, "show the progress on the standard error although that is no terminal")
	flags.DurationVar(&s.flags.timeout, "timeout", 0, "give up after this `duration`, such as 30s or 5m; 0 is never")
	s.flags.access.register(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		s.setCurrent(cmd)
		return report.UsageProblem(err.Error(), "")
	})
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { s.setCurrent(cmd) }
	_ = root.RegisterFlagCompletionFunc("fs", cobra.FixedCompletions([]string{"file://"}, cobra.ShellCompDirectiveNoSpace))
	_ = root.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	root.AddCommand(newLs(s), newLatest(s), newInspect(s), newVerify(s), newDiff(s), newCat(s), newConvert(s), newDispose(s), newDoctor(s), newState(s))
	return root
}

// setCurrent remembers which verb was asked for.
func (s *session) setCurrent(cmd *cobra.Command) {
	if cmd.HasParent() {
		s.current = strings.TrimPrefix(cmd.CommandPath(), Name+" ")
	}
}

// check finds wrong values of global flags.
func (f globalFlags) check() error {
	if f.timeout < 0 {
		return report.UsageProblem(fmt.Sprintf("--timeout is %v: it must not be negative", f.timeout), "")
	}
	if err := f.access.check(); err != nil {
		return err
	}
	uri, name, err := core.SplitQualified(withSlash(f.fs))
	if err != nil || uri == "" || name != "/" {
		return report.UsageProblem(fmt.Sprintf("--fs is %q: it must be the URL of a file system, such as hdfs://ns1, without a path", f.fs), "")
	}
	return nil
}

// withSlash lets the URL of a file system end in its authority.
func withSlash(url string) string { return strings.TrimRight(url, "/") + "/" }

// arguments checks that there are arguments, exactly one or any number, and that none is empty.
func (s *session) arguments(name string, many bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		s.setCurrent(cmd)
		switch {
		case len(args) == 0:
			return report.UsageProblem(fmt.Sprintf("%s needs a %s", cmd.Name(), name), "")
		case len(args) > 1 && !many:
			return report.UsageProblem(fmt.Sprintf("%s takes one %s, not %d", cmd.Name(), name, len(args)), "")
		}
		for _, arg := range args {
			if arg == "" {
				return report.UsageProblem(fmt.Sprintf("a %s is empty", name), "is a variable of a script not set?")
			}
		}
		return nil
	}
}
