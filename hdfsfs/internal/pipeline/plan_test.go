package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func TestTheLastNodeWhoseReplyIsNoSuccessIsBlamed(t *testing.T) {
	const (
		ok      = wire.Status_SUCCESS
		bad     = wire.Status_ERROR
		sum     = wire.Status_ERROR_CHECKSUM
		restart = wire.Status_OOB_RESTART
	)
	for _, tt := range []struct {
		replies []wire.Status
		want    verdict
	}{
		{[]wire.Status{ok, ok, ok}, verdict{ok: true}},
		{[]wire.Status{ok}, verdict{bad: 1}}, // the others have not acknowledged it
		{[]wire.Status{ok, ok}, verdict{bad: 2}},
		{[]wire.Status{bad, ok, ok}, verdict{bad: 0}},
		{[]wire.Status{ok, bad, ok}, verdict{bad: 1}},
		{[]wire.Status{ok, ok, sum}, verdict{bad: 2}},
		{[]wire.Status{ok, bad, bad}, verdict{bad: 2}}, // what is told from behind is repeated by those in front
		{[]wire.Status{ok, restart}, verdict{bad: 1, restart: true}},
		{[]wire.Status{restart}, verdict{bad: 0, restart: true}},
		{[]wire.Status{ok, ok, ok, bad}, verdict{ok: true}}, // there is no such node
		{nil, verdict{}},
	} {
		message := wire.AppendPipelineAck(nil, 5, tt.replies...)
		body, _, err := wire.CutDelimited(message)
		require.NoError(t, err)
		var a wire.PipelineAck
		require.NoError(t, a.Parse(body))
		require.Equal(t, tt.want, judge(&a, 3), "%v", tt.replies)
	}
}

func TestANodeIsReplacedByThePolicy(t *testing.T) {
	for _, tt := range []struct {
		what      string
		policy    replacement
		survivors int
		want      bool
	}{
		{"all there", replacement{Replication: 3, Required: 2}, 3, false},
		{"one of three lost", replacement{Replication: 3, Required: 2}, 2, false},
		{"one of three lost, read by others", replacement{Replication: 3, Required: 2, Flushed: true}, 2, true},
		{"two of three lost", replacement{Replication: 3, Required: 1}, 1, true},
		{"fewer than must be", replacement{Replication: 2, Required: 2}, 1, true},
		{"fewer than must be, never", replacement{Replication: 2, Required: 2, Never: true}, 1, true},
		{"one of two lost", replacement{Replication: 2, Required: 1}, 1, false},
		{"one of two lost, always", replacement{Replication: 2, Required: 1, Always: true}, 1, true},
		{"two of three lost, never", replacement{Replication: 3, Required: 1, Never: true}, 1, false},
		{"one of three must be there", replacement{Replication: 3, Required: 3}, 2, true},
		{"five, three left", replacement{Replication: 5, Required: 2}, 3, false},
		{"one of three lost at the end of a block", replacement{Replication: 3, Required: 2, Flushed: true, Closing: true}, 2, false},
		{"fewer than must be at the end of a block", replacement{Replication: 3, Required: 2, Closing: true}, 1, true},
		{"five, two left", replacement{Replication: 5, Required: 2}, 2, true},
	} {
		require.Equal(t, tt.want, tt.policy.wanted(tt.survivors), tt.what)
	}
}

func node(i int) *wire.DatanodeInfo {
	return &wire.DatanodeInfo{Id: &wire.DatanodeID{
		DatanodeUuid: proto.String(fmt.Sprint("node-", i)), IpAddr: proto.String("127.0.0.1"), XferPort: proto.Uint32(uint32(1000 + i)),
		HostName: proto.String("localhost"), InfoPort: proto.Uint32(1), IpcPort: proto.Uint32(2),
	}}
}

func pipelineOf(ids ...int) members {
	var m members
	for _, i := range ids {
		m.nodes = append(m.nodes, node(i))
		m.types = append(m.types, wire.StorageType(1+i%2))
		m.storageIDs = append(m.storageIDs, fmt.Sprint("storage-", i))
	}
	return m
}

func TestANodeIsTakenOutWithItsStorage(t *testing.T) {
	for i, want := range []members{pipelineOf(2, 3), pipelineOf(1, 3), pipelineOf(1, 2)} {
		m := pipelineOf(1, 2, 3)
		got := m.without(i)
		require.Equal(t, want.storageIDs, got.storageIDs)
		require.Equal(t, want.types, got.types)
		for j := range want.nodes {
			require.True(t, sameNode(want.nodes[j], got.nodes[j]))
		}
		require.Equal(t, pipelineOf(1, 2, 3).storageIDs, m.storageIDs, "the old pipeline is changed")
	}
}

