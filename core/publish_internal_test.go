package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecidePublicationOverAllCombinations states the decision for each combination by rules that do not follow the code's
// order, and requires that exactly one rule speaks for each.
func TestDecidePublicationOverAllCombinations(t *testing.T) {
	type facts struct {
		temp, final presence
		failure     renameFailure
		mode        RenameMode
	}
	gone := func(p presence) bool { return p == absent || p == removed }
	rules := []struct {
		name    string
		applies func(f facts) bool
		want    publicationDecision
	}{
		{"it is not known whether the temporary is there", func(f facts) bool {
			return f.temp == unknown
		}, outcomeOpen},
		{"it is not known what is under the final name", func(f facts) bool {
			return f.temp != unknown && f.final == unknown
		}, outcomeOpen},
		{"the temporary is there, the final name is not ours, and the rename was answered", func(f facts) bool {
			return f.temp == present && f.final == absent && (f.failure == broke || f.failure == refused)
		}, notPublished},
		{"the temporary is there and the rename may still happen", func(f facts) bool {
			return f.temp == present && f.final == absent && (f.failure == cutOff || f.failure == unanswered)
		}, outcomeOpen},
		{"our file has both names, and the temporary cannot be removed", func(f facts) bool {
			return f.temp == present && f.final == present
		}, outcomeOpen},
		{"the temporary is gone, and something else or nothing is under the final name", func(f facts) bool {
			return gone(f.temp) && f.final == absent
		}, notPublished},
		{"our file is there and only the answer is missing", func(f facts) bool {
			return gone(f.temp) && f.final == present && (f.failure == unanswered || f.failure == refused)
		}, published},
		{"our file is there, perhaps not durably, and nothing was replaced", func(f facts) bool {
			return gone(f.temp) && f.final == present && (f.failure == broke || f.failure == cutOff) && f.mode == RenameNoReplace
		}, toWithdraw},
		{"our file is there, perhaps not durably, and cannot be taken back", func(f facts) bool {
			return gone(f.temp) && f.final == present && (f.failure == broke || f.failure == cutOff) && f.mode == RenameReplace
		}, outcomeOpen},
	}
	spoke := make([]bool, len(rules))
	for temp := unknown; temp <= removed; temp++ {
		for final := unknown; final <= present; final++ {
			for failure := broke; failure <= cutOff; failure++ {
				for mode := RenameNoReplace; mode <= RenameReplace; mode++ {
					f := facts{temp, final, failure, mode}
					applied := -1
					for i, rule := range rules {
						if rule.applies(f) {
							require.Equal(t, -1, applied, "two rules for %+v", f)
							applied, spoke[i] = i, true
						}
					}
					require.NotEqual(t, -1, applied, "no rule for %+v", f)
					got := decidePublication(publicationFacts{temp, final}, failure, mode)
					require.Equal(t, rules[applied].want, got, "%s: %+v", rules[applied].name, f)
				}
			}
		}
	}
	for i, rule := range rules {
		require.True(t, spoke[i], rule.name)
	}
}

func TestFailureOfARename(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want renameFailure
	}{
		{fs.ErrExist, refused},
		{fs.ErrNotExist, refused},
		{context.Canceled, cutOff},
		{context.DeadlineExceeded, cutOff},
		{ErrUnavailable, unanswered},
		{fmt.Errorf("%w: %w", ErrUnavailable, context.DeadlineExceeded), cutOff},
		{fmt.Errorf("%w: %w", context.Canceled, fs.ErrExist), cutOff},
		{fs.ErrPermission, broke},
		{ErrNoSpace, broke},
		{ErrQuota, broke},
		{errors.New("input/output error"), broke},
		{fmt.Errorf("%w: %w", ErrUnavailable, fs.ErrExist), refused},
	} {
		require.Equal(t, tt.want, failureOf(RenameError("/a", "/b", tt.err)), "%v", tt.err)
	}
}

func TestInDoubtAfterEverythingButARefusal(t *testing.T) {
	for _, refusal := range []error{
		nil, fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, errors.ErrUnsupported,
	} {
		require.False(t, inDoubt(PathError("create", "/a", refusal)), "%v", refusal)
	}
	for _, doubt := range []error{
		context.Canceled, context.DeadlineExceeded, ErrUnavailable, ErrNoSpace, ErrQuota, errors.New("input/output error"),
	} {
		require.True(t, inDoubt(PathError("create", "/a", doubt)), "%v", doubt)
	}
}
