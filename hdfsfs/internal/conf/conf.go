package conf

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// Source says where a configuration comes from. The zero value is the process's environment.
type Source struct {
	// Dir holds core-site.xml and hdfs-site.xml; empty is HADOOP_CONF_DIR, else etc/hadoop or conf of HADOOP_HOME. If these are
	// not set either, the configuration is empty and Hadoop's defaults hold.
	Dir string
	// Env looks up an environment variable; nil is os.LookupEnv.
	Env func(name string) (string, bool)

	open func(name string) (io.ReadCloser, error)
}

// siteFiles are read in this order; of equal keys the last one counts. A key of HDFS counts in any of them, also in core-site.xml,
// where Hadoop's clients put its default over it.
var siteFiles = []string{"core-site.xml", "hdfs-site.xml", "hdfs-rbf-site.xml"}

// Conf is a configuration. It does not change.
type Conf struct {
	values map[string]string // as they were written
	env    func(string) (string, bool)
	dir    string
}

// Load reads a configuration. Any one of the files may be missing. A folder that was named, here or in the environment, and that
// has none of them is fs.ErrNotExist.
func Load(s Source) (*Conf, error) {
	if s.Env == nil {
		s.Env = os.LookupEnv
	}
	if s.open == nil {
		s.open = openFile
	}
	dirs := s.dirs()
	if len(dirs) == 0 {
		return &Conf{values: map[string]string{}, env: s.Env}, nil
	}
	for _, dir := range dirs {
		r := &reader{open: s.open, dir: dir}
		read, err := r.readSite()
		if err != nil {
			return nil, fmt.Errorf("the configuration of Hadoop: %w", err)
		}
		if read > 0 {
			return &Conf{values: merge(r.found), env: s.Env, dir: dir}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s has neither core-site.xml nor hdfs-site.xml: check HADOOP_CONF_DIR",
		fs.ErrNotExist, strings.Join(dirs, " or "))
}

// dirs are the folders of which the first one counts that has a configuration.
func (s Source) dirs() []string {
	if s.Dir != "" {
		return []string{s.Dir}
	}
	if dir, _ := s.Env("HADOOP_CONF_DIR"); dir != "" {
		return []string{dir}
	}
	if home, _ := s.Env("HADOOP_HOME"); home != "" {
		return []string{filepath.Join(home, "etc", "hadoop"), filepath.Join(home, "conf")}
	}
	return nil
}

// readSite reads the files that are in the folder and returns how many.
func (r *reader) readSite() (int, error) {
	read := 0
	for _, file := range siteFiles {
		err := r.readFile(filepath.Join(r.dir, file), 0)
		if err == nil {
			read++
		} else if !isMissing(err) {
			return 0, err
		}
	}
	return read, nil
}

// merge makes a table of properties in the order in which they were read. A final one does not change any more.
func merge(found []property) map[string]string {
	values, final := map[string]string{}, map[string]bool{}
	for _, p := range found {
		name := currentName(p.name)
		if !final[name] {
			values[name] = p.value
		}
		final[name] = final[name] || p.final
	}
	return values
}

// renamedKeys are the old names under which keys are still met.
var renamedKeys = map[string]string{
	"fs.default.name":                 "fs.defaultFS",
	"dfs.block.size":                  "dfs.blocksize",
	"dfs.umaskmode":                   "fs.permissions.umask-mode",
	"dfs.umask":                       "fs.permissions.umask-mode",
	"dfs.socket.timeout":              "dfs.client.socket-timeout",
	"dfs.write.packet.size":           "dfs.client-write-packet-size",
	"dfs.read.prefetch.size":          "dfs.client.read.prefetch.size",
	"io.bytes.per.checksum":           "dfs.bytes-per-checksum",
	"dfs.federation.nameservices":     "dfs.nameservices",
	"dfs.encryption.key.provider.uri": "hadoop.security.key.provider.path",
	"dfs.federation.nameservice.id":   "dfs.nameservice.id",
	"dfs.client.block.write.replace-datanode-on-failure.enabled": "dfs.client.block.write.replace-datanode-on-failure.enable",
}

func currentName(key string) string {
	if renamed, ok := renamedKeys[key]; ok {
		return renamed
	}
	return key
}

// Dir is the folder that was read, or empty.
func (c *Conf) Dir() string { return c.dir }

const (
	maxSubstitutions = 20
	maxValue         = 1 << 20
)

// Get returns the value of a key, under its old or its new name, trimmed and with what stands for ${…}, and whether there is one.
// The first variable that is unknown, and all after it, are left alone, as Hadoop does; a value whose variables lead back to itself is
// left as it was written.
func (c *Conf) Get(key string) (string, bool) {
	raw, ok := c.values[currentName(key)]
	if !ok {
		return "", false
	}
	return strings.TrimSpace(c.expand(raw)), true
}

func (c *Conf) expand(raw string) string {
	value := raw
	seen := map[string]bool{}
	for range maxSubstitutions {
		begin, end := variable(value)
		if begin < 0 {
			return value
		}
		text, ok := c.lookup(value[begin+2 : end-1])
		if !ok || len(value)+len(text) > maxValue {
			return value
		}
		at := value[begin:end]
		if seen[at] && strings.Contains(text, at) {
			return raw
		}
		seen[at] = true
		value = value[:begin] + text + value[end:]
	}
	return raw
}

// variable finds the first ${name}, whose name has no space, '$', '{' or '}'. If there is none, begin is -1.
func variable(s string) (begin, end int) {
	for from := 0; ; {
		at := strings.Index(s[from:], "${")
		if at < 0 {
			return -1, -1
		}
		begin = from + at
		length := strings.IndexAny(s[begin+2:], "}${ \t\r\n")
		if length > 0 && s[begin+2+length] == '}' {
			return begin, begin + 2 + length + 1
		}
		from = begin + 2
	}
}

// lookup returns what a variable stands for.
func (c *Conf) lookup(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "env."); ok {
		return c.environment(rest)
	}
	if text, ok := systemProperty(name); ok {
		return text, true
	}
	text, ok := c.values[currentName(name)]
	return text, ok
}

// environment knows NAME, NAME-default for one that is not set, and NAME:-default for one that is not set or empty.
func (c *Conf) environment(s string) (string, bool) {
	at := strings.Index(s, "-")
	if at < 0 {
		return c.env(s)
	}
	name, fallback := s[:at], s[at+1:]
	name, evenEmpty := strings.CutSuffix(name, ":")
	if text, ok := c.env(name); ok && (text != "" || !evenEmpty) {
		return text, true
	}
	return fallback, true
}

// systemProperty are those of Java that configurations use.
func systemProperty(name string) (string, bool) {
	switch name {
	case "java.io.tmpdir":
		return os.TempDir(), true
	case "user.name":
		if u, err := user.Current(); err == nil {
			return u.Username, true
		}
	case "user.home":
		if home, err := os.UserHomeDir(); err == nil {
			return home, true
		}
	}
	return "", false
}
