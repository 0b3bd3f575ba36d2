package proc

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// bind makes the kernel kill the child with its parent.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startTime is field 22 of the process's status, in clock ticks since the system started.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	return parseStat(b)
}

// parseStat finds the start time of a process that is not a zombie. The name, field 2, is in parentheses and may hold
// anything.
func parseStat(b []byte) (string, error) {
	const state, started = 0, 19 // after the name
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return "", fmt.Errorf("no name in process status %q", b)
	}
	fields := bytes.Fields(b[i+1:])
	if len(fields) <= started {
		return "", fmt.Errorf("too few fields in process status %q", b)
	}
	if s := string(fields[state]); s == "Z" || s == "X" {
		return "", fs.ErrNotExist
	}
	return string(fields[started]), nil
}
