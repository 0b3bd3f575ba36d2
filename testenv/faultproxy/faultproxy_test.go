package faultproxy_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/faultproxy"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func network(t *testing.T) *faultproxy.Network {
	n := faultproxy.New()
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

func dial(t *testing.T, n *faultproxy.Network, address string) net.Conn {
	c, err := n.Dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func exchange(c net.Conn, size int) ([]byte, error) {
	sent := bytes.Repeat([]byte("x"), size)
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, size)
	n, err := io.ReadFull(c, got)
	return got[:n], err
}

func TestWithoutFaultsBytesPass(t *testing.T) {
	c := dial(t, network(t), echo(t))
	got, err := exchange(c, 1<<20)
	require.NoError(t, err)
	require.Len(t, got, 1<<20)
	tcp, ok := c.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tcp.CloseWrite())
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the end passes too")
}

func TestAStalledConnectionGoesOnWhenItIsHealed(t *testing.T) {
	n := network(t)
	c := dial(t, n, echo(t))
	heal := n.Inject(faultproxy.Fault{Kind: faultproxy.Stall, After: 1000, Direction: faultproxy.ToClient})
	require.NoError(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	got, err := exchange(c, 5000)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Len(t, got, 1000)
	require.Equal(t, 1, n.Hits())
	heal()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadFull(c, make([]byte, 4000))
	require.NoError(t, err)
}

func TestAResetIsSeenAsOne(t *testing.T) {
	n := network(t)
	n.Inject(faultproxy.Fault{Kind: faultproxy.Reset, After: 1000, Direction: faultproxy.ToServer})
	_, err := exchange(dial(t, n, echo(t)), 5000)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestATruncatedConnectionDeliversWhatPassedAndEnds(t *testing.T) {
	n := network(t)
	n.Inject(faultproxy.Fault{Kind: faultproxy.Truncate, After: 1000, Direction: faultproxy.ToClient})
	c := dial(t, n, echo(t))
	_, err := c.Write(bytes.Repeat([]byte("x"), 1001))
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Len(t, got, 1000)
}

func TestAFaultHappensAsOftenAsItShouldAndWhereItShould(t *testing.T) {
	n := network(t)
	one, two := echo(t), echo(t)
	n.Inject(faultproxy.Fault{Kind: faultproxy.Refuse, Times: 1, Match: func(address string) bool { return address == one }})
	_, err := exchange(dial(t, n, two), 10)
	require.NoError(t, err)
	refused, err := n.Dial(t.Context(), "tcp", one)
	if err == nil { // the reset comes before or after the connection is seen as made
		_, err = exchange(refused, 10)
		_ = refused.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = exchange(dial(t, n, one), 10)
	require.NoError(t, err)
}

func TestADelayIsWaitedFor(t *testing.T) {
	n := network(t)
	n.Inject(faultproxy.Fault{Kind: faultproxy.Delay, Delay: 50 * time.Millisecond, Direction: faultproxy.ToServer})
	start := time.Now()
	_, err := exchange(dial(t, n, echo(t)), 10)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
}

func TestCloseEndsStalledConnections(t *testing.T) {
	n := faultproxy.New()
	n.Inject(faultproxy.Fault{Kind: faultproxy.Stall})
	c := dial(t, n, echo(t))
	_, err := c.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, n.Close())
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = n.Dial(t.Context(), "tcp", "127.0.0.1:1")
	require.ErrorIs(t, err, net.ErrClosed)
}
