// Package jdk finds Java, fetches jars by Maven, compiles programs, and keeps what is made once.
package jdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// The JDKs that Hadoop 3.4, Flink and Spark run on: their flags need 17, and from 24 on the security manager that Hadoop calls is gone.
const minJava, maxJava = 17, 23

// ErrMissing is what an error is if a program that has to be installed by the user is not there.
var ErrMissing = errors.New("not installed")

// Java is a usable Java runtime.
type Java struct {
	Path    string `json:"path"`
	Version string `json:"version"` // all that it says of itself: an archive of classes is good for this build only
}

// FindJava finds java in JAVA_HOME or PATH.
func FindJava(ctx context.Context) (Java, error) {
	path := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if os.Getenv("JAVA_HOME") == "" {
		var err error
		if path, err = exec.LookPath("java"); err != nil {
			return Java{}, fmt.Errorf("java (a JDK, version %d): %w", minJava, ErrMissing)
		}
	}
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return Java{}, fmt.Errorf("%s -version: %w: %s", path, err, proc.Tail(string(out), 500))
	}
	version, ok := majorVersion(string(out))
	if !ok || version < minJava || version > maxJava {
		return Java{}, fmt.Errorf("a JDK of version %d to %d (%s says %q): %w", minJava, maxJava, path, firstLine(string(out)), ErrMissing)
	}
	return Java{path, string(out)}, nil
}

var versionPattern = regexp.MustCompile(`version "(\d+)`)

// majorVersion reads what `java -version` prints. Java 8 says 1, which is old enough.
func majorVersion(s string) (int, bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
