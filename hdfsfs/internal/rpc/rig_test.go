package rpc

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// The tests call one method, whose answer repeats the path that was asked for.

var echo = Call{Method: "getFileInfo"}

func echoHandler(c *rpctest.Call) {
	m := &wire.GetFileInfoRequest{}
	if err := c.Decode(m); err != nil {
		c.Throw("IOException", err.Error())
		return
	}
	c.Reply(echoAnswer(m.GetSrc()))
}

func echoAnswer(src string) *wire.GetFileInfoResponse {
	return &wire.GetFileInfoResponse{Fs: &wire.HdfsFileStatus{
		FileType: wire.HdfsFileStatus_IS_FILE.Enum(), Path: []byte(src), Length: proto.Uint64(1), Permission: &wire.FsPermission{Perm: proto.Uint32(0o644)},
		Owner: proto.String("o"), Group: proto.String("g"), ModificationTime: proto.Uint64(2), AccessTime: proto.Uint64(3),
	}}
}

func callEcho(ctx context.Context, c *Client, src string) (string, error) {
	response := &wire.GetFileInfoResponse{}
	err := c.Call(ctx, echo, &wire.GetFileInfoRequest{Src: &src}, response)
	return string(response.GetFs().GetPath()), err
}

func requireEcho(t *testing.T, c *Client, src string) {
	t.Helper()
	got, err := callEcho(t.Context(), c, src)
	require.NoError(t, err)
	require.Equal(t, src, got)
}

// newClient returns a client that is closed with the test, and then leaves no goroutine.
func newClient(t *testing.T, o Options, servers ...*rpctest.Server) *Client {
	t.Helper()
	if o.Resolver == nil {
		var addresses Fixed
		for _, s := range servers {
			addresses = append(addresses, s.Address)
		}
		o.Resolver = addresses
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0.5 }
	}
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.Empty(t, goroutinesOfClients(), "Close has left goroutines")
	})
	return c
}

// goroutinesOfClients are the stacks of goroutines that a client has started. One that is just returning gets a moment.
func goroutinesOfClients() []string {
	var found []string
	for range 100 {
		buf := make([]byte, 1<<20)
		found = strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		found = slices.DeleteFunc(found, func(s string) bool {
			return !strings.Contains(s, "rpc.(*conn).writeLoop") && !strings.Contains(s, "rpc.(*conn).readLoop") &&
				!strings.Contains(s, "rpc.(*conn).watchLoop") && !strings.Contains(s, "rpc.(*Client).dial")
		})
		if len(found) == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return found
}

// repeatAtOnce is a plan for tests: a few repetitions, at once.
func repeatAtOnce(f Failure) Decision {
	if f.Attempts > 5 || f.Cause == Refused || f.Cause == Answered {
		return Decision{Action: GiveUp}
	}
	return Decision{Action: Repeat}
}

// attempts records the calls that a server got.
type attempts struct {
	mu    sync.Mutex
	calls []*rpctest.Call
}

func (a *attempts) add(c *rpctest.Call) (number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, c)
	return len(a.calls)
}

func (a *attempts) all() []*rpctest.Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}
