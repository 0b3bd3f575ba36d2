package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

func TestHowHDFSIsReachedComesFromFlagsThenFromTheEnvironment(t *testing.T) {
	environment := map[string]string{envPrincipal: "env@R", envKeytab: "/env.keytab"}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want hdfsfs.Options
	}{
		{"nothing: the packages look into the environment themselves", nil, nil, hdfsfs.Options{}},
		{
			"the environment", nil, environment,
			hdfsfs.Options{Login: kerberos.Options{Principal: "env@R", Keytab: "/env.keytab"}},
		},
		{
			"flags",
			[]string{"--conf-dir=/conf", "--client=library", "--user=u", "--principal=p@R", "--keytab=/k", "--krb5-conf=/c"},
			environment,
			hdfsfs.Options{ConfDir: "/conf", Client: hdfsfs.ClientLibrary, User: "u", Login: kerberos.Options{Principal: "p@R", Keytab: "/k", Config: "/c"}},
		},
		{
			"a credential cache instead of the keytab of the environment",
			[]string{"--ccache=/cc"},
			environment,
			hdfsfs.Options{Login: kerberos.Options{Principal: "env@R", CredentialCache: "/cc"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a access
			cmd := &cobra.Command{Run: func(*cobra.Command, []string) {}}
			a.register(cmd)
			cmd.SetArgs(append([]string{}, tt.args...))
			require.NoError(t, cmd.Execute())
			require.Equal(t, tt.want, a.options(func(name string) string { return tt.env[name] }))
		})
	}
}
