package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/proto"
)

// transferVersion is that of the data transfer protocol, since Hadoop 0.23.
const transferVersion = 28

// Op is the code of an operation on the data port of a DataNode.
type Op byte

// The operations that a client asks for.
const (
	OpCodeWriteBlock    Op = 80
	OpCodeReadBlock     Op = 81
	OpCodeBlockChecksum Op = 85
	OpCodeTransferBlock Op = 86
)

// AppendOp appends the request for an operation:
//
//	┌────────────┬─────────┬─────────────────────────────┐
//	│ version: 28│ op: byte│ length: uvarint, Op… message│
//	│ int16 BE   │         │                             │
//	└────────────┴─────────┴─────────────────────────────┘
//
// The answer is a delimited [BlockOpResponse], or the end of the stream from a node that cannot serve it.
func AppendOp(b []byte, op Op, m proto.Message) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, transferVersion)
	return AppendDelimited(append(b, byte(op)), m)
}

// CutOp splits the head off a request: the operation, and what follows it.
func CutOp(b []byte) (Op, []byte, error) {
	if len(b) < 3 {
		return 0, nil, malformed("an operation of %d bytes", len(b))
	}
	if version := binary.BigEndian.Uint16(b); version != transferVersion {
		return 0, nil, malformed("version %d of the data transfer protocol", version)
	}
	return Op(b[2]), b[3:], nil
}
