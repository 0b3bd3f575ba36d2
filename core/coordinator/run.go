package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// Run takes checkpoints by the settings of the options, the first after one Interval, until
//
//   - ctx ends: its error;
//   - more checkpoints have failed one after the other than Options.TolerableFailures: the error of the last;
//   - OnCommitted fails: that error;
//   - the coordinator ends: nil after StopWithSavepoint, else fs.ErrClosed or core.ErrFenced.
//
// When it returns, checkpoints that it has under way are aborted and their files removed. Only one Run at a time is possible:
// a second one is fs.ErrInvalid. Checkpoints and savepoints can be triggered by hand meanwhile.
func (c *Coordinator) Run(ctx context.Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if err := c.beginRun(); err != nil {
		return err
	}
	defer c.endRun()
	ctx, cancel := context.WithCancel(ctx)
	r := &runner{c: c, results: make(chan attempted, c.opts.MaxConcurrent), lastTrigger: c.opts.Now()}
	err := r.loop(ctx)
	cancel()
	r.attempts.Wait()
	for len(r.results) > 0 {
		r.take(<-r.results)
	}
	if fenced := c.fence(); fenced != nil {
		return fenced
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

func (c *Coordinator) beginRun() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return fmt.Errorf("%w: Run is running", fs.ErrInvalid)
	}
	c.running = true
	return nil
}

func (c *Coordinator) endRun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// runner is one call of Run.
type runner struct {
	c           *Coordinator
	attempts    sync.WaitGroup
	results     chan attempted // has room for all
	lastTrigger time.Time
	failures    int
}

func (r *runner) loop(ctx context.Context) error {
	c := r.c
	if c.opts.Interval == 0 {
		return r.wait(ctx, nil, nil, nil)
	}
	for {
		timer := time.NewTimer(r.next().Sub(c.opts.Now()))
		err := r.wait(ctx, timer.C, nil, nil)
		timer.Stop()
		if err != nil {
			return err
		}
		if err := r.wait(ctx, nil, c.slots, nil); err != nil {
			return err
		}
		// Meanwhile others may have taken a checkpoint, or be stopping the job.
		stopping := c.stopUnderWay()
		if stopping == nil && !r.next().After(c.opts.Now()) {
			r.attempt(ctx)
			continue
		}
		<-c.slots
		if stopping != nil {
			if err := r.wait(ctx, nil, nil, stopping); err != nil {
				return err
			}
		}
	}
}

func (c *Coordinator) stopUnderWay() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// next is the time of the next trigger.
func (r *runner) next() time.Time {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return schedule{
		interval: r.c.opts.Interval, minPause: r.c.opts.MinPause, lastTrigger: r.lastTrigger, lastEnd: r.c.lastEnd,
	}.next()
}

// wait waits until the timer fires, a slot is taken, done is closed, or Run has to return with the error. What is nil never
// happens.
func (r *runner) wait(ctx context.Context, timer <-chan time.Time, slots chan<- struct{}, done <-chan struct{}) error {
	for {
		select {
		case <-timer:
			return nil
		case slots <- struct{}{}:
			return nil
		case <-done:
			return nil
		case result := <-r.results:
			if err := r.judge(ctx, r.take(result)); err != nil {
				return err
			}
		case <-r.c.over:
			return r.c.endedWith()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attempt drives a checkpoint in the slot that is held. The slot is free again when the result is taken, so that a failure is
// seen before the next trigger.
func (r *runner) attempt(ctx context.Context) {
	r.lastTrigger = r.c.opts.Now()
	r.attempts.Go(func() {
		committed, err := r.c.drive(ctx, request{kind: Checkpoint})
		r.results <- attempted{committed: committed != nil, err: err}
	})
}

// attempted is the result of an attempt. An error of one that was committed is that of OnCommitted.
type attempted struct {
	committed bool
	err       error
}

func (r *runner) take(result attempted) attempted {
	<-r.c.slots
	return result
}

// judge returns an error if Run has to return because of an attempt.
func (r *runner) judge(ctx context.Context, result attempted) error {
	err := result.err
	switch {
	case result.committed:
		r.failures = 0
		return err
	case ctx.Err() != nil || r.c.endedWith() != nil || errors.Is(err, errStopping) || errors.Is(err, ErrSubsumed):
		return nil // for another reason than a failure; the loop sees what ends Run
	}
	r.failures++
	if tooMany(r.failures, r.c.opts.TolerableFailures) {
		return fmt.Errorf("%d checkpoints failed one after the other: %w", r.failures, err)
	}
	r.c.opts.Logger.Warn("a checkpoint failed", slog.Int("failures", r.failures), slog.Any("error", err))
	return nil
}
