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
	rules := []struct {
		name    string
		applies func(f facts) bool
		want    publicationDecision
	}{
		{"without the temporary, which was just removed, nothing can have been renamed", func(f facts) bool {
			return f.temp == removed
		}, notPublished},
		{"the temporary is there and the rename was answered", func(f facts) bool {
			return f.temp == present && f.failure != cutOff
		}, notPublished},
		{"the temporary is there and the rename may still happen", func(f facts) bool {
			return f.temp == present && f.failure == cutOff
		}, outcomeOpen},
		{"it is not known whether the temporary is there", func(f facts) bool {
			return f.temp == unknown
		}, outcomeOpen},
		{"it is not known what is under the final name", func(f facts) bool {
			return f.temp == absent && f.final == unknown
		}, outcomeOpen},
		{"the temporary is gone, and something else or nothing is under the final name", func(f facts) bool {
			return f.temp == absent && f.final == absent
		}, notPublished},
		{"our bytes are there and only the answer is missing", func(f facts) bool {
			return f.temp == absent && f.final == present && (f.failure == cutOff || f.failure == refused)
		}, published},
		{"our bytes are there, perhaps not durably, and nothing was replaced", func(f facts) bool {
			return f.temp == absent && f.final == present && f.failure == broke && f.mode == RenameNoReplace
		}, toWithdraw},
		{"our bytes are there, perhaps not durably, and cannot be taken back", func(f facts) bool {
			return f.temp == absent && f.final == present && f.failure == broke && f.mode == RenameReplace
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
		{ErrUnavailable, cutOff},
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
