package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// answerFrame is a frame for the call that changes its header or what follows.
func answerFrame(t testing.TB, c *rpctest.Call, change func(*wire.RpcResponseHeader), body []byte) []byte {
	h := &wire.RpcResponseHeader{CallId: proto.Uint32(uint32(c.ID)), Status: wire.RpcResponseHeader_SUCCESS.Enum(), ClientId: c.ClientID[:]}
	if change != nil {
		change(h)
	}
	b, err := wire.AppendDelimited(nil, h)
	if err != nil {
		t.Error(err)
	}
	return rpctest.Frame(append(b, body...))
}

func TestAServerThatBreaksTheProtocolIsRefused(t *testing.T) {
	body, err := wire.AppendDelimited(nil, echoAnswer("/a"))
	require.NoError(t, err)
	for name, broken := range map[string]func(c *rpctest.Call) []byte{
		"HTTP":            func(*rpctest.Call) []byte { return []byte("HTTP/1.1 404 Not Found\r\n\r\n") },
		"negative length": func(*rpctest.Call) []byte { return []byte{0xff, 0xff, 0xff, 0xff, 1} },
		"no length":       func(*rpctest.Call) []byte { return []byte{0, 0, 0, 0, 1} },
		"huge length":     func(*rpctest.Call) []byte { return []byte{0x7f, 0xff, 0xff, 0xff, 1} },
		"answer of more than a small one": func(*rpctest.Call) []byte {
			return []byte{0, 0x20, 0, 0, 1}
		},
		"header that is none": func(*rpctest.Call) []byte { return rpctest.Frame([]byte{3, 0xff, 0xff, 0xff}) },
		"bytes after the answer": func(c *rpctest.Call) []byte {
			return answerFrame(t, c, nil, append(bytes.Clone(body), 0))
		},
		"no answer after the header": func(c *rpctest.Call) []byte { return answerFrame(t, c, nil, nil) },
		"answer for another client": func(c *rpctest.Call) []byte {
			return answerFrame(t, c, func(h *wire.RpcResponseHeader) { h.ClientId = make([]byte, 16) }, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := rpctest.Start(t, func(c *rpctest.Call) { c.Raw(broken(c)) })
			c := newClient(t, Options{Plan: repeatAtOnce}, server)
			_, err := callEcho(t.Context(), c, "/a")
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.EqualValues(t, 1, server.Connections.Load())
			server.Handle(echoHandler)
			requireEcho(t, c, "/b")
		})
	}
}

func TestAnAnswerToAnUnknownCallIsThrownAway(t *testing.T) {
	server := rpctest.Start(t, func(c *rpctest.Call) {
		c.Raw(answerFrame(t, c, func(h *wire.RpcResponseHeader) { h.CallId = proto.Uint32(4711) }, []byte{0}))
		echoHandler(c)
	})
	c := newClient(t, Options{}, server)
	requireEcho(t, c, "/a")
	require.EqualValues(t, 1, server.Connections.Load())
}

func TestWhatAFrameClaimsIsNotAllocatedAhead(t *testing.T) {
	claim := append([]byte{0x07, 0xff, 0xff, 0xff}, make([]byte, 100)...) // 128 MiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readFrame(bufio.NewReader(bytes.NewReader(claim)), 128<<20, nil)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))

	frame, err := readFrame(bufio.NewReader(bytes.NewReader(rpctest.Frame(bytes.Repeat([]byte("x"), 5<<20)))), 6<<20, nil)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte("x"), 5<<20), frame)
}

func TestAFatalExceptionEndsTheConnection(t *testing.T) {
	var got attempts
	server := rpctest.Start(t, func(c *rpctest.Call) {
		if got.add(c) == 2 {
			c.ThrowFatal("org.apache.hadoop.security.AccessControlException", "not you")
		}
	})
	c := newClient(t, Options{}, server)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := callEcho(t.Context(), c, "/a")
			var fatal *ServerError
			if !errors.As(err, &fatal) || !fatal.Fatal || fatal.Message != "not you" {
				t.Errorf("%v", err)
			}
		})
	}
	calls.Wait()
	server.Handle(echoHandler)
	requireEcho(t, c, "/a")
	require.EqualValues(t, 2, server.Connections.Load())
}

