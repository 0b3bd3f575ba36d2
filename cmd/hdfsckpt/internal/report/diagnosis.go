package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// Diagnose puts into plain words why a step failed, and what the user can do about it. The error itself stays in the message.
func Diagnose(ctx context.Context, step StepName, err error) *Problem {
	p := NewProblem(ctx, err)
	if p.Kind == Interrupted {
		return &p
	}
	for _, d := range diagnoses {
		if d.fits(step, err) {
			if d.kind != "" {
				p.Kind = d.kind
			}
			p.Message, p.Hint = fmt.Sprintf("%s: %s", d.plain, err), d.hint
			break
		}
	}
	return &p
}

// IsSafeMode reports whether an error says that the NameNode is in safe mode.
func IsSafeMode(err error) bool { return err != nil && safeMode.fits("", err) }

// diagnosis is a cause that is known by a sentinel, or by what occurs in the message of a server.
type diagnosis struct {
	steps []StepName // in which it is looked for; none is all
	is    []error    // one of them
	texts []string   // or one of them
	kind  Kind       // "" is that of the error
	plain string
	hint  string
}

func (d *diagnosis) fits(step StepName, err error) bool {
	if len(d.steps) > 0 && !slices.Contains(d.steps, step) {
		return false
	}
	for _, known := range d.is {
		if errors.Is(err, known) {
			return true
		}
	}
	for _, text := range d.texts {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

var (
	data = []StepName{StepWrite, StepRead, StepExclusive, StepRename}

	safeMode = diagnosis{
		texts: []string{"SafeModeException", "in safe mode"}, kind: Unavailable,
		plain: "the NameNode is in safe mode, in which nothing can be changed",
		hint:  "after a start it ends by itself when enough DataNodes have reported; `hdfs dfsadmin -safemode get` shows it, and an administrator ends it with -safemode leave",
	}
)

// diagnoses are asked in this order: the special ones first.
var diagnoses = []*diagnosis{
	&safeMode,
	{
		texts: []string{"StandbyException", "state standby"}, kind: Unavailable,
		plain: "none of the NameNodes that answer is active",
		hint:  "`hdfs haadmin -getAllServiceState` shows which one is; if the URL names one NameNode, put the nameservice in its place",
	},
	{
		texts: []string{"SIMPLE authentication is not enabled", "Client cannot authenticate via"}, kind: Permission,
		plain: "the cluster wants Kerberos, and the configuration does not say so",
		hint:  "use the cluster's own core-site.xml (hadoop.security.authentication is kerberos there), and a keytab or a ticket",
	},
	{
		is: []error{kerberos.ErrUnreachable}, kind: Unavailable,
		plain: "no KDC answers", hint: "the kdc entries of the realm in krb5.conf must be right, and their TCP port (88) open from here",
	},
	{
		is: []error{
			kerberos.ErrClockSkew, kerberos.ErrUnknownPrincipal, kerberos.ErrUnknownRealm, kerberos.ErrEncryptionType, kerberos.ErrCredentials,
			kerberos.ErrExpired, kerberos.ErrRefused,
		},
		kind: Permission, plain: "the login failed", hint: "the message says what to look at; `klist -k -t -e KEYTAB` shows a keytab, `klist` a ticket",
	},
	{
		steps: []StepName{StepLogin}, is: []error{fs.ErrNotExist}, kind: Permission,
		plain: "there is nothing to log in with", hint: "name a keytab with --principal and --keytab, or get a ticket with `kinit`",
	},
	{
		texts: []string{"could only be written to", "There are 0 datanode(s)", "could only be replicated to"}, kind: Unavailable,
		plain: "no DataNode could take a block",
		hint:  "`hdfs dfsadmin -report` shows the live DataNodes and their space; one that lives but cannot be reached from here counts as dead too",
	},
	{
		steps: data, texts: []string{"connection refused", "i/o timeout", "no route to host", "network is unreachable", "no such host"}, kind: Unavailable,
		plain: "a DataNode cannot be reached from here, although the NameNode can",
		hint:  "if the address in the message is one of an inner network, set dfs.client.use.datanode.hostname to true; else look at firewalls and at the DataNode's log",
	},
	{
		texts: []string{"not a packet of Hadoop's RPC", "does the port serve Hadoop RPC?"}, kind: Unavailable,
		plain: "what answers at the address is not the RPC of a NameNode", hint: "8020 or 9000 is the port as a rule; 9870 is that of the web page",
	},
	{
		texts: []string{"no such host"}, kind: Unavailable,
		plain: "this machine does not know the host's name",
		hint:  "check the addresses in the configuration, DNS and /etc/hosts; a name without a port that hdfs-site.xml has no dfs.nameservices entry for is taken for a host",
	},
	{
		texts: []string{"connection refused"}, kind: Unavailable,
		plain: "nothing listens at the address",
		hint:  "is the NameNode up? is it the port of its RPC (8020 or 9000 as a rule, 9870 is its web page)?",
	},
	{
		is: []error{context.DeadlineExceeded}, texts: []string{"i/o timeout", "no route to host", "network is unreachable"},
		plain: "there was no answer",
		hint:  "a firewall, a daemon that hangs, or a nameservice that hdfs-site.xml does not have, which is taken for a host then",
	},
	{
		is:    []error{fs.ErrPermission},
		plain: "no permission", hint: "the user of the login needs to write and search the directory: change its owner or its ACL, log in as another one, or choose another directory",
	},
	{
		is:    []error{core.ErrNoSpace},
		plain: "there is no space", hint: "free space or raise the quota; `hdfs dfs -count -q -h DIR` shows that of HDFS, `df` a local disk",
	},
	{
		is:    []error{core.ErrQuota},
		plain: "the quota of names is used up", hint: "remove files or raise the quota; `hdfs dfs -count -q DIR` shows it",
	},
	{
		steps: data, is: []error{errors.ErrUnsupported}, kind: Unsupported,
		plain: "the directory is of a kind that this library refuses",
		hint:  "choose one without an erasure-coding policy (`hdfs ec -getPolicy -path DIR`) and outside of encryption zones",
	},
	{
		is:    []error{core.ErrCorrupt},
		plain: "other bytes were read than written", hint: "do not use this storage before the cause is found; `hdfs fsck` shows corrupt blocks",
	},
	{
		steps: []StepName{StepConfiguration}, is: []error{fs.ErrNotExist}, kind: NotFound,
		plain: "there is no such configuration", hint: "set HADOOP_CONF_DIR to the folder with core-site.xml and hdfs-site.xml",
	},
	{
		steps: []StepName{StepExclusive}, kind: Refused, texts: []string{notRefused},
		plain: "the storage is not safe for checkpoints",
		hint:  "two owners could both believe to have won; do not use it",
	},
}

// notRefused is in the message of an exclusive call that wrongly succeeded.
const notRefused = "a name that is taken was not refused"

// ErrNotRefused is the error of an exclusive call that succeeded on a name that is taken.
var ErrNotRefused = errors.New(notRefused)
