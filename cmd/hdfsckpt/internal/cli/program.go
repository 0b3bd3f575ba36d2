package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
)

// Name of the command.
const Name = "hdfsckpt"

// Program is the command with its surroundings.
type Program struct {
	// Args are the arguments without the name of the command.
	Args []string
	// Stdin is not read so far.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdoutTerminal and StderrTerminal tell which of them are terminals.
	StdoutTerminal, StderrTerminal bool
	// Getenv looks up the environment.
	Getenv func(string) string
	// Getwd is the directory that relative local paths begin at.
	Getwd func() (string, error)
	// Now is the clock.
	Now func() time.Time
	// Connect returns the opener of all file systems, which is closed at the end.
	Connect func(hdfsfs.Options) (core.Opener, io.Closer, error)
	// Cluster finds out how the HDFS of a URL without a path is reached; its result is nil for another file system.
	Cluster func(ctx context.Context, uri string, opts hdfsfs.Options) *ops.Cluster
	// Version is what --version prints.
	Version Version
}

// session is one run of a program.
type session struct {
	Program
	stdout *bufio.Writer
	flags  globalFlags
	// code of the verb that has run.
	code int
	// current is the verb that runs, "" before it is known.
	current string
}

// Run runs the command and returns its exit code. ctx should be cancelled with the cause report.ErrInterrupted when the user
// interrupts the command.
func Run(ctx context.Context, p Program) int {
	s := &session{Program: p, stdout: bufio.NewWriterSize(p.Stdout, 64<<10)}
	root := newRoot(s)
	root.SetArgs(append([]string{}, p.Args...)) // not nil, which would stand for those of the process
	root.SetIn(p.Stdin)
	root.SetOut(s.stdout)
	root.SetErr(p.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		s.usage(ctx, err)
	}
	return s.flush()
}

// usage reports an error that kept every verb from running: all of those are of the command line.
func (s *session) usage(ctx context.Context, err error) {
	s.flags.json = s.flags.json || asksForJSON(s.Args)
	var problem *report.Problem
	if !errors.As(err, &problem) {
		message, suggestion, _ := strings.Cut(err.Error(), "\n\n")
		problem = report.UsageProblem(message, strings.Join(strings.Fields(suggestion), " "))
	}
	if problem.Hint == "" {
		problem.Hint = "see " + strings.TrimSpace(Name+" "+s.current) + " --help"
	}
	s.finish(ctx, outcome{problems: []error{problem}})
}

// asksForJSON finds --json among arguments that could not be parsed.
func asksForJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// flush writes what is left of the standard output. If that fails, the command has not done what it was asked for.
func (s *session) flush() int {
	err := s.stdout.Flush()
	switch {
	case err == nil:
		return s.code
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		// Whoever reads has seen enough; a message would only disturb.
		return report.ExitCode(nil, s.code, report.ExitPipe)
	}
	s.complain(fmt.Sprintf("cannot write the standard output: %v", err), "")
	return report.ExitCode(nil, s.code, report.ExitEnvironment)
}

// verbFunc is what a verb does, once its arguments are known to be right in number.
type verbFunc func(ctx context.Context, v *verbContext) outcome

// verbContext is what a verb works with.
type verbContext struct {
	*session
	args []string
	open core.Opener
}

// run makes the function of a cobra command out of a verb.
func (s *session) run(verb verbFunc) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if s.flags.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, s.flags.timeout, report.ErrTimeout)
			defer cancel()
		}
		if err := s.flags.check(); err != nil {
			return err
		}
		open, closer, err := s.Connect(s.flags.access.options(s.Getenv))
		if err != nil {
			s.finish(ctx, failed(err))
			return nil
		}
		o := verb(ctx, &verbContext{session: s, args: args, open: open})
		s.close(closer)
		s.finish(ctx, o)
		return nil
	}
}

// closeTime bounds the wait for calls that hang although the command has been interrupted.
const closeTime = 5 * time.Second

// close ends the connections. What they leave behind ends with the process.
func (s *session) close(closer io.Closer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = closer.Close()
	}()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
