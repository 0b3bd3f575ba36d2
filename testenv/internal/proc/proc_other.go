//go:build !linux

package proc

import (
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// bind only keeps the terminal's signals away; there is no way to die with the parent.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// startTime asks ps, which every Unix has.
func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !ok || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("ps: %w", fs.ErrNotExist)
	}
	return strings.TrimSpace(started), nil
}
