package kerberos

import (
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// configuration is what the library makes of krb5.conf, and what it leaves out.
type configuration struct {
	*config.Config
	from             string // for messages
	defaultCacheName string
}

// defaultEnctypes are asked for where the configuration does not name any: the library's own are without AES-SHA2, and with DES.
const defaultEnctypes = "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96 aes256-cts-hmac-sha384-192 aes128-cts-hmac-sha256-128"

// families are names of several encryption types at once.
var families = map[string]string{
	"default": defaultEnctypes,
	"aes":     defaultEnctypes,
	"rc4":     "arcfour-hmac",
	"des3":    "des3-cbc-sha1",
}

// newConfiguration takes the sections in the sense of MIT Kerberos. The library's parser only gets to see [libdefaults], with
// the first value of each name: of several sections of realms it takes the last one, and it panics on some.
func newConfiguration(from string, sections map[string][]string) (*configuration, error) {
	invalid := func(err error) error { return fmt.Errorf("kerberos: configuration %s: %w", from, err) }
	defaults := firstValues(sections["libdefaults"])
	if err := completeDefaults(defaults); err != nil {
		return nil, invalid(err)
	}
	var b strings.Builder
	b.WriteString("[libdefaults]\n")
	for _, name := range defaults.names {
		fmt.Fprintf(&b, "%s = %s\n", name, defaults.values[name])
	}
	parsed, err := config.NewFromString(b.String())
	if err != nil {
		return nil, invalid(fmt.Errorf("%w: %w", err, fs.ErrInvalid))
	}
	if parsed.Realms, err = readRealms(sections["realms"]); err != nil {
		return nil, invalid(err)
	}
	for domain, realm := range firstValues(sections["domain_realm"]).values {
		parsed.DomainRealm[domain] = realm
	}
	return &configuration{Config: parsed, from: from, defaultCacheName: defaults.values["default_ccache_name"]}, nil
}

// relations are names with their values, in the order of the names' first appearance.
type relations struct {
	names  []string
	values map[string]string
}

func (r *relations) set(name, value string) {
	if _, ok := r.values[name]; !ok {
		r.names = append(r.names, name)
	}
	r.values[name] = value
}

// firstValues passes over subsections: those of [libdefaults] are for single realms or programs.
func firstValues(lines []string) *relations {
	r := &relations{values: map[string]string{}}
	depth := 0
	for _, line := range lines {
		name, value, ok := relation(line)
		switch {
		case opens(line):
			depth++
		case closes(line):
			depth--
		case depth == 0 && ok && r.values[name] == "":
			r.set(name, value)
		}
	}
	return r
}

// relation splits name = value; the * of a final relation goes.
func relation(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, "=")
	if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = value[:i]
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), "*"))
	value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "*"))
	return name, strings.Trim(value, `"`), ok && name != ""
}

func opens(line string) bool { return strings.HasSuffix(strings.TrimSpace(line), "{") }

func closes(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "}") }

// completeDefaults sets what is ours, and writes encryption types as the library knows them.
func completeDefaults(defaults *relations) error {
	if defaults.values["udp_preference_limit"] == "" {
		defaults.set("udp_preference_limit", "1")
	}
	for _, name := range []string{"permitted_enctypes", "default_tkt_enctypes", "default_tgs_enctypes"} {
		list := defaults.values[name]
		if list == "" {
			list = defaults.values["permitted_enctypes"] // set by the first turn
		}
		if list == "" {
			list = defaultEnctypes
		}
		usable := enctypes(list)
		if len(usable) == 0 {
			return fmt.Errorf("%s = %s: none of these encryption types is supported: %w", name, list, fs.ErrInvalid)
		}
		defaults.set(name, strings.Join(usable, " "))
	}
	return nil
}

// enctypes expands families and drops what is not supported.
func enctypes(list string) []string {
	var names []string
	for _, name := range strings.Fields(strings.ReplaceAll(list, ",", " ")) {
		name = strings.ToLower(name)
		without, minus := strings.CutPrefix(name, "-")
		name = strings.TrimPrefix(without, "+")
		expanded := []string{name}
		if family, ok := families[name]; ok {
			expanded = strings.Fields(family)
		}
		for _, n := range expanded {
			id := etypeID.EtypeSupported(n)
			if _, err := crypto.GetEtype(id); id == 0 || err != nil {
				continue
			}
			same := func(other string) bool { return etypeID.EtypeSupported(other) == id }
			switch at := slices.IndexFunc(names, same); {
			case minus && at >= 0:
				names = slices.Delete(names, at, at+1)
			case !minus && at < 0:
				names = append(names, n)
			}
		}
	}
	return names
}

