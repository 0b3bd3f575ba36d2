package jdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Fetch puts the jars that a program of the pom needs into the folder, with the pom itself. Properties such as
// "flink.version=1.20.3" override those of the pom. The choice of server, proxy and credentials is left to Maven's own settings.
func Fetch(ctx context.Context, s *proc.Starter, pom []byte, dir string, properties ...string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("mvn (Maven): %w", ErrMissing)
	}
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return err
	}
	args := []string{"-q", "-B", "-f", file, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + dir}
	for _, p := range properties {
		args = append(args, "-D"+p)
	}
	_, err = s.Run(exec.CommandContext(ctx, mvn, args...))
	return err
}