func TestTheNewNodeOfAnAnswerIsFoundWhereverItIs(t *testing.T) {
	m := pipelineOf(1, 2)
	for _, tt := range []struct {
		answer members
		at     int
		ok     bool
	}{
		{pipelineOf(1, 2, 3), 2, true},
		{pipelineOf(3, 1, 2), 0, true},
		{pipelineOf(1, 3, 2), 1, true},
		{pipelineOf(1, 2), 0, false},
		{pipelineOf(1, 3, 4), 0, false},
		{pipelineOf(1, 2, 2), 0, false},
		{pipelineOf(1, 2, 3, 4), 0, false},
	} {
		at, ok := m.added(tt.answer)
		require.Equal(t, tt.ok, ok, "%v", tt.answer.storageIDs)
		if ok {
			require.Equal(t, tt.at, at)
			require.Equal(t, []string{"storage-3"}, tt.answer.only(at).storageIDs)
		}
	}
}

func TestALocatedBlockMayLackTypesAndStorages(t *testing.T) {
	m := membersOf(&wire.LocatedBlock{Locs: pipelineOf(1, 2).nodes, StorageIds: []string{"one of two"}})
	require.Equal(t, []wire.StorageType{wire.StorageType_DISK, wire.StorageType_DISK}, m.types)
	require.Nil(t, m.storageIDs)
	require.Equal(t, 1, blamed("127.0.0.1:1002", []string{"127.0.0.1:1001", "127.0.0.1:1002"}))
	require.Equal(t, 0, blamed("127.0.0.1:7", []string{"127.0.0.1:1001"}))
	require.Equal(t, 0, blamed("", nil))
}

func TestANodeThatHasFailedIsAvoidedForAWhile(t *testing.T) {
	var a avoided
	start := time.Now()
	require.Empty(t, a.list(start))
	a.add(node(1), start)
	a.add(node(2), start.Add(time.Minute))
	require.Len(t, a.list(start.Add(avoidFor-1)), 2)
	rest := a.list(start.Add(avoidFor))
	require.Len(t, rest, 1)
	require.True(t, sameNode(node(2), rest[0]))
	a.clear()
	require.Empty(t, a.list(start))
}

func TestThatNoNodeHasRoomIsToldByTheMessage(t *testing.T) {
	const none = "File /f could only be written to 0 of the 1 minReplication nodes. There are 3 datanode(s) running"
	require.True(t, noNodes(fmt.Errorf("addBlock: %w", &rpc.ServerError{Class: "java.io.IOException", Message: none})))
	require.False(t, noNodes(&rpc.ServerError{Class: "java.io.IOException", Message: "File does not exist"}))
	require.False(t, noNodes(&rpc.ServerError{Class: "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", Message: none}))
	require.False(t, noNodes(errors.New(none)))
	require.False(t, noNodes(nil))
}

func TestWrongOptionsAreReportedAtOnce(t *testing.T) {
	_, _, err := Options{BlockSize: 1000, Replication: 2, MinReplicas: 3}.withDefaults()
	require.ErrorContains(t, err, "NameNode and Dialer")
	require.ErrorContains(t, err, "1000 is no multiple")
	require.ErrorContains(t, err, "3 of 2 replicas")
}

// What is sent of a packet is what a DataNode parses, with checksums only of what there is.
func TestAPacketIsSentInOnePiece(t *testing.T) {
	g := geometry{chunk: 512, chunks: 4, table: chunksum.Castagnoli}
	var pool Pool
	for _, n := range []int{0, 1, 511, 512, 513, 2048} {
		k := pool.get(g.dataStart() + g.capacity())
		require.Equal(t, n, k.fill(g, content(n)))
		k.offset, k.seqno, k.sync = 512, 7, n == 1
		k.seal(g)
		b := k.bytes(g)
		header, payload, err := wire.ParsePacketPrefix(b)
		require.NoError(t, err)
		h, err := wire.ParsePacketHeader(b[wire.PacketPrefixSize:wire.PacketPrefixSize+header], payload)
		require.NoError(t, err)
		require.Equal(t, wire.PacketHeader{Offset: 512, Seqno: 7, DataLen: n, Sync: n == 1}, h)
		require.Equal(t, 4*((n+511)/512), payload-n)
		require.Equal(t, content(n), b[len(b)-n:])
		pool.put(k)
	}
	require.Equal(t, 0, pool.get(g.dataStart()+g.capacity()).n, "packets are clean")
}
