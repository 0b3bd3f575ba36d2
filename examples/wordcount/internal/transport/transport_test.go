package transport_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/transport"
)

// pair returns the two ends of a loopback connection.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	server, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

func TestMessagesSentAtTheSameTimeArriveWhole(t *testing.T) {
	client, server := pair(t)
	sender, receiver := transport.New(client), transport.New(server)
	const senders, each = 8, 100
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			for range each {
				_ = sender.Send(transport.Ack, bytes.Repeat([]byte{byte(i)}, 1+i*100))
			}
		})
	}
	for range senders * each {
		kind, payload, err := receiver.Receive()
		require.NoError(t, err)
		require.Equal(t, transport.Ack, kind)
		require.Equal(t, bytes.Repeat(payload[:1], 1+int(payload[0])*100), payload)
	}
	sending.Wait()
	require.NoError(t, sender.Close())
	_, _, err := receiver.Receive()
	require.ErrorIs(t, err, io.EOF)
}

func TestACutOffMessageIsNotTheEnd(t *testing.T) {
	for _, cut := range []string{"\x01\x00", "\x01\x00\x00\x00\x05abc"} {
		client, server := pair(t)
		_, err := io.WriteString(client, cut)
		require.NoError(t, err)
		require.NoError(t, client.Close())
		_, _, err = transport.New(server).Receive()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

func TestAHugeLengthIsRefusedBeforeItIsAllocated(t *testing.T) {
	client, server := pair(t)
	_, err := io.WriteString(client, "\x01\xff\xff\xff\xff")
	require.NoError(t, err)
	_, _, err = transport.New(server).Receive()
	require.ErrorContains(t, err, "at most")
}
