package kerberos

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

// newCache writes a credential cache (version 4 of the format) of the client of the first ticket.
func newCache(t testing.TB, tickets ...*ticket) []byte {
	b := []byte{5, 4, 0, 0}
	u32 := func(n int64) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	data := func(d []byte) { u32(int64(len(d))); b = append(b, d...) }
	name := func(realm string, p types.PrincipalName) {
		u32(int64(p.NameType))
		u32(int64(len(p.NameString)))
		data([]byte(realm))
		for _, s := range p.NameString {
			data([]byte(s))
		}
	}
	name(tickets[0].realm, tickets[0].client)
	for _, k := range tickets {
		k.tgt.TktVNO, k.tgt.Realm, k.tgt.SName = 5, k.realm, tgsName(k.realm)
		k.tgt.EncPart = types.EncryptedData{EType: 18, Cipher: []byte("opaque")}
		raw, err := k.tgt.Marshal()
		require.NoError(t, err)
		name(k.realm, k.client)
		name(k.realm, tgsName(k.realm))
		b = binary.BigEndian.AppendUint16(b, uint16(k.key.KeyType))
		data(k.key.KeyValue)
		for _, at := range []time.Time{k.start, k.start, k.end, k.renewTill} {
			u32(at.Unix())
		}
		b = append(b, 0, 0, 0, 0, 0) // is_skey, flags
		u32(0)
		u32(0)
		data(raw)
		data(nil)
	}
	return b
}

func TestCacheThatIsCutOffIsAnErrorAtEveryLength(t *testing.T) {
	k := &ticket{
		client: types.NewPrincipalName(1, "alice"), realm: "R", key: types.EncryptionKey{KeyType: 18, KeyValue: make([]byte, 32)},
		start: time.Unix(1000, 0), end: time.Unix(2000, 0), renewTill: time.Unix(3000, 0),
	}
	b := newCache(t, k)
	got, err := decodeCache(b)
	require.NoError(t, err)
	require.Equal(t, "alice@R", got.principal().String())
	require.Equal(t, k.end, got.end)
	require.Equal(t, k.renewTill, got.renewTill)
	for n := range len(b) {
		_, err := decodeCache(b[:n])
		require.Error(t, err, "%d bytes", n)
		require.True(t, errors.Is(err, fs.ErrInvalid) || errors.Is(err, ErrExpired), "%d bytes: %v", n, err)
	}
}

func TestCacheOfSeveralTicketsGivesTheOneThatLastsLongest(t *testing.T) {
	until := func(realm string, end int64) *ticket {
		return &ticket{client: types.NewPrincipalName(1, "alice"), realm: realm, start: time.Unix(1000, 0), end: time.Unix(end, 0), renewTill: time.Unix(0, 0)}
	}
	got, err := decodeCache(newCache(t, until("R", 2000), until("R", 3000), until("OTHER", 9000), until("R", 2500)))
	require.NoError(t, err)
	require.Equal(t, time.Unix(3000, 0), got.end)
	require.Equal(t, "R", got.realm)
	require.Equal(t, got.end, got.renewTill, "a ticket that cannot be renewed")
}

func TestLifeOfARenewedTicketBeginsWithTheRenewal(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	part := messages.EncKDCRepPart{AuthTime: at(1000), StartTime: at(5000), EndTime: at(6000), RenewTill: at(9000)}
	k := newTicket(types.NewPrincipalName(1, "alice"), "R", messages.Ticket{}, part)
	require.Equal(t, at(5000), k.start)
	require.Equal(t, at(9000), k.renewTill)
	part.StartTime, part.RenewTill = time.Time{}, time.Time{}
	k = newTicket(types.NewPrincipalName(1, "alice"), "R", messages.Ticket{}, part)
	require.Equal(t, at(1000), k.start)
	require.Equal(t, at(6000), k.renewTill)
}
