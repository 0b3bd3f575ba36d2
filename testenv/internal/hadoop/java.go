// Package hadoop knows how to run Apache Hadoop's HDFS from its jars: where they come from, what the daemons are told, and
// what they say about themselves.
package hadoop

import (
	"path/filepath"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/jdk"
)

// The classes that have a main.
const (
	nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeClass = "org.apache.hadoop.hdfs.server.datanode.DataNode"
	dfsAdminClass = "org.apache.hadoop.hdfs.tools.DFSAdmin"
)

// JVM is what all Java processes of a cluster have in common.
type JVM struct {
	Java     jdk.Java `json:"java"`
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
		"-Djava.io.tmpdir=" + tempDir(conf),
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

// tempDir is where a Java process leaves its temporary files, which one that is killed does not remove.
func tempDir(conf string) string { return filepath.Join(conf, "tmp") }
