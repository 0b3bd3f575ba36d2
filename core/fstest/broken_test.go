package fstest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// fault is a file system with one thing wrong with it, and the rules that have to notice.
type fault struct {
	what   string
	breaks []string // "Group/rule"; a final star stands for the rest of the name
	// inject breaks a client.
	inject func(t testing.TB, h *hooks)
	// instance breaks what is not in one client alone.
	instance func(t testing.TB, inner *memfs.FS, in *Instance)
}

const (
	faultyBase = "/some/base"
	faultyRoot = "/some/base/root"
)

func (f fault) config() Config {
	return Config{
		Rounds: 30,
		New: func(t testing.TB) Instance {
			inner := memfs.New(memfs.Options{Base: faultyBase})
			require.NoError(t, inner.MkdirAll(t.Context(), faultyRoot))
			client := func(t testing.TB) core.FileSystem {
				h := &hooks{FileSystem: inner}
				if f.inject != nil {
					f.inject(t, h)
				}
				return h
			}
			in := Instance{
				FS:        client(t),
				Root:      faultyRoot,
				Second:    client,
				Base:      faultyBase,
				Crash:     func(testing.TB) core.FileSystem { return inner.CrashClone(memfs.CrashConfig{}) },
				OpenFiles: inner.OpenFiles,
			}
			if f.instance != nil {
				f.instance(t, inner, &in)
			}
			return in
		},
	}
}

func faults() []fault {
	return slices.Concat(
		generalFaults(), declarationFaults(), createFaults(), contentFaults(), writerFaults(), abortFaults(), readerFaults(),
		listFaults(), treeFaults(), renameFaults(), contextFaults(), durabilityFaults(), linkFaults(), leakFaults(),
	)
}

func TestEveryRuleHoldsWithoutAFault(t *testing.T) {
	rules, names := allRules()
	for _, name := range names {
		rec := record(t, rules[name], fault{}.config())
		require.False(t, rec.Failed(), "%s: %q", name, rec.log)
	}
}

func TestTheSuiteFindsEachFault(t *testing.T) {
	rules, names := allRules()
	for _, f := range faults() {
		t.Run(f.what, func(t *testing.T) {
			for _, pattern := range f.breaks {
				found := matching(names, pattern)
				require.NotEmpty(t, found, "no such rule: %s", pattern)
				for _, name := range found {
					require.True(t, noticed(t, rules[name], f), "the rule %q did not notice", name)
				}
			}
		})
	}
}

// noticed runs a rule up to a few times: a race that is lost in every run is not to be had, least of all on one processor.
func noticed(t testing.TB, r rule, f fault) bool {
	const attempts = 20
	cfg := f.config()
	cfg.leakWait = 20 * time.Millisecond // it is there to be found, not to be waited for
	for range attempts {
		rec := record(t, r, cfg)
		if rec.Failed() {
			return true
		}
		if rec.skipped {
			break
		}
	}
	return false
}

func TestEveryRuleFindsAFault(t *testing.T) {
	_, names := allRules()
	found := map[string]bool{}
	for _, f := range faults() {
		for _, pattern := range f.breaks {
			for _, name := range matching(names, pattern) {
				found[name] = true
			}
		}
	}
	for _, name := range names {
		require.True(t, found[name], "no fault shows that this rule can fail: %s", name)
	}
}

func TestRuleNamesAreDistinct(t *testing.T) {
	rules, names := allRules()
	require.Len(t, names, len(rules))
}

// background is for what a broken file system does behind the back of its caller.
func background() context.Context { return context.Background() }
