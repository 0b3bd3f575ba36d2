package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

// outcome is what a verb found.
type outcome struct {
	// result is what --json shows, show what people see; both may be missing.
	result any
	show   func(*text.Printer)
	// problems are what kept the verb from doing all that was asked.
	problems []error
	// code is an exit code beside those of the problems.
	code int
	// notes are for people only, on the standard error.
	notes []string
}

// failed is the outcome of a verb that found nothing but problems.
func failed(problems ...error) outcome { return outcome{problems: problems} }

// finish puts the outcome on the streams and remembers the exit code.
func (s *session) finish(ctx context.Context, o outcome) {
	var problems []report.Problem
	for _, err := range o.problems {
		problems = append(problems, report.NewProblem(ctx, err))
	}
	s.code = report.ExitCode(problems, o.code)
	if s.flags.json {
		s.writeJSON(report.NewDocument(s.current, s.code, problems, o.result))
		return
	}
	if o.show != nil {
		o.show(text.NewPrinter(s.stdout, s.colored()))
	}
	// What is known comes before what went wrong, also where both streams are one.
	_ = s.stdout.Flush()
	for _, note := range o.notes {
		s.complain(note, "")
	}
	for _, p := range problems {
		s.complain(p.Message, p.Hint)
	}
}

func (s *session) writeJSON(d report.Document) {
	encoder := json.NewEncoder(s.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// The forms are ours and always encodable; the writer's errors stick and are found by flush.
	_ = encoder.Encode(d)
}

// complain writes a message, and what to do, to the standard error. There is nobody to tell if that fails.
func (s *session) complain(message, hint string) {
	for _, line := range strings.Split(strings.TrimSpace(message), "\n") {
		_, _ = fmt.Fprintf(s.Stderr, "%s: %s\n", Name, text.Clean(line))
	}
	if hint != "" {
		_, _ = fmt.Fprintf(s.Stderr, "  %s\n", text.Clean(hint))
	}
}

// colored reports whether the standard output gets colours.
func (s *session) colored() bool {
	return s.StdoutTerminal && !s.flags.noColor && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
}

// meter starts to show progress if somebody can see it, or wants it. It may be nil; Stop must be called.
func (s *session) meter(what string) *progress.Meter {
	if s.flags.json || !s.flags.progress && !s.StderrTerminal {
		return nil
	}
	return progress.Start(progress.Options{W: s.Stderr, Terminal: s.StderrTerminal, What: what, Now: s.Now})
}
