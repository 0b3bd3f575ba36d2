package kerberos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

func password(p string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return p, nil }
}

func TestValidateReportsAllProblemsAtOnce(t *testing.T) {
	o := Options{
		Principal: "a@b@c", Keytab: "k", KeytabBytes: []byte{}, Password: password("x"), CredentialCache: "KCM:", Config: "c", ConfigText: "t",
	}
	err := o.Validate()
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, says := range []string{
		"Keytab and KeytabBytes and Password and CredentialCache exclude each other", "KeytabBytes is empty",
		`principal "a@b@c"`, "kind KCM:", "Config and ConfigText",
	} {
		require.ErrorContains(t, err, says)
	}
	require.ErrorContains(t, (&Options{Keytab: "k"}).Validate(), "Principal is needed")
	require.ErrorContains(t, (&Options{Keytab: "MEMORY:k", Principal: "a"}).Validate(), "is not a file")
	require.NoError(t, (&Options{}).Validate())
	require.NoError(t, (&Options{Principal: "a/b@C", Keytab: "k"}).Validate())
	_, err = Login(t.Context(), o)
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestCacheNamesThatAreNoFilesAreRefusedByName(t *testing.T) {
	t.Setenv("TMPDIR", "/var/temporary/")
	uid := os.Getuid()
	for name, want := range map[string]string{
		"FILE:/tmp/krb5cc_%{uid}": fmt.Sprintf("/tmp/krb5cc_%d", uid),
		"/tmp/cc_%{euid}%{null}":  fmt.Sprintf("/tmp/cc_%d", os.Geteuid()),
		"relative":                "relative",
		"/with:colon":             "/with:colon",
		"%{TEMP}/x":               "/var/temporary/x",
	} {
		got, err := cachePath(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"KEYRING:persistent:0", "KCM:", "DIR:/tmp/x", "MEMORY:x", "API:", "keyring:x", "FILE:", "FILE:%{nope}", "FILE:%{uid"} {
		_, err := cachePath(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}

func TestDefaultCacheIsThatOfTheEnvironmentThenOfTheConfiguration(t *testing.T) {
	t.Setenv("KRB5CCNAME", "FILE:/env")
	c := &configuration{defaultCacheName: "FILE:/conf"}
	require.Equal(t, "FILE:/option", c.cacheName("FILE:/option"))
	require.Equal(t, "FILE:/env", c.cacheName(""))
	t.Setenv("KRB5CCNAME", "")
	require.Equal(t, "FILE:/conf", c.cacheName(""))
	require.Equal(t, "FILE:/tmp/krb5cc_%{uid}", (&configuration{}).cacheName(""))
}

func TestDecideKeepsATicketUntilFourFifthsOfItsLife(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := start.Add(10 * time.Hour)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for name, c := range map[string]struct {
		facts
		want need
	}{
		"without a ticket":              {facts{now: start}, must},
		"at its start":                  {facts{now: start, start: start, end: end}, fresh},
		"just before":                   {facts{now: at(8*time.Hour - 1), start: start, end: end}, fresh},
		"at four fifths":                {facts{now: at(8 * time.Hour), start: start, end: end}, better},
		"after a failure":               {facts{now: at(8 * time.Hour), start: start, end: end, retryAt: at(8*time.Hour + 1)}, fresh},
		"when it is time to try again":  {facts{now: at(8 * time.Hour), start: start, end: end, retryAt: at(8 * time.Hour)}, better},
		"with another keytab":           {facts{now: start, start: start, end: end, changed: true}, better},
		"just before the margin":        {facts{now: at(10*time.Hour - 10*time.Second - 1), start: start, end: end, retryAt: end}, fresh},
		"in the margin":                 {facts{now: at(10*time.Hour - 10*time.Second), start: start, end: end, retryAt: end}, must},
		"over":                          {facts{now: at(11 * time.Hour), start: start, end: end}, must},
		"of 10 s, a second before end":  {facts{now: at(9 * time.Second), start: start, end: at(10 * time.Second)}, better},
		"of 10 s, half a second before": {facts{now: at(9500 * time.Millisecond), start: start, end: at(10 * time.Second)}, must},
	} {
		require.Equal(t, c.want, decide(c.facts), name)
	}
	require.True(t, renewable(start, start, end, end.Add(2*time.Hour)))
	require.False(t, renewable(start, start, end, end.Add(2*time.Hour-1)), "too little to gain")
	require.False(t, renewable(start, start, end, end))
	require.False(t, renewable(end, start, end, end.Add(time.Hour*100)), "a ticket that is over cannot be renewed")
	require.Equal(t, time.Second, backoff(1))
	require.Equal(t, 4*time.Second, backoff(3))
	require.Equal(t, time.Minute, backoff(1000))
}

func TestKDCsAnswersBecomeErrorsThatSayWhatToDo(t *testing.T) {
	for code, want := range map[int32]error{
		1: ErrExpired, 6: ErrUnknownPrincipal, 7: ErrUnknownPrincipal, 11: ErrClockSkew, 12: ErrRefused, 13: ErrRefused, 14: ErrEncryptionType,
		18: ErrRefused, 23: ErrExpired, 24: ErrCredentials, 29: ErrUnreachable, 31: ErrCredentials, 32: ErrExpired, 33: ErrClockSkew,
		37: ErrClockSkew, 68: ErrUnknownRealm,
	} {
		k := messages.NewKRBError(types.PrincipalName{}, "R", code, "text")
		err := explain("login of a@R", krberror.Errorf(k, krberror.KDCError, "AS Exchange Error"))
		require.ErrorIs(t, err, want, "code %d", code)
		require.ErrorContains(t, err, "login of a@R")
		require.ErrorContains(t, err, byCode[int(code)].hint)
	}
	for text, want := range map[string]error{
		"[Root cause: Networking_Error] Networking_Error: dial tcp: refused":                  ErrUnreachable,
		"[Root cause: Networking_Error] no KDCs defined in configuration for realm X":         ErrUnknownRealm,
		"[Root cause: Networking_Error] lookup _kerberos._tcp.X on 10.0.0.1:53: no such host": ErrUnknownRealm,
		"[Root cause: Networking_Error] lookup _kerberos._tcp.X on 10.0.0.1:53: i/o timeout":  ErrUnreachable,
		"[Root cause: Decrypting_Error] integrity verification failed":                        ErrCredentials,
		"[Root cause: KRBMessage_Handling_Error] clock skew with KDC too large. Greater than": ErrClockSkew,
	} {
		require.ErrorIs(t, explain("login", errors.New(text)), want, text)
	}
	other := errors.New("something else")
	require.ErrorIs(t, explain("login", other), other)
	require.NoError(t, explain("login", nil))
}

func newKeytab(t testing.TB, entries ...string) []byte {
	k := keytab.New()
	for i, e := range entries {
		require.NoError(t, k.AddEntry(e, "R", fmt.Sprintf("secret%d", i), time.Unix(1, 0), uint8(i+1), 18))
	}
	b, err := k.Marshal()
	require.NoError(t, err)
	return b
}

func TestKeytabOfAnotherPrincipalIsNamed(t *testing.T) {
	b := newKeytab(t, "bob", "nn/host")
	_, err := decodeKeytab("f", b, principal{"alice", "R"})
	require.ErrorIs(t, err, ErrUnknownPrincipal)
	require.ErrorContains(t, err, `["bob@R" "nn/host@R"]`)
	k, err := decodeKeytab("f", b, principal{"bob", "R"})
	require.NoError(t, err)
	require.Equal(t, []int32{18}, k.etypes)
	require.Equal(t, []int32{18}, k.common([]int32{20, 18, 17}))
}

func TestKeytabUsesTheNewestOfKeysOfTheSameSecond(t *testing.T) {
	k, err := decodeKeytab("f", newKeytab(t, "bob", "bob"), principal{"bob", "R"})
	require.NoError(t, err)
	_, kvno, err := k.GetEncryptionKey(types.NewPrincipalName(1, "bob"), "R", 0, 18)
	require.NoError(t, err)
	require.Equal(t, 2, kvno)
}

func TestBrokenKeytabDoesNotShowItsKeys(t *testing.T) {
	b := newKeytab(t, "bob")
	for n := range len(b) {
		_, err := decodeKeytab("f", b[:n], principal{"bob", "R"})
		require.Error(t, err, "%d bytes", n)
		require.NotContains(t, err.Error(), string(b[len(b)-20:len(b)-10]))
		require.Less(t, len(err.Error()), 200)
	}
}

func FuzzKeytab(f *testing.F) {
	f.Add(newKeytab(f, "bob"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := decodeKeytab("f", b, principal{"bob", "R"}); err == nil {
			require.NotEmpty(t, k.etypes)
		}
	})
}

func FuzzCache(f *testing.F) {
	f.Add([]byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 'R', 0, 0, 0, 1, 'a'})
	f.Add(newCache(f, &ticket{client: types.NewPrincipalName(1, "a"), realm: "R", start: time.Unix(1, 0), end: time.Unix(2, 0), renewTill: time.Unix(2, 0)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tkt, err := decodeCache(b); err == nil {
			require.NotEmpty(t, tkt.tgt.SName.NameString)
		}
	})
}
