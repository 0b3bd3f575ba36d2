// Package faultproxy stands between a client and its servers and does to their connections what networks do: it stalls them,
// resets them, ends them early, slows them down. The client dials by Network.Dial.
//
//	client ──► listener on loopback ──► the address that was dialled
//	           one for each address; faults are applied to its connections
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Kind is what a fault does.
type Kind uint8

// The faults.
const (
	Stall    Kind = iota + 1 // no byte passes any more, in either direction; the connection stays
	Reset                    // both sides are reset (RST)
	Truncate                 // what the fault's direction has let pass is delivered, then both sides are closed (FIN)
	Delay                    // each piece of bytes waits for Fault.Delay
	Refuse                   // connections that are made later are reset at once
)

// Direction of bytes.
type Direction uint8

// The directions.
const (
	Both Direction = iota
	ToServer
	ToClient
)

// Fault is something that happens to connections.
type Fault struct {
	Kind Kind
	// Match chooses connections by the address that was dialled; nil is all.
	Match func(address string) bool
	// After is how many bytes a connection lets pass in the direction before the fault, counted from its beginning; 0 is at once.
	// Both counts each direction for itself.
	After     int64
	Direction Direction
	Delay     time.Duration
	// Times bounds to how many connections it happens; 0 is all, also those that are made later.
	Times int
}

// Network is a set of proxies. Its methods may be called concurrently. Close ends and waits for all that it has started.
type Network struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when faults change
	faults    []*active
	listeners map[string]*net.TCPListener
	links     map[*link]struct{}
	closed    bool
	done      sync.WaitGroup
}

type active struct {
	Fault
	hit map[*link]bool
}

// New returns a network without faults.
func New() *Network {
	return &Network{changed: make(chan struct{}), listeners: make(map[string]*net.TCPListener), links: make(map[*link]struct{})}
}

// Inject adds a fault, for connections that are there and for later ones, and returns what takes it back. Connections that it has
// reset or closed stay so.
func (n *Network) Inject(f Fault) (heal func()) {
	a := &active{Fault: f, hit: make(map[*link]bool)}
	n.change(func() { n.faults = append(n.faults, a) })
	return func() {
		n.change(func() {
			for i, other := range n.faults {
				if other == a {
					n.faults = append(n.faults[:i:i], n.faults[i+1:]...)
					return
				}
			}
		})
	}
}

func (n *Network) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	close(n.changed)
	n.changed = make(chan struct{})
}

// Hits is how many connections the faults have happened to that are in force.
func (n *Network) Hits() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	hits := 0
	for _, f := range n.faults {
		hits += len(f.hit)
	}
	return hits
}

// Dial connects to the address through a proxy. It has the form of net.Dialer.DialContext.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	l, err := n.listener(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
}

func (n *Network) listener(address string) (*net.TCPListener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("faultproxy: %w", net.ErrClosed)
	}
	if l := n.listeners[address]; l != nil {
		return l, nil
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	n.listeners[address] = l
	n.done.Go(func() { n.accept(l, address) })
	return l, nil
}

// Close ends all proxies and their connections and waits for them.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	var err error
	for _, l := range n.listeners {
		err = errors.Join(err, l.Close())
	}
	for l := range n.links {
		l.end(false)
	}
	n.listeners = nil
	n.mu.Unlock()
	n.done.Wait()
	return err
}
