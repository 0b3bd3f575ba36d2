package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func at(err error) error { return &fs.PathError{Op: "open", Path: "/a", Err: err} }

func TestNewProblemClassesByTheSentinels(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind Kind
		exit int
	}{
		{at(fs.ErrNotExist), NotFound, 3},
		{fmt.Errorf("cannot find it: %w", at(fs.ErrNotExist)), NotFound, 3},
		{at(fs.ErrPermission), Permission, 3},
		{at(fs.ErrInvalid), Invalid, 3},
		{at(fmt.Errorf("%w: chunk", core.ErrCorrupt)), Damaged, 1},
		{at(core.ErrUnsupportedVersion), Unsupported, 3},
		{at(errors.ErrUnsupported), Unsupported, 3},
		{at(core.ErrUnavailable), Unavailable, 3},
		{at(core.ErrNoSpace), NoSpace, 3},
		{at(core.ErrQuota), NoSpace, 3},
		{at(context.DeadlineExceeded), Timeout, 3},
		{at(errors.New("input/output error")), Failed, 3},
		{UsageProblem("wrong", ""), Usage, 2},
		{fmt.Errorf("more: %w", &Problem{Kind: Refused, Message: "no"}), Refused, 1},
	} {
		p := NewProblem(t.Context(), tt.err)
		require.Equal(t, tt.kind, p.Kind, tt.err)
		require.Equal(t, tt.exit, p.Kind.ExitCode(), tt.err)
		var pathError *fs.PathError
		if errors.As(tt.err, &pathError) {
			require.Equal(t, "open", p.Operation)
			require.Equal(t, "/a", p.Path)
			require.Equal(t, tt.err.Error(), p.Message)
		}
	}
}

func TestNewProblemFindsTheCauseOfTheContextsEnd(t *testing.T) {
	for _, tt := range []struct {
		cause error
		kind  Kind
		exit  int
	}{{ErrInterrupted, Interrupted, 130}, {ErrTimeout, Timeout, 3}, {nil, Interrupted, 130}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		p := NewProblem(ctx, at(ctx.Err()))
		require.Equal(t, tt.kind, p.Kind)
		require.Equal(t, tt.exit, p.Kind.ExitCode())
		if tt.cause != nil {
			require.Equal(t, tt.cause.Error(), p.Message)
		}
		// What is no consequence of the end stays what it is.
		require.Equal(t, Permission, NewProblem(ctx, at(fs.ErrPermission)).Kind)
	}
}

func TestExitCodeTakesWhatSaysMost(t *testing.T) {
	problems := func(kinds ...Kind) []Problem {
		var list []Problem
		for _, kind := range kinds {
			list = append(list, Problem{Kind: kind})
		}
		return list
	}
	require.Equal(t, 0, ExitCode(nil))
	require.Equal(t, 3, ExitCode(problems(NotFound)))
	require.Equal(t, 1, ExitCode(problems(NotFound, Damaged, Permission)))
	require.Equal(t, 1, ExitCode(problems(NotFound), ExitFindings))
	require.Equal(t, 130, ExitCode(problems(Interrupted, Damaged)))
	require.Equal(t, 141, ExitCode(nil, ExitFindings, ExitPipe))
	require.Equal(t, 2, ExitCode(problems(Usage), ExitEnvironment))
}

func TestPathsOfFindsThePathsOfAllJoinedErrors(t *testing.T) {
	path := func(name string) error {
		return &fs.PathError{Op: "remove", Path: name, Err: fmt.Errorf("%w: %w", fs.ErrPermission, &fs.PathError{Op: "x", Path: "inner", Err: fs.ErrInvalid})}
	}
	err := fmt.Errorf("incomplete: %w", errors.Join(path("/a"), errors.Join(path("/b"), errors.New("no path")), fmt.Errorf("also: %w", path("/a"))))
	require.Equal(t, []string{"/a", "/b"}, PathsOf(err))
	require.Empty(t, PathsOf(nil))
}

func TestADocumentWithoutErrorsHasAnEmptyList(t *testing.T) {
	require.NotNil(t, NewDocument("ls", 0, nil, nil).Errors)
	require.Equal(t, "hdfsckpt/ls", NewDocument("ls", 0, nil, nil).Format)
	require.Equal(t, "hdfsckpt", NewDocument("", 2, nil, nil).Format)
}
