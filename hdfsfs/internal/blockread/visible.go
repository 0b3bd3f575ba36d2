package blockread

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// ReplicaLengths returns an Options.VisibleLength that asks the IPC port of DataNodes. Of the options, Resolver and Protocol are
// set here; byHostname is as in datanode.Options.
func ReplicaLengths(o rpc.Options, byHostname bool) func(context.Context, *wire.DatanodeInfo, *wire.ExtendedBlock) (int64, error) {
	return func(ctx context.Context, node *wire.DatanodeInfo, block *wire.ExtendedBlock) (int64, error) {
		host := node.GetId().GetIpAddr()
		if byHostname || host == "" {
			host = node.GetId().GetHostName()
		}
		once := o
		once.Protocol = rpc.ClientDatanodeProtocol
		once.Resolver = rpc.Fixed{net.JoinHostPort(host, strconv.FormatUint(uint64(node.GetId().GetIpcPort()), 10))}
		client, err := rpc.New(once)
		if err != nil {
			return 0, err
		}
		defer func() { _ = client.Close() }()
		var response wire.GetReplicaVisibleLengthResponse
		call := rpc.Call{Method: "getReplicaVisibleLength"}
		err = client.Call(ctx, call, &wire.GetReplicaVisibleLengthRequest{Block: block}, &response)
		return int64(response.GetLength()), err //nolint:gosec // below 2^63: a node's
	}
}

// isReplicaNotFound: the node answers that it has no such block.
func isReplicaNotFound(err error) bool {
	var answer *rpc.ServerError
	return errors.As(err, &answer) && strings.HasSuffix(answer.Class, "ReplicaNotFoundException")
}
