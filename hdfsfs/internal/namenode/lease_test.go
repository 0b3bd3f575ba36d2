package namenode

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func TestAFileWhoseLastBlockIsFinishedButNotReportedIsClosedWhenItIs(t *testing.T) {
	asked := make(chan string, 100)
	var polls atomic.Int32
	server := rpctest.Start(t, func(c *rpctest.Call) {
		asked <- c.Method
		switch {
		case c.Method == "recoverLease":
			c.Throw(hadoop+"hdfs.protocol.AlreadyBeingCreatedException", "Committed blocks are waiting to be minimally replicated. Try again later.")
		default:
			c.Reply(&wire.IsFileClosedResponse{Result: proto.Bool(polls.Add(1) == 3)})
		}
	})
	c := newClient(t, Options{}, server.Address)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.CloseAbandoned(ctx, "/f"))
	require.Equal(t, "recoverLease", <-asked)
	for range 3 {
		require.Equal(t, "isFileClosed", <-asked)
	}
}
