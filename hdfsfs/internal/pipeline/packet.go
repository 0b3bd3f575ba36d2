package pipeline

import (
	"hash/crc32"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/chunksum"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// A packet's buffer:
//
//	┌───────────────┬──────────────────────────┬──────────────────────┐
//	│ room for head │ room for checksums       │ data                 │
//	└───────────────┴──────────────────────────┴──────────────────────┘
//	        ┌──────────────┬───────────────────┬───────────────┐
//	        │ head         │ checksums         │ data          │   what is sent, once it is sealed: they end at the data
//	        └──────────────┴───────────────────┴───────────────┘
type packet struct {
	buf    []byte
	start  int // of what is sent
	n      int // bytes of data
	offset int64
	seqno  int64
	last   bool
	sync   bool
}

// geometry is how blocks are cut up.
type geometry struct {
	chunk  int // bytes of data for each checksum
	chunks int // of a packet at most
	table  *crc32.Table
}

func (g geometry) sumSize() int {
	if g.table == nil {
		return 0
	}
	return chunksum.Size
}

func (g geometry) dataStart() int { return wire.MaxPacketHead + g.sumSize()*g.chunks }

func (g geometry) capacity() int { return g.chunk * g.chunks }

// Pool lends the buffers of packets to any number of Writers. The zero value is ready.
type Pool struct {
	mu    sync.Mutex
	pools map[int]*sync.Pool // by length
}

func (p *Pool) of(length int) *sync.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools == nil {
		p.pools = make(map[int]*sync.Pool)
	}
	if p.pools[length] == nil {
		p.pools[length] = &sync.Pool{New: func() any { return &packet{buf: make([]byte, length)} }}
	}
	return p.pools[length]
}

func (p *Pool) get(length int) *packet {
	k, _ := p.of(length).Get().(*packet)
	*k = packet{buf: k.buf}
	return k
}

func (p *Pool) put(k *packet) { p.of(len(k.buf)).Put(k) }

// fill takes bytes of p and returns how many.
func (k *packet) fill(g geometry, p []byte) int {
	n := copy(k.buf[g.dataStart()+k.n:g.dataStart()+g.capacity()], p)
	k.n += n
	return n
}

func (k *packet) data(g geometry) []byte { return k.buf[g.dataStart() : g.dataStart()+k.n] }

// seal makes the head and the checksums.
func (k *packet) seal(g geometry) {
	data := k.data(g)
	count := chunksum.Count(k.n, g.chunk)
	sums := g.dataStart() - g.sumSize()*count
	if g.table != nil {
		chunksum.Put(k.buf[sums:], data, g.chunk, g.table)
	}
	header := wire.PacketHeader{Offset: k.offset, Seqno: k.seqno, Last: k.last, DataLen: k.n, Sync: k.sync}
	var room [wire.MaxPacketHead]byte
	head := header.Append(room[:0], g.sumSize()*count)
	k.start = sums - len(head)
	copy(k.buf[k.start:], head)
}

// bytes is what is sent of a sealed packet.
func (k *packet) bytes(g geometry) []byte { return k.buf[k.start : g.dataStart()+k.n] }

// end is the offset in the block behind the packet.
func (k *packet) end() int64 { return k.offset + int64(k.n) }
