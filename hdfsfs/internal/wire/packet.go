package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// A packet, in both directions:
//
//	┌──────────────┬──────────────┬─────────────────┬───────────────┬───────────────┐
//	│ PLEN int32 BE│ HLEN int16 BE│ PacketHeader    │ checksums     │ data          │
//	│              │              │ HLEN bytes      │ 4 bytes each  │ DataLen bytes │
//	└──────────────┴──────────────┴─────────────────┴───────────────┴───────────────┘
//	PLEN = 4 + length of checksums + length of data; it counts itself and not the header
//
// There is one checksum for each chunk of bytes-per-checksum bytes of data, the last of which may be short.
//
//	PacketHeader           tag  bytes
//	  1 offset_in_block    0x09 8 LE
//	  2 seqno              0x11 8 LE
//	  3 last_packet        0x18 1
//	  4 data_len           0x25 4 LE
//	  5 sync_block         0x28 1       left out where false

// Limits of packets.
const (
	// PacketPrefixSize is the length of PLEN and HLEN.
	PacketPrefixSize = 6
	// MaxPacketHead is the most that [PacketHeader.Append] appends.
	MaxPacketHead = PacketPrefixSize + 27
	// MaxPacketSize is the most that a DataNode takes, head included, and that we take.
	MaxPacketSize = 16 << 20
	// HeartbeatSeqno is that of a packet without data that keeps the connection alive, and of its acknowledgement.
	HeartbeatSeqno = -1
)

// PacketHeader describes one packet.
type PacketHeader struct {
	Offset  int64 // of the data in the block
	Seqno   int64 // HeartbeatSeqno for a heartbeat
	Last    bool  // the empty packet that ends a block
	DataLen int   // bytes of data
	Sync    bool  // fsync before the acknowledgement
}

// Append appends PLEN, HLEN and the header of a packet that goes on with the given number of bytes of checksums and with
// DataLen bytes of data.
func (h PacketHeader) Append(b []byte, checksums int) []byte {
	length := 25
	if h.Sync {
		length = 27
	}
	b = binary.BigEndian.AppendUint32(b, uint32(4+checksums+h.DataLen)) //nolint:gosec // below 2^31 by the limits of packets
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = binary.LittleEndian.AppendUint64(append(b, 0x09), uint64(h.Offset))
	b = binary.LittleEndian.AppendUint64(append(b, 0x11), uint64(h.Seqno))
	b = append(b, 0x18, boolByte(h.Last))
	b = binary.LittleEndian.AppendUint32(append(b, 0x25), uint32(h.DataLen))
	if h.Sync {
		b = append(b, 0x28, 1)
	}
	return b
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// ParsePacketPrefix takes the first PacketPrefixSize bytes of a packet and returns the length of the header that follows, and
// the length of the checksums and data behind that. Both are within MaxPacketSize.
func ParsePacketPrefix(b []byte) (header, payload int, err error) {
	if len(b) < PacketPrefixSize {
		return 0, 0, malformed("a packet of %d bytes", len(b))
	}
	plen, hlen := int64(int32(binary.BigEndian.Uint32(b))), int64(int16(binary.BigEndian.Uint16(b[4:])))
	if plen < 4 || hlen < 0 || plen+hlen > MaxPacketSize {
		return 0, 0, malformed("a packet with lengths %d and %d", plen, hlen)
	}
	return int(hlen), int(plen - 4), nil
}

// ParsePacketHeader decodes the header of a packet with the given length of checksums and data. Unknown fields are skipped;
// Offset, Seqno, Last and DataLen must be there. 0 ≤ DataLen ≤ payload.
func ParsePacketHeader(b []byte, payload int) (PacketHeader, error) {
	var h PacketHeader
	seen := 0
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return h, malformed("the header of a packet")
		}
		b = b[n:]
		switch {
		case number == 1 && kind == protowire.Fixed64Type && len(b) >= 8:
			h.Offset, n, seen = int64(binary.LittleEndian.Uint64(b)), 8, seen|1
		case number == 2 && kind == protowire.Fixed64Type && len(b) >= 8:
			h.Seqno, n, seen = int64(binary.LittleEndian.Uint64(b)), 8, seen|2
		case number == 3 && kind == protowire.VarintType:
			h.Last, n = consumeBool(b)
			seen |= 4
		case number == 4 && kind == protowire.Fixed32Type && len(b) >= 4:
			h.DataLen, n, seen = int(int32(binary.LittleEndian.Uint32(b))), 4, seen|8
		case number == 5 && kind == protowire.VarintType:
			h.Sync, n = consumeBool(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return h, malformed("field %d of the header of a packet", number)
		}
		b = b[n:]
	}
	if seen != 15 {
		return h, malformed("the header of a packet lacks a field")
	}
	if h.DataLen < 0 || h.DataLen > payload {
		return h, malformed("a packet with %d bytes of data in %d", h.DataLen, payload)
	}
	return h, nil
}

func consumeBool(b []byte) (bool, int) {
	v, n := protowire.ConsumeVarint(b)
	return v != 0, n
}
