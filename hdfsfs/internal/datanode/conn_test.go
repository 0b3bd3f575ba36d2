package datanode

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// link is a kind of connection.
type link struct {
	name string
	pair func(t *testing.T) (ours, theirs net.Conn)
}

// links: on Linux the first goes past the netpoller's calls.
var links = []link{{"TCP", tcpPair}, {"another kind", func(*testing.T) (net.Conn, net.Conn) { return net.Pipe() }}}

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

// onEach runs a test on each kind of connection.
func onEach(t *testing.T, test func(t *testing.T, ours *Conn, theirs net.Conn)) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			ours, theirs := l.pair(t)
			t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
			test(t, newConn(ours, "node"), theirs)
		})
	}
}

func TestSendWritesAllSlicesInOrderHoweverSlowThePeer(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		r := rand.NewChaCha8([32]byte{1})
		var want []byte
		got := make(chan []byte)
		go func() {
			var all bytes.Buffer
			for {
				if n, err := io.CopyN(&all, theirs, 3<<20); err != nil || n == 0 {
					break
				}
				time.Sleep(time.Millisecond) // meanwhile the buffers of the system are full
			}
			got <- all.Bytes()
		}()
		for _, count := range []int{0, 1, 2, 15, 16, 17, 100} {
			var parts [][]byte
			for range count {
				p := make([]byte, 1+r.Uint64()%(200<<10))
				_, _ = r.Read(p)
				parts, want = append(parts, p), append(want, p...)
			}
			require.NoError(t, ours.Send(parts))
		}
		require.NoError(t, ours.Close())
		require.True(t, bytes.Equal(want, <-got))
	})
}

func TestSendEndsAtTheDeadline(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, _ net.Conn) {
		require.NoError(t, ours.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		err := ours.Send([][]byte{make([]byte, 64<<20)})
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NotContains(t, err.Error(), "raw")
	})
}

func TestSendAndReadSayThatTheConnectionIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		require.NoError(t, theirs.Close())
		var err error
		for i := 0; err == nil && i < 100; i++ { // the first one may still get into the buffers
			err = ours.Send([][]byte{make([]byte, 1<<20)})
		}
		require.Error(t, err)
		require.NoError(t, ours.Close())
		_, err = ours.Reader.ReadByte()
		require.Error(t, err)
		require.Error(t, ours.Send([][]byte{{1}}))
	})
}

func TestReadReturnsWhatComesThenTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		go func() {
			_, _ = theirs.Write([]byte("an answer"))
			_ = theirs.Close()
		}()
		got, err := io.ReadAll(ours.Reader)
		require.NoError(t, err)
		require.Equal(t, "an answer", string(got))
	})
}

func TestReadEndsAtTheDeadlineAndCanGoOn(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		require.NoError(t, ours.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := ours.Reader.Peek(1)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, ours.SetReadDeadline(time.Time{}))
		go func() { _, _ = theirs.Write([]byte{7}) }()
		b, err := ours.Reader.ReadByte()
		require.NoError(t, err)
		require.Equal(t, byte(7), b)
	})
}

func TestALowWaterMarkWakesAReaderForMoreAtOnce(t *testing.T) {
	ours, theirs := tcpPair(t)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := newConn(ours, "node")
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
