package kerberos

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestConfigurationDefaultsAreTCPAndAES(t *testing.T) {
	c, err := parseConfig("test", "[libdefaults]\n default_realm = R\n")
	require.NoError(t, err)
	require.Equal(t, 1, c.LibDefaults.UDPPreferenceLimit)
	require.Equal(t, []int32{18, 17, 20, 19}, c.LibDefaults.DefaultTktEnctypeIDs)
	require.Equal(t, []int32{18, 17, 20, 19}, c.LibDefaults.DefaultTGSEnctypeIDs)
	require.Equal(t, []int32{18, 17, 20, 19}, c.LibDefaults.PermittedEnctypeIDs)
}

func TestConfigurationIsReadInTheSenseOfMIT(t *testing.T) {
	c, err := parseConfig("test", `
# a comment
[libdefaults]
	default_realm = A.TEST   # the first value wins
	default_realm = B.TEST
	ticket_lifetime = 7d 0h
	udp_preference_limit = 1465
	permitted_enctypes = aes -aes128-cts, unknown-type
	default_ccache_name = FILE:/tmp/cc_%{uid}
	A.TEST = {
		ticket_lifetime = 1h
	}
[realms]
	A.TEST = { kdc = a1.test }
	B.TEST = {
		kdc = tcp/b1.test:750
		kdc = https://proxy.test/KdcProxy
		kdc = [::1]
		kdc = ::2
		auth_to_local = RULE:[1:$1@$0](.*@A{1,2})s/@.*//
		auth_to_local_names = {
			kdc = nobody
		}
		primary_kdc = b0.test
	}
[appdefaults]
	pam = {
		debug = false
	}
[realms]
	A.TEST = {
		kdc = a2.test:88
	}
[domain_realm]
	.a.test = A.TEST
`)
	require.NoError(t, err)
	require.Equal(t, "A.TEST", c.LibDefaults.DefaultRealm)
	require.Equal(t, 7*24*time.Hour, c.LibDefaults.TicketLifetime)
	require.Equal(t, 1465, c.LibDefaults.UDPPreferenceLimit)
	require.Equal(t, []int32{18, 20, 19}, c.LibDefaults.PermittedEnctypeIDs)
	require.Equal(t, []int32{18, 20, 19}, c.LibDefaults.DefaultTktEnctypeIDs)
	require.Equal(t, "FILE:/tmp/cc_%{uid}", c.defaultCacheName)
	require.Equal(t, []string{"a1.test:88", "a2.test:88"}, c.kdcs("A.TEST"))
	require.Equal(t, []string{"b1.test:750", "[::1]:88", "[::2]:88"}, c.kdcs("B.TEST"))
	require.Equal(t, "A.TEST", c.ResolveRealm("x.a.test"))
	require.NoError(t, c.checkRealm("B.TEST"))
	err = c.checkRealm("C.TEST")
	require.ErrorIs(t, err, ErrUnknownRealm)
	require.ErrorContains(t, err, `["A.TEST" "B.TEST"]`)
}

func TestConfigurationIncludesFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/d/b.conf", "[realms]\nB = {\n kdc = b\n}\n")
	write(t, dir+"/d/a", "[realms]\nA = {\n kdc = a\n}\n")
	for _, passed := range []string{"a~", ".hidden.conf", "a.rpmsave"} {
		write(t, dir+"/d/"+passed, "not a configuration")
	}
	require.NoError(t, os.Mkdir(dir+"/d/folder", 0o700))
	write(t, dir+"/one", "[libdefaults]\ndefault_realm = A\n")
	top := write(t, dir+"/krb5.conf", fmt.Sprintf("includedir %s/d\ninclude %s/one\n[realms]\nC = {\n kdc = c\n}\n", dir, dir))
	second := write(t, dir+"/second", "[libdefaults]\ndefault_realm = Z\n[realms]\nA = {\n kdc = a2\n}\n")

	c, err := loadConfig(dir + "/missing:" + top + ":" + second)
	require.NoError(t, err)
	require.Equal(t, "A", c.LibDefaults.DefaultRealm)
	for realm, kdcs := range map[string][]string{"A": {"a:88", "a2:88"}, "B": {"b:88"}, "C": {"c:88"}} {
		require.Equal(t, kdcs, c.kdcs(realm))
	}
	c, err = parseConfig("text", "include "+dir+"/one\n")
	require.NoError(t, err)
	require.Equal(t, "A", c.LibDefaults.DefaultRealm)
}

func TestConfigurationThatIsWrongSaysWhere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/self", "include "+dir+"/self\n")
	require.NoError(t, os.Symlink(dir+"/loop", dir+"/link"))
	write(t, dir+"/loop", "include "+dir+"/link\n")
	for i := range 20 {
		write(t, fmt.Sprintf("%s/deep%d", dir, i), fmt.Sprintf("include %s/deep%d\n", dir, i+1))
	}
	require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	for _, c := range []struct{ text, says string }{
		{"include " + dir + "/self", "includes itself"},
		{"include " + dir + "/loop", "includes itself"},
		{"include " + dir + "/deep0", "files deep"},
		{"include " + dir + "/pipe", "not a regular file"},
		{"include " + dir + "/missing", "no such file"},
		{"includedir " + dir + "/missing", "no such file"},
		{"include relative", "has to be absolute"},
		{"[libdefaults", "does not end with ]"},
		{"default_realm = A", "before the first [section]"},
		{"[realms]\nA = {\nkdc = a\n", "is not closed"},
		{"[realms]\n}\n", "closes nothing"},
		{"[realms]\n = {\n}\n", "names no realm"},
		{"[realms]\nA B{}{\n}\n", "names no realm"},
		{"[libdefaults]\na = " + strings.Repeat("b", 5000), "longer than 4096 bytes"},
		{"[libdefaults]\nticket_lifetime = soon", "ticket_lifetime"},
		{"[libdefaults]\npermitted_enctypes = des-cbc-crc", "none of these encryption types"},
	} {
		_, err := parseConfig("test", c.text)
		require.ErrorContains(t, err, c.says, c.text)
		if c.says != "no such file" {
			require.ErrorIs(t, err, fs.ErrInvalid, c.text)
		}
	}
	_, err := loadConfig(dir + "/missing")
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "KRB5_CONFIG")
}

func FuzzConfiguration(f *testing.F) {
	f.Add("[libdefaults]\ndefault_realm = A\n[realms]\nA = { kdc = a }\nB = {\n x = {\n}\nkdc = [::1]:88*\n}\n[domain_realm]\n.a = A\n")
	f.Add("[realms]\n}{\n= {\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := loader{sections: map[string][]string{}, files: maxConfigFiles} // no file is read
		if err := l.text("fuzz", text); err != nil {
			return
		}
		if c, err := newConfiguration("fuzz", l.sections); err == nil {
			require.NotEmpty(t, c.LibDefaults.PermittedEnctypeIDs)
		}
	})
}
