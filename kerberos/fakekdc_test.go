package kerberos

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

// fakeKDC answers each message with the same bytes, after a pause if there is one: what a real KDC cannot be made to do.
func fakeKDC(t *testing.T, answer []byte) (conf string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer func() { _ = c.Close() }()
				head := make([]byte, 4)
				if _, err := io.ReadFull(c, head); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head))); err != nil {
					return
				}
				_, _ = c.Write(answer)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wait.Wait() })
	return "[libdefaults]\ndefault_realm = R\n[realms]\nR = {\nkdc = " + l.Addr().String() + "\n}\n"
}

func krbErrorMessage(t *testing.T, code int32) []byte {
	t.Helper()
	e := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/R"), "R", code, "")
	b, err := e.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func TestAnswersThatARealKDCCannotBeMadeToGive(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		want   error
	}{
		"its clock is another":    {krbErrorMessage(t, 37), ErrClockSkew},
		"it wants another realm":  {krbErrorMessage(t, 68), ErrUnknownRealm},
		"it cannot answer now":    {krbErrorMessage(t, 29), ErrUnreachable},
		"it hangs up":             {nil, ErrUnreachable},
		"it hangs up in a length": {[]byte{0, 0}, ErrUnreachable},
		"it hangs up in a reply":  {[]byte{0, 0, 0, 9, 1, 2}, ErrUnreachable},
		"it answers with nothing": {[]byte{0, 0, 0, 0}, ErrUnreachable},
	} {
		_, err := Login(t.Context(), Options{Principal: "a", Password: password("p"), ConfigText: fakeKDC(t, c.answer)})
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := Login(t.Context(), Options{Principal: "a", Password: password("p"), ConfigText: fakeKDC(t, []byte{0, 0, 0, 3, 1, 2, 3})})
	require.ErrorContains(t, err, "login of a@R", "an answer that is no message")
}

func TestDeadKDCBesideALivingOneCostsFiveSecondsAtMost(t *testing.T) {
	if testing.Short() {
		t.Skip("left out: a dead KDC takes 5 s")
	}
	r := startRealm(t, realmOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	o := r.options("alice")
	o.Config, o.ConfigText = "", "[libdefaults]\ndefault_realm = "+testRealm+"\n[realms]\n"+testRealm+" = {\nkdc = "+l.Addr().String()+"\nkdc = "+r.addr+"\n}\n"
	start := time.Now()
	s, err := Login(t.Context(), o) // the library tries KDCs in an order of chance
	require.NoError(t, err)
	require.Less(t, time.Since(start), 6*time.Second)
	require.NoError(t, s.Close())
}
