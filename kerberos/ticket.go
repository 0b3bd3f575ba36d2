package kerberos

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is a ticket-granting ticket.
type ticket struct {
	client                types.PrincipalName
	realm                 string
	tgt                   messages.Ticket
	key                   types.EncryptionKey
	start, end, renewTill time.Time
}

func (t *ticket) principal() principal {
	return principal{t.client.PrincipalNameString(), t.realm}
}

// newTicket takes what a KDC sent. The life of a renewed ticket begins with the renewal.
func newTicket(cname types.PrincipalName, realm string, tgt messages.Ticket, part messages.EncKDCRepPart) *ticket {
	t := &ticket{client: cname, realm: realm, tgt: tgt, key: part.Key, start: part.StartTime, end: part.EndTime, renewTill: part.RenewTill}
	if t.start.IsZero() {
		t.start = part.AuthTime
	}
	if t.renewTill.IsZero() {
		t.renewTill = t.end
	}
	return t
}

func tgsName(realm string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
}

// newClient makes a client that has the ticket and no secret. Such a client starts no goroutine to renew its ticket, which one
// that logged in itself would.
func (t *ticket) newClient(c *config.Config) (*client.Client, error) {
	b, err := t.tgt.Marshal()
	if err != nil {
		return nil, err
	}
	cache := &credentials.CCache{Version: 4}
	cache.DefaultPrincipal.Realm, cache.DefaultPrincipal.PrincipalName = t.realm, t.client
	entry := &credentials.Credential{Key: t.key, AuthTime: t.start, StartTime: t.start, EndTime: t.end, RenewTill: t.renewTill, Ticket: b}
	entry.Client = cache.DefaultPrincipal
	entry.Server.Realm, entry.Server.PrincipalName = t.realm, tgsName(t.realm)
	cache.Credentials = append(cache.Credentials, entry)
	return client.NewFromCCache(cache, c, client.DisablePAFXFAST(true))
}

// login asks the KDC for a ticket.
func (s *Session) login(ctx context.Context) (*ticket, error) {
	doing := "login of " + s.principal.String()
	conf := *s.config.Config // a copy: the encryption types are those of this login
	var cl *client.Client
	if s.options.source() == fromPassword {
		password, err := s.options.Password(ctx)
		if err != nil {
			return nil, fmt.Errorf("kerberos: %s: password: %w", doing, err)
		}
		if password == "" {
			return nil, fmt.Errorf("kerberos: %s: the password is empty: %w", doing, fs.ErrInvalid)
		}
		cl = client.NewWithPassword(s.principal.name, s.principal.realm, password, &conf, client.DisablePAFXFAST(true))
	} else {
		k, err := s.options.readKeytab(s.principal)
		if err != nil {
			return nil, err
		}
		conf.LibDefaults.DefaultTktEnctypeIDs = k.common(conf.LibDefaults.DefaultTktEnctypeIDs)
		if len(conf.LibDefaults.DefaultTktEnctypeIDs) == 0 {
			return nil, fmt.Errorf("kerberos: %s: %w: the keytab has the types %v, the configuration allows %v (numbers of RFC 3961): %s",
				doing, ErrEncryptionType, k.etypes, s.config.LibDefaults.DefaultTktEnctypeIDs, hintEtype)
		}
		cl = client.NewWithKeytab(s.principal.name, s.principal.realm, k.Keytab, &conf, client.DisablePAFXFAST(true))
	}
	request, err := messages.NewASReqForTGT(s.principal.realm, &conf, cl.Credentials.CName())
	if err != nil {
		return nil, explain(doing, err)
	}
	reply, err := cl.ASExchange(s.principal.realm, request, 0)
	if err != nil {
		return nil, explain(doing, err)
	}
	return newTicket(reply.CName, reply.CRealm, reply.Ticket, reply.DecryptedEncPart), nil
}

// renew asks the KDC for a ticket in exchange for one that is good still.
func (s *Session) renew(t *ticket) (*ticket, error) {
	doing := "renewal of the ticket of " + s.principal.String()
	cl, err := t.newClient(s.config.Config)
	if err != nil {
		return nil, explain(doing, err)
	}
	_, reply, err := cl.TGSREQGenerateAndExchange(tgsName(t.realm), t.realm, t.tgt, t.key, true)
	if err != nil {
		return nil, explain(doing, err)
	}
	return newTicket(t.client, t.realm, reply.Ticket, reply.DecryptedEncPart), nil
}
