package kerberos

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
)

// What a login fails with.
var (
	// ErrClockSkew: the clocks of this machine and of the KDC are too far apart.
	ErrClockSkew = errors.New("clock skew too great")
	// ErrUnknownPrincipal: the KDC does not know the principal, or the keytab or credential cache is another's.
	ErrUnknownPrincipal = errors.New("unknown principal")
	// ErrUnknownRealm: no KDC is known for the realm, or the KDC does not serve it.
	ErrUnknownRealm = errors.New("unknown realm")
	// ErrEncryptionType: client, keytab and KDC have no encryption type in common.
	ErrEncryptionType = errors.New("no common encryption type")
	// ErrCredentials: the password is wrong, or the key in the keytab is not the principal's, or not any more.
	ErrCredentials = errors.New("wrong password or key")
	// ErrExpired: the ticket is over and cannot be had anew from here, or the account or its password has expired.
	ErrExpired = errors.New("expired")
	// ErrUnreachable: no KDC of the realm answered. Worth retrying.
	ErrUnreachable = errors.New("no answer from the KDC")
	// ErrRefused: the KDC knows the principal and refuses it, by policy or because it is locked.
	ErrRefused = errors.New("refused by the KDC")
)

// diagnosis is a sentinel, and what the user can do.
type diagnosis struct {
	err  error
	hint string
}

const (
	hintClock = "set the clocks of this machine and of the KDC by NTP"
	hintKey   = "check the password, or export the keytab anew: its key may be older than the principal's"
	hintReach = "check the kdc entries of the realm in krb5.conf, that the KDC runs, and that TCP port 88 is open from here"
	hintRealm = "check the realm's spelling (upper case as a rule) and its entry in [realms] of krb5.conf, or set dns_lookup_kdc"
	hintEtype = "compare default_tkt_enctypes and permitted_enctypes in krb5.conf with the keytab (klist -e -k) and with the KDC's supported_enctypes"
)

// byCode are the answers of a KDC (RFC 4120, 7.5.9).
var byCode = map[int]diagnosis{
	int(errorcode.KDC_ERR_NAME_EXP):            {ErrExpired, "the principal has expired: have the administrator of the realm extend it"},
	int(errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN): {ErrUnknownPrincipal, "check the name and the realm of the principal; both are case-sensitive"},
	int(errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN): {ErrUnknownPrincipal, "the realm does not know the service that was asked for: check its principal and host name"},
	int(errorcode.KDC_ERR_NEVER_VALID):         {ErrClockSkew, hintClock},
	int(errorcode.KDC_ERR_POLICY):              {ErrRefused, "the policy of the realm does not allow this login"},
	int(errorcode.KDC_ERR_BADOPTION):           {ErrRefused, "the ticket may not be renewed or not be had with the flags that krb5.conf asks for"},
	int(errorcode.KDC_ERR_ETYPE_NOSUPP):        {ErrEncryptionType, hintEtype},
	int(errorcode.KDC_ERR_CLIENT_REVOKED):      {ErrRefused, "the account is locked or disabled: have the administrator of the realm look"},
	int(errorcode.KDC_ERR_KEY_EXPIRED):         {ErrExpired, "the password has expired: set a new one"},
	int(errorcode.KDC_ERR_PREAUTH_FAILED):      {ErrCredentials, hintKey},
	int(errorcode.KRB_AP_ERR_BAD_INTEGRITY):    {ErrCredentials, hintKey},
	int(errorcode.KRB_AP_ERR_TKT_EXPIRED):      {ErrExpired, "log in again"},
	int(errorcode.KRB_AP_ERR_TKT_NYV):          {ErrClockSkew, hintClock},
	int(errorcode.KRB_AP_ERR_SKEW):             {ErrClockSkew, hintClock},
	int(errorcode.KDC_ERR_WRONG_REALM):         {ErrUnknownRealm, hintRealm},
	int(errorcode.KDC_ERR_SVC_UNAVAILABLE):     {ErrUnreachable, "the KDC is there but cannot answer now: try again"},
}

// byText are errors that the library makes itself, by what all occurs in them, in the order of the search: the more special
// ones are first.
var byText = []struct {
	text string // parts with … between them
	diagnosis
}{
	{"lookup _kerberos … no such host", diagnosis{ErrUnknownRealm, hintRealm}},
	{"maximum number of client referrals", diagnosis{ErrUnknownRealm, hintRealm}},
	{"no KDCs defined in configuration", diagnosis{ErrUnknownRealm, hintRealm}},
	{"no KDC SRV records found", diagnosis{ErrUnknownRealm, hintRealm}},
	{"does not have any defined KDCs", diagnosis{ErrUnknownRealm, hintRealm}},
	{"clock skew", diagnosis{ErrClockSkew, hintClock}},
	{"matching key not found in keytab", diagnosis{ErrCredentials, hintKey}},
	{"error creating etype", diagnosis{ErrEncryptionType, hintEtype}},
	{"error getting etype", diagnosis{ErrEncryptionType, hintEtype}},
	{"Decrypting_Error", diagnosis{ErrCredentials, hintKey}},
	{"Networking_Error", diagnosis{ErrUnreachable, hintReach}},
}

// The library flattens the answers of a KDC to text.
var krbError = regexp.MustCompile(`KRB Error: \((\d+)\) (\S+)`)

// explain turns what the library says into an error with a sentinel and a hint.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if m := krbError.FindStringSubmatch(text); m != nil {
		if code, e := strconv.Atoi(m[1]); e == nil {
			if d, ok := byCode[code]; ok {
				return fmt.Errorf("kerberos: %s: %w (%s): %s", doing, d.err, m[2], d.hint)
			}
		}
	}
	for _, t := range byText {
		if containsAll(text, strings.Split(t.text, " … ")) {
			return fmt.Errorf("kerberos: %s: %w: %s: %s", doing, t.err, t.hint, text)
		}
	}
	return fmt.Errorf("kerberos: %s: %w", doing, err)
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
