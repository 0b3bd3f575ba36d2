package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/messages"
)

const maxCacheBytes = 16 << 20

// cachePath returns the path of the file that a credential cache's name means. Other kinds of caches are refused by name: a
// file called KEYRING:… is never looked for.
func cachePath(name string) (string, error) {
	kind, rest, ok := strings.Cut(name, ":")
	switch {
	case !ok || strings.ContainsAny(kind, "/%."):
		rest = name
	case kind != "FILE":
		return "", fmt.Errorf("credential cache %q: caches of the kind %s: cannot be read from here; use a file (kinit -c FILE:/path, and KRB5CCNAME=FILE:/path) or a keytab: %w",
			name, kind, fs.ErrInvalid)
	}
	path, err := expand(rest)
	if err == nil && path == "" {
		err = errors.New("no path")
	}
	if err != nil {
		return "", fmt.Errorf("credential cache %q: %w: %w", name, err, fs.ErrInvalid)
	}
	return path, nil
}

// expand replaces MIT Kerberos's parameters in a path.
func expand(path string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(path, "%{")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", errors.New("%{ without }")
		}
		switch name {
		case "uid", "USERID":
			b.WriteString(strconv.Itoa(os.Getuid()))
		case "euid":
			b.WriteString(strconv.Itoa(os.Geteuid()))
		case "username":
			u, err := user.Current()
			if err != nil {
				return "", err
			}
			b.WriteString(u.Username)
		case "TEMP":
			b.WriteString(strings.TrimSuffix(os.TempDir(), "/"))
		case "null":
		default:
			return "", fmt.Errorf("%%{%s} is not known", name)
		}
		path = after
	}
}

// defaultCacheName is what holds where the options name no cache.
func (c *configuration) cacheName(option string) string {
	for _, name := range []string{option, os.Getenv("KRB5CCNAME"), c.defaultCacheName} {
		if name != "" {
			return name
		}
	}
	return "FILE:/tmp/krb5cc_%{uid}"
}

// readCache returns the ticket-granting ticket of a cache: of several the one that is valid for longest.
func readCache(path string) (*ticket, error) {
	b, err := readBounded(path, maxCacheBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kerberos: credential cache: %w: run kinit -c %s, or set KRB5CCNAME to where it is", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("kerberos: credential cache: %w", err)
	}
	t, err := decodeCache(b)
	if err != nil {
		return nil, fmt.Errorf("kerberos: credential cache %s: %w: run kinit -c %s", path, err, path)
	}
	return t, nil
}

func decodeCache(b []byte) (*ticket, error) {
	if err := checkCache(b); err != nil {
		return nil, err
	}
	cache := new(credentials.CCache)
	if err := cache.Unmarshal(b); err != nil {
		return nil, fmt.Errorf("%w: %w", err, fs.ErrInvalid)
	}
	realm := cache.DefaultPrincipal.Realm
	var best *ticket
	for _, c := range cache.GetEntries() {
		server := c.Server.PrincipalName.NameString
		if len(server) != 2 || server[0] != "krbtgt" || server[1] != realm || c.Server.Realm != realm {
			continue
		}
		if best != nil && !c.EndTime.After(best.end) {
			continue
		}
		t := &ticket{
			client: cache.DefaultPrincipal.PrincipalName, realm: realm, key: c.Key,
			start: c.StartTime, end: c.EndTime, renewTill: c.RenewTill,
		}
		if c.StartTime.Unix() == 0 {
			t.start = c.AuthTime
		}
		if c.RenewTill.Unix() == 0 {
			t.renewTill = c.EndTime
		}
		if err := unmarshalTicket(&t.tgt, c.Ticket); err == nil {
			best = t
		}
	}
	if best == nil {
		return nil, fmt.Errorf("it holds no ticket-granting ticket of the realm %q: %w", realm, ErrExpired)
	}
	return best, nil
}

// unmarshalTicket also checks what the library takes for granted.
func unmarshalTicket(t *messages.Ticket, b []byte) error {
	if err := t.Unmarshal(b); err != nil {
		return err
	}
	if len(t.SName.NameString) == 0 {
		return errors.New("a ticket for nobody")
	}
	return nil
}

// errTruncated also stands for lengths that are longer than the file.
var errTruncated = fmt.Errorf("it is cut off, or no credential cache: %w", fs.ErrInvalid)

// checkCache walks through a cache (versions 3 and 4 of the format, big-endian) and looks at every length, as the library
// looks at none: it panics on a file that is half written.
func checkCache(b []byte) error {
	if len(b) < 2 || b[0] != 5 || b[1] != 3 && b[1] != 4 {
		return fmt.Errorf("its first bytes are not those of version 3 or 4 of the format: %w", errTruncated)
	}
	w := walker{rest: b[2:]}
	if b[1] == 4 {
		w.header()
	}
	w.principal()
	for w.ok() && len(w.rest) > 0 {
		w.credential(b[1])
	}
	if w.failed {
		return errTruncated
	}
	return nil
}

// walker skips what is in a cache.
type walker struct {
	rest   []byte
	failed bool
}

func (w *walker) ok() bool { return !w.failed }

func (w *walker) skip(n int64) []byte {
	if w.failed || n < 0 || n > int64(len(w.rest)) {
		w.failed = true
		return nil
	}
	skipped := w.rest[:n]
	w.rest = w.rest[n:]
	return skipped
}

func (w *walker) u32() int64 {
	if b := w.skip(4); b != nil {
		return int64(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // the library reads signed lengths
	}
	return 0
}

func (w *walker) u16() int64 {
	if b := w.skip(2); b != nil {
		return int64(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *walker) data() { w.skip(w.u32()) }

// header: the only field that the library knows is that of the KDC's time, 8 bytes.
func (w *walker) header() {
	length := w.u16()
	if length != 0 && length != 12 {
		w.failed = true
	}
	if length == 12 && (w.u16() != 1 || w.u16() != 8) {
		w.failed = true
	}
	if length == 12 {
		w.skip(8)
	}
}

func (w *walker) principal() {
	w.u32()
	components := w.u32()
	w.data()
	if components < 0 {
		w.failed = true
	}
	for range components {
		if w.data(); w.failed {
			return
		}
	}
}

func (w *walker) credential(version byte) {
	w.principal()
	w.principal()
	w.skip(2)
	if version == 3 {
		w.skip(2)
	}
	w.data()
	w.skip(4*4 + 1 + 4) // times, is_skey, flags
	for range 2 {       // addresses, authorization data
		n := w.u32()
		if n < 0 {
			w.failed = true
		}
		for range n {
			w.skip(2)
			if w.data(); w.failed {
				return
			}
		}
	}
	w.data()
	w.data()
}
