package hdfsfs

import "sync"

// blockSize is how much is handed over at a time between callers and goroutines.
const blockSize = 128 << 10

// block is a piece of a stream. Callers get away while a goroutine is stuck with one, so it never is the caller's slice.
type block struct {
	n    int
	data [blockSize]byte
}

var blockPool = sync.Pool{New: func() any { return new(block) }}

func newBlock() *block {
	b, _ := blockPool.Get().(*block) // the pool has no others
	b.n = 0
	return b
}

func (b *block) bytes() []byte { return b.data[:b.n] }
func (b *block) free()         { blockPool.Put(b) }
