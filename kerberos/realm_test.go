package kerberos

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realm is one of MIT Kerberos's KDCs with a database of its own. testenv's, which comes with an HDFS, has neither passwords
// nor principals that come and go.
type realm struct {
	t    *testing.T
	dir  string
	conf string // krb5.conf
	addr string
	pid  int
	stop func()
}

const testRealm = "KERBEROS.TEST"

type realmOptions struct {
	enctypes       string        // empty: aes256-cts-hmac-sha1-96
	life           time.Duration // 0: 10 hours
	notRenewable   bool
	libdefaults    string // further lines
	requirePreauth bool
}

// program finds a program of an administrator, or leaves the test out, unless HDFSCKPT_REQUIRE names Kerberos.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/opt/krb5/sbin", "/opt/homebrew/opt/krb5/bin", "/usr/local/opt/krb5/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	required := strings.FieldsFunc(os.Getenv("HDFSCKPT_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains(required, "kerberos") || slices.Contains(required, "all") {
		t.Fatalf("%s (Debian: krb5-kdc krb5-admin-server krb5-user) is required and not installed", name)
	}
	t.Skipf("left out: needs %s (Debian: krb5-kdc krb5-admin-server krb5-user)", name)
	return ""
}

// startRealm makes a realm in which alice, bob and dave have keytabs, and carol has the password "c a r o l".
func startRealm(t *testing.T, o realmOptions) *realm {
	t.Helper()
	if o.enctypes == "" {
		o.enctypes = "aes256-cts-hmac-sha1-96"
	}
	if o.life == 0 {
		o.life = 10 * time.Hour
	}
	renew := "7d"
	if o.notRenewable {
		renew = "0s"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r := &realm{t: t, dir: t.TempDir(), addr: l.Addr().String()}
	types := strings.Fields(o.enctypes)
	r.conf = write(t, r.dir+"/krb5.conf", fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  renew_lifetime = %[4]s
  ticket_lifetime = %[5]ds
  %[3]s
[realms]
  %[1]s = {
    kdc = %[2]s
  }
  ELSEWHERE.TEST = {
    kdc = %[2]s
  }
`, testRealm, r.addr, o.libdefaults, renew, int(o.life/time.Second)))
	write(t, r.dir+"/kdc.conf", fmt.Sprintf(`[kdcdefaults]
  kdc_listen = %[2]s
  kdc_tcp_listen = %[2]s
[realms]
  %[1]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    max_life = %[4]ds
    max_renewable_life = %[5]s
    master_key_type = %[6]s
    supported_enctypes = %[7]s:normal
  }
[logging]
  kdc = STDERR
`, testRealm, r.addr, r.dir, int(o.life/time.Second), renew, types[0], strings.Join(types, ":normal ")))
	r.command("", "kdb5_util", "create", "-s", "-r", testRealm, "-P", "master")
	preauth := ""
	if o.requirePreauth {
		preauth = "+requires_preauth "
	}
	script := "modprinc -maxrenewlife \"" + renew + "\" krbtgt/" + testRealm + "\n"
	for _, name := range []string{"alice", "bob", "dave", "svc/localhost"} {
		script += fmt.Sprintf("addprinc -randkey -maxrenewlife %q %s%s\nktadd -k %s %s\n", renew, preauth, name, r.keytab(name), name)
	}
	r.admin(script + fmt.Sprintf("addprinc -pw \"c a r o l\" -maxrenewlife %q %scarol\n", renew, preauth))
	r.start()
	return r
}

func (r *realm) keytab(name string) string {
	return r.dir + "/" + strings.ReplaceAll(name, "/", "_") + ".keytab"
}

func (r *realm) env() []string {
	return append(os.Environ(), "KRB5_CONFIG="+r.conf, "KRB5_KDC_PROFILE="+r.dir+"/kdc.conf")
}

func (r *realm) command(stdin, name string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(program(r.t, name), args...)
	cmd.Env, cmd.Stdin = r.env(), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s: %s", name, out)
	return string(out)
}

func (r *realm) admin(script string) {
	r.t.Helper()
	r.command(script, "kadmin.local", "-r", testRealm)
}

// start runs the KDC under a shell that kills it when this process ends, however it ends, as its standard input ends then.
func (r *realm) start() {
	r.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `"$1" -n -r "$2" & echo "pid $!" >&2; cat >/dev/null; kill -CONT $!; kill -9 $!; wait`, "sh", program(r.t, "krb5kdc"), testRealm)
	cmd.Env = r.env()
	in, err := cmd.StdinPipe()
	require.NoError(r.t, err)
	log, err := cmd.StderrPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	drained := make(chan struct{})
	stopped := false
	r.stop = func() {
		if !stopped {
			stopped = true
			_ = in.Close()
			<-drained
			_ = cmd.Wait()
		}
	}
	r.t.Cleanup(r.stop)
	lines := bufio.NewScanner(log)
	var seen []string
	ready := false
	for !(ready && r.pid != 0) && lines.Scan() {
		seen = append(seen, lines.Text())
		if pid, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			r.pid, err = strconv.Atoi(pid)
			require.NoError(r.t, err)
		}
		ready = ready || strings.Contains(lines.Text(), "commencing operation")
	}
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	require.True(r.t, ready, "the KDC did not start: %q", seen)
}

func (r *realm) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, syscall.Kill(r.pid, s))
}

// options are those for a principal with its keytab.
func (r *realm) options(name string) Options {
	return Options{Principal: name, Keytab: r.keytab(name), Config: r.conf}
}
