// Package hadoop knows how to run Apache Hadoop's HDFS from its jars: where they come from, what the daemons are told, and
// what they say about themselves.
package hadoop

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

// The JDKs that Hadoop 3.4 runs on: the flags below need 17, and from 24 on the security manager it calls is gone.
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

// The classes that have a main.
const (
	nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeClass = "org.apache.hadoop.hdfs.server.datanode.DataNode"
	dfsAdminClass = "org.apache.hadoop.hdfs.tools.DFSAdmin"
)

// JVM is what all Java processes of a cluster have in common.
type JVM struct {
	Java     Java     `json:"java"`
	Jars     []string `json:"jars"`              // in an order that never changes: an archive of classes is good for one class path
	Archive  string   `json:"archive,omitempty"` // of classes (CDS), for a faster start
	ClassLog string   `json:"class_log,omitempty"`
	Krb5Conf string   `json:"krb5_conf,omitempty"`
}

// Args are java's arguments for a class with its configuration folder.
func (j JVM) Args(conf, heap, class string, args ...string) []string {
	a := []string{
		"-Xmx" + heap, "-Xss512k",
		// Four JVMs beside the tests: start fast, stay small.
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true",
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
	}
	if j.Krb5Conf != "" {
		a = append(a, "-Djava.security.krb5.conf="+j.Krb5Conf)
	}
	if j.Archive != "" {
		a = append(a, "-XX:SharedArchiveFile="+j.Archive)
	}
	if j.ClassLog != "" {
		a = append(a, "-Xlog:class+load:file="+j.ClassLog)
	}
	// The jars come first: an archive is good for a class path that begins with its own.
	classPath := strings.Join(append(append([]string(nil), j.Jars...), conf), ":")
	return append(append(a, "-cp", classPath, class), args...)
}
