package hdfsfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
)

const (
	defaultPort  = "8020"
	defaultUmask = 0o022
)

// settings are what the configuration and the options come to for one cluster.
type settings struct {
	authority   string // as in a URL: the nameservice or host:port
	addresses   []string
	user        string
	kerberos    bool
	principal   string // of the NameNodes, with _HOST for the host
	replication int    // 0: what the NameNode says
	blockSize   int64  // the same
	umask       fs.FileMode
	library     hdfs.ClientOptions // what only the library knows how to read
}

// resolve finds the cluster of an authority: a nameservice, a host with or without port, or "" for that of fs.defaultFS.
// Addresses of other nameservices are left out, as a client that fell over to one of them would be on another file system.
func resolve(authority string, o Options) (settings, error) {
	conf, err := loadConf(o.ConfDir)
	if err != nil {
		return settings{}, err
	}
	if authority == "" {
		if authority, err = defaultAuthority(conf); err != nil {
			return settings{}, err
		}
	}
	s := settings{authority: authority, library: libraryOptions(conf)}
	if s.addresses, err = addresses(conf, authority); err != nil {
		return settings{}, err
	}
	s.kerberos = strings.EqualFold(conf["hadoop.security.authentication"], "kerberos")
	s.principal, _, _ = strings.Cut(conf["dfs.namenode.kerberos.principal"], "@")
	problems := []error{s.security(conf), s.files(conf, o)}
	if !s.kerberos {
		s.user, err = userName(o)
		problems = append(problems, err)
	}
	return s, errors.Join(problems...)
}

func loadConf(dir string) (hadoopconf.HadoopConf, error) {
	named := dir
	if named == "" {
		named = os.Getenv("HADOOP_CONF_DIR")
	}
	if named == "" {
		return hadoopconf.HadoopConf{}, nil
	}
	conf, err := hadoopconf.Load(named)
	if err != nil {
		return nil, fmt.Errorf("%w: the configuration of Hadoop: %w", fs.ErrInvalid, err)
	}
	if conf == nil {
		return nil, fmt.Errorf("%w: %s has neither core-site.xml nor hdfs-site.xml: check HADOOP_CONF_DIR", fs.ErrNotExist, named)
	}
	return conf, nil
}

// defaultAuthority is that of fs.defaultFS.
func defaultAuthority(conf hadoopconf.HadoopConf) (string, error) {
	value := conf["fs.defaultFS"]
	if value == "" {
		value = conf["fs.default.name"]
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "hdfs" || u.Host == "" {
		return "", fmt.Errorf("%w: the URL names no cluster, and fs.defaultFS of the configuration is %q: set HADOOP_CONF_DIR, or write hdfs://host:port/path",
			fs.ErrInvalid, value)
	}
	return u.Host, nil
}

// addresses returns host:port of the NameNodes of one nameservice, or of the one that is named.
func addresses(conf hadoopconf.HadoopConf, authority string) ([]string, error) {
	var found []string
	if nodes := list(conf["dfs.ha.namenodes."+authority]); len(nodes) > 0 {
		for _, node := range nodes {
			key := "dfs.namenode.rpc-address." + authority + "." + node
			if conf[key] == "" {
				return nil, fmt.Errorf("%w: %s is not set", fs.ErrInvalid, key)
			}
			found = append(found, conf[key])
		}
	} else if address := conf["dfs.namenode.rpc-address."+authority]; address != "" {
		found = []string{address}
	} else {
		if slices.Contains(list(conf["dfs.nameservices"]), authority) {
			return nil, fmt.Errorf("%w: the configuration has no NameNode for the nameservice %s", fs.ErrInvalid, authority)
		}
		found = []string{authority}
	}
	for i, address := range found {
		full, err := withPort(address)
		if err != nil {
			return nil, err
		}
		found[i] = full
	}
	return found, nil
}

func withPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), defaultPort
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.ContainsAny(host, "/@ ,") {
		return "", fmt.Errorf("%w: %q is no address of a NameNode: it should be host:port or the name of a nameservice", fs.ErrInvalid, address)
	}
	return net.JoinHostPort(strings.ToLower(host), port), nil
}

