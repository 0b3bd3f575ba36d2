package hadoop

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// Client is the configuration for clients, which the daemons share.
func (l Layout) Client() Site {
	nn, dataNodes := l.Daemons[0], len(l.Daemons)-1
	s := Site{
		"fs.defaultFS":              "hdfs://" + l.Address(nn, "rpc"),
		"dfs.namenode.rpc-address":  l.Address(nn, "rpc"),
		"dfs.namenode.http-address": l.Address(nn, "http"),
		"dfs.replication":           strconv.Itoa(min(3, dataNodes)),
		"hadoop.tmp.dir":            filepath.Join(l.Dir, "tmp"),
		// A Java client would keep one connection in the process for all who ask for the same user.
		"fs.hdfs.impl.disable.cache": "true",
	}
	if l.Security != nil {
		s = s.With(l.Security.client(l.ProcessUser))
	}
	return s.With(l.Properties)
}

// server is what the daemons have in common beside that.
func (l Layout) server() Site {
	s := Site{
		// A dead DataNode is avoided after 3 s, given up after 2 x 5 s + 10 x 1 s. The defaults are 30 s and 10.5 min.
		"dfs.heartbeat.interval":                     "1",
		"dfs.namenode.stale.datanode.interval":       "3000",
		"dfs.namenode.avoid.read.stale.datanode":     "true",
		"dfs.namenode.avoid.write.stale.datanode":    "true",
		"dfs.namenode.heartbeat.recheck-interval":    "5000",
		"dfs.namenode.redundancy.interval.seconds":   "1s",
		"dfs.namenode.lease-recheck-interval-ms":     "2000",
		"dfs.namenode.safemode.extension":            "0",
		"dfs.namenode.safemode.min.datanodes":        "1",
		"dfs.namenode.edits.asynclogging":            "true",
		"dfs.namenode.fs-limits.min-block-size":      "4096", // files of many blocks that are small
		"dfs.namenode.resource.du.reserved":          "1048576",
		"dfs.datanode.du.reserved":                   "0",
		"dfs.namenode.handler.count":                 "10",
		"dfs.datanode.handler.count":                 "4",
		"ipc.server.read.threadpool.size":            "1",
		"dfs.datanode.scan.period.hours":             "-1",
		"dfs.datanode.directoryscan.interval":        "-1",
		"dfs.disk.balancer.enabled":                  "false",
		"hadoop.http.filter.initializers":            "",
		"hadoop.security.groups.negative-cache.secs": "1",
		// All DataNodes have the same address.
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",
	}
	if l.Security != nil {
		s = s.With(l.Security.server())
	}
	return s.With(l.Client())
}

// Daemon is the whole configuration of a daemon.
func (l Layout) Daemon(d Daemon) Site {
	data := "file://" + l.DataDir(d.Name)
	if d.Kind == NameNode {
		return l.server().With(Site{"dfs.namenode.name.dir": data})
	}
	listen := func(use string) string { return "127.0.0.1:" + strconv.Itoa(d.Ports[use]) }
	return l.server().With(Site{
		"dfs.datanode.data.dir":     data,
		"dfs.datanode.hostname":     l.Host(),
		"dfs.datanode.address":      listen("data"),
		"dfs.datanode.ipc.address":  listen("rpc"),
		"dfs.datanode.http.address": listen("http"),
	})
}

func (k Security) client(processUser string) Site {
	return Site{
		"hadoop.security.authentication":  "kerberos",
		"dfs.block.access.token.enable":   "true",
		"dfs.data.transfer.protection":    k.Protection,
		"dfs.namenode.kerberos.principal": NameNodePrincipal + "@" + k.Realm,
		"dfs.datanode.kerberos.principal": DataNodePrincipal + "@" + k.Realm,
		"hadoop.security.auth_to_local":   k.localNames(processUser),
	}
}

func (k Security) server() Site {
	s := Site{
		"hadoop.security.authorization": "false",
		// A DataNode insists on privileged ports or TLS pages, unless it is told that it is under test.
		"ignore.secure.ports.for.testing":           "true",
		"dfs.namenode.kerberos.principal.pattern":   "*",
		"dfs.namenode.keytab.file":                  k.Keytabs[NameNodePrincipal],
		"dfs.datanode.keytab.file":                  k.Keytabs[DataNodePrincipal],
		"dfs.web.authentication.kerberos.principal": WebPrincipal + "@" + k.Realm,
		"dfs.web.authentication.kerberos.keytab":    k.Keytabs[WebPrincipal],
	}
	for _, kind := range []Kind{NameNode, DataNode} {
		s[fmt.Sprintf("dfs.%s.kerberos.internal.spnego.principal", kind)] = WebPrincipal + "@" + k.Realm
	}
	return s
}

// localNames makes the daemons and the superuser's principal the user that runs the NameNode, which HDFS lets do anything.
func (k Security) localNames(processUser string) string {
	realm := regexp.QuoteMeta(k.Realm)
	return fmt.Sprintf("RULE:[2:$1@$0]([nd]n@%s)s/.*/%s/\nRULE:[1:$1@$0](%s@%s)s/.*/%s/\nDEFAULT",
		realm, processUser, regexp.QuoteMeta(k.Superuser), realm, processUser)
}

// Write writes the configurations of the daemons and of clients.
func (l Layout) Write() error {
	err := writeConf(l.ConfDir("client"), l.Client())
	for _, d := range l.Daemons {
		err = errors.Join(err, writeConf(l.ConfDir(d.Name), l.Daemon(d)))
	}
	return err
}

// Command is java's arguments for a daemon.
func (l Layout) Command(j JVM, d Daemon) []string {
	class := dataNodeClass
	if d.Kind == NameNode {
		class = nameNodeClass
	}
	return j.Args(l.ConfDir(d.Name), d.Heap, class)
}

// Admin is java's arguments for the administrator's tool.
func (l Layout) Admin(j JVM, args ...string) []string {
	return j.Args(l.ConfDir("client"), "64m", dfsAdminClass, args...)
}
