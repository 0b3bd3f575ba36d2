package kerberos

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
)

// principal is a name with its realm, which may be empty.
type principal struct{ name, realm string }

func (p principal) String() string { return p.name + "@" + p.realm }

// parsePrincipal reads name[/instance][@REALM]. Names with escaped characters do not occur in Hadoop and are refused.
func parsePrincipal(s string) (principal, error) {
	name, realm, hasRealm := strings.Cut(s, "@")
	bad := name == "" || hasRealm && realm == "" || strings.ContainsAny(s, "\\ \t\r\n\x00") || strings.ContainsAny(realm, "@/")
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == ""
	}
	if bad {
		return principal{}, fmt.Errorf("principal %q is not of the form name[/instance][@REALM]: %w", s, fs.ErrInvalid)
	}
	return principal{name, realm}, nil
}

// ServicePrincipal returns the principal of the service on the host: that of the pattern, whose instance _HOST stands for the
// host's name in lower case. As KDCs know services by fully qualified names, a short name or an IP address in the place of
// _HOST is an error (fs.ErrInvalid), which shows what would be asked for. A pattern without _HOST is returned as it is.
func ServicePrincipal(pattern, host string) (string, error) {
	p, err := parsePrincipal(pattern)
	if err != nil {
		return "", fmt.Errorf("kerberos: service %w", err)
	}
	parts := strings.Split(p.name, "/")
	if len(parts) != 2 || parts[1] != "_HOST" {
		if strings.Contains(p.name, "_HOST") {
			return "", fmt.Errorf("kerberos: service principal %q: _HOST has to be the whole instance, as in nn/_HOST@REALM: %w", pattern, fs.ErrInvalid)
		}
		return pattern, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	full := parts[0] + "/" + name
	if p.realm != "" {
		full += "@" + p.realm
	}
	if why := notFQDN(name); why != "" {
		return "", fmt.Errorf("kerberos: %q for %q would ask for the principal %q, but the host %s: write the host's fully qualified name into the address, or the principal without _HOST: %w",
			pattern, host, full, why, fs.ErrInvalid)
	}
	return full, nil
}

// notFQDN says why the host, in lower case, is no fully qualified name; empty if it is one. localhost is taken for one: a
// service on this machine alone has no other name.
func notFQDN(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "is an IP address"
	}
	switch {
	case host == "":
		return "is empty"
	case host == "localhost":
		return ""
	case strings.ContainsAny(host, ":/@ \t\r\n\x00\\"):
		return "is not a host name alone"
	case !strings.Contains(host, "."):
		return "is a short name"
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return "has an empty label"
		}
	}
	return ""
}
