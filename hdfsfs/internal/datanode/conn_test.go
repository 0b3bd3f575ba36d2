package datanode

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func tcpPair(t *testing.T) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err := l.Accept()
	require.NoError(t, err)
	return ours, theirs
}

func TestALowWaterMarkWakesAReaderForMoreAtOnce(t *testing.T) {
	ours, theirs := tcpPair(t)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := NewConn(ours, "node")
	if !c.SetLowWater(100) {
		t.Skip("this system has none")
	}
	once := func() int {
		go func() {
			for range 2 {
				time.Sleep(20 * time.Millisecond) // the reader waits by now, unless the machine is busy
				_, _ = theirs.Write(make([]byte, 60))
			}
		}()
		_, err := c.Reader.Peek(1)
		require.NoError(t, err)
		n := c.Reader.Buffered()
		_, err = c.Reader.Discard(120)
		require.NoError(t, err)
		return n
	}
	n := 0
	for i := 0; n != 120 && i < 20; i++ {
		n = once()
	}
	require.Equal(t, 120, n)
	require.True(t, c.SetLowWater(1))
	go func() { _, _ = theirs.Write([]byte{1}) }()
	_, err := c.Reader.ReadByte()
	require.NoError(t, err)
}
