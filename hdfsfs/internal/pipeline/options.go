package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// NameNode is what a Writer needs of the NameNode; *namenode.Client is one. Its calls repeat what can be repeated.
type NameNode interface {
	Name() string
	AddBlock(ctx context.Context, f namenode.File, previous *wire.ExtendedBlock, p namenode.Placement) (*wire.LocatedBlock, error)
	AbandonBlock(ctx context.Context, f namenode.File, b *wire.ExtendedBlock) error
	GetAdditionalDatanode(
		ctx context.Context, f namenode.File, b *wire.ExtendedBlock, existing []*wire.DatanodeInfo, storageIDs []string,
		exclude []*wire.DatanodeInfo, n uint32,
	) (*wire.LocatedBlock, error)
	UpdateBlockForPipeline(ctx context.Context, b *wire.ExtendedBlock) (*wire.LocatedBlock, error)
	UpdatePipeline(ctx context.Context, before, after *wire.ExtendedBlock, nodes []*wire.DatanodeID, storageIDs []string) error
	Fsync(ctx context.Context, f namenode.File, lastBlockLength int64) error
	Complete(ctx context.Context, f namenode.File, last *wire.ExtendedBlock) (bool, error)
}

// Options of a Writer. The zero value of a field is its documented default.
type Options struct {
	NameNode NameNode         // required
	Dialer   *datanode.Dialer // required
	Pool     *Pool            // nil is one of its own

	// BlockSize and Replication are those that the file was created with; required.
	BlockSize   int64
	Replication int
	// MinReplicas is how many replicas each block must have at its end, else Close is [ErrTooFewReplicas]; 0 is 1.
	MinReplicas int
	// SyncBlocks makes the nodes fsync each block at its end.
	SyncBlocks bool

	// Checksum and BytesPerChecksum are those of the cluster's defaults; CHECKSUM_CRC32C and 512 where they are zero.
	Checksum         wire.ChecksumType
	BytesPerChecksum int
	// PacketSize is how much data a packet holds at most, rounded down to whole chunks; 0 is 128 KiB.
	PacketSize int
	// Window is how many packets may be in memory; 0 is 40: with packets of 128 KiB as much as Hadoop allows itself.
	Window int

	// BlockRetries is how often a new block is set up again on other nodes; 0 is 3, negative is never.
	BlockRetries int
	// MaxRecoveries is how often a pipeline is recovered without an acknowledgement in between; 0 is 5.
	MaxRecoveries int
	// RestartFor is how long a DataNode that says that it restarts is waited for, if a block would have fewer than MinReplicas
	// without it and no other takes its place (dfs.client.datanode-restart.timeout); 0 is 30 s, negative is not at all.
	RestartFor time.Duration
	// CompleteFor is how long the NameNode may take to hear of the last block's replicas; 0 is 60 s.
	CompleteFor time.Duration
	// NeverReplace and AlwaysReplace are the policies of dfs.client.block.write.replace-datanode-on-failure.
	NeverReplace, AlwaysReplace bool
}

// ErrTooFewReplicas: nodes failed, and a block has fewer replicas than it must.
var ErrTooFewReplicas = errors.New("too few replicas")

func (o Options) withDefaults() (Options, geometry, error) {
	var problems []error
	if o.NameNode == nil || o.Dialer == nil {
		problems = append(problems, errors.New("NameNode and Dialer are required"))
	}
	for p, fallback := range map[*int]int{
		&o.MinReplicas: 1, &o.BytesPerChecksum: 512, &o.PacketSize: 128 << 10, &o.Window: 40, &o.BlockRetries: 3, &o.MaxRecoveries: 5,
	} {
		if *p == 0 {
			*p = fallback
		}
	}
	if o.CompleteFor <= 0 {
		o.CompleteFor = time.Minute
	}
	if o.RestartFor == 0 {
		o.RestartFor = 30 * time.Second
	}
	if o.Pool == nil {
		o.Pool = new(Pool)
	}
	g := geometry{chunk: o.BytesPerChecksum, chunks: max(1, o.PacketSize/max(o.BytesPerChecksum, 1))}
	switch o.Checksum {
	case wire.ChecksumType_CHECKSUM_CRC32C, wire.ChecksumType_CHECKSUM_NULL:
		// A file without checksums could not be trusted; DataNodes take what the client asks for.
		o.Checksum, g.table = wire.ChecksumType_CHECKSUM_CRC32C, chunksum.Castagnoli
	case wire.ChecksumType_CHECKSUM_CRC32:
		g.table = crc32.IEEETable
	default:
		problems = append(problems, fmt.Errorf("checksum type %v", o.Checksum))
	}
	if o.BytesPerChecksum < 0 || o.BlockSize <= 0 || o.BytesPerChecksum > 0 && o.BlockSize%int64(o.BytesPerChecksum) != 0 {
		problems = append(problems, fmt.Errorf("block size %d is no multiple of %d bytes for each checksum", o.BlockSize, o.BytesPerChecksum))
	}
	if o.Replication < 1 || o.MinReplicas < 1 || o.MinReplicas > o.Replication {
		problems = append(problems, fmt.Errorf("%d of %d replicas", o.MinReplicas, o.Replication))
	}
	if o.PacketSize < 0 || g.dataStart()+g.capacity() > wire.MaxPacketSize || o.Window < 2 {
		problems = append(problems, fmt.Errorf("packets of %d bytes, %d at a time", o.PacketSize, o.Window))
	}
	if len(problems) > 0 {
		return o, g, fmt.Errorf("%w: %w", fs.ErrInvalid, errors.Join(problems...))
	}
	return o, g, nil
}
