package kdc

import (
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/stretchr/testify/require"
)

func TestKrb5ConfIsReadAsItIsMeant(t *testing.T) {
	k := KDC{
		Dir: "/d", Port: 4711, TicketLifetime: 90 * time.Second,
		EncryptionTypes: []string{"aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha1-96"},
	}
	c, err := config.NewFromString(k.krb5Conf())
	require.NoError(t, err)
	require.Equal(t, Realm, c.LibDefaults.DefaultRealm)
	require.Equal(t, 90*time.Second, c.LibDefaults.TicketLifetime)
	require.Equal(t, 1, c.LibDefaults.UDPPreferenceLimit)
	require.False(t, c.LibDefaults.DNSLookupKDC)
	require.Equal(t, Realm, c.ResolveRealm("localhost"))
	require.Equal(t, []int32{20, 17}, c.LibDefaults.DefaultTktEnctypeIDs)
	require.Equal(t, []int32{20, 17}, c.LibDefaults.DefaultTGSEnctypeIDs)
	require.Equal(t, []int32{20, 17}, c.LibDefaults.PermittedEnctypeIDs)
	n, kdcs, err := c.GetKDCs(Realm, true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, "127.0.0.1:4711", kdcs[1])
}

func TestKDCListensOnLoopbackOnly(t *testing.T) {
	text := KDC{Dir: "/d", Port: 4711, TicketLifetime: time.Hour, EncryptionTypes: []string{"a", "b"}}.kdcText()
	require.Contains(t, text, "supported_enctypes = a:normal b:normal\n")
	require.Contains(t, text, "kdc_listen = 127.0.0.1:4711\n")
	require.Contains(t, text, "kdc_tcp_listen = 127.0.0.1:4711\n")
	require.Contains(t, text, "max_life = 3600s\n")
	require.Contains(t, text, "database_name = /d/principal\n")
}

func TestScriptMakesEachPrincipalAndItsKeytab(t *testing.T) {
	k := KDC{Dir: "/d"}
	require.Equal(t, `modprinc -maxrenewlife "7 days" krbtgt/HDFSCKPT.TEST
addprinc -randkey -maxrenewlife "7 days" nn/localhost
addprinc -randkey -maxrenewlife "7 days" bob
ktadd -k /d/nn_localhost.keytab nn/localhost
ktadd -k /d/bob.keytab bob
`, k.script([]string{"nn/localhost", "bob"}))
}
