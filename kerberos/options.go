package kerberos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Options say who logs in, and how. At most one of Keytab, KeytabBytes, Password and CredentialCache may be given; none of
// them means the credential cache that the environment names. Files are taken to be on a local disk: a call waits for them.
type Options struct {
	// Principal is name[/instance][@REALM]. Without a realm the default_realm of the configuration holds. For a credential
	// cache it may be empty; otherwise the cache has to be the principal's.
	Principal string

	// Keytab is the path of a file of keys. It is read anew for each login, and a change of it causes one.
	Keytab string
	// KeytabBytes is the content of such a file.
	KeytabBytes []byte
	// Password returns the password. It is called for each login, never by two goroutines at a time, with a context that ends
	// when the session is closed.
	Password func(context.Context) (string, error)
	// CredentialCache is the name of a file of tickets, with or without FILE: before it, in which %{uid}, %{euid},
	// %{username}, %{TEMP} and %{null} are replaced. Empty means KRB5CCNAME, then default_ccache_name of the configuration,
	// then FILE:/tmp/krb5cc_%{uid}. The file is read anew when it changes, and never written.
	CredentialCache string

	// Config is the path of krb5.conf, or several with colons between them. Empty means KRB5_CONFIG, then /etc/krb5.conf.
	Config string
	// ConfigText is the content of krb5.conf, in the place of a file.
	ConfigText string

	// Now is the clock by which tickets are held to be fresh; nil means time.Now. Messages to the KDC carry the system's time.
	Now func() time.Time
	// Logger is told of logins and renewals, and of failures that no caller gets, as the old ticket is still good; nil means
	// silence.
	Logger *slog.Logger
	// Events is called for each event, by one goroutine at a time, while no lock is held. It must not call Login, AffirmLogin
	// or Close.
	Events func(Event)
}

// source is where a login comes from.
type source int

const (
	fromCache source = iota
	fromKeytab
	fromPassword
)

func (o *Options) source() source {
	switch {
	case o.Password != nil:
		return fromPassword
	case o.Keytab != "" || o.KeytabBytes != nil:
		return fromKeytab
	}
	return fromCache
}

// Validate reports all that is wrong with the options, without looking at files: an error that is fs.ErrInvalid, or nil.
func (o *Options) Validate() error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format+": %w", append(args, fs.ErrInvalid)...))
	}
	var given []string
	for _, s := range []struct {
		name  string
		given bool
	}{
		{"Keytab", o.Keytab != ""},
		{"KeytabBytes", o.KeytabBytes != nil},
		{"Password", o.Password != nil},
		{"CredentialCache", o.CredentialCache != ""},
	} {
		if s.given {
			given = append(given, s.name)
		}
	}
	if len(given) > 1 {
		report("options %s exclude each other", strings.Join(given, " and "))
	}
	if o.KeytabBytes != nil && len(o.KeytabBytes) == 0 {
		report("option KeytabBytes is empty")
	}
	if strings.HasPrefix(o.Keytab, "MEMORY:") {
		report("option Keytab: %q is not a file", o.Keytab)
	}
	if o.Principal != "" {
		if _, err := parsePrincipal(o.Principal); err != nil {
			problems = append(problems, fmt.Errorf("option Principal: %w", err))
		}
	} else if o.source() != fromCache {
		report("option Principal is needed for a keytab or a password")
	}
	if o.CredentialCache != "" {
		if _, err := cachePath(o.CredentialCache); err != nil {
			problems = append(problems, fmt.Errorf("option CredentialCache: %w", err))
		}
	}
	if o.Config != "" && o.ConfigText != "" {
		report("options Config and ConfigText exclude each other")
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("kerberos: %w", err)
	}
	return nil
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// loadConfig reads the configuration that the options name.
func (o *Options) loadConfig() (*configuration, error) {
	if o.ConfigText != "" {
		return parseConfig("ConfigText", o.ConfigText)
	}
	paths := o.Config
	if paths == "" {
		paths = os.Getenv("KRB5_CONFIG")
	}
	if paths == "" {
		paths = "/etc/krb5.conf"
	}
	return loadConfig(paths)
}
