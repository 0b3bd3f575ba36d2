// Package proc runs child processes that do not outlive this one, and names processes so that a reused process id is
// never taken for the one that had it before.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// ID names one process for ever: process ids are reused, but not with the same time of start.
type ID struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // as startTime of the system has it
}

// Identify returns the ID of the process that has the id now.
func Identify(pid int) (ID, error) {
	started, err := startTime(pid)
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ID{pid, started}, nil
}

// Alive reports whether that very process still runs. A process that ended, but that its parent has not waited for, does not.
func (id ID) Alive() bool {
	if id.PID <= 0 || id.Started == "" {
		return false
	}
	started, err := startTime(id.PID)
	return err == nil && started == id.Started
}

// Kill sends SIGKILL to that very process, if it still runs.
func (id ID) Kill() error {
	if !id.Alive() {
		return nil
	}
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Child is a process that was started here. Its signals go through os.Process, which never reaches another process that got
// the same id later.
type Child struct {
	ID ID

	cmd    *exec.Cmd
	ended  chan struct{}
	result error
}

// Starter starts children. On Linux the kernel kills them when the thread that started them ends (PR_SET_PDEATHSIG), so
// one thread, which lives as long as this process, starts them all. Elsewhere they have to be killed by their IDs.
type Starter struct{ work chan func() }

// NewStarter returns a Starter. Close ends its thread, and with it, on Linux, all children.
func NewStarter() *Starter {
	s := &Starter{make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range s.work {
			f()
		}
	}()
	return s
}

// Close ends the thread of the Starter. Nothing may be started after it.
func (s *Starter) Close() { close(s.work) }

// Start starts the command.
func (s *Starter) Start(cmd *exec.Cmd) (*Child, error) {
	bind(cmd)
	started := make(chan error)
	s.work <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil { // it has ended already: what Wait says is better
		id = ID{PID: cmd.Process.Pid}
	}
	c := &Child{ID: id, cmd: cmd, ended: make(chan struct{})}
	go func() {
		c.result = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Running reports whether the process has not ended.
func (c *Child) Running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// Result waits for the end and says how it was.
func (c *Child) Result() error {
	<-c.ended
	return c.result
}

// Signal sends a signal; os.ErrProcessDone if the process has ended.
func (c *Child) Signal(s syscall.Signal) error { return c.cmd.Process.Signal(s) }

// Kill kills the process, stopped or not, and waits for its end.
func (c *Child) Kill() error {
	if err := c.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.ended
	return nil
}

// Run starts the command, waits for it, and returns what it wrote to both outputs; an error holds the end of that.
func (s *Starter) Run(cmd *exec.Cmd) (string, error) {
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := s.Start(cmd)
	if err != nil {
		return "", err
	}
	if err := c.Result(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", cmd.Args[0], err, Tail(out.String(), 2000))
	}
	return out.String(), nil
}

// Tail is the end of a text, at most n bytes of it.
func Tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > n {
		return "… " + s[len(s)-n:]
	}
	return s
}
