package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
)

// saboteur runs the job as a process of its own and kills it, or one of its workers, at random moments.
type saboteur struct {
	opts    Options
	random  *rand.Rand
	workers int
	left    int // kills still to do
	strikes int
	disturb *disturber
	tally   tally

	complaints lastBytes

	mu        sync.Mutex
	processes map[int]*os.Process // the workers of the current attempt, by index
}

func newSaboteur(opts Options) *saboteur {
	return &saboteur{
		opts: opts, random: rand.New(rand.NewPCG(opts.Seed, 1)), //nolint:gosec // a repeatable sequence is wanted
		workers: opts.Job.Workers, left: opts.Kills, processes: map[int]*os.Process{},
		disturb: &disturber{commands: opts.Disturbances, out: opts.Out},
	}
}

// maxCommitsBetween spreads the kills over the run.
const maxCommitsBetween = 8

// errKilled says that a life ended as planned.
var errKilled = errors.New("killed")

// run starts the job again and again until it is done.
func (s *saboteur) run(ctx context.Context) (pointer string, err error) {
	defer func() {
		s.tally.disturbances = s.disturb.done()
		err = errors.Join(err, s.disturb.failure)
	}()
	for range maxLives {
		s.tally.lives++
		pointer, err := s.live(ctx)
		if !errors.Is(err, errKilled) {
			return pointer, err
		}
	}
	return "", fmt.Errorf("the job was not done after %d lives", maxLives)
}

// live is one life of the job.
func (s *saboteur) live(ctx context.Context) (pointer string, err error) {
	command := s.command(ctx)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	defer s.killWorkers() // those of a dead job end by themselves, but the directory must not outlive us
	killed := false
	pointer, readErr := s.watch(ctx, stdout, func() {
		killed = true
		_ = command.Process.Kill() // SIGKILL; if the process is gone, Wait tells
	})
	waitErr := command.Wait()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case killed:
		return "", errKilled
	case waitErr != nil:
		return "", fmt.Errorf("the job failed: %w: %s", waitErr, s.complaints.String())
	case readErr != nil:
		return "", readErr
	case pointer == "":
		return "", errors.New("the job ended without a result")
	}
	return pointer, nil
}

func (s *saboteur) command(ctx context.Context) *exec.Cmd {
	o := s.opts.Job
	command := exec.CommandContext(ctx, o.Worker[0], "run", "--dir", o.Base, "--input", o.Input, //nolint:gosec // our own command line
		"--passes", strconv.FormatInt(o.Passes, 10), "--chunk", strconv.FormatInt(o.ChunkBytes, 10),
		"--workers", strconv.Itoa(s.workers), "--interval", o.Interval.String(), "--retain", strconv.Itoa(o.Retain))
	s.complaints.reset() // a killed worker's are expected; those of a job that fails are shown
	command.Stderr = &s.complaints
	command.WaitDelay = time.Second
	return command
}

// watch follows the events of one life and kills at random moments, each some time after a restore or the start. It
// returns when the job's output ends.
func (s *saboteur) watch(ctx context.Context, stdout io.Reader, killJob func()) (pointer string, err error) {
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	due := make(chan struct{}, 1)
	commits := 1 + s.random.IntN(maxCommitsBetween)
	plan := func() {
		if commits--; s.left+s.disturb.left() > 0 && timer == nil && commits <= 0 {
			delay := time.Duration(s.random.Int64N(int64(4 * s.opts.Job.Interval)))
			timer = time.AfterFunc(delay, func() { due <- struct{}{} })
		}
	}
	events := s.read(stdout)
	for {
		select {
		case event, more := <-events:
			if !more {
				return pointer, nil
			}
			s.tally.note(event, s.disturb.current)
			switch event.Event {
			case "worker":
				s.meet(event)
			case "committed":
				plan() // progress was made since the last kill, so the job gets to its end
			case "done":
				pointer = event.Pointer
			}
		case <-due:
			timer, commits = nil, 1+s.random.IntN(maxCommitsBetween)
			s.strike(ctx, killJob)
		}
	}
}

// read decodes the job's output. A line that a kill has cut off is dropped.
func (s *saboteur) read(stdout io.Reader) <-chan job.Event {
	events := make(chan job.Event)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var event job.Event
			if json.Unmarshal(lines.Bytes(), &event) == nil {
				events <- event
			}
		}
	}()
	return events
}

// strike disturbs or kills, by turns while there is something left of both.
func (s *saboteur) strike(ctx context.Context, killJob func()) {
	s.strikes++
	if s.left > 0 && (s.strikes%2 == 0 || s.disturb.left() == 0) {
		s.kill(killJob)
		return
	}
	if s.disturb.next(ctx) {
		fmt.Fprintf(s.opts.Out, "after %d checkpoints: %s\n", s.tally.checkpoints, s.disturb.current)
	}
}

// kill kills one worker or the whole job. Every other kill of the job is followed by another number of workers.
func (s *saboteur) kill(killJob func()) {
	s.left--
	if s.left%2 == 0 {
		s.tally.jobKills++
		s.tally.lossesDue = 0
		before := s.workers
		killJob()
		s.killWorkers()
		if s.tally.jobKills%2 == 1 {
			s.workers = 1 + s.workers%4
			s.tally.rescaled++
		}
		fmt.Fprintf(s.opts.Out, "kill -9 of the job and its %d workers after %d checkpoints; it goes on with %d\n",
			before, s.tally.checkpoints, s.workers)
		return
	}
	s.tally.workerKills++
	s.tally.lossesDue++
	victim := s.random.IntN(s.workers)
	fmt.Fprintf(s.opts.Out, "kill -9 of worker %d after %d checkpoints\n", victim, s.tally.checkpoints)
	s.mu.Lock()
	defer s.mu.Unlock()
	if process := s.processes[victim]; process != nil {
		_ = process.Kill() // if it is gone, so much the better
	}
}

// meet remembers a worker. The handle is taken while the worker has just begun, so that it stays this process's and never
// becomes that of another one with the same number.
func (s *saboteur) meet(event job.Event) {
	process, err := os.FindProcess(event.PID)
	if err != nil {
		return // gone already
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[event.Worker] = process
}

// killWorkers kills the workers of the current attempt.
func (s *saboteur) killWorkers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for index, process := range s.processes {
		_ = process.Kill() // if it is gone, so much the better
		delete(s.processes, index)
	}
}
