package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Disturbance is a command line that disturbs what the job runs on.
type Disturbance struct {
	Command []string
	// Endured: no checkpoint may be lost by it.
	Endured bool
}

func (d Disturbance) String() string {
	if d.Command == nil {
		return "no disturbance"
	}
	return strings.Join(d.Command, " ")
}

// disturber runs commands, one after the other, beside the job.
type disturber struct {
	commands []Disturbance // still to be run
	current  Disturbance   // the last one that was begun
	out      io.Writer

	running sync.WaitGroup
	mu      sync.Mutex
	busy    bool
	ended   int
	failure error // of all commands
}

func (d *disturber) left() int { return len(d.commands) }

// next starts the next command, unless the one before it has not ended.
func (d *disturber) next(ctx context.Context) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy || len(d.commands) == 0 {
		return false
	}
	d.current = d.commands[0]
	d.commands, d.busy = d.commands[1:], true
	this, args := d.current, d.current.Command
	d.running.Go(func() {
		begin := time.Now()
		// It outlives the life of the job in which it began.
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput() //nolint:gosec // the user's own command
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy = false
		if err != nil {
			d.failure = errors.Join(d.failure, fmt.Errorf("%s: %w: %s", this, err, out))
			return
		}
		d.ended++
		fmt.Fprintf(d.out, "done in %.1f s: %s\n%s", time.Since(begin).Seconds(), this, out)
	})
	return true
}

// done waits until no command runs and returns how many have ended without an error.
func (d *disturber) done() int {
	d.running.Wait()
	return d.ended
}