func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

// libraryOptions are read by the library itself, because one of them cannot be set from outside. Its parsing of fs.defaultFS
// is kept away from what it cannot parse.
func libraryOptions(conf hadoopconf.HadoopConf) hdfs.ClientOptions {
	rest := hadoopconf.HadoopConf{}
	for key, value := range conf {
		if !strings.Contains(key, "fs.default") {
			rest[key] = value
		}
	}
	o := hdfs.ClientOptionsFromConf(rest)
	o.KerberosClient, o.Addresses = nil, nil
	return o
}

// security refuses what the library could only do wrong.
func (s *settings) security(conf hadoopconf.HadoopConf) error {
	if !s.kerberos {
		s.library.DataTransferProtection = ""
		return nil
	}
	var problems []error
	if s.principal == "" {
		problems = append(problems, fmt.Errorf("%w: dfs.namenode.kerberos.principal is not set", fs.ErrInvalid))
	}
	if strings.EqualFold(conf["dfs.encrypt.data.transfer"], "true") {
		problems = append(problems, fmt.Errorf("%w: dfs.encrypt.data.transfer: this client cannot read what DataNodes encrypt", errors.ErrUnsupported))
	}
	levels := list(strings.ToLower(conf["dfs.data.transfer.protection"]))
	if len(levels) > 0 && !slices.Contains(levels, hdfs.DataTransferProtectionAuthentication) {
		problems = append(problems, fmt.Errorf("%w: dfs.data.transfer.protection=%s: this client can do authentication only",
			errors.ErrUnsupported, strings.Join(levels, ",")))
	}
	if len(levels) > 0 {
		s.library.DataTransferProtection = hdfs.DataTransferProtectionAuthentication
	}
	return errors.Join(problems...)
}

// files reads how new files are made.
func (s *settings) files(conf hadoopconf.HadoopConf, o Options) error {
	var problems []error
	s.replication, s.blockSize, s.umask = o.Replication, o.BlockSize, defaultUmask
	if value := conf["dfs.replication"]; s.replication == 0 && value != "" {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 1 || n > maxReplication {
			problems = append(problems, fmt.Errorf("%w: dfs.replication is %q", fs.ErrInvalid, value))
		}
		s.replication = n
	}
	if value := conf["dfs.blocksize"]; s.blockSize == 0 && value != "" {
		n, err := parseSize(value)
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: dfs.blocksize is %q", fs.ErrInvalid, value))
		}
		s.blockSize = n
	}
	if o.Umask != nil {
		s.umask = *o.Umask
	} else if value := strings.TrimSpace(conf["fs.permissions.umask-mode"]); value != "" {
		n, err := strconv.ParseUint(value, 8, 12)
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: fs.permissions.umask-mode is %q: this client reads octal numbers only", fs.ErrInvalid, value))
		}
		s.umask = fs.FileMode(n) & fs.ModePerm
	}
	return errors.Join(problems...)
}

// parseSize reads 134217728, 128m or 1g as Hadoop does.
func parseSize(value string) (int64, error) {
	value = strings.ToLower(strings.TrimSpace(value))
	shift := 0
	if value != "" {
		if i := strings.IndexByte("kmgtpe", value[len(value)-1]); i >= 0 {
			shift, value = 10*(i+1), value[:len(value)-1]
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, fs.ErrInvalid
	}
	return n << shift, nil
}

func userName(o Options) (string, error) {
	if o.User != "" {
		return o.User, nil
	}
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name, nil
	}
	me, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("%w: who are you? set Options.User or HADOOP_USER_NAME: %w", fs.ErrInvalid, err)
	}
	return me.Username, nil
}
