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

// Compile compiles the .java files of the sources into the folder, against the jars of another.
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
		files, err := fs.Glob(source, "*.java")
		if err != nil {
			return err
		}
		for _, name := range files {
			text, err := fs.ReadFile(source, name)
			if err != nil {
				return err
			}
			// javac wants a file of the name of its class, so two sources may have files of one name.
			copied := filepath.Join(dir, fmt.Sprint("source-", i), name)
			if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(copied, text, 0o600); err != nil {
				return err
			}
			args = append(args, copied)
		}
	}
	_, err := s.Run(exec.CommandContext(ctx, javac, args...))
	return err
}
