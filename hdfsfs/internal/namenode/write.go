package namenode

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// File names one that this client has open for writing. With the ID it is found wherever it was renamed to, and no other file is
// taken for it.
type File struct {
	Path string
	ID   uint64 // FileId of the status that Create returned
}

// Placement says where a new block should be. The zero value leaves it to the NameNode.
type Placement struct {
	// Exclude are DataNodes that must not hold it.
	Exclude []*wire.DatanodeInfo
	// Favored are the host:port of DataNodes that should.
	Favored []string
	// NoLocalWrite keeps it off the DataNode on this machine if others have room; IgnoreLocality places it as if no DataNode were
	// here.
	NoLocalWrite, IgnoreLocality bool
}

// AddBlock commits the file's last block as previous says, which is nil for the first, and returns a new one to be written. A call
// with the same previous returns the same block as long as it is empty.
func (c *Client) AddBlock(ctx context.Context, f File, previous *wire.ExtendedBlock, p Placement) (*wire.LocatedBlock, error) {
	request := &wire.AddBlockRequest{
		Src: &f.Path, ClientName: &c.name, Previous: previous, FileId: &f.ID, ExcludeNodes: p.Exclude, FavoredNodes: p.Favored,
	}
	if p.NoLocalWrite {
		request.Flags = append(request.Flags, wire.AddBlockFlag_NO_LOCAL_WRITE)
	}
	if p.IgnoreLocality {
		request.Flags = append(request.Flags, wire.AddBlockFlag_IGNORE_CLIENT_LOCALITY)
	}
	var response wire.AddBlockResponse
	err := c.call(ctx, "addBlock", request, &response)
	return response.GetBlock(), err
}

// AbandonBlock drops the file's last block, which was not written. One that is gone is success.
func (c *Client) AbandonBlock(ctx context.Context, f File, b *wire.ExtendedBlock) error {
	request := &wire.AbandonBlockRequest{B: b, Src: &f.Path, Holder: &c.name, FileId: &f.ID}
	return c.call(ctx, "abandonBlock", request, &wire.AbandonBlockResponse{})
}

// GetAdditionalDatanode returns the nodes of a block together with n new ones, or with fewer if there are not so many, in any order
// and with their storage ids. The block is to be copied to the new ones with the token of the answer.
func (c *Client) GetAdditionalDatanode(
	ctx context.Context, f File, b *wire.ExtendedBlock, existing []*wire.DatanodeInfo, storageIDs []string, exclude []*wire.DatanodeInfo, n uint32,
) (*wire.LocatedBlock, error) {
	request := &wire.GetAdditionalDatanodeRequest{
		Src: &f.Path, Blk: b, Existings: existing, Excludes: exclude, NumAdditionalNodes: &n, ClientName: &c.name,
		ExistingStorageUuids: storageIDs, FileId: &f.ID,
	}
	var response wire.GetAdditionalDatanodeResponse
	err := c.call(ctx, "getAdditionalDatanode", request, &response)
	return response.GetBlock(), err
}

// UpdateBlockForPipeline returns a block with a new generation stamp and a fresh token, for a pipeline that is set up anew. Its
// locations are not to be used.
func (c *Client) UpdateBlockForPipeline(ctx context.Context, b *wire.ExtendedBlock) (*wire.LocatedBlock, error) {
	var response wire.UpdateBlockForPipelineResponse
	err := c.call(ctx, "updateBlockForPipeline", &wire.UpdateBlockForPipelineRequest{Block: b, ClientName: &c.name}, &response)
	return response.GetBlock(), err
}

// UpdatePipeline tells the NameNode which nodes hold a block after its pipeline was set up anew: before has the old generation
// stamp and the acknowledged length, after the new stamp and the same length.
func (c *Client) UpdatePipeline(ctx context.Context, before, after *wire.ExtendedBlock, nodes []*wire.DatanodeID, storageIDs []string) error {
	request := &wire.UpdatePipelineRequest{ClientName: &c.name, OldBlock: before, NewBlock: after, NewNodes: nodes, StorageIds: storageIDs}
	return c.call(ctx, "updatePipeline", request, &wire.UpdatePipelineResponse{})
}

// Fsync makes the file's list of blocks durable at the NameNode, and the length of the last one if it is positive; -1 is none.
func (c *Client) Fsync(ctx context.Context, f File, lastBlockLength int64) error {
	request := &wire.FsyncRequest{Src: &f.Path, Client: &c.name, LastBlockLength: &lastBlockLength, FileId: &f.ID}
	return c.call(ctx, "fsync", request, &wire.FsyncResponse{})
}

// Complete closes a file whose last block is as given, nil for an empty file. It reports false while too few DataNodes have told
// the NameNode of the last block: call it again, after a millisecond at first. A repetition after a success is a success.
func (c *Client) Complete(ctx context.Context, f File, last *wire.ExtendedBlock) (bool, error) {
	var response wire.CompleteResponse
	err := c.call(ctx, "complete", &wire.CompleteRequest{Src: &f.Path, ClientName: &c.name, Last: last, FileId: &f.ID}, &response)
	return response.GetResult(), err
}

// ReportBadBlocks tells the NameNode of corrupt replicas: each block's Locs are the nodes whose replicas are.
func (c *Client) ReportBadBlocks(ctx context.Context, blocks ...*wire.LocatedBlock) error {
	return c.call(ctx, "reportBadBlocks", &wire.ReportBadBlocksRequest{Blocks: blocks}, &wire.ReportBadBlocksResponse{})
}

// DatanodeIDs are those of the nodes, as UpdatePipeline wants them.
func DatanodeIDs(nodes []*wire.DatanodeInfo) []*wire.DatanodeID {
	ids := make([]*wire.DatanodeID, len(nodes))
	for i, node := range nodes {
		ids[i] = node.GetId()
	}
	return ids
}

// WithLength is a copy of a block with the length that its nodes have acknowledged.
func WithLength(b *wire.ExtendedBlock, length int64) *wire.ExtendedBlock {
	return &wire.ExtendedBlock{
		PoolId: b.PoolId, BlockId: b.BlockId, GenerationStamp: b.GenerationStamp, NumBytes: proto.Uint64(uint64(max(length, 0))),
	}
}
