package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// ClientProtocol is the Java name of the protocol of NameNodes, ClientDatanodeProtocol that of the IPC port of DataNodes.
const (
	ClientProtocol         = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	ClientDatanodeProtocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"
)

// Options of a Client. The zero value of a field is its documented default, which is that of Hadoop's client where it has one.
type Options struct {
	// Resolver tells the servers of the service. It must be set.
	Resolver Resolver
	// Protocol is the Java name of the protocol; empty is ClientProtocol.
	Protocol string
	// Authenticator says who the client is; nil is Simple{}, which has no name and is for servers that ask for none.
	Authenticator Authenticator
	// Plan decides about failures; nil gives up at the first.
	Plan Plan

	// Dial opens a connection to host:port; nil is a net.Dialer. It must return when its context ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ConnectTimeout bounds Dial and the negotiation; 0 is 20 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a server may take for an answer; 0 is 120 s. Then the attempt has failed. A server that is silent
	// to all calls for so long loses its connection.
	CallTimeout time.Duration
	// PingInterval is the silence, while an answer is awaited, after which a connection is probed; 0 is 60 s.
	PingInterval time.Duration
	// IdleTimeout is how long a connection without calls is kept; 0 is 10 s.
	IdleTimeout time.Duration

	// MaxRequest bounds a request, in bytes; 0 is 128 MiB, which is also what servers take.
	MaxRequest int
	// MaxAnswer bounds the answer to a call that is marked as large, in bytes; 0 is 128 MiB. Any other answer may have 1 MiB. What is
	// decoded takes up to some twenty times as much memory.
	MaxAnswer int

	// Jitter returns a number in [0, 1) by which waits are spread; nil is a random one. It must be safe for concurrent use.
	Jitter func() float64
	// Observe is told of every failure after which the call goes on; nil is nobody. It must be safe for concurrent use, and quick.
	Observe func(Retry)
}

// Resolver tells the servers of one service as host:port. It is asked at the first call, and again whenever all servers have
// failed in turn. The first one is tried first. Servers must return when its context ends.
type Resolver interface {
	Servers(ctx context.Context) ([]string, error)
}

// Fixed is a Resolver for servers that do not change.
type Fixed []string

// Servers returns them.
func (f Fixed) Servers(context.Context) ([]string, error) { return f, nil }

const (
	// smallAnswer bounds what a server may answer to a call that is not marked as large. Exceptions come with their stack.
	smallAnswer = 1 << 20
	// maxQueued bounds the bytes of calls that wait for the connection.
	maxQueued = 8 << 20
	mebibyte  = 1 << 20
)

// withDefaults checks the options and fills in what is not given.
func (o Options) withDefaults() (Options, error) {
	var problems []error
	if o.Resolver == nil {
		problems = append(problems, errors.New("option Resolver is missing"))
	}
	if o.Protocol == "" {
		o.Protocol = ClientProtocol
	}
	if o.Authenticator == nil {
		o.Authenticator = Simple{}
	}
	if o.Plan == nil {
		o.Plan = func(Failure) Decision { return Decision{Action: GiveUp} }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext // TCP_NODELAY and keep-alive are on
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"ConnectTimeout", &o.ConnectTimeout, 20 * time.Second},
		{"CallTimeout", &o.CallTimeout, 120 * time.Second},
		{"PingInterval", &o.PingInterval, 60 * time.Second},
		{"IdleTimeout", &o.IdleTimeout, 10 * time.Second},
	} {
		switch {
		case *d.value < 0:
			problems = append(problems, fmt.Errorf("option %s: %v is negative", d.name, *d.value))
		case *d.value == 0:
			*d.value = d.fallback
		}
	}
	for _, n := range []struct {
		name  string
		value *int
	}{{"MaxRequest", &o.MaxRequest}, {"MaxAnswer", &o.MaxAnswer}} {
		switch {
		case *n.value < 0 || *n.value > 1<<30:
			problems = append(problems, fmt.Errorf("option %s: %d is not in 1 to 2^30", n.name, *n.value))
		case *n.value == 0:
			*n.value = 128 * mebibyte
		}
	}
	if o.Jitter == nil {
		o.Jitter = randomJitter()
	}
	if o.Observe == nil {
		o.Observe = func(Retry) {}
	}
	return o, errors.Join(problems...)
}
