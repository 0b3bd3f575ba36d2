// Package blocks takes a stream from callers who must get away whatever happens to those who are to store it: what callers give is
// copied into blocks, which a goroutine writes. The writers of this module's file systems share it.
package blocks

import "sync"

// Size is the length in bytes of the buffers between callers and goroutines.
const Size = 128 << 10

// Block is a piece of a stream. Callers get away while a goroutine is stuck with one, so it never is the caller's slice.
type Block struct {
	N    int // bytes used
	Data [Size]byte
}

var pool = sync.Pool{New: func() any { return new(Block) }}

// New returns an empty block.
func New() *Block {
	b, _ := pool.Get().(*Block) // the pool has no others
	b.N = 0
	return b
}

// Bytes are those in use.
func (b *Block) Bytes() []byte { return b.Data[:b.N] }

// Free gives the block back; nobody may use it any more.
func (b *Block) Free() { pool.Put(b) }
