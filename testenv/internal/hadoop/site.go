package hadoop

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Site is a set of properties.
type Site map[string]string

// With returns a copy with more properties, which win.
func (s Site) With(more Site) Site {
	all := maps.Clone(s)
	maps.Copy(all, more)
	return all
}

// files divides the properties between the files that Hadoop reads them from.
func (s Site) files() map[string]Site {
	files := map[string]Site{"core-site.xml": {}, "hdfs-site.xml": {}}
	for name, value := range s {
		file := "core-site.xml"
		if strings.HasPrefix(name, "dfs.") {
			file = "hdfs-site.xml"
		}
		files[file][name] = value
	}
	return files
}

// xml renders the properties, in order of their names.
func (s Site) xml() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		b.WriteString("  <property><name>")
		err := xml.EscapeText(&b, []byte(name))
		b.WriteString("</name><value>")
		err = errors.Join(err, xml.EscapeText(&b, []byte(s[name])))
		b.WriteString("</value></property>\n")
		if err != nil {
			return nil, err
		}
	}
	b.WriteString("</configuration>\n")
	return b.Bytes(), nil
}

const (
	log4j = `log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
`
)

// MetricsPeriod is how old the counts may be that a daemon gives.
const MetricsPeriod = 100 * time.Millisecond

// writeConf writes a configuration folder, for a daemon or for clients (HADOOP_CONF_DIR).
func writeConf(dir string, s Site) error {
	// The jars of the project hold no web pages; the daemons only insist that these folders are on the class path.
	for _, pages := range []string{"hdfs", "datanode"} {
		if err := os.MkdirAll(filepath.Join(dir, "webapps", pages), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(tempDir(dir), 0o755); err != nil {
		return err
	}
	files := map[string][]byte{"log4j.properties": []byte(log4j), "hadoop-metrics2.properties": fmt.Appendf(nil, "*.periodMillis=%d\n", MetricsPeriod.Milliseconds())}
	for name, properties := range s.files() {
		text, err := properties.xml()
		if err != nil {
			return err
		}
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
