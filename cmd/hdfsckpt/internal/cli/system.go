package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Main runs the command in its process and returns the exit code. The first SIGINT or SIGTERM ends what is going on, in an
// orderly way; the second ends the process.
func Main() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-interrupts
		signal.Stop(interrupts)
		cancel(report.ErrInterrupted)
	}()
	// A closed pipe shall be an error of Write, so that a disposal is not cut off because nobody reads any more.
	signal.Ignore(syscall.SIGPIPE)
	return Run(ctx, Program{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: isTerminal(os.Stdout), StderrTerminal: isTerminal(os.Stderr),
		Getenv: os.Getenv, Getwd: os.Getwd, Now: time.Now, Connect: connect, Version: BuildVersion(),
		Cluster: clusterOf,
	})
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
