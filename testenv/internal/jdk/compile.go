package jdk

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Compile compiles the .java files of the sources into the folder, against the jars of another, and copies their .properties
// files there.
func (j Java) Compile(ctx context.Context, s *proc.Starter, sources []fs.FS, jars, dir string) error {
	javac := filepath.Join(filepath.Dir(j.Path), "javac")
	if _, err := os.Stat(javac); err != nil {
		var lookErr error
		if javac, lookErr = exec.LookPath("javac"); lookErr != nil {
			return fmt.Errorf("javac (a JDK, not only its runtime): %w", ErrMissing)
		}
	}
	args := []string{"-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", dir, "-cp", filepath.Join(jars, "*")}
	for i, source := range sources {
		// javac wants a file to have the name of its class, so that two sources may have files of one name.
		files, err := copyAll(source, "*.java", filepath.Join(dir, fmt.Sprint("source-", i)))
		if err != nil {
			return err
		}
		args = append(args, files...)
		if _, err := copyAll(source, "*.properties", dir); err != nil {
			return err
		}
	}
	_, err := s.Run(exec.CommandContext(ctx, javac, args...))
	return err
}

// copyAll copies the files that match and returns their new names.
func copyAll(source fs.FS, pattern, dir string) ([]string, error) {
	names, err := fs.Glob(source, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var copied []string
	for _, name := range names {
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, err
		}
		target := filepath.Join(dir, name)
		if err := os.WriteFile(target, text, 0o600); err != nil {
			return nil, err
		}
		copied = append(copied, target)
	}
	return copied, nil
}
