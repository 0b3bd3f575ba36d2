package cli

import (
	"context"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
)

// clusterOf finds out how the HDFS of a URL without a path is reached; nil if it is none.
func clusterOf(ctx context.Context, uri string, opts hdfsfs.Options) *ops.Cluster {
	authority, found := strings.CutPrefix(uri, "hdfs://")
	if !found {
		return nil
	}
	d := hdfsfs.Diagnose(ctx, authority, opts)
	c := &ops.Cluster{
		Files: d.Files, ConfigErr: d.ConfigErr, Nameservice: d.Authority,
		Client: string(d.Client), Kerberos: d.Kerberos, Protection: d.Protection,
		User: d.User, Source: loginSource(opts), Expires: d.Expires, LoginErr: d.LoginErr,
		ConfigTime: d.ConfigTime, LoginTime: d.LoginTime, NameNodeTime: d.NameNodeTime,
	}
	for _, n := range d.NameNodes {
		c.NameNodes = append(c.NameNodes, ops.NameNode{Address: n.Address, State: ops.NameNodeState(n.State), Err: n.Err})
	}
	return c
}

// loginSource says in words where a Kerberos login comes from.
func loginSource(opts hdfsfs.Options) string {
	switch {
	case opts.Login.Keytab != "":
		return "keytab " + opts.Login.Keytab
	case opts.Login.CredentialCache != "":
		return "credential cache " + opts.Login.CredentialCache
	}
	return "the credential cache of the environment"
}
