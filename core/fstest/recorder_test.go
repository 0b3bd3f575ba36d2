package fstest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a testing.TB that keeps a failure to itself, so that a test can require that a rule fails.
type recorder struct {
	testing.TB // what the rules do not use

	ctx    context.Context // as testing.TB has it
	cancel context.CancelFunc

	mu       sync.Mutex
	failed   bool
	skipped  bool
	log      []string
	cleanups []func()
}

// record runs one rule and returns how it ended.
func record(t testing.TB, r rule, cfg Config) *recorder {
	t.Helper()
	rec := &recorder{TB: t}
	rec.ctx, rec.cancel = context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		defer rec.finish()
		r.run(rec, cfg)
	}()
	<-done
	return rec
}

func (r *recorder) finish() {
	if p := recover(); p != nil {
		r.TB.Errorf("a rule must fail and not panic: %v", p)
	}
	r.cancel()
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		cleanup := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		cleanup()
	}
}

func (r *recorder) note(text string, failed, skipped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, text)
	r.failed = r.failed || failed
	r.skipped = r.skipped || skipped
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Log(args ...any)          { r.note(fmt.Sprint(args...), false, false) }
func (r *recorder) Logf(format string, args ...any) {
	r.note(fmt.Sprintf(format, args...), false, false)
}
func (r *recorder) Error(args ...any) { r.note(fmt.Sprint(args...), true, false) }
func (r *recorder) Errorf(format string, args ...any) {
	r.note(fmt.Sprintf(format, args...), true, false)
}
func (r *recorder) Fail() { r.note("", true, false) }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.note(fmt.Sprint(args...), false, true)
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// allRules returns the rules by "Group/name", and these names in the order of the suite.
func allRules() (map[string]rule, []string) {
	rules := map[string]rule{}
	var names []string
	for _, g := range groups() {
		for _, r := range g.rules {
			name := g.name + "/" + r.name
			rules[name] = r
			names = append(names, name)
		}
	}
	return rules, names
}

// matching returns the names that a pattern stands for: itself, or all that begin with what comes before a final star.
func matching(names []string, pattern string) []string {
	prefix, all := strings.CutSuffix(pattern, "*")
	if !all {
		prefix = pattern
	}
	return slices.Collect(func(yield func(string) bool) {
		for _, name := range names {
			if name == pattern || all && strings.HasPrefix(name, prefix) {
				if !yield(name) {
					return
				}
			}
		}
	})
}
