package blockread

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Checksum returns the CRC32C of all bytes of a closed file and its length, which DataNodes make from the checksums that they keep:
// the composite CRC of Hadoop. located is what the NameNode has told of all blocks just now. A file that cannot have one is
// errors.ErrUnsupported: one that is being written, has checksums of another kind, or is of a layout that is [ErrLayout].
func (c *Client) Checksum(ctx context.Context, located *wire.LocatedBlocks) (sum uint32, size int64, err error) {
	if err := checkLayout(located); err != nil {
		return 0, 0, err
	}
	if located.GetUnderConstruction() {
		return 0, 0, fmt.Errorf("%w: the file is being written", errors.ErrUnsupported)
	}
	for _, b := range located.GetBlocks() {
		length := int64(b.GetB().GetNumBytes()) //nolint:gosec // checked below
		if int64(b.GetOffset()) != size || length < 0 || length > math.MaxInt64-size {
			return 0, 0, fmt.Errorf("%w: a block at %d instead of %d", wire.ErrMalformed, b.GetOffset(), size)
		}
		if b.GetBlockIndices() != nil {
			return 0, 0, fmt.Errorf("%w: its blocks are striped (erasure coding)", ErrLayout)
		}
		part, err := c.blockChecksum(ctx, b)
		if err != nil {
			return 0, 0, err
		}
		if sum, err = join(sum, size, part, length); err != nil {
			return 0, 0, err
		}
		size += length
	}
	if size != int64(located.GetFileLength()) {
		return 0, 0, fmt.Errorf("%w: blocks of %d bytes for a file of %d", wire.ErrMalformed, size, located.GetFileLength())
	}
	return sum, size, nil
}

// join returns the checksum of two pieces, one behind the other.
func join(first uint32, firstLength int64, second uint32, secondLength int64) (uint32, error) {
	switch {
	case firstLength == 0:
		return second, nil
	case secondLength == 0:
		return first, nil
	case secondLength > firstLength || firstLength > math.MaxInt:
		return 0, fmt.Errorf("%w: the first blocks of the file are shorter than the next one", errors.ErrUnsupported)
	}
	pieces := core.Checksums{ChunkSize: int(firstLength), Sums: []uint32{first, second}}
	return pieces.Whole(firstLength + secondLength), nil
}

// blockChecksum asks the nodes of a block in turn.
func (c *Client) blockChecksum(ctx context.Context, b *wire.LocatedBlock) (uint32, error) {
	failure := fmt.Errorf("%w: block %d is on no DataNode", ErrNoReplica, b.GetB().GetBlockId())
	for _, node := range b.GetLocs() {
		sum, err := c.askChecksum(ctx, b, node)
		switch {
		case err == nil:
			return sum, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, errors.ErrUnsupported):
			return 0, err
		}
		failure = fmt.Errorf("%w: %w", ErrNoReplica, err)
	}
	return 0, failure
}

func (c *Client) askChecksum(ctx context.Context, b *wire.LocatedBlock, node *wire.DatanodeInfo) (uint32, error) {
	conn, err := c.o.Dialer.Connect(ctx, node, b.GetBlockToken())
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(c.o.Dialer.Timeout())); err != nil {
		return 0, err
	}
	request := &wire.OpBlockChecksum{
		Header:               &wire.BaseHeader{Block: b.GetB(), Token: b.GetBlockToken()},
		BlockChecksumOptions: &wire.BlockChecksumOptions{BlockChecksumType: wire.BlockChecksumOptions_COMPOSITE_CRC.Enum(), StripeLength: proto.Uint64(0)},
	}
	if err := conn.Request(wire.OpCodeBlockChecksum, request); err != nil {
		return 0, err
	}
	answer, err := conn.Response()
	if err != nil {
		return 0, err
	}
	return compositeCRC(conn.Node, answer.GetChecksumResponse())
}

// compositeCRC is that of an answer. Servers before 3.1 answer with another kind of sum.
func compositeCRC(node string, answer *wire.OpBlockChecksumResponse) (uint32, error) {
	switch {
	case answer.GetBlockChecksumOptions().GetBlockChecksumType() != wire.BlockChecksumOptions_COMPOSITE_CRC:
		return 0, fmt.Errorf("%w: DataNode %s knows no composite CRC", errors.ErrUnsupported, node)
	case answer.GetCrcType() != wire.ChecksumType_CHECKSUM_CRC32C:
		return 0, fmt.Errorf("%w: the block has checksums of the kind %v", errors.ErrUnsupported, answer.GetCrcType())
	case len(answer.GetBlockChecksum()) != 4:
		return 0, &datanode.NodeError{Node: node, Op: "checksum", Err: fmt.Errorf("%w: a sum of %d bytes", wire.ErrMalformed, len(answer.GetBlockChecksum()))}
	}
	return binary.BigEndian.Uint32(answer.GetBlockChecksum()), nil
}
