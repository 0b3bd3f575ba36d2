package blockread

import (
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/socket"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// One system call takes in several packets, because a node makes all of a stream alike: where their heads will be can be foreseen.
// Data go to where the caller wants them, heads to memory of the stream, and the head behind the last data is taken along if it is
// there.
//
//	  the connection:    data of the present packet │ head │ data of the next │ head │ data … │ head
//	                            │                      │            │             │      │        │
//	  the caller's slice:  ├────┴────────────────────┼──│───────────┴──────────┼──│──────┴────┤   │
//	  heads:                                         ├──┴──┤                   ├──┴──┤         ├───┴──┤
//
// Each head is looked at before the data behind it count. If one is not as foreseen, all bytes from it on are put back in their
// order, and taken in packet by packet.

const (
	maxParts = socket.MaxSlices
	// maxPieces is how many packets are taken in at once: each has data and a head.
	maxPieces = maxParts / 2
	// maxHead is how long a head may be to be foreseen. Those of packets of 64 KiB with chunks of 512 bytes have 543.
	maxHead = 4 << 10
)

// piece is data of one packet, and what is foreseen of the packet behind it.
type piece struct {
	data int
	head int // bytes; 0 if nothing is foreseen
	next int // bytes of data of that packet
}

// shape is how the packets of a stream are made.
type shape struct {
	chunk  int
	prefix int // bytes of a head before its checksums
	data   int // bytes of all packets but the last ones
}

// head is how long that of a packet is.
func (s shape) head(data int) int { return s.prefix + (data+s.chunk-1)/s.chunk*4 }

// plan says how up to room bytes are taken in: left bytes of the present packet, and rest bytes of those behind it. ragged is that
// the node may send up to a chunk less than that, or more than the caller wants; the last packet is then not foreseen.
func plan(pieces []piece, s shape, room, left int, rest int64, ragged bool) []piece {
	for {
		data := min(left, room)
		if data < left {
			data -= data % s.chunk
		}
		if data == 0 {
			return pieces
		}
		next := int(min(rest, int64(s.data)))
		head := s.head(next)
		if data < left || head > maxHead {
			return append(pieces, piece{data: data})
		}
		pieces = append(pieces, piece{data, head, next})
		rest -= int64(next)
		if len(pieces) == maxPieces || ragged && rest == 0 {
			return pieces
		}
		room, left = room-data, next
	}
}

// batch receives whole chunks into p and verifies them there. A packet has begun, and p has room for a chunk of it.
func (s *stream) batch(p []byte) (int, error) {
	rest := s.limit - s.at - int64(s.left)
	pieces := plan(s.pieces[:0], s.shape, len(p), s.left, rest, s.end != s.limit)
	if s.in.raw == nil || len(s.in.early) > 0 {
		pieces = pieces[:1]
	}
	parts, heads, must := s.parts[:0], s.heads(pieces), 0
	n := 0
	for i, x := range pieces {
		parts = append(parts, p[n:n+x.data])
		n += x.data
		must += x.data
		if x.head > 0 {
			parts = append(parts, heads[:x.head])
			heads = heads[x.head:]
			if i < len(pieces)-1 {
				must += x.head
			}
		}
	}
	got, err := s.in.fill(parts, must)
	clear(s.parts[:])
	return s.unpack(p, pieces, got, err)
}

// heads returns memory for those of a batch.
func (s *stream) heads(pieces []piece) []byte {
	n := 0
	for _, x := range pieces {
		n += x.head
	}
	if cap(s.headSpace) < n {
		s.headSpace = make([]byte, max(n, maxPieces*s.head(s.shape.data)))
	}
	s.headSpace = s.headSpace[:n]
	return s.headSpace
}

// unpack verifies a batch of which got bytes have come, and returns how many of p are right. missing is why others have not come.
func (s *stream) unpack(p []byte, pieces []piece, got int, missing error) (int, error) {
	heads, n := s.headSpace, 0
	for i, x := range pieces {
		have := min(x.data, got)
		if have < x.data {
			have -= have % s.chunk
		}
		k := s.verify(p[n : n+have])
		n += k
		switch {
		case k < have:
			return n, &checksumError{node: s.conn.Node, block: s.block, offset: s.at}
		case have < x.data:
			return n, s.lost(missing)
		}
		got -= x.data
		if i == len(pieces)-1 {
			if got > 0 {
				s.in.early = heads[:got]
			}
			return n, nil
		}
		if got < x.head {
			return n, s.lost(missing)
		}
		if !s.foreseen(heads[:x.head], x.next) {
			s.in.unread(remainder(p[n:], heads, pieces[i:], got))
			return n, nil
		}
		s.in.early = heads[:x.head]
		if err := s.next(false); err != nil {
			return n, err
		}
		heads = heads[x.head:]
		got -= x.head
	}
	return n, nil
}

// foreseen reports whether a head is one of a packet with so many data.
func (s *stream) foreseen(head []byte, data int) bool {
	length, payload, err := wire.ParsePacketPrefix(head)
	return err == nil && wire.PacketPrefixSize+length == s.prefix && payload == data+len(head)-s.prefix
}

// remainder is what has come of a batch from the first head of pieces on, in its order.
func remainder(p, heads []byte, pieces []piece, got int) []byte {
	b := make([]byte, 0, got)
	for i, x := range pieces {
		if i > 0 {
			b = append(b, p[:min(x.data, got-len(b))]...)
			p = p[min(x.data, len(p)):]
		}
		b = append(b, heads[:min(x.head, got-len(b))]...)
		heads = heads[x.head:]
	}
	return b
}