// readRealms joins what several files say of a realm.
func readRealms(lines []string) ([]config.Realm, error) {
	var realms []config.Realm
	at, depth := 0, 0
	for _, line := range splitBraces(lines) {
		name, value, ok := relation(line)
		switch {
		case opens(line) && depth == 0:
			realm, _, _ := strings.Cut(line, "=")
			realm = strings.TrimSpace(realm)
			if realm == "" || strings.ContainsAny(realm, "{} ") {
				return nil, fmt.Errorf("[realms]: %q names no realm: %w", line, fs.ErrInvalid)
			}
			if at = slices.IndexFunc(realms, func(r config.Realm) bool { return r.Realm == realm }); at < 0 {
				at = len(realms)
				realms = append(realms, config.Realm{Realm: realm})
			}
			depth++
		case opens(line):
			depth++
		case closes(line):
			depth--
			if depth < 0 {
				return nil, fmt.Errorf("[realms]: a } closes nothing: %w", fs.ErrInvalid)
			}
		case depth == 1 && ok && value != "":
			setRealm(&realms[at], name, value)
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("[realms]: the { of %s is not closed: %w", realms[at].Realm, fs.ErrInvalid)
	}
	return realms, nil
}

// setRealm takes what a login needs; the library has no use for the rest.
func setRealm(r *config.Realm, name, value string) {
	switch name {
	case "kdc":
		if address := kdcAddress(value); address != "" {
			r.KDC = append(r.KDC, address)
		}
	case "default_domain":
		r.DefaultDomain = value
	}
}

// splitBraces gives each brace that opens or closes a subsection its line: R = { kdc = h } becomes three. Braces within values,
// as of auth_to_local, stay.
func splitBraces(lines []string) []string {
	var split []string
	for _, line := range lines {
		if i := strings.IndexAny(line, "#;"); i >= 0 && !strings.Contains(line, "RULE:") {
			line = strings.TrimSpace(line[:i])
		}
		name, value, ok := strings.Cut(line, "=")
		if value = strings.TrimSpace(value); ok && strings.HasPrefix(value, "{") {
			split = append(split, strings.TrimSpace(name)+" = {")
			line = strings.TrimSpace(value[1:])
		}
		if !strings.HasSuffix(line, "}") || strings.Contains(line, "RULE:") {
			if line != "" {
				split = append(split, line)
			}
			continue
		}
		if before := strings.TrimSpace(strings.TrimSuffix(line, "}")); before != "" {
			split = append(split, before)
		}
		split = append(split, "}")
	}
	return split
}

// kdcAddress returns host:port; empty for what the library cannot speak (a KDC behind HTTPS).
func kdcAddress(value string) string {
	if strings.Contains(value, "://") {
		return ""
	}
	for _, transport := range []string{"tcp/", "udp/"} {
		value = strings.TrimPrefix(value, transport)
	}
	if _, _, err := net.SplitHostPort(value); err == nil {
		return value
	}
	return net.JoinHostPort(strings.Trim(value, "[]"), "88")
}

// kdcs are the addresses of the realm's KDCs in the configuration.
func (c *configuration) kdcs(realm string) []string {
	for _, r := range c.Realms {
		if r.Realm == realm {
			return r.KDC
		}
	}
	return nil
}

// checkRealm returns an error if there is no way to find a KDC.
func (c *configuration) checkRealm(realm string) error {
	if len(c.kdcs(realm)) > 0 || c.LibDefaults.DNSLookupKDC {
		return nil
	}
	var known []string
	for _, r := range c.Realms {
		known = append(known, r.Realm)
	}
	return fmt.Errorf("kerberos: %w %q: the configuration %s has KDCs for %q: %s", ErrUnknownRealm, realm, c.from, known, hintRealm)
}
