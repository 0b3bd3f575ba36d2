package rpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func TestACallIsAnswered(t *testing.T) {
	var got attempts
	server := rpctest.Start(t, func(c *rpctest.Call) { got.add(c); echoHandler(c) })
	c := newClient(t, Options{Authenticator: Simple{User: "alice"}}, server)
	requireEcho(t, c, "/a")
	requireEcho(t, c, "/b")

	calls := got.all()
	require.Len(t, calls, 2)
	require.Equal(t, "alice", calls[0].User)
	require.Equal(t, ClientProtocol, calls[0].Protocol)
	require.Equal(t, "getFileInfo", calls[0].Method)
	require.Equal(t, c.ID(), calls[0].ClientID)
	require.NotEqual(t, calls[0].ID, calls[1].ID)
	require.EqualValues(t, 1, server.Connections.Load())
}

func TestAnExceptionHasItsClassAndFirstLine(t *testing.T) {
	server := rpctest.Start(t, func(c *rpctest.Call) {
		c.Throw("java.io.FileNotFoundException", "File does not exist: /a\n\tat org.apache.hadoop")
	})
	c := newClient(t, Options{}, server)
	_, err := callEcho(t.Context(), c, "/a")
	var thrown *ServerError
	require.ErrorAs(t, err, &thrown)
	require.Equal(t, ServerError{
		Server: server.Address, Method: "getFileInfo", Class: "java.io.FileNotFoundException", Message: "File does not exist: /a",
	}, *thrown)
	server.Handle(echoHandler)
	requireEcho(t, c, "/b")
	require.EqualValues(t, 1, server.Connections.Load(), "the connection goes on")
}

