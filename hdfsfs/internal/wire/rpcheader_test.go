package wire

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func TestTheHeaderOfACallIsThatOfTheMessage(t *testing.T) {
	for _, clientID := range [][]byte{{}, make([]byte, ClientIDSize)} {
		for _, id := range []int32{0, 1, 300, math.MaxInt32, CallIDContext, CallIDPing, CallIDSASL} {
			for _, retry := range []int32{-1, 0, 5, 1000} {
				want, err := AppendDelimited(nil, &RpcRequestHeader{
					RpcKind: RpcRequestHeader_PROTOCOL_BUFFER.Enum(), RpcOp: RpcRequestHeader_FINAL_PACKET.Enum(),
					CallId: proto.Int32(id), ClientId: clientID, RetryCount: proto.Int32(retry),
				})
				require.NoError(t, err)
				require.Equal(t, want, AppendRequestHeader(nil, id, clientID, retry))
			}
		}
	}
}

func responseHeaders() []*RpcResponseHeader {
	id := func(i int32) *uint32 { return proto.Uint32(uint32(i)) }
	return []*RpcResponseHeader{
		{CallId: id(7), Status: RpcResponseHeader_SUCCESS.Enum(), ServerIpcVersionNum: proto.Uint32(9), ClientId: make([]byte, 16), RetryCount: proto.Int32(-1), StateId: proto.Int64(5)},
		{CallId: id(CallIDSASL), Status: RpcResponseHeader_SUCCESS.Enum()},
		{
			CallId: id(CallIDInvalid), Status: RpcResponseHeader_FATAL.Enum(), ErrorDetail: RpcResponseHeader_FATAL_UNAUTHORIZED.Enum(),
			ExceptionClassName: proto.String("java.io.IOException"), ErrorMsg: proto.String("no\n\tat"),
		},
	}
}

func TestTheHeaderOfAnAnswerIsThatOfTheMessage(t *testing.T) {
	for _, m := range responseHeaders() {
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		h, err := ParseResponseHeader(b)
		require.NoError(t, err)
		require.EqualValues(t, m.GetCallId(), uint32(h.CallID))
		require.Equal(t, m.GetStatus(), h.Status)
		require.Equal(t, m.GetExceptionClassName(), h.Exception)
		require.Equal(t, m.GetErrorMsg(), h.Message)
		require.Equal(t, m.ErrorDetail != nil, h.Detail != 0)
		require.Equal(t, len(m.GetClientId()), len(h.ClientID))
	}
	for _, b := range [][]byte{{}, {0x08, 1}, {0x10, 0}, {0x08, 0x80}, {0x80}, {0x22, 5, 1}} {
		_, err := ParseResponseHeader(b)
		require.ErrorIs(t, err, ErrMalformed, "%x", b)
	}
}

func FuzzResponseHeader(f *testing.F) {
	for _, m := range responseHeaders() {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseResponseHeader(b)
		var m RpcResponseHeader
		if Unmarshal(b, &m) == nil {
			require.NoError(t, err)
			require.Equal(t, m.GetCallId(), uint32(h.CallID))
			require.Equal(t, m.GetErrorMsg(), h.Message)
		}
	})
}