func TestASilentServerLosesItsConnection(t *testing.T) {
	var got attempts
	server := rpctest.Start(t, func(c *rpctest.Call) {
		if got.add(c) > 1 {
			echoHandler(c)
		}
	})
	var silent atomic.Bool
	c := newClient(t, Options{
		Plan: repeatAtOnce, CallTimeout: 40 * time.Millisecond,
		Observe: func(r Retry) { silent.Store(r.Failure.Silent) },
	}, server)
	requireEcho(t, c, "/a")
	require.EqualValues(t, 2, server.Connections.Load())
	require.True(t, silent.Load())
	require.Equal(t, got.all()[0].ID, got.all()[1].ID)
}

func TestOneCallWithoutAnswerIsRepeatedOverTheConnectionThatWorks(t *testing.T) {
	var lost attempts
	server := rpctest.Start(t, func(c *rpctest.Call) {
		m := &wire.GetFileInfoRequest{}
		if err := c.Decode(m); err != nil {
			t.Error(err)
		}
		if m.GetSrc() == "/lost" && lost.add(c) == 1 {
			return
		}
		echoHandler(c)
	})
	c := newClient(t, Options{Plan: repeatAtOnce, CallTimeout: 200 * time.Millisecond}, server)
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			if _, err := callEcho(t.Context(), c, "/other"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	requireEcho(t, c, "/lost")
	cancel()
	others.Wait()
	require.EqualValues(t, 1, server.Connections.Load())
	require.Len(t, lost.all(), 2)
}

func TestASilentConnectionIsProbed(t *testing.T) {
	release := make(chan struct{})
	server := rpctest.Start(t, func(c *rpctest.Call) { <-release; echoHandler(c) })
	c := newClient(t, Options{PingInterval: 10 * time.Millisecond}, server)
	result := make(chan error)
	go func() {
		_, err := callEcho(t.Context(), c, "/a")
		result <- err
	}()
	require.Eventually(t, func() bool { return server.Pings.Load() >= 3 }, 5*time.Second, time.Millisecond)
	close(release)
	require.NoError(t, <-result)
}

func TestAnIdleConnectionIsClosedAndMadeAgain(t *testing.T) {
	server := rpctest.Start(t, echoHandler)
	c := newClient(t, Options{IdleTimeout: 10 * time.Millisecond}, server)
	requireEcho(t, c, "/a")
	require.Eventually(t, func() bool { return len(goroutinesOfClients()) == 0 }, 5*time.Second, time.Millisecond)
	requireEcho(t, c, "/b")
	require.EqualValues(t, 2, server.Connections.Load())
}

func TestAConnectionWhoseCallersHaveAllLeftIsIdle(t *testing.T) {
	server := rpctest.Start(t, func(*rpctest.Call) {})
	c := newClient(t, Options{IdleTimeout: 10 * time.Millisecond}, server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := callEcho(ctx, c, "/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	server.Handle(echoHandler)
	require.Eventually(t, func() bool { return len(goroutinesOfClients()) == 0 }, 5*time.Second, time.Millisecond)
	requireEcho(t, c, "/b")
}

func TestALargeAnswerIsTakenOnlyWhereItIsExpected(t *testing.T) {
	var release atomic.Pointer[chan struct{}]
	open := make(chan struct{})
	close(open)
	release.Store(&open)
	server := rpctest.Start(t, func(c *rpctest.Call) {
		m := &wire.GetFileInfoRequest{}
		if err := c.Decode(m); err != nil {
			t.Error(err)
		}
		if m.GetSrc() == "/large" {
			<-*release.Load()
			c.Reply(echoAnswer(string(make([]byte, 3<<20))))
			return
		}
		echoHandler(c)
	})
	c := newClient(t, Options{MaxAnswer: 4 << 20}, server)
	response := &wire.GetFileInfoResponse{}
	large := Call{Method: "getFileInfo", LargeAnswer: true}
	request := &wire.GetFileInfoRequest{Src: proto.String("/large")}
	require.NoError(t, c.Call(t.Context(), large, request, response))
	require.Len(t, response.GetFs().GetPath(), 3<<20)

	_, err := callEcho(t.Context(), c, "/large")
	require.ErrorIs(t, err, wire.ErrMalformed)

	// An answer that comes after its caller has left does not end the connection of others.
	hold := make(chan struct{})
	release.Store(&hold)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Call(ctx, large, request, response), context.DeadlineExceeded)
	before := server.Connections.Load()
	close(hold)
	requireEcho(t, c, "/a")
	requireEcho(t, c, "/b")
	require.Equal(t, before, server.Connections.Load())
}

// deafConn is a connection whose peer does not read: writes block until a deadline or the end.
type deafConn struct {
	net.Conn
	ended chan struct{}
	once  sync.Once
}

func (d *deafConn) Write(b []byte) (int, error) {
	if len(b) < 200 { // the head
		return d.Conn.Write(b)
	}
	<-d.ended
	return 0, net.ErrClosed
}

func (d *deafConn) Close() error {
	d.once.Do(func() { close(d.ended) })
	return d.Conn.Close()
}

func TestCallersWaitWhereAServerDoesNotRead(t *testing.T) {
	server := rpctest.Start(t, echoHandler)
	c := newClient(t, Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &deafConn{Conn: nc, ended: make(chan struct{})}, err
	}}, server)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	begin := time.Now()
	for range 40 {
		calls.Go(func() {
			_, err := callEcho(ctx, c, string(make([]byte, 1<<20)))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	calls.Wait()
	require.Less(t, time.Since(begin), 2*time.Second)
	c.mu.Lock()
	conn := c.links[server.Address].conn
	c.mu.Unlock()
	conn.mu.Lock()
	defer conn.mu.Unlock()
	require.LessOrEqual(t, len(conn.out), maxQueued)
}

// What is in flight decides who may write itself, so it must not grow with calls that are over.
func TestWhatIsAnsweredIsNotInFlight(t *testing.T) {
	hold := make(chan struct{})
	var held attempts
	server := rpctest.Start(t, func(c *rpctest.Call) {
		if held.add(c) <= 3 {
			<-hold
		}
		echoHandler(c)
	})
	c := newClient(t, Options{}, server)
	unread := func() int {
		c.mu.Lock()
		conn := c.links[server.Address].conn
		c.mu.Unlock()
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return conn.unread
	}
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			_, err := callEcho(t.Context(), c, "/held")
			if err != nil {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return len(held.all()) == 3 }, 5*time.Second, time.Millisecond)
	require.Greater(t, unread(), 3*maxHead)
	require.Less(t, unread(), maxDirect)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := callEcho(ctx, c, "/gone")
	require.ErrorIs(t, err, context.Canceled)
	close(hold)
	calls.Wait()
	for range 100 {
		calls.Go(func() {
			_, err := callEcho(t.Context(), c, "/a")
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	require.Zero(t, unread())
}

func FuzzAnswer(f *testing.F) {
	body, err := wire.AppendDelimited(nil, echoAnswer("/a"))
	require.NoError(f, err)
	call := &rpctest.Call{ID: 1}
	f.Add(answerFrame(f, call, nil, body))
	f.Add(answerFrame(f, call, func(h *wire.RpcResponseHeader) {
		h.Status, h.ErrorMsg = wire.RpcResponseHeader_ERROR.Enum(), proto.String("x\ny")
	}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := readFrame(bufio.NewReader(bytes.NewReader(b)), 1<<16, nil)
		if err != nil {
			return
		}
		h, payload, err := cutAnswer(frame)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		require.LessOrEqual(t, len(payload), len(frame))
		e := serverError("s", "m", h)
		require.LessOrEqual(t, len(e.Message), 3*maxMessage)
		require.NotContains(t, e.Message, "\n")
	})
}
