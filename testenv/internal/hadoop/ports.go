package hadoop

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges from which Linux (32768 and up) and macOS (49152 and up) choose the ports of
// outgoing connections: such a connection cannot take the port of a daemon that is down for the moment.
const lowestPort, highestPort = 20000, 32767

// Ports returns free ports, each only once.
type Ports struct {
	random *rand.Rand
	free   func(port int) bool
	given  map[int]bool
}

// NewPorts returns a source of ports that are free on the loopback interface.
func NewPorts(random *rand.Rand) *Ports {
	return &Ports{random, freeOnLoopback, map[int]bool{}}
}

// Next returns a port that was free a moment ago.
func (p *Ports) Next() (int, error) {
	for range 1000 {
		port := lowestPort + p.random.IntN(highestPort-lowestPort+1)
		if p.given[port] {
			continue
		}
		p.given[port] = true
		if p.free(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port on the loopback interface")
}

func freeOnLoopback(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}
