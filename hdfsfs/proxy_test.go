package hdfsfs

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a NameNode, and can do to their conversation what a bad network or a bad moment does.
type proxy struct {
	listener net.Listener
	target   string

	loseAnswersTo atomic.Pointer[string] // the next answer to this method is not delivered, and the connection ends
	denyResultOf  atomic.Pointer[string] // this method is not executed, and the answer says false
	standby       atomic.Bool            // says that it is not active
	executed      atomic.Int64           // requests whose answers were kept or made up

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	work  sync.WaitGroup
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.cut()
		p.work.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) add(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.add(c)
		p.work.Go(func() { p.serve(c) })
	}
}

// serve goes request by request, as the client does.
func (p *proxy) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	server, err := net.Dial("tcp", p.target) //nolint:noctx // of a test
	if err != nil {
		return
	}
	p.add(server)
	defer func() { _ = server.Close() }()
	hello := make([]byte, 7)
	if _, err := io.ReadFull(c, hello); err != nil {
		return
	}
	if _, err := server.Write(hello); err != nil {
		return
	}
	for {
		request, err := readPacket(c)
		if err != nil {
			return
		}
		r, err := parseRequest(request)
		if err != nil {
			return
		}
		if r.call >= 0 && p.standby.Load() {
			if _, err := c.Write(standbyAnswer(r.call)); err != nil {
				return
			}
			continue
		}
		if deny := p.denyResultOf.Load(); deny != nil && *deny == r.method {
			p.executed.Add(1)
			if _, err := c.Write(falseAnswer(r.call)); err != nil {
				return
			}
			continue
		}
		if _, err := server.Write(request); err != nil {
			return
		}
		if r.call < 0 {
			continue // there is no answer without Kerberos
		}
		answer, err := readPacket(server)
		if err != nil {
			return
		}
		if lose := p.loseAnswersTo.Load(); lose != nil && *lose == r.method {
			p.loseAnswersTo.Store(nil)
			p.executed.Add(1)
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// falseAnswer says in field 1 that something was not done.
func falseAnswer(call int32) []byte {
	header := binary.AppendUvarint([]byte{0x08}, uint64(uint32(call))) //nolint:gosec // as Hadoop writes it
	header = append(header, 0x10, 0)
	body := append([]byte{byte(len(header))}, header...)
	body = append(body, 2, 0x08, 0)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // a few bytes
}

func readPacket(r io.Reader) ([]byte, error) {
	packet := make([]byte, 4)
	if _, err := io.ReadFull(r, packet); err != nil {
		return nil, err
	}
	packet = append(packet, make([]byte, binary.BigEndian.Uint32(packet))...)
	_, err := io.ReadFull(r, packet[4:])
	return packet, err
}
