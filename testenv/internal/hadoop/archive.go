package hadoop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

const archiveName = "hadoop.jsa"

// makeArchive makes a class data sharing archive of the classes that the daemons of a small cluster load.
func makeArchive(ctx context.Context, s *proc.Starter, p Parts, dir string, train func(Parts) error) error {
	p.JVM.ClassLog = filepath.Join(dir, "loaded-%p") // %p is the process id
	if err := train(p); err != nil {
		return fmt.Errorf("training run: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "loaded-*"))
	if err != nil {
		return err
	}
	classes := map[string]bool{}
	for _, name := range logs {
		if err := readClassLog(name, classes); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if len(classes) == 0 {
		return fmt.Errorf("the training run loaded no classes")
	}
	var list strings.Builder
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		list.WriteString(c + "\n")
	}
	names := filepath.Join(dir, "classes")
	if err := os.WriteFile(names, []byte(list.String()), 0o600); err != nil {
		return err
	}
	archive := filepath.Join(dir, archiveName)
	_, err = s.Run(exec.CommandContext(ctx, p.JVM.Java.Path, "-Xshare:dump", "-XX:+UseSerialGC", "-XX:SharedClassListFile="+names,
		"-XX:SharedArchiveFile="+archive, "-cp", strings.Join(p.JVM.Jars, ":")))
	if err != nil {
		return err
	}
	// A JVM that cannot use an archive only starts slower, and does not say so, unless it is told to insist.
	_, err = s.Run(exec.CommandContext(ctx, p.JVM.Java.Path, "-Xshare:on", "-XX:+UseSerialGC", "-XX:SharedArchiveFile="+archive,
		"-cp", strings.Join(append(slices.Clone(p.JVM.Jars), dir), ":"), "-version"))
	return err
}

func readClassLog(name string, classes map[string]bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return addClasses(f, classes)
}

// addClasses reads lines like "[0.1s][info][class,load] a.b.C source: jrt:/java.base". What is generated at run time has
// no file as its source, and cannot be in an archive.
func addClasses(r io.Reader, classes map[string]bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, text, _ := strings.Cut(lines.Text(), "[class,load] ")
		name, source, ok := strings.Cut(text, " source: ")
		fromFile := strings.HasPrefix(source, "jrt:") || strings.HasPrefix(source, "file:") || strings.HasPrefix(source, "shared objects file")
		if ok && fromFile && !strings.Contains(name, "Lambda$") && !strings.Contains(name, "/0x") {
			classes[strings.ReplaceAll(name, ".", "/")] = true
		}
	}
	return lines.Err()
}
