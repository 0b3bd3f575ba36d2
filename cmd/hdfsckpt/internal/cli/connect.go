package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// The variables of the environment that stand in for flags; those of Hadoop and of Kerberos, which are used if a flag is not
// given, are read where they are needed.
const (
	envPrincipal = "HDFSCKPT_PRINCIPAL"
	envKeytab    = "HDFSCKPT_KEYTAB"
)

// access says how an HDFS is reached, and as whom.
type access struct {
	confDir   string
	client    string
	user      string
	principal string
	keytab    string
	ccache    string
	krb5Conf  string
}

// register makes the flags.
func (a *access) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.confDir, "conf-dir", "", "`folder` with core-site.xml and hdfs-site.xml; the default is $HADOOP_CONF_DIR")
	flags.StringVar(&a.client, "client", "", "`code` that talks to HDFS, native or library; the default is $HDFSCKPT_HDFS_CLIENT, then native, and library with Kerberos")
	flags.StringVar(&a.user, "user", "", "user `name` in HDFS without Kerberos; the default is $HADOOP_USER_NAME, then who you are")
	flags.StringVar(&a.principal, "principal", "", "Kerberos `name`@REALM of --keytab; the default is $"+envPrincipal)
	flags.StringVar(&a.keytab, "keytab", "", "keytab `file` to log in with; the default is $"+envKeytab+", then the credential cache")
	flags.StringVar(&a.ccache, "ccache", "", "credential cache `file` of kinit; the default is $KRB5CCNAME, then what krb5.conf says")
	flags.StringVar(&a.krb5Conf, "krb5-conf", "", "Kerberos configuration `file`; the default is $KRB5_CONFIG, then /etc/krb5.conf")
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions([]string{string(hdfsfs.ClientNative), string(hdfsfs.ClientLibrary)}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"user", "principal"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// check finds wrong values of flags.
func (a *access) check() error {
	switch hdfsfs.ClientKind(a.client) {
	case "", hdfsfs.ClientNative, hdfsfs.ClientLibrary:
		return nil
	}
	return report.UsageProblem(fmt.Sprintf("--client is %q: it must be %s or %s", a.client, hdfsfs.ClientNative, hdfsfs.ClientLibrary), "")
}

// options is what the flags and the environment come to.
func (a *access) options(getenv func(string) string) hdfsfs.Options {
	login := kerberos.Options{Principal: a.principal, Keytab: a.keytab, CredentialCache: a.ccache, Config: a.krb5Conf}
	if login.Keytab == "" && login.CredentialCache == "" {
		login.Keytab = getenv(envKeytab)
	}
	if login.Principal == "" {
		login.Principal = getenv(envPrincipal)
	}
	return hdfsfs.Options{ConfDir: a.confDir, Client: hdfsfs.ClientKind(a.client), User: a.user, Login: login}
}

// connect opens the file systems of URLs when they are first needed.
func connect(opts hdfsfs.Options) (core.Opener, io.Closer, error) {
	opener, err := fsurl.NewOpener(fsurl.Options{HDFS: opts})
	if err != nil {
		return nil, nil, err
	}
	return opener.Open, opener, nil
}
