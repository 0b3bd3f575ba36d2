package hdfsfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/conf"
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
	conf        conf.Settings      // what else it says
	library     hdfs.ClientOptions // what only the library knows how to read
}

// resolve finds the cluster of an authority: a nameservice, a host with or without port, or "" for that of fs.defaultFS.
// Addresses of other nameservices are left out, as a client that fell over to one of them would be on another file system.
func resolve(authority string, o Options) (settings, error) {
	c, err := conf.Load(conf.Source{Dir: o.ConfDir})
	if err != nil {
		return settings{}, err
	}
	set, err := c.Settings(authority)
	s := settings{
		authority: set.Cluster.Authority, addresses: set.Cluster.NameNodes, conf: set, kerberos: set.Security.Kerberos,
		replication: set.Files.Replication, blockSize: set.Files.BlockSize, umask: fs.FileMode(set.Files.Umask) & fs.ModePerm,
	}
	if err != nil {
		return s, err
	}
	s.principal, _, _ = strings.Cut(set.Security.NameNodePrincipal, "@")
	if o.Replication != 0 {
		s.replication = o.Replication
	}
	if o.BlockSize != 0 {
		s.blockSize = o.BlockSize
	}
	if o.Umask != nil {
		s.umask = *o.Umask
	}
	problems := []error{s.libraryOptions(c.Dir()), s.security(c)}
	if !s.kerberos {
		s.user, err = userName(o)
		problems = append(problems, err)
	}
	return s, errors.Join(problems...)
}

// libraryOptions are read by the library itself, because one of them cannot be set from outside. Its parsing of fs.defaultFS
// is kept away from what it cannot parse.
func (s *settings) libraryOptions(dir string) error {
	rest := hadoopconf.HadoopConf{}
	if dir != "" {
		all, err := hadoopconf.Load(dir)
		if err != nil {
			return fmt.Errorf("%w: the configuration of Hadoop: %w", fs.ErrInvalid, err)
		}
		for key, value := range all {
			if !strings.Contains(key, "fs.default") {
				rest[key] = value
			}
		}
	}
	s.library = hdfs.ClientOptionsFromConf(rest)
	s.library.KerberosClient, s.library.Addresses = nil, nil
	return nil
}

// security refuses what the library could only do wrong.
func (s *settings) security(c *conf.Conf) error {
	if !s.kerberos {
		s.library.DataTransferProtection = ""
		return nil
	}
	var problems []error
	if s.principal == "" {
		problems = append(problems, fmt.Errorf("%w: dfs.namenode.kerberos.principal is not set", fs.ErrInvalid))
	}
	if encrypt, _ := c.Get("dfs.encrypt.data.transfer"); strings.EqualFold(strings.TrimSpace(encrypt), "true") {
		problems = append(problems, fmt.Errorf("%w: dfs.encrypt.data.transfer: this client cannot read what DataNodes encrypt", errors.ErrUnsupported))
	}
	levels := s.conf.Security.DataProtection
	if len(levels) > 0 && !slices.Contains(levels, hdfs.DataTransferProtectionAuthentication) {
		problems = append(problems, fmt.Errorf("%w: dfs.data.transfer.protection=%s: this client can do authentication only",
			errors.ErrUnsupported, strings.Join(levels, ",")))
	}
	if len(levels) > 0 {
		s.library.DataTransferProtection = hdfs.DataTransferProtectionAuthentication
	}
	return errors.Join(problems...)
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
