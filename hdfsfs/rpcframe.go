package hdfsfs

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// What goes over a connection to a NameNode, as far as it is looked at here (Hadoop's RpcHeader.proto and
// ClientNamenodeProtocol.proto):
//
//	request:  +--------+---------------------+--------------------+------------------+
//	          | length | RpcRequestHeader    | RequestHeader      | the method's own |
//	          | 4 B BE | 3 callId, 4 clientId| 1 methodName       |                  |
//	          +--------+---------------------+--------------------+------------------+
//	answer:   +--------+-------------------------------------------+------------------+
//	          | length | RpcResponseHeader                          | the method's own |
//	          | 4 B BE | 1 callId, 2 status, 4 exception, 5 message | (if status is 0) |
//	          +--------+-------------------------------------------+------------------+
//
// Each part after the length begins with its own length as a varint. Calls below 0 are those of the handshake.

// Numbers of the calls that are none.
const callSASL int32 = -33

// rpcRequest is a request that was found in a packet; its slices are parts of the packet.
type rpcRequest struct {
	call     int32
	clientID []byte
	method   string
	body     []byte
}

// rpcAnswer is an answer, the same way.
type rpcAnswer struct {
	call      int32
	status    uint64 // 0 is success
	exception string
	message   string
	body      []byte
}

var errFrame = errors.New("not a packet of Hadoop's RPC")

// parseRequest reads a packet that is one request.
func parseRequest(packet []byte) (rpcRequest, error) {
	var r rpcRequest
	if len(packet) < 4 || uint64(binary.BigEndian.Uint32(packet)) != uint64(len(packet)-4) {
		return r, errFrame
	}
	header, rest, err := part(packet[4:])
	if err != nil {
		return r, err
	}
	err = eachField(header, func(n protowire.Number, number uint64, data []byte) {
		switch n {
		case 3:
			r.call = int32(protowire.DecodeZigZag(number)) //nolint:gosec // sint32
		case 4:
			r.clientID = data
		}
	})
	if err != nil || r.call < 0 {
		return r, err // of the handshake, which has no method
	}
	if header, rest, err = part(rest); err != nil {
		return r, err
	}
	err = eachField(header, func(n protowire.Number, _ uint64, data []byte) {
		if n == 1 {
			r.method = string(data)
		}
	})
	if err != nil {
		return r, err
	}
	r.body, _, err = part(rest)
	return r, err
}

// parseAnswer reads a packet without its first four bytes.
func parseAnswer(packet []byte) (rpcAnswer, error) {
	var a rpcAnswer
	header, rest, err := part(packet)
	if err != nil {
		return a, err
	}
	err = eachField(header, func(n protowire.Number, number uint64, data []byte) {
		switch n {
		case 1:
			a.call = int32(uint32(number)) //nolint:gosec // uint32 that stands for a negative one too
		case 2:
			a.status = number
		case 4:
			a.exception = string(data)
		case 5:
			a.message = string(data)
		}
	})
	if err == nil && a.status == 0 && len(rest) > 0 {
		a.body, _, err = part(rest)
	}
	return a, err
}

// part splits off a message with its length before it.
func part(b []byte) (message, rest []byte, err error) {
	length, n := protowire.ConsumeVarint(b)
	if n < 0 || length > uint64(len(b)-n) {
		return nil, nil, errFrame
	}
	end := n + int(length) //nolint:gosec // at most len(b)
	return b[n:end], b[end:], nil
}

// eachField calls do for every field that is a number or bytes.
func eachField(message []byte, do func(n protowire.Number, number uint64, data []byte)) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return errFrame
		}
		message = message[size:]
		var number uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			data, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(n, kind, message)
		}
		if size < 0 {
			return errFrame
		}
		do(n, number, data)
		message = message[size:]
	}
	return nil
}

// forbidOverwrite turns the field overwriteDest of a Rename2RequestProto, which the library always sets, to false. It reports
// whether it has found it.
func forbidOverwrite(body []byte) bool {
	const overwriteDest = 3
	for at := 0; at < len(body); {
		n, kind, size := protowire.ConsumeTag(body[at:])
		if size < 0 {
			return false
		}
		value := at + size
		if size = protowire.ConsumeFieldValue(n, kind, body[value:]); size < 0 {
			return false
		}
		if n == overwriteDest && kind == protowire.VarintType && size == 1 {
			body[value] = 0
			return true
		}
		at = value + size
	}
	return false
}

// boolResult is field 1 of an answer, as of DeleteResponseProto.
func boolResult(body []byte) bool {
	result := false
	_ = eachField(body, func(n protowire.Number, number uint64, _ []byte) { // what cannot be read is no success
		if n == 1 {
			result = number != 0
		}
	})
	return result
}

const standbyException = "org.apache.hadoop.ipc.StandbyException"

// standbyAnswer is the answer of a NameNode that is not active.
func standbyAnswer(call int32) []byte {
	var h []byte
	h = protowire.AppendTag(h, 1, protowire.VarintType)
	h = protowire.AppendVarint(h, uint64(uint32(call))) //nolint:gosec // as Hadoop writes it
	h = protowire.AppendTag(h, 2, protowire.VarintType)
	h = protowire.AppendVarint(h, 1)
	h = protowire.AppendTag(h, 4, protowire.BytesType)
	h = protowire.AppendString(h, standbyException)
	h = protowire.AppendTag(h, 5, protowire.BytesType)
	h = protowire.AppendString(h, "the answer was lost")
	body := append(protowire.AppendVarint(nil, uint64(len(h))), h...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // a few bytes
}

// pipelineLength returns how many DataNodes an OpWriteBlockProto sends a block to, from the packet that holds it: the one
// that is spoken to and the targets. It returns 0 for anything else.
func pipelineLength(packet []byte) int {
	if len(packet) < 3 || packet[2] != opWriteBlock {
		return 0
	}
	message, _, err := part(packet[3:])
	if err != nil {
		return 0
	}
	nodes := 1
	err = eachField(message, func(n protowire.Number, _ uint64, _ []byte) {
		if n == 2 {
			nodes++
		}
	})
	if err != nil {
		return 0
	}
	return nodes
}

// Data transfer: every operation begins with the version in two bytes and its number in one.
const (
	dataTransferVersion = 28
	opWriteBlock        = 80
	opReadBlock         = 81
)

// dataOperation returns the number of the operation that a packet begins, or 0.
func dataOperation(packet []byte) byte {
	if len(packet) < 4 || packet[0] != 0 || packet[1] != dataTransferVersion {
		return 0
	}
	return packet[2]
}
