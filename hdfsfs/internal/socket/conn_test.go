package socket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
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
			test(t, Wrap(ours), theirs)
		})
	}
}

// sent writes slices, the first of them by Write if there is only one, and wants all of them to be counted.
func sent(c *Conn, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	var n int
	var err error
	if len(parts) == 1 {
		n, err = c.Write(parts[0])
	} else {
		n, err = c.WriteAll(parts)
	}
	if err == nil && n != size {
		return fmt.Errorf("%d of %d bytes", n, size)
	}
	return err
}

func TestWriteAllWritesAllSlicesInOrderHoweverSlowThePeer(t *testing.T) {
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
			require.NoError(t, sent(ours, parts...))
		}
		require.NoError(t, ours.Close())
		require.True(t, bytes.Equal(want, <-got))
	})
}

func TestWriteAllEndsAtTheDeadline(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, _ net.Conn) {
		require.NoError(t, ours.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		err := sent(ours, make([]byte, 64<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NotContains(t, err.Error(), "raw")
	})
}

func TestWriteAllAndReadSayThatTheConnectionIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		require.NoError(t, theirs.Close())
		var err error
		for i := 0; err == nil && i < 100; i++ { // the first one may still get into the buffers
			err = sent(ours, make([]byte, 1<<20))
		}
		require.Error(t, err)
		require.NoError(t, ours.Close())
		_, err = ours.Read(make([]byte, 1))
		require.Error(t, err)
		require.Error(t, sent(ours, []byte{1}))
	})
}

func TestReadReturnsWhatComesThenTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		go func() {
			_, _ = theirs.Write([]byte("an answer"))
			_ = theirs.Close()
		}()
		got, err := io.ReadAll(ours)
		require.NoError(t, err)
		require.Equal(t, "an answer", string(got))
	})
}

func TestReadEndsAtTheDeadlineAndCanGoOn(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		require.NoError(t, ours.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := ours.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, ours.SetReadDeadline(time.Time{}))
		go func() { _, _ = theirs.Write([]byte{7}) }()
		b := make([]byte, 2)
		n, err := ours.Read(b)
		require.NoError(t, err)
		require.Equal(t, []byte{7}, b[:n])
	})
}

func TestCloseAndADeadlineInThePastEndWhatWaits(t *testing.T) {
	for name, stop := range map[string]func(*Conn){
		"close":    func(c *Conn) { _ = c.Close() },
		"deadline": func(c *Conn) { _ = c.SetDeadline(time.Unix(1, 0)) },
	} {
		want := map[string]error{"close": net.ErrClosed, "deadline": os.ErrDeadlineExceeded}[name]
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ours *Conn, _ net.Conn) {
				time.AfterFunc(20*time.Millisecond, func() { stop(ours) })
				_, err := ours.Read(make([]byte, 1))
				if !errors.Is(err, io.ErrClosedPipe) { // that of net.Pipe
					require.ErrorIs(t, err, want)
				}
				require.NotContains(t, err.Error(), "raw")
			})
			ours, theirs := tcpPair(t)
			t.Cleanup(func() { _ = theirs.Close() })
			c := Wrap(ours)
			time.AfterFunc(20*time.Millisecond, func() { stop(c) })
			n, err := c.WriteAll([][]byte{make([]byte, 1<<20), make([]byte, 64<<20), {1}})
			require.ErrorIs(t, err, want)
			_ = c.Close()
			got, err := io.Copy(io.Discard, theirs)
			require.NoError(t, err)
			require.EqualValues(t, got, n, "what was counted is not what came")
		})
	}
}

func TestErrorsAreThoseOfTheSystem(t *testing.T) {
	ours, theirs := tcpPair(t)
	require.NoError(t, theirs.(*net.TCPConn).SetLinger(0)) //nolint:forcetypeassert // it is
	require.NoError(t, theirs.Close())                     // resets
	c := Wrap(ours)
	t.Cleanup(func() { _ = c.Close() })
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorContains(t, err, ours.RemoteAddr().String())
	_, err = c.Write([]byte{1})
	require.ErrorIs(t, err, syscall.EPIPE)
	require.ErrorContains(t, err, ours.RemoteAddr().String())
	require.NoError(t, c.Close())
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = c.Write([]byte{1})
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestEmptySlicesAreWrittenAsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ours *Conn, theirs net.Conn) {
		go func() {
			_, _ = ours.WriteAll([][]byte{{}, {1}, {}, {}, {2, 3}, {}})
			_ = ours.Close()
		}()
		got, err := io.ReadAll(theirs)
		require.NoError(t, err)
		require.Equal(t, []byte{1, 2, 3}, got)
	})
}
