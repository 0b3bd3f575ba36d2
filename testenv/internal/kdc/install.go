package kdc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// ErrMissing is what an error is if the programs of MIT Kerberos are not there and cannot be installed from here.
var ErrMissing = errors.New("not installed")

// programs are what a realm needs, packages what Debian and Ubuntu call where they are.
var (
	programs = []string{"krb5kdc", "kdb5_util", "kadmin.local"}
	packages = []string{"krb5-kdc", "krb5-admin-server", "krb5-user"}
)

// places are where programs of administrators are that are not in everybody's PATH; the last are Homebrew's.
var places = []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/opt/krb5/sbin", "/usr/local/opt/krb5/sbin"}

func lookPath(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range places {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", program, ErrMissing)
}

// Installed returns nil, or an error that names the programs that are missing.
func Installed() error {
	var missing []string
	for _, program := range programs {
		if _, err := lookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s (Debian: %s): %w", strings.Join(missing, ", "), strings.Join(packages, " "), ErrMissing)
	}
	return nil
}

// Install installs what is missing, where that takes no question to the user: as root, by apt-get. The lock file keeps other
// processes of ours from doing the same.
func Install(ctx context.Context, lock string, say func(string)) error {
	missing := Installed()
	if missing == nil {
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return missing
	}
	l, err := lockfile.Wait(ctx, lock, lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }()
	if Installed() == nil {
		return nil
	}
	say("installing " + strings.Join(packages, ", ") + " by apt-get")
	s := proc.NewStarter()
	defer s.Close()
	install := func() error {
		cmd := exec.CommandContext(ctx, apt, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		_, err := s.Run(cmd)
		return err
	}
	if install() != nil { // the lists may be old, or not there
		if _, err := s.Run(exec.CommandContext(ctx, apt, "update")); err != nil {
			return err
		}
		if err := install(); err != nil {
			return err
		}
	}
	return Installed()
}
