package faultproxy

import (
	"net"
	"slices"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	address        string
	client, server *net.TCPConn
	over           chan struct{}
	once           sync.Once
}

func (n *Network) accept(l *net.TCPListener, address string) {
	for {
		client, err := l.AcceptTCP()
		if err != nil {
			return // the network was closed
		}
		if n.refuses(address) {
			reset(client)
			continue
		}
		server, err := dialTCP(address)
		if err != nil {
			reset(client) // as if there were no proxy
			continue
		}
		k := &link{address: address, client: client, server: server, over: make(chan struct{})}
		if !n.add(k) {
			k.end(false)
			return
		}
		var both sync.WaitGroup
		both.Go(func() { n.copy(k, k.server, k.client, ToServer) })
		both.Go(func() { n.copy(k, k.client, k.server, ToClient) })
		n.done.Go(func() {
			both.Wait()
			k.end(false)
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.links, k)
		})
	}
}

func dialTCP(address string) (*net.TCPConn, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	return net.DialTCP("tcp", nil, a)
}

func (n *Network) add(k *link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.links[k] = struct{}{}
	}
	return !n.closed
}

func (n *Network) refuses(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.faults, func(f *active) bool {
		if f.Kind != Refuse || !f.matches(address) || f.Times > 0 && len(f.hit) >= f.Times {
			return false
		}
		f.hit[new(link)] = true
		return true
	})
}

func (f *active) matches(address string) bool { return f.Match == nil || f.Match(address) }

// end closes both sides, with a reset if wanted.
func (k *link) end(withReset bool) {
	k.once.Do(func() {
		close(k.over)
		for _, c := range []*net.TCPConn{k.client, k.server} {
			if withReset {
				reset(c)
			} else {
				_ = c.Close()
			}
		}
	})
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// copy is one direction of a link.
func (n *Network) copy(k *link, to, from *net.TCPConn, d Direction) {
	buffer := make([]byte, 32<<10)
	passed := int64(0)
	for {
		got, err := from.Read(buffer)
		rest := buffer[:got]
		for len(rest) > 0 {
			may := n.pass(k, d, passed, len(rest))
			if may == 0 {
				return // the link is over
			}
			if _, err := to.Write(rest[:may]); err != nil {
				k.end(false)
				return
			}
			passed += int64(may)
			rest = rest[may:]
		}
		if err != nil {
			_ = to.CloseWrite() // the other direction may go on
			return
		}
	}
}

// pass waits until bytes may pass and returns how many; 0 if the link is over.
func (n *Network) pass(k *link, d Direction, passed int64, want int) int {
	for {
		kind, delay, free, changed := n.fate(k, d, passed, want)
		switch {
		case free > 0 && kind == Delay:
			select {
			case <-time.After(delay):
				return free
			case <-k.over:
				return 0
			}
		case free > 0:
			return free
		case kind == Reset:
			k.end(true)
			return 0
		case kind == Truncate:
			k.end(false)
			return 0
		}
		select { // stalled
		case <-changed:
		case <-k.over:
			return 0
		}
	}
}

// fate says what happens to the next bytes: free of them pass, after which kind applies.
func (n *Network) fate(k *link, d Direction, passed int64, want int) (kind Kind, delay time.Duration, free int, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	free = want
	for _, f := range n.faults {
		if f.Kind == Refuse || !f.matches(k.address) || f.Direction != Both && f.Direction != d {
			continue
		}
		if !f.hit[k] && f.Times > 0 && len(f.hit) >= f.Times {
			continue
		}
		left := f.After - passed
		switch {
		case left > 0:
			free = min(free, int(min(left, int64(want))))
		case f.Kind == Delay:
			f.hit[k] = true
			kind, delay = Delay, f.Delay
		default:
			f.hit[k] = true
			return f.Kind, 0, 0, n.changed
		}
	}
	return kind, delay, free, n.changed
}
