package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A pipeline acknowledgement:
//
//	┌────────────────┬─────────────────────────────────────────────────────────────────────────────┐
//	│ length: uvarint│ 1 seqno: sint64 · 2 reply*: Status · 3 downstream_ack_ns: uint64 · 4 flag*: uint32 │
//	└────────────────┴─────────────────────────────────────────────────────────────────────────────┘
//	flag, where there is one for each node: bits 0-3 Status, 5-6 congestion, 7-8 slowness
//
// Replies are in the order of the pipeline: 0 is the node that is talked to. There may be fewer than nodes.

const (
	// UnknownSeqno is that of an acknowledgement which is about the pipeline and not about a packet.
	UnknownSeqno = -2

	maxAck        = 64 << 10 // bytes
	maxAckReplies = 1 << 10
)

// PipelineAck is the answer of a pipeline to one packet. Its zero value is ready for Read, which uses its space again.
type PipelineAck struct {
	Seqno              int64
	DownstreamAckNanos uint64
	replies            []Status
	flags              []uint32
	bytes              []byte
	haveSeqno          bool
}

// Len is the number of nodes that replied.
func (a *PipelineAck) Len() int { return max(len(a.replies), len(a.flags)) }

// Status is the reply of node i, which must be below Len. A flag takes precedence over a plain reply.
func (a *PipelineAck) Status(i int) Status {
	if i < len(a.flags) {
		return Status(a.flags[i] & 0xf)
	}
	return a.replies[i]
}

// Congested reports whether node i, which must be below Len, asks for fewer packets.
func (a *PipelineAck) Congested(i int) bool { return i < len(a.flags) && a.flags[i]>>5&3 == 3 }

// Slow reports whether node i, which must be below Len, says that it is slow.
func (a *PipelineAck) Slow(i int) bool { return i < len(a.flags) && a.flags[i]>>7&3 == 2 }

// Read reads one acknowledgement. The error is io.EOF if the stream ends before its first byte.
func (a *PipelineAck) Read(r ByteReader) error {
	b, err := readDelimitedBytes(r, maxAck, a.bytes)
	if err != nil {
		return err
	}
	a.bytes = b
	return a.Parse(b)
}

// Parse decodes the bytes of one acknowledgement, without a length before them.
func (a *PipelineAck) Parse(b []byte) error {
	a.Seqno, a.DownstreamAckNanos, a.haveSeqno = 0, 0, false
	a.replies, a.flags = a.replies[:0], a.flags[:0]
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformed("an acknowledgement")
		}
		if b = b[n:]; a.Len() > maxAckReplies {
			return malformed("an acknowledgement of more than %d nodes", maxAckReplies)
		}
		if n = a.field(number, kind, b); n < 0 {
			return malformed("field %d of an acknowledgement", number)
		}
		b = b[n:]
	}
	if !a.haveSeqno {
		return malformed("an acknowledgement without number")
	}
	return nil
}

// field takes the value of one field and returns its length, or a negative number.
func (a *PipelineAck) field(number protowire.Number, kind protowire.Type, b []byte) int {
	if kind == protowire.BytesType && (number == 2 || number == 4) {
		packed, n := protowire.ConsumeBytes(b)
		for len(packed) > 0 {
			m := a.field(number, protowire.VarintType, packed)
			if m < 0 || a.Len() > maxAckReplies {
				return -1
			}
			packed = packed[m:]
		}
		return n
	}
	if kind != protowire.VarintType {
		return protowire.ConsumeFieldValue(number, kind, b)
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return n
	}
	switch number {
	case 1:
		a.Seqno, a.haveSeqno = protowire.DecodeZigZag(v), true
	case 2:
		a.replies = append(a.replies, Status(int32(v)))
	case 3:
		a.DownstreamAckNanos = v
	case 4:
		a.flags = append(a.flags, uint32(v))
	}
	return n
}

// AppendPipelineAck appends an acknowledgement with its length: what a DataNode sends.
func AppendPipelineAck(b []byte, seqno int64, replies ...Status) []byte {
	message := protowire.AppendVarint([]byte{0x08}, protowire.EncodeZigZag(seqno))
	for _, status := range replies {
		message = protowire.AppendVarint(append(message, 0x10), uint64(status))
	}
	return protowire.AppendBytes(b, message)
}

// String is for errors: the number and the replies in the order of the pipeline.
func (a *PipelineAck) String() string {
	replies := make([]Status, a.Len())
	for i := range replies {
		replies[i] = a.Status(i)
	}
	return fmt.Sprintf("acknowledgement %d %v", a.Seqno, replies)
}
