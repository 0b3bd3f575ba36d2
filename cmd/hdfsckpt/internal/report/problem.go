package report

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Kind classes a problem by what can be done about it. The values are part of the JSON interface.
type Kind string

// The kinds of problems.
const (
	Usage       Kind = "usage"       // the command line asks for something that there is not
	NotFound    Kind = "not_found"   // no such path
	None        Kind = "none"        // the place is there and holds nothing of what was asked for
	Vanished    Kind = "vanished"    // it was there when the command began, and was disposed of meanwhile
	Damaged     Kind = "damaged"     // bytes are there but wrong
	Unsupported Kind = "unsupported" // a version or a capability that this release does not know
	Permission  Kind = "permission"
	Unavailable Kind = "unavailable" // the storage cannot serve the call now
	NoSpace     Kind = "no_space"    // no space or no names left
	Refused     Kind = "refused"     // it could be done but should not; the message says how to insist
	Incomplete  Kind = "incomplete"  // only a part of it was done
	Invalid     Kind = "invalid"     // the path is there but is not what it should be
	Timeout     Kind = "timeout"
	Interrupted Kind = "interrupted"
	Failed      Kind = "failed" // any other failure of the storage
)

// The causes of a context's end that are told apart.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrTimeout     = errors.New("not done within the time that --timeout allows")
)

// Problem is something that kept the command from doing all that it was asked to do.
type Problem struct {
	Kind Kind `json:"kind"`
	// Operation and Path are what failed, "" where it concerns no path.
	Operation string `json:"operation,omitempty"`
	Path      string `json:"path,omitempty"`
	Message   string `json:"message"`
	// Hint says what the user can do.
	Hint string `json:"hint,omitempty"`
	// Left are the paths that a disposal left although it should not have.
	Left []string `json:"left,omitempty"`
}

// NewProblem describes err. ctx is that of the command: if it has ended, the reason is found in its cause.
func NewProblem(ctx context.Context, err error) Problem {
	var known *Problem
	if errors.As(err, &known) {
		return *known
	}
	p := Problem{Kind: kindOf(err), Message: err.Error()}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, ErrInterrupted):
			p.Kind, p.Message = Interrupted, ErrInterrupted.Error()
		case errors.Is(cause, ErrTimeout):
			p.Kind, p.Message = Timeout, ErrTimeout.Error()
		}
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		p.Operation, p.Path = at.Op, at.Path
	}
	p.Hint = hints[p.Kind]
	if p.Kind == NotFound && path.Base(p.Path) == core.MetadataName {
		p.Hint = "it is in progress, was given up or was disposed of; ls shows what is there"
	}
	return p
}

// Error implements error, so that a verb can return a problem that it has put into words itself.
func (p *Problem) Error() string { return p.Message }

// kindOf decides by the sentinels of the storage contract, the most telling first.
func kindOf(err error) Kind {
	for _, known := range []struct {
		is   error
		kind Kind
	}{
		{context.Canceled, Interrupted},
		{context.DeadlineExceeded, Timeout},
		{core.ErrCorrupt, Damaged},
		{core.ErrUnsupportedVersion, Unsupported},
		{core.ErrNoSpace, NoSpace},
		{core.ErrQuota, NoSpace},
		{core.ErrUnavailable, Unavailable},
		{fs.ErrPermission, Permission},
		{fs.ErrNotExist, NotFound},
		{fs.ErrInvalid, Invalid},
		{errors.ErrUnsupported, Unsupported},
	} {
		if errors.Is(err, known.is) {
			return known.kind
		}
	}
	return Failed
}

// hints say what to do about a kind of problem where that is the same for every verb.
var hints = map[Kind]string{
	NotFound:    "check the path; one without a scheme is local unless --fs says otherwise",
	Damaged:     "restore from another copy or another checkpoint",
	Unsupported: "use a newer release of hdfsckpt, if there is one",
	Permission:  "run it as a user who may do that",
	Unavailable: "try again later; hdfsckpt doctor URL says what is in the way",
	NoSpace:     "free space or names, or raise the quota",
	Timeout:     "give it more time with --timeout; for a cluster, hdfsckpt doctor URL says what is in the way",
}

// The exit codes of the command.
const (
	ExitOK          = 0
	ExitFindings    = 1
	ExitUsage       = 2
	ExitEnvironment = 3
	ExitInterrupted = 130 // as a shell reports a death by SIGINT
	ExitPipe        = 141 // as a shell reports a death by SIGPIPE
)

// ExitCode is the exit code that a problem of this kind leads to.
func (k Kind) ExitCode() int {
	switch k {
	case Usage:
		return ExitUsage
	case Interrupted:
		return ExitInterrupted
	case None, Damaged, Refused, Incomplete:
		return ExitFindings
	}
	return ExitEnvironment
}

// exitOrder has the codes in ascending order of what they say: something that is known to be wrong says more than something
// that could not be looked at.
var exitOrder = []int{ExitOK, ExitEnvironment, ExitFindings, ExitUsage, ExitPipe, ExitInterrupted}

// ExitCode is the exit code for all problems and codes together.
func ExitCode(problems []Problem, codes ...int) int {
	worst := ExitOK
	for _, p := range problems {
		codes = append(codes, p.Kind.ExitCode())
	}
	for _, code := range codes {
		if slices.Index(exitOrder, code) > slices.Index(exitOrder, worst) {
			worst = code
		}
	}
	return worst
}

// UsageProblem is a problem of the command line.
func UsageProblem(message, hint string) *Problem {
	return &Problem{Kind: Usage, Message: message, Hint: hint}
}

// PathsOf lists the paths that the errors joined in err name, each once.
func PathsOf(err error) []string {
	var paths []string
	eachError(err, func(at *fs.PathError) {
		if !slices.Contains(paths, at.Path) {
			paths = append(paths, at.Path)
		}
	})
	return paths
}

// eachError visits the outermost path errors of a tree of errors.
func eachError(err error, visit func(*fs.PathError)) {
	if at, ok := err.(*fs.PathError); ok { //nolint:errorlint // each level is looked at by itself
		visit(at)
		return
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			eachError(inner, visit)
		}
	case interface{ Unwrap() error }:
		eachError(e.Unwrap(), visit)
	}
}
