package localfs

import "sync"

const (
	// blockSize is the length of the buffers between callers and the kernel.
	blockSize = 128 << 10

	// maxBlocks is how many of them a Writer may have on their way to the kernel, beside the one that is being filled.
	maxBlocks = 3
)

// block is a buffer that a goroutine may go on using when the caller has left.
type block struct {
	data [blockSize]byte
	n    int // bytes used
}

var blocks = sync.Pool{New: func() any { return new(block) }}

func newBlock() *block {
	b, ok := blocks.Get().(*block)
	if !ok {
		b = new(block)
	}
	b.n = 0
	return b
}

func (b *block) bytes() []byte { return b.data[:b.n] }

// free gives the block back; nobody may use it any more.
func (b *block) free() { blocks.Put(b) }
