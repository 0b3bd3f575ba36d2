package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The headers of calls and answers are coded by hand too, since they travel with every call. Their fields are those of
// RpcRequestHeader and RpcResponseHeader in rpc.proto.
//
//	RpcRequestHeader of a call    tag  bytes
//	  1 rpc_kind = 2              0x08 1
//	  2 rpc_op = 0                0x10 1      a server refuses a header without kind or op
//	  3 call_id: sint32           0x18 1-5
//	  4 client_id: bytes          0x22 1 + n
//	  5 retry_count: sint32       0x28 1-5

// ClientIDSize is the only length of a client's id with which the NameNode knows repeated calls.
const ClientIDSize = 16

// The ids of what is no call of a method.
const (
	CallIDInvalid = -1  // of an answer about the connection
	CallIDContext = -3  // of the connection's context
	CallIDPing    = -4  // is not answered
	CallIDSASL    = -33 // negotiation, and what is wrapped
)

// AppendRequestHeader appends, with its length, the header of a call.
func AppendRequestHeader(b []byte, callID int32, clientID []byte, retryCount int32) []byte {
	id, retry := protowire.EncodeZigZag(int64(callID)), protowire.EncodeZigZag(int64(retryCount))
	size := 4 + 1 + protowire.SizeVarint(id) + 1 + protowire.SizeBytes(len(clientID)) + 1 + protowire.SizeVarint(retry)
	b = protowire.AppendVarint(b, uint64(size))
	b = append(b, 0x08, byte(RpcRequestHeader_PROTOCOL_BUFFER), 0x10, byte(RpcRequestHeader_FINAL_PACKET))
	b = protowire.AppendVarint(append(b, 0x18), id)
	b = protowire.AppendBytes(append(b, 0x22), clientID)
	return protowire.AppendVarint(append(b, 0x28), retry)
}

// ResponseHeader is what is used of an RpcResponseHeader. Its ClientID is part of the bytes that were parsed.
type ResponseHeader struct {
	CallID    int32
	Status    RpcResponseHeader_Status
	Exception string // class name; with a Status other than SUCCESS
	Message   string
	Detail    RpcResponseHeader_ErrorCode
	ClientID  []byte
}

// ParseResponseHeader decodes the header of an answer, without a length before it. For a success it allocates nothing.
func ParseResponseHeader(b []byte) (ResponseHeader, error) {
	var h ResponseHeader
	seen := 0
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return h, malformed("the header of an answer")
		}
		b = b[n:]
		var (
			value uint64
			bytes []byte
		)
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return h, malformed("field %d of the header of an answer", number)
		}
		b = b[n:]
		seen |= h.field(number, kind, value, bytes)
	}
	if seen != 3 {
		return h, malformed("the header of an answer lacks a field")
	}
	return h, nil
}

// field stores the value of one field and returns a bit for each that is required.
func (h *ResponseHeader) field(number protowire.Number, kind protowire.Type, value uint64, bytes []byte) int {
	switch {
	case number == 1 && kind == protowire.VarintType:
		h.CallID = int32(uint32(value)) //nolint:gosec // -33 arrives as 4294967263
		return 1
	case number == 2 && kind == protowire.VarintType:
		h.Status = RpcResponseHeader_Status(value)
		return 2
	case number == 4 && kind == protowire.BytesType:
		h.Exception = string(bytes)
	case number == 5 && kind == protowire.BytesType:
		h.Message = string(bytes)
	case number == 6 && kind == protowire.VarintType:
		h.Detail = RpcResponseHeader_ErrorCode(value)
	case number == 7 && kind == protowire.BytesType:
		h.ClientID = bytes
	}
	return 0
}