func TestAThousandCallsAreInFlightOnOneConnection(t *testing.T) {
	const n = 1000
	var waiting sync.WaitGroup
	waiting.Add(n)
	server := rpctest.Start(t, func(c *rpctest.Call) {
		waiting.Done()
		waiting.Wait() // nobody is answered before all are there
		echoHandler(c)
	})
	c := newClient(t, Options{}, server)
	errs := make(chan error, n)
	for i := range n {
		go func() {
			want := fmt.Sprintf("/%d", i)
			got, err := callEcho(t.Context(), c, want)
			if err == nil && got != want {
				err = fmt.Errorf("%s got the answer of %s", want, got)
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	require.EqualValues(t, 1, server.Connections.Load())
}

func TestALostAnswerIsAskedForWithTheSameIds(t *testing.T) {
	for name, lose := range map[string]func(*rpctest.Call){
		"end":             (*rpctest.Call).Drop,
		"reset":           (*rpctest.Call).Reset,
		"truncated frame": func(c *rpctest.Call) { c.Raw([]byte{0, 0, 1, 0, 12, 8}); c.Drop() },
		"no byte of it":   func(c *rpctest.Call) { c.Raw([]byte{0, 0}); c.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			var got attempts
			server := rpctest.Start(t, func(c *rpctest.Call) {
				if got.add(c) <= 2 {
					lose(c)
					return
				}
				echoHandler(c)
			})
			var seen atomic.Int64
			c := newClient(t, Options{Plan: repeatAtOnce, Observe: func(r Retry) {
				if r.Failure.Cause == Lost {
					seen.Add(1)
				}
			}}, server)
			requireEcho(t, c, "/a")
			requireEcho(t, c, "/b")
			require.EqualValues(t, 2, seen.Load())

			calls := got.all()
			require.Len(t, calls, 4)
			for i := range 3 {
				require.Equal(t, calls[0].ID, calls[i].ID)
				require.Equal(t, calls[0].ClientID, calls[i].ClientID)
				require.EqualValues(t, i, calls[i].Retry)
				require.Equal(t, calls[0].Request, calls[i].Request)
			}
			require.NotEqual(t, calls[0].ID, calls[3].ID)
			require.Equal(t, calls[0].ClientID, calls[3].ClientID)
		})
	}
}

func TestTheEndOfAContextEndsACallAtOnce(t *testing.T) {
	release := make(chan struct{})
	server := rpctest.Start(t, func(c *rpctest.Call) {
		<-release
		echoHandler(c)
	})
	c := newClient(t, Options{}, server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := callEcho(ctx, c, "/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begin), 250*time.Millisecond)

	close(release) // the late answer is thrown away
	requireEcho(t, c, "/b")
	require.EqualValues(t, 1, server.Connections.Load(), "the connection goes on")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	server.Handle(func(*rpctest.Call) { t.Error("a call without context was sent") })
	_, err = callEcho(ended, c, "/c")
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheEndOfAContextEndsAWaitAndTellsTheFailure(t *testing.T) {
	server := rpctest.Start(t, echoHandler)
	server.Down()
	c := newClient(t, Options{Plan: func(Failure) Decision { return Decision{Repeat, time.Hour} }}, server)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := callEcho(ctx, c, "/a")
	require.Less(t, time.Since(begin), 300*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var transport *TransportError
	require.ErrorAs(t, err, &transport)
	require.False(t, transport.Sent)
	require.ErrorContains(t, err, "refused")
}

func TestAHangingDialEndsWithTheContextAndWithClose(t *testing.T) {
	server := rpctest.Start(t, echoHandler)
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c := newClient(t, Options{Dial: hang}, server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := callEcho(ctx, c, "/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begin), 250*time.Millisecond)

	result := make(chan error, 1)
	go func() {
		_, err := callEcho(t.Context(), c, "/a")
		result <- err
	}()
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-result, ErrClosed)

	slow := newClient(t, Options{Dial: hang, ConnectTimeout: 10 * time.Millisecond}, server)
	_, err = callEcho(t.Context(), slow, "/a")
	var transport *TransportError
	require.ErrorAs(t, err, &transport, "a connection has its own time limit")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "which is not that of the caller")
}

func TestCloseEndsCallsAndMayBeRepeated(t *testing.T) {
	entered := make(chan struct{})
	server := rpctest.Start(t, func(*rpctest.Call) { entered <- struct{}{} })
	c := newClient(t, Options{Plan: repeatAtOnce}, server)
	results := make(chan error)
	for range 3 {
		go func() {
			_, err := callEcho(t.Context(), c, "/a")
			results <- err
		}()
	}
	for range 3 {
		<-entered
	}
	require.NoError(t, c.Close())
	for range 3 {
		err := <-results
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
	require.NoError(t, c.Close())
	_, err := callEcho(t.Context(), c, "/a")
	require.ErrorIs(t, err, ErrClosed)
}

func TestARestartIsRiddenOut(t *testing.T) {
	server := rpctest.Start(t, echoHandler)
	c := newClient(t, Options{Plan: func(Failure) Decision { return Decision{Repeat, 5 * time.Millisecond} }}, server)
	requireEcho(t, c, "/a")
	server.Down()
	up := time.AfterFunc(50*time.Millisecond, server.Up)
	defer up.Stop()
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := callEcho(t.Context(), c, "/b"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 2, server.Connections.Load(), "all callers share one connection")
}

// standby answers as a NameNode that is not active.
func standby(c *rpctest.Call) {
	c.Throw("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby")
}

func failOverAtOnce(f Failure) Decision {
	if f.Failovers > 10 {
		return Decision{Action: GiveUp}
	}
	return Decision{Action: FailOver}
}

func TestTheActiveServerIsFoundAndKept(t *testing.T) {
	var first, second attempts
	a := rpctest.Start(t, func(c *rpctest.Call) { first.add(c); standby(c) })
	b := rpctest.Start(t, func(c *rpctest.Call) { second.add(c); echoHandler(c) })
	c := newClient(t, Options{Plan: failOverAtOnce}, a, b)
	requireEcho(t, c, "/a")
	requireEcho(t, c, "/b")
	require.Len(t, first.all(), 1)
	require.Len(t, second.all(), 2)
	require.Equal(t, first.all()[0].ID, second.all()[0].ID, "the call keeps its id")
	require.Equal(t, first.all()[0].ClientID, second.all()[0].ClientID)

	// All callers that see the change make one change together.
	a.Handle(func(c *rpctest.Call) { first.add(c); echoHandler(c) })
	b.Handle(standby)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, err := callEcho(t.Context(), c, "/c"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

type resolverFunc func() ([]string, error)

func (f resolverFunc) Servers(context.Context) ([]string, error) { return f() }

func TestServersAreResolvedAgainWhenAllHaveFailed(t *testing.T) {
	old, current := rpctest.Start(t, standby), rpctest.Start(t, echoHandler)
	asked := 0
	c := newClient(t, Options{Plan: failOverAtOnce, Resolver: resolverFunc(func() ([]string, error) {
		switch asked++; asked {
		case 1:
			return []string{old.Address}, nil
		case 2:
			return nil, errors.New("the directory service is away")
		}
		return []string{current.Address}, nil
	})})
	requireEcho(t, c, "/a")
	requireEcho(t, c, "/b")
	require.Equal(t, 3, asked)
}

func TestOptionsReportAllProblems(t *testing.T) {
	_, err := New(Options{CallTimeout: -1, IdleTimeout: -1, MaxAnswer: -1, MaxRequest: 1<<30 + 1})
	for _, field := range []string{"Resolver", "CallTimeout", "IdleTimeout", "MaxAnswer", "MaxRequest"} {
		require.ErrorContains(t, err, "option "+field)
	}
	o, err := Options{Resolver: Fixed{"h:1"}}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 120*time.Second, o.CallTimeout)
	require.Equal(t, 128<<20, o.MaxAnswer)
	for range 100 {
		require.Less(t, o.Jitter(), 1.0)
	}
}

func TestARequestThatIsTooLongIsRefused(t *testing.T) {
	server := rpctest.Start(t, func(*rpctest.Call) { t.Error("it was sent") })
	c := newClient(t, Options{MaxRequest: 1000}, server)
	_, err := callEcho(t.Context(), c, string(make([]byte, 1000)))
	require.ErrorContains(t, err, "more than 1000")
}

func TestAnAnswerThatIsNoMessageIsMalformed(t *testing.T) {
	server := rpctest.Start(t, func(c *rpctest.Call) { c.Reply(&wire.IsFileClosedResponse{Result: new(bool)}) })
	c := newClient(t, Options{Plan: repeatAtOnce}, server)
	err := c.Call(t.Context(), echo, &wire.GetFileInfoRequest{Src: new(string)}, &wire.GetContentSummaryResponse{})
	require.ErrorIs(t, err, wire.ErrMalformed)
}
