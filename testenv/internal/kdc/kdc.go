// Package kdc describes a private MIT Kerberos realm: its configuration, its database, its principals with their keytabs.
package kdc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Realm is the name of the realm.
const Realm = "HDFSCKPT.TEST"

// Superuser may do anything in HDFS; the others are ordinary users.
const Superuser = "hdfs"

// Users are the principals that tests log in as.
var Users = []string{Superuser, "alice", "bob"}

// KDC is a realm on paper.
type KDC struct {
	Dir             string        `json:"dir"`
	Port            int           `json:"port"`
	TicketLifetime  time.Duration `json:"ticket_lifetime"`
	EncryptionTypes []string      `json:"encryption_types"`
}

// Krb5Conf is the configuration for clients of the realm (KRB5_CONFIG).
func (k KDC) Krb5Conf() string { return filepath.Join(k.Dir, "krb5.conf") }

func (k KDC) kdcConf() string { return filepath.Join(k.Dir, "kdc.conf") }

// Keytab is the file with the key of a principal, which is given without realm.
func (k KDC) Keytab(principal string) string {
	return filepath.Join(k.Dir, strings.ReplaceAll(principal, "/", "_")+".keytab")
}

// Address is where the KDC listens, for TCP and UDP.
func (k KDC) Address() string { return fmt.Sprintf("127.0.0.1:%d", k.Port) }

// krb5Conf allows no UDP, which loses answers.
func (k KDC) krb5Conf() string {
	return fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  ticket_lifetime = %[3]ds
  forwardable = true
  default_tkt_enctypes = %[4]s
  default_tgs_enctypes = %[4]s
  permitted_enctypes = %[4]s
[realms]
  %[1]s = {
    kdc = %[2]s
  }
[domain_realm]
  localhost = %[1]s
`, Realm, k.Address(), k.seconds(), strings.Join(k.EncryptionTypes, " "))
}

func (k KDC) kdcText() string {
	return fmt.Sprintf(`[kdcdefaults]
  kdc_listen = %[2]s
  kdc_tcp_listen = %[2]s
[realms]
  %[1]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    max_life = %[4]ds
    max_renewable_life = 7d
    master_key_type = %[6]s
    supported_enctypes = %[5]s
  }
[logging]
  kdc = STDERR
`, Realm, k.Address(), k.Dir, k.seconds(), strings.Join(k.EncryptionTypes, ":normal ")+":normal", k.EncryptionTypes[0])
}

func (k KDC) seconds() int { return int(k.TicketLifetime / time.Second) }

// Create writes the configuration and a database with the principals, and their keytabs.
func (k KDC) Create(ctx context.Context, s *proc.Starter, principals []string) error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	err := errors.Join(
		os.WriteFile(k.Krb5Conf(), []byte(k.krb5Conf()), 0o600),
		os.WriteFile(k.kdcConf(), []byte(k.kdcText()), 0o600),
	)
	if err != nil {
		return err
	}
	// The master key of a realm that lives as long as a test run.
	create, err := k.command(ctx, "kdb5_util", "create", "-s", "-r", Realm, "-P", "master")
	if err != nil {
		return err
	}
	if _, err := s.Run(create); err != nil {
		return err
	}
	admin, err := k.command(ctx, "kadmin.local", "-r", Realm)
	if err != nil {
		return err
	}
	admin.Stdin = strings.NewReader(k.script(principals))
	out, err := s.Run(admin)
	if err != nil {
		return err
	}
	for _, p := range principals { // kadmin.local's status is 0 whatever its commands did
		if _, err := os.Stat(k.Keytab(p)); err != nil {
			return fmt.Errorf("kadmin.local: %w: %s", err, proc.Tail(out, 2000))
		}
	}
	return nil
}

// script gives each principal a random key. Tickets are renewable.
func (k KDC) script(principals []string) string {
	var b strings.Builder
	for _, p := range append([]string{"krbtgt/" + Realm}, principals...) {
		verb := "addprinc -randkey"
		if strings.HasPrefix(p, "krbtgt/") {
			verb = "modprinc"
		}
		fmt.Fprintf(&b, "%s -maxrenewlife \"7 days\" %s\n", verb, p)
	}
	for _, p := range principals {
		fmt.Fprintf(&b, "ktadd -k %s %s\n", k.Keytab(p), p)
	}
	return b.String()
}

// Server is the KDC itself, which stays in the foreground.
func (k KDC) Server(ctx context.Context) (*exec.Cmd, error) {
	return k.command(ctx, "krb5kdc", "-n", "-r", Realm)
}

func (k KDC) command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	path, err := lookPath(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.Krb5Conf(), "KRB5_KDC_PROFILE="+k.kdcConf())
	return cmd, nil
}
