// Command wordcount counts the words of the Go toolchain's source tree with several worker processes, and survives the
// death of any of them. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/demo"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/messages"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/worker"
)

const usage = `wordcount counts words, in several processes, and survives the death of any of them.

  wordcount demo   [flags]   run the job, kill parts of it again and again, compare the result with an independent count
  wordcount run    [flags]   run the job until the input is counted; run it again after a crash and it goes on
  wordcount result POINTER   print the counts of a checkpoint, one word a line
  wordcount worker           what the job starts for every worker

"wordcount VERB --help" shows the flags of a verb.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage; see wordcount --help")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"demo": runDemo, "run": runJob, "result": runResult, "worker": runWorker,
	}
	if len(args) > 0 && verbs[args[0]] != nil {
		return verbs[args[0]](ctx, args[1:], stdout, stderr)
	}
	fmt.Fprint(stderr, usage)
	if len(args) > 0 && strings.HasSuffix(args[0], "help") {
		return nil
	}
	return errUsage
}

// inputFlags are the flags of what is counted.
func inputFlags(flags *flag.FlagSet, opts *job.Options) {
	flags.StringVar(&opts.Input, "input", "", "`directory` to count; by default the source tree of the Go toolchain")
	flags.Int64Var(&opts.Passes, "passes", 10, "how often the input is counted")
	flags.Int64Var(&opts.ChunkBytes, "chunk", 1<<20, "`bytes` of a chunk, the unit of progress")
	flags.IntVar(&opts.Workers, "workers", 3, "number of worker processes")
	flags.DurationVar(&opts.Interval, "interval", 300*time.Millisecond, "time between checkpoints")
	flags.IntVar(&opts.Retain, "retain", 2, "checkpoints to keep")
}

// complete fills in what the flags left open.
func complete(ctx context.Context, opts *job.Options) error {
	if opts.Input == "" {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return fmt.Errorf("find the Go toolchain (or give --input): %w", err)
		}
		opts.Input = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	opts.Worker = []string{self, "worker"}
	opts.Input, err = filepath.EvalSymlinks(opts.Input)
	return err
}

func runJob(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var opts job.Options
	flags := newFlags("run", stderr)
	inputFlags(flags, &opts)
	flags.StringVar(&opts.Base, "dir", "", "`directory` of the checkpoints, a URL (hdfs://…) or a path; required")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if opts.Base == "" || flags.NArg() > 0 {
		return fmt.Errorf("%w: --dir is required, and nothing but flags", errUsage)
	}
	if err := complete(ctx, &opts); err != nil {
		return err
	}
	opts.Events = stdout
	_, err := job.Run(ctx, opts)
	return err
}

func runWorker(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := newFlags("worker", stderr)
	address := flags.String("connect", "", "`address` of the job")
	index := flags.Int("index", 0, "number of the worker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return worker.Run(ctx, *address, messages.Hello{Token: os.Getenv(job.TokenVariable), Index: *index})
}

func runResult(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("result", stderr)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%w: one pointer is needed", errUsage)
	}
	words, _, err := job.Result(ctx, flags.Arg(0))
	if err != nil {
		return err
	}
	return demo.Print(stdout, words)
}

func runDemo(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var opts demo.Options
	flags := newFlags("demo", stderr)
	inputFlags(flags, &opts.Job)
	flags.IntVar(&opts.Kills, "kills", 6, "how many times a process is killed, at least 5")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of the kills; 0 takes a new one, which is printed")
	flags.StringVar(&opts.Dir, "dir", "", "`directory` to work in, a URL (hdfs://…) or a path; by default a temporary one")
	disturb := func(endured bool) func(string) error {
		return func(text string) error {
			command := strings.Fields(text)
			if len(command) == 0 {
				return errors.New("no command")
			}
			opts.Disturbances = append(opts.Disturbances, demo.Disturbance{Command: command, Endured: endured})
			return nil
		}
	}
	flags.Func("disturb", "`command` to run at a random moment beside the kills, such as one that kills a server; may be repeated", disturb(false))
	flags.Func("endure", "a `command` like those of --disturb, for which no checkpoint may fail", disturb(true))
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || opts.Kills < 5 {
		return fmt.Errorf("%w: at least 5 kills, and nothing but flags", errUsage)
	}
	if err := complete(ctx, &opts.Job); err != nil {
		return err
	}
	opts.Out = stdout
	return demo.Run(ctx, opts)
}

func newFlags(verb string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("wordcount "+verb, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}
