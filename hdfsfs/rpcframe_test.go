package hdfsfs

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// packet puts messages into a packet.
func packet(messages ...[]byte) []byte {
	var body []byte
	for _, m := range messages {
		body = append(protowire.AppendVarint(body, uint64(len(m))), m...)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func bytesField(b []byte, n protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), value)
}

func numberField(b []byte, n protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), value)
}

// renameRequest is one as the library writes it.
func renameRequest(call int32) []byte {
	header := numberField(nil, 1, 2)
	header = numberField(header, 2, 0)
	header = numberField(header, 3, protowire.EncodeZigZag(int64(call)))
	header = bytesField(header, 4, "0123456789abcdef")
	method := bytesField(bytesField(nil, 1, methodRename), 2, "org.apache.hadoop.hdfs.protocol.ClientProtocol")
	method = numberField(method, 3, 1)
	body := numberField(bytesField(bytesField(nil, 1, "/a\x18\x01"), 2, "/b\x18\x01"), 3, 1)
	return packet(header, method, body)
}

func TestARequestIsUnderstood(t *testing.T) {
	p := renameRequest(7)
	r, err := parseRequest(p)
	require.NoError(t, err)
	require.EqualValues(t, 7, r.call)
	require.Equal(t, methodRename, r.method)
	require.Equal(t, "0123456789abcdef", string(r.clientID))
	copy(r.clientID, "ABCDEFGHIJKLMNOP")
	require.Contains(t, string(p), "ABCDEFGHIJKLMNOP", "parts of a request are those of the packet")

	handshake, err := parseRequest(packet(numberField(nil, 3, protowire.EncodeZigZag(-3)), []byte{0x12, 0}))
	require.NoError(t, err)
	require.EqualValues(t, -3, handshake.call)
}

func TestARenameIsMadeOneThatDoesNotReplace(t *testing.T) {
	before := renameRequest(7)
	p := bytes.Clone(before)
	r, err := parseRequest(p)
	require.NoError(t, err)
	require.True(t, forbidOverwrite(r.body))
	require.Equal(t, len(before), len(p))
	different := 0
	for i := range p {
		if p[i] != before[i] {
			different++
			require.Equal(t, len(p)-1, i)
			require.EqualValues(t, 0, p[i])
		}
	}
	require.Equal(t, 1, different, "only overwriteDest is changed")

	for _, body := range [][]byte{nil, bytesField(nil, 1, "/a"), {0xff}, numberField(nil, 3, 300), bytesField(nil, 3, "x")} {
		require.False(t, forbidOverwrite(body), "%x", body)
	}
}

func TestTheAnswerThatIsMadeUpIsThatOfAStandby(t *testing.T) {
	for _, call := range []int32{0, 1, 1 << 30, callSASL} {
		a, err := parseAnswer(standbyAnswer(call)[4:])
		require.NoError(t, err)
		require.Equal(t, call, a.call)
		require.Equal(t, standbyException, a.exception)
		require.NotZero(t, a.status)
	}
}

func TestTheLengthOfAPipelineIsThatOfTheRequest(t *testing.T) {
	message := bytesField(nil, 1, "header")
	for nodes := 1; nodes <= 3; nodes++ {
		p := append([]byte{0, dataTransferVersion, opWriteBlock}, protowire.AppendVarint(nil, uint64(len(message)))...)
		p = append(p, message...)
		require.EqualValues(t, opWriteBlock, dataOperation(p))
		require.Equal(t, nodes, pipelineLength(p))
		message = bytesField(message, 2, "datanode")
	}
	require.Zero(t, pipelineLength([]byte{0, dataTransferVersion, opReadBlock, 0}))
	require.Zero(t, pipelineLength([]byte{0, dataTransferVersion, opWriteBlock, 9}))
	require.Zero(t, dataOperation([]byte{0xde, 0xad, 0xbe, 0xef}))
}

func FuzzParseRequest(f *testing.F) {
	f.Add(renameRequest(7))
	f.Add(standbyAnswer(7))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, err := parseRequest(p); err == nil && r.call >= 0 {
			require.LessOrEqual(t, len(r.body), len(p))
			forbidOverwrite(r.body)
			boolResult(r.body)
		}
		pipelineLength(p)
		dataOperation(p)
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(standbyAnswer(7)[4:])
	f.Add(renameRequest(7)[4:])
	f.Fuzz(func(t *testing.T, p []byte) {
		if a, err := parseAnswer(p); err == nil {
			require.LessOrEqual(t, len(a.body)+len(a.exception)+len(a.message), len(p))
			boolResult(a.body)
		}
	})
}
