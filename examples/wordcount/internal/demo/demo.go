// Package demo runs the word count, kills parts of it at random moments, and compares the result with an independent count.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/oracle"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

const (
	// maxLives bounds how often the job is started.
	maxLives = 1000
	// removeTime bounds how long the removal of the demo's directory may take.
	removeTime = 30 * time.Second
)

// Options of the demo.
type Options struct {
	Job   job.Options
	Kills int
	Seed  uint64
	// Dir is where the checkpoints go, a URL or a path; "" is the temporary directory. Nothing is left behind there.
	Dir string
	// Disturbances are run once each, in this order, between the kills.
	Disturbances []Disturbance
	Out          io.Writer
}

// Run runs the demo. The error says what differs, if anything does.
func Run(ctx context.Context, opts Options) (err error) {
	begin := time.Now()
	if opts.Seed == 0 {
		opts.Seed = mathrand.Uint64()
	}
	opts.Out = &lockedWriter{w: opts.Out}
	base, remove, err := workDir(ctx, opts.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	opts.Job.Base = base
	fmt.Fprintf(opts.Out, "counting %s, %d passes, %d workers; %d kills, seed %d\n",
		opts.Job.Input, opts.Job.Passes, opts.Job.Workers, opts.Kills, opts.Seed)
	expected, err := oracle.Count(opts.Job.Input, uint64(opts.Job.Passes)) //nolint:gosec // positive
	if err != nil {
		return fmt.Errorf("independent count: %w", err)
	}
	fmt.Fprintf(opts.Out, "independent count: %d words, %d different, in %v\n",
		total(expected), len(expected), time.Since(begin).Round(time.Millisecond))
	s := newSaboteur(opts)
	pointer, err := s.run(ctx)
	if err != nil {
		return err
	}
	counted, position, err := job.Result(ctx, pointer)
	if err != nil {
		return fmt.Errorf("read the result: %w", err)
	}
	s.tally.print(opts.Out, position, time.Since(begin))
	if err := Compare(expected, counted); err != nil {
		return fmt.Errorf("the result is WRONG: %w", err)
	}
	fmt.Fprintf(opts.Out, "the counts of all %d words are exactly right\n", len(counted))
	return errors.Join(s.tally.enough(opts.Kills, len(opts.Disturbances)), s.tally.endured())
}

// workDir makes a directory of its own below parent and returns its URL and what removes it.
func workDir(ctx context.Context, parent string) (base string, remove func() error, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if parent, err = job.Place(ctx, parent); err != nil {
		return "", nil, err
	}
	fsys, name, err := fsurl.Open(ctx, parent, fsurl.Options{})
	if err != nil {
		return "", nil, err
	}
	name = path.Join(name, "wordcount-demo-"+strings.ToLower(rand.Text()))
	if err := fsys.MkdirAll(ctx, name); err != nil {
		return "", nil, errors.Join(err, fsys.Close())
	}
	return core.Qualify(fsys.URI(), name), func() error {
		// Also after an interruption.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		return errors.Join(fsys.RemoveAll(ctx, name), fsys.Close())
	}, nil
}

// lockedWriter lets several goroutines write whole lines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Compare returns an error that names the first few words whose counts differ.
func Compare(expected, counted map[string]uint64) error {
	const shown = 5
	differences := 0
	var problems []error
	words := maps.Clone(expected)
	maps.Copy(words, counted)
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if expected[word] == counted[word] {
			continue
		}
		differences++
		if len(problems) < shown {
			problems = append(problems, fmt.Errorf("%q: %d expected, %d counted", word, expected[word], counted[word]))
		}
	}
	if differences == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d words differ: %w", differences, len(words), errors.Join(problems...))
}

// Print prints one word and its count a line, by word.
func Print(w io.Writer, words map[string]uint64) error {
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if _, err := fmt.Fprintf(w, "%s %d\n", word, words[word]); err != nil {
			return err
		}
	}
	return nil
}

func total(words map[string]uint64) (sum uint64) {
	for _, count := range words {
		sum += count
	}
	return sum
}
