package blockread

import (
	"errors"
	"fmt"
)

var (
	// ErrChecksum: every replica of a block is damaged at the same place, or its bytes are on their way here.
	ErrChecksum = errors.New("the checksum of HDFS is wrong on every replica")
	// ErrNoReplica: no DataNode could give the bytes.
	ErrNoReplica = errors.New("no DataNode has given the bytes")
	// ErrChanged: the file has other blocks than when it was opened.
	ErrChanged = errors.New("the blocks of the file have changed since it was opened")
	// ErrLayout: the file is erasure-coded, encrypted or has no checksums.
	ErrLayout = fmt.Errorf("the layout of the file is not supported: %w", errors.ErrUnsupported)
)

// checksumError is a chunk whose bytes do not have the checksum that came with them.
type checksumError struct {
	node   string
	block  uint64
	offset int64 // of the chunk in the block
}

func (e *checksumError) Error() string {
	return fmt.Sprintf("DataNode %s: wrong checksum in block %d at %d", e.node, e.block, e.offset)
}

// streamError is a connection that broke after its node had begun to send the block.
type streamError struct {
	node string
	err  error
}

func (e *streamError) Error() string {
	return fmt.Sprintf("DataNode %s: in the block: %v", e.node, e.err)
}
func (e *streamError) Unwrap() error { return e.err }
