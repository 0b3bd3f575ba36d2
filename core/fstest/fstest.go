// Package fstest states the contract of [core.FileSystem] as tests, for any implementation.
//
// [Run] runs one subtest for each rule, named for the rule, each in a fresh directory. What a file system does not declare
// is not left out: the suite then requires the refusal. [Benchmark] measures what the contract offers, under the same names
// for every implementation, and [CapabilitiesTable] renders what they declare.
//
//	func TestConformance(t *testing.T) {
//		fstest.Run(t, fstest.Config{New: func(t testing.TB) fstest.Instance {
//			fsys := …
//			return fstest.Instance{FS: fsys, Root: …, Second: func(t testing.TB) core.FileSystem { … }}
//		}})
//	}
//
// The suite counts goroutines and descriptors of the process, so nothing else may come and go while it runs: no parallel
// tests beside it.
package fstest

import (
	"context"
	"testing"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// racers is how many goroutines contend wherever the contract says that exactly one of them wins.
const racers = 16

// Config says how to reach the file system under test.
type Config struct {
	// New returns a file system for one subtest. What it starts or makes it must release with t.Cleanup; the suite looks for
	// leaked goroutines and descriptors after that.
	New func(t testing.TB) Instance

	// Rounds is how often each race is run; 100 by default. One round seldom finds a check that is not atomic. It also bounds
	// the number of files that a rule makes one after the other, so a remote file system may want fewer.
	Rounds int

	// leakWait is how long goroutines and descriptors may take to go after the end of a subtest.
	leakWait time.Duration
}

// Instance is a file system with a directory to work in.
type Instance struct {
	FS core.FileSystem

	// Root is a fresh, empty, existing directory of this instance.
	Root string

	// Second returns another client of the same storage, which shares no cache with FS. It releases it with t.Cleanup.
	Second func(t testing.TB) core.FileSystem

	// Base is the base of FS, if it is above Root and not "/". The suite then tries names outside of it, and RemoveAll of the
	// base itself, which must be refused; set it only where a file system that does not refuse can do no harm.
	Base string

	// Sizes are lengths of files to test beside those that the suite knows, such as those around a block border.
	Sizes []int

	// Symlink makes a symbolic link at name. Nil where the storage has none.
	Symlink func(t testing.TB, target, name string)

	// Crash returns the storage as a power cut would leave it now. Nil where that cannot be had.
	Crash func(t testing.TB) core.FileSystem

	// OpenFiles lists the streams of FS that have not ended. Nil where that is not known.
	OpenFiles func() []string
}

// Run runs the suite.
func Run(t *testing.T, cfg Config) {
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			for _, r := range g.rules {
				t.Run(r.name, func(t *testing.T) { r.run(t, cfg) })
			}
		})
	}
}

// group is the rules on one subject.
type group struct {
	name  string
	rules []rule
}

func groups() []group {
	return []group{
		{"Declaration", declarationRules()},
		{"Refusal", refusalRules()},
		{"Name", nameRules()},
		{"Create", createRules()},
		{"Content", contentRules()},
		{"Writer", writerRules()},
		{"Abort", abortRules()},
		{"Reader", readerRules()},
		{"Stat", statRules()},
		{"List", listRules()},
		{"MkdirAll", mkdirRules()},
		{"Rename", renameRules()},
		{"RenameRace", renameRaceRules()},
		{"Remove", removeRules()},
		{"Context", contextRules()},
		{"Durability", durabilityRules()},
		{"Leak", leakRules()},
	}
}

// rule is one promise of the contract. Its name is a sentence.
type rule struct {
	name  string
	check func(t testing.TB, s *subject)
}

func (r rule) run(t testing.TB, cfg Config) {
	t.Helper()
	if cfg.Rounds <= 0 {
		cfg.Rounds = 100
	}
	if cfg.leakWait <= 0 {
		cfg.leakWait = 5 * time.Second
	}
	watchLeaks(t, cfg.leakWait)
	s := &subject{Instance: cfg.New(t), ctx: t.Context(), rounds: cfg.Rounds, leakWait: cfg.leakWait}
	s.caps = s.FS.Capabilities()
	if s.OpenFiles != nil {
		t.Cleanup(func() {
			if open := s.OpenFiles(); len(open) > 0 && !t.Failed() {
				t.Errorf("streams are open after they ended: %q", open)
			}
		})
	}
	r.check(t, s)
}

// subject is what a rule checks.
type subject struct {
	Instance

	caps     core.Capabilities
	ctx      context.Context // lives as long as one subtest
	rounds   int
	leakWait time.Duration
}
