package pipeline

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
)

// A node that takes nothing is given up when the time for that is over, which may be less than that for answers.
func TestANodeThatTakesNothingIsGivenUp(t *testing.T) {
	f := newFakes(t, 2, 1)
	deaf, other := net.Pipe()
	defer func() { _ = other.Close() }()
	var dials atomic.Int32
	dialer := datanode.NewDialer(datanode.Options{
		Timeout: time.Minute, WriteTimeout: 200 * time.Millisecond,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				return deaf, nil
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	require.Equal(t, time.Minute, datanode.NewDialer(datanode.Options{Timeout: time.Minute}).WriteTimeout())
	w := f.writer(Options{Dialer: dialer})
	data := content(3000)
	begin := time.Now()
	require.NoError(t, writeAll(w, nil, data))
	require.GreaterOrEqual(t, time.Since(begin), 200*time.Millisecond)
	require.Less(t, time.Since(begin), 20*time.Second)
	require.Equal(t, data, f.bytes())
	require.Equal(t, 2, f.count("addBlock"))
}
