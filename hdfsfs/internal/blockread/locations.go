package blockread

import (
	"context"
	"fmt"
	"sort"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// block is one of a file: bytes start..end of it.
type block struct {
	start, end int64
	located    *wire.LocatedBlock
}

func (b block) id() uint64 { return b.located.GetB().GetBlockId() }

// locations are the places of those blocks of a file that were asked for.
type locations struct {
	mu     sync.Mutex
	blocks []block // by start
	// growing is where the block begins that was being written when the file was opened, -1 if none was.
	growing int64
	size    int64 // of the file when it was opened
}

// find returns the block that holds a byte.
func (l *locations) find(off int64) (block, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := sort.Search(len(l.blocks), func(i int) bool { return l.blocks[i].end > off })
	if i == len(l.blocks) || l.blocks[i].start > off {
		return block{}, false
	}
	return l.blocks[i], true
}

// merge takes fresh places over. Blocks that were known must still be the same.
func (l *locations) merge(found *wire.LocatedBlocks) error {
	if err := checkLayout(found); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, located := range found.GetBlocks() {
		if err := l.add(located); err != nil {
			return err
		}
	}
	if last := found.GetLastBlock(); last != nil {
		return l.add(last)
	}
	return nil
}

// add needs the lock.
func (l *locations) add(located *wire.LocatedBlock) error {
	if located.GetBlockIndices() != nil {
		return fmt.Errorf("%w: its blocks are striped (erasure coding)", ErrLayout)
	}
	start := int64(located.GetOffset())                //nolint:gosec // checked below
	end := start + int64(located.GetB().GetNumBytes()) //nolint:gosec // checked below
	if start < 0 || end < start {
		return fmt.Errorf("%w: a block from %d to %d", wire.ErrMalformed, start, end)
	}
	if end = min(end, l.size); start == l.growing {
		end = l.size
	}
	if start >= end {
		return nil // it is empty, or was begun later
	}
	i := sort.Search(len(l.blocks), func(i int) bool { return l.blocks[i].end > start })
	if i == len(l.blocks) || l.blocks[i].start >= end {
		l.blocks = append(l.blocks, block{})
		copy(l.blocks[i+1:], l.blocks[i:])
	} else if known := l.blocks[i]; known.start != start || known.end != end || known.id() != located.GetB().GetBlockId() {
		return fmt.Errorf("%w: block %d at %d was %d at %d", ErrChanged, located.GetB().GetBlockId(), start, known.id(), known.start)
	}
	l.blocks[i] = block{start: start, end: end, located: located}
	return nil
}

// checkLayout refuses what would be read as other bytes than those of the file.
func checkLayout(found *wire.LocatedBlocks) error {
	switch {
	case found.GetEcPolicy().GetId() != 0:
		return fmt.Errorf("%w: it is erasure-coded", ErrLayout)
	case found.GetFileEncryptionInfo() != nil:
		return fmt.Errorf("%w: it is encrypted", ErrLayout)
	}
	return nil
}

// blockAt returns the block that holds a byte inside the file; the NameNode is asked if it is not known.
func (f *File) blockAt(off int64) (block, error) {
	if b, ok := f.places.find(off); ok {
		return b, nil
	}
	if err := f.locate(off); err != nil {
		return block{}, err
	}
	b, ok := f.places.find(off)
	if !ok {
		return b, fmt.Errorf("%w: the NameNode knows no block at %d of %d bytes", ErrChanged, off, f.Size())
	}
	return b, nil
}

// locate asks for the places of the blocks from a byte on.
func (f *File) locate(off int64) error {
	found, err := f.c.o.NameNode.GetBlockLocations(f.ctx, f.path, off, f.c.o.Prefetch)
	if err != nil {
		if stopped := f.ended(); stopped != nil {
			return stopped
		}
		return err
	}
	return f.places.merge(found)
}

// measure finds out how long the file is now, of which the NameNode has told these blocks. What a writer has not closed is as
// long as its DataNodes have acknowledged.
func (c *Client) measure(ctx context.Context, l *locations, found *wire.LocatedBlocks) error {
	l.size, l.growing = int64(found.GetFileLength()), -1 //nolint:gosec // checked below
	if l.size < 0 {
		return fmt.Errorf("%w: a file of %d bytes", wire.ErrMalformed, l.size)
	}
	last := found.GetLastBlock()
	if last == nil || found.GetIsLastBlockComplete() || !found.GetUnderConstruction() {
		return nil
	}
	length := int64(last.GetB().GetNumBytes()) //nolint:gosec // below 2^63: the NameNode's
	if c.o.VisibleLength != nil && len(last.GetLocs()) > 0 {
		var err error
		if length, err = c.visibleLength(ctx, last); err != nil {
			return err
		}
	}
	start := int64(last.GetOffset()) //nolint:gosec // below 2^63: the NameNode's
	if start >= 0 && length > 0 {
		l.growing, l.size = start, max(l.size, start+length)
	}
	return nil
}

// visibleLength asks the nodes of a block in turn. That none of them has it means that nothing was written to it yet.
func (c *Client) visibleLength(ctx context.Context, b *wire.LocatedBlock) (int64, error) {
	var failure error
	for _, node := range b.GetLocs() {
		length, err := c.o.VisibleLength(ctx, node, b.GetB())
		switch {
		case err == nil:
			return length, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case !isReplicaNotFound(err):
			failure = err
		}
	}
	if failure != nil {
		return 0, fmt.Errorf("%w: the length of the block that is being written is not known: %w", ErrNoReplica, failure)
	}
	return 0, nil
}
