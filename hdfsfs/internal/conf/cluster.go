package conf

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const defaultPort = "8020"

// Cluster says where the NameNodes of one nameservice are.
type Cluster struct {
	// Authority is that of URLs: the nameservice, or host:port of a NameNode.
	Authority string
	// Nameservice is its name in the configuration, or empty for a plain address.
	Nameservice string
	// NameNodes are host:port, in the order of the configuration.
	NameNodes []string
	// RandomOrder: clients are to try the NameNodes in a random order.
	RandomOrder bool
	// ResolveNeeded: each host stands for all NameNodes that the directory service knows under its name.
	ResolveNeeded bool
}

// Cluster finds the NameNodes for a URL hdfs://authority/… or for an authority alone; with an empty one those of fs.defaultFS.
// Addresses of different nameservices are never mixed. Of viewfs and other schemes it says errors.ErrUnsupported.
func (c *Conf) Cluster(address string) (Cluster, error) {
	authority, err := authorityOf(address)
	if err != nil {
		return Cluster{}, err
	}
	if authority == "" {
		fallback, _ := c.Get("fs.defaultFS")
		if !strings.Contains(fallback, "://") {
			return Cluster{}, invalid("the URL names no cluster and fs.defaultFS is %q: set HADOOP_CONF_DIR, or write hdfs://host:port/path", fallback)
		}
		if authority, err = authorityOf(fallback); err != nil {
			return Cluster{}, fmt.Errorf("fs.defaultFS: %w", err)
		}
		if authority == "" {
			return Cluster{}, invalid("fs.defaultFS is %q and names no cluster", fallback)
		}
	}
	return c.resolve(authority)
}

func authorityOf(address string) (string, error) {
	if !strings.Contains(address, "://") {
		return address, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.User != nil:
		return "", invalid("%q is no URL of a cluster", address)
	case u.Scheme == "viewfs" || u.Scheme == "viewfsOverloadScheme":
		return "", fmt.Errorf("%w: %q: viewfs is not supported; name the nameservice that the mount point leads to, hdfs://nameservice/path",
			errors.ErrUnsupported, address)
	case u.Scheme != "hdfs":
		return "", fmt.Errorf("%w: %q: only hdfs:// is served here", errors.ErrUnsupported, address)
	}
	return u.Host, nil
}

func (c *Conf) resolve(authority string) (Cluster, error) {
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		host, port = strings.Trim(authority, "[]"), ""
	}
	if !c.isNameservice(host) {
		address, err := withPort(authority)
		return Cluster{Authority: authority, NameNodes: []string{address}}, err
	}
	if port != "" && port != defaultPort {
		return Cluster{}, invalid("%s is a nameservice, which has no port: write hdfs://%s/path", host, host)
	}
	v := &values{Conf: c}
	found := Cluster{
		Authority: host, Nameservice: host,
		RandomOrder:   v.flag("dfs.client.failover.random.order."+host, v.flag("dfs.client.failover.random.order", true)),
		ResolveNeeded: v.flag("dfs.client.failover.resolve-needed."+host, v.flag("dfs.client.failover.resolve-needed", false)),
	}
	keys := []string{"dfs.namenode.rpc-address." + host}
	if nodes := v.list("dfs.ha.namenodes." + host); len(nodes) > 0 {
		keys = nil
		for _, node := range nodes {
			keys = append(keys, "dfs.namenode.rpc-address."+host+"."+node)
		}
	}
	for _, key := range keys {
		address, err := withPort(v.text(key, ""))
		if err != nil {
			return Cluster{}, fmt.Errorf("%s, for the nameservice %s: %w", key, host, err)
		}
		if slices.Contains(found.NameNodes, address) {
			return Cluster{}, invalid("%s: the nameservice %s has %s twice", key, host, address)
		}
		found.NameNodes = append(found.NameNodes, address)
	}
	return found, nil
}

// isNameservice: Hadoop wants a failover provider to be named; that NameNodes are listed is enough here.
func (c *Conf) isNameservice(host string) bool {
	v := &values{Conf: c}
	provider := v.text("dfs.client.failover.proxy.provider."+host, "")
	return slices.Contains(v.list("dfs.nameservices"), host) || len(v.list("dfs.ha.namenodes."+host)) > 0 ||
		provider != "" && !strings.Contains(provider, "IPFailover") // that one is for a virtual address
}

// withPort makes host:port of a host with or without one.
func withPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ,[]?#") {
		return "", invalid("%q is no address of a NameNode: it should be host:port", address)
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(n, 10)), nil
}
