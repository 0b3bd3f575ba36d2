package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// secret is an authentication for tests: the client answers a challenge, and what follows is protected by a numbered mark.
type secret struct{ password string }

func (secret) SASL() bool { return true }

func (s secret) Authenticate(_ context.Context, n *Negotiation) (Session, error) {
	if err := n.Send(&wire.RpcSasl{State: wire.RpcSasl_NEGOTIATE.Enum()}); err != nil {
		return Session{}, err
	}
	offer, err := n.Receive()
	if err != nil {
		return Session{}, err
	}
	token := append([]byte(s.password), offer.GetToken()...)
	if err := n.Send(&wire.RpcSasl{State: wire.RpcSasl_INITIATE.Enum(), Token: token}); err != nil {
		return Session{}, err
	}
	outcome, err := n.Receive()
	if err != nil {
		return Session{}, err
	}
	if outcome.GetState() != wire.RpcSasl_SUCCESS {
		return Session{}, fmt.Errorf("state %v", outcome.GetState())
	}
	return Session{EffectiveUser: "bob", Wrapper: &marks{}}, nil
}

// marks wraps each piece by its number, so that a piece that is lost, doubled or not wrapped is found.
type marks struct{ sent, received byte }

func (*marks) MaxPlain() int { return 100 }

func (m *marks) Wrap(plain []byte) ([]byte, error) {
	m.sent++
	return append([]byte{m.sent}, slices.Clone(plain)...), nil
}

func (m *marks) Unwrap(token []byte) ([]byte, error) {
	m.received++
	if len(token) == 0 || token[0] != m.received {
		return nil, errors.New("unexpected sequence number")
	}
	return token[1:], nil
}

func askForSecret(s *rpctest.SASL) (rpctest.Wrapper, error) {
	if _, err := s.Receive(); err != nil {
		return nil, err
	}
	s.Send(&wire.RpcSasl{State: wire.RpcSasl_NEGOTIATE.Enum(), Token: []byte("-42")})
	m, err := s.Receive()
	if err != nil {
		return nil, err
	}
	if string(m.GetToken()) != "sesame-42" {
		s.Throw("javax.security.sasl.SaslException", "wrong answer\nstack")
		return &marks{}, nil
	}
	s.Send(&wire.RpcSasl{State: wire.RpcSasl_SUCCESS.Enum()})
	return &marks{}, nil
}

func TestAProtectedConnectionCarriesCallsBothWays(t *testing.T) {
	var got attempts
	server := rpctest.StartSASL(t, askForSecret, func(c *rpctest.Call) { got.add(c); echoHandler(c) })
	c := newClient(t, Options{Authenticator: secret{"sesame"}}, server)
	for _, src := range []string{"/a", "/" + strings.Repeat("long", 300), "/c"} {
		requireEcho(t, c, src)
	}
	require.Equal(t, "bob", got.all()[0].User)
	require.EqualValues(t, 1, server.Connections.Load())
}

func TestARefusedClientIsToldSo(t *testing.T) {
	server := rpctest.StartSASL(t, askForSecret, echoHandler)
	c := newClient(t, Options{Authenticator: secret{"guess"}, Plan: repeatAtOnce}, server)
	_, err := callEcho(t.Context(), c, "/a")
	var refusal *ServerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "javax.security.sasl.SaslException", refusal.Class)
	require.Equal(t, "wrong answer", refusal.Message)
	require.EqualValues(t, 1, server.Connections.Load(), "it is not tried again")
}

func TestABrokenProtectionEndsTheConnection(t *testing.T) {
	for name, broken := range map[string]wire.RpcSasl_State{"state": wire.RpcSasl_CHALLENGE, "number": wire.RpcSasl_WRAP} {
		t.Run(name, func(t *testing.T) {
			server := rpctest.StartSASL(t, func(s *rpctest.SASL) (rpctest.Wrapper, error) {
				w, err := askForSecret(s)
				s.Send(&wire.RpcSasl{State: broken.Enum(), Token: []byte{9}})
				return w, err
			}, echoHandler)
			c := newClient(t, Options{Authenticator: secret{"sesame"}}, server)
			_, err := callEcho(t.Context(), c, "/a")
			require.Error(t, err)
		})
	}
}

func TestASilentNegotiationEndsInTime(t *testing.T) {
	server := rpctest.StartSASL(t, func(s *rpctest.SASL) (rpctest.Wrapper, error) {
		_, err := s.Receive()
		if err == nil {
			_, err = s.Receive() // blocks until the client leaves
		}
		return nil, err
	}, echoHandler)
	c := newClient(t, Options{Authenticator: secret{"sesame"}, ConnectTimeout: 30 * time.Millisecond}, server)
	_, err := callEcho(t.Context(), c, "/a")
	var transport *TransportError
	require.ErrorAs(t, err, &transport)
	require.False(t, transport.Sent)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestUsersAreTold(t *testing.T) {
	require.Nil(t, userInfo(Session{}), "with a token nobody is named")
	require.True(t, proto.Equal(&wire.UserInformation{EffectiveUser: proto.String("a"), RealUser: proto.String("b")},
		userInfo(Session{EffectiveUser: "a", RealUser: "b"})))
}
