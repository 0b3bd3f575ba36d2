package hdfsfs

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silent is a server that accepts and never says anything.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

func newTestLibrary(t *testing.T, o Options) *library {
	t.Helper()
	l := newLibrary(settings{}, nil, o.withDefaults())
	t.Cleanup(func() { l.close(); l.wait() })
	return l
}

func TestASilentDataNodeHoldsNobody(t *testing.T) {
	l := newTestLibrary(t, Options{CallTimeout: 100 * time.Millisecond, DataTimeout: 50 * time.Millisecond})
	address := silent(t)
	t.Run("before it is known for which stream it is", func(t *testing.T) {
		c, err := l.dialData(t.Context(), "tcp", address)
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err, "it is closed after an error")
		require.Empty(t, l.unclaimed)
	})
	t.Run("of a stream", func(t *testing.T) {
		s := l.newStream()
		c, err := l.dialData(t.Context(), "tcp", address)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(s.mark))
		require.Empty(t, l.unclaimed)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Empty(t, s.conns)
		s.close()
		require.Empty(t, l.streams)
	})
}

func TestAStreamBreaksItsConnectionsAndNoOthers(t *testing.T) {
	l := newTestLibrary(t, Options{})
	address := silent(t)
	first, second := l.newStream(), l.newStream()
	conn := func(s *stream) net.Conn {
		c, err := l.dialData(t.Context(), "tcp", address)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(s.mark))
		return c
	}
	a, b := conn(first), conn(second)
	reading := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		reading <- err
	}()
	first.interrupt()
	require.ErrorIs(t, <-reading, net.ErrClosed)
	_, err := b.Write([]byte("x"))
	require.NoError(t, err)
	late, err := l.dialData(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.Error(t, late.SetDeadline(first.mark), "a connection that is made after that")
	require.NoError(t, late.SetDeadline(time.Time{}), "what is no mark has no effect")
	second.close()
	_, err = b.Write([]byte("x"))
	require.Error(t, err)
}

func TestConnectionsThatTheLibraryForgetsAreClosedByTheNext(t *testing.T) {
	l := newTestLibrary(t, Options{CallTimeout: 20 * time.Millisecond})
	address := silent(t)
	forgotten, err := l.dialData(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c, err := l.dialData(context.Background(), "tcp", address)
		return err == nil && c.Close() == nil && len(l.unclaimed) == 0
	}, 5*time.Second, 10*time.Millisecond)
	_, err = forgotten.Write([]byte("x"))
	require.Error(t, err)
}

func TestClosingTheClientBreaksEverything(t *testing.T) {
	l := newTestLibrary(t, Options{})
	address := silent(t)
	c, err := l.dialData(t.Context(), "tcp", address)
	require.NoError(t, err)
	s := l.newStream()
	d, err := l.dialData(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.NoError(t, d.SetDeadline(s.mark))
	l.close()
	for _, c := range []net.Conn{c, d} {
		_, err := io.ReadFull(c, make([]byte, 1))
		require.Error(t, err)
	}
	_, err = l.dialData(t.Context(), "tcp", address)
	require.Error(t, err)
	_, err = l.stat(t.Context(), "/")
	require.Error(t, err)
}
