package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var headers = []PacketHeader{
	{},
	{Seqno: HeartbeatSeqno},
	{Offset: 1 << 40, Seqno: 7, DataLen: 64512},
	{Offset: 512, Seqno: math.MaxInt64, Last: true, Sync: true},
	{Offset: 1, Seqno: 1, DataLen: 1, Sync: true},
}

func TestAPacketHeaderHasTheBytesOfHadoop(t *testing.T) {
	for _, h := range headers {
		m := hadoopMessage(t, "hadoop.hdfs.PacketHeaderProto")
		set(m, "offsetInBlock", h.Offset)
		set(m, "seqno", h.Seqno)
		set(m, "lastPacketInBlock", h.Last)
		set(m, "dataLen", int32(h.DataLen))
		if h.Sync {
			set(m, "syncBlock", true)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
		require.NoError(t, err)

		got := h.Append(nil, 12)
		require.LessOrEqual(t, len(got), MaxPacketHead)
		require.Equal(t, want, got[PacketPrefixSize:])
		require.EqualValues(t, 4+12+h.DataLen, binary.BigEndian.Uint32(got))
		require.EqualValues(t, len(want), binary.BigEndian.Uint16(got[4:]))
	}
}

func TestAPacketHeaderIsReadAsItWasWritten(t *testing.T) {
	for _, h := range headers {
		b := h.Append(nil, 8)
		headerLen, payload, err := ParsePacketPrefix(b)
		require.NoError(t, err)
		require.Equal(t, 8+h.DataLen, payload)
		got, err := ParsePacketHeader(b[PacketPrefixSize:], payload)
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Len(t, b, PacketPrefixSize+headerLen)

		unknown := protowire.AppendString(protowire.AppendTag(bytes.Clone(b[PacketPrefixSize:]), 9, protowire.BytesType), "later")
		got, err = ParsePacketHeader(unknown, payload)
		require.NoError(t, err)
		require.Equal(t, h, got)
	}
}

func TestABrokenPacketHeaderIsMalformed(t *testing.T) {
	good := PacketHeader{Offset: 3, Seqno: 4, DataLen: 5, Sync: true}.Append(nil, 4)[PacketPrefixSize:]
	for i := range len(good) - 2 { // the last two bytes are optional
		_, err := ParsePacketHeader(good[:i], 9)
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", i)
	}
	_, err := ParsePacketHeader(good, 4)
	require.ErrorIs(t, err, ErrMalformed, "more data than the packet has")
	negative := bytes.Clone(good)
	copy(negative[21:], []byte{0xff, 0xff, 0xff, 0xff})
	_, err = ParsePacketHeader(negative, 9)
	require.ErrorIs(t, err, ErrMalformed, "less data than none")

	for _, prefix := range [][]byte{
		{0, 0, 0, 4, 0},
		{0, 0, 0, 3, 0, 25},
		{0xff, 0xff, 0xff, 0xff, 0, 25},
		{0, 0, 0, 4, 0xff, 0xff},
		{0x01, 0, 0, 0, 0, 1},
	} {
		_, _, err := ParsePacketPrefix(prefix)
		require.ErrorIs(t, err, ErrMalformed, "%x", prefix)
	}
}

func TestAnAcknowledgementOfHadoopIsUnderstood(t *testing.T) {
	for _, tt := range []struct {
		name      string
		seqno     int64
		replies   []Status
		flags     []uint32
		want      []Status
		slow      int // index, or -1
		congested int
	}{
		{"success of all", 5, []Status{Status_SUCCESS, Status_SUCCESS, Status_SUCCESS}, nil, []Status{0, 0, 0}, -1, -1},
		{"a broken mirror", UnknownSeqno, []Status{Status_SUCCESS, Status_ERROR}, nil, []Status{0, 1}, -1, -1},
		{"a heartbeat", HeartbeatSeqno, []Status{Status_SUCCESS}, nil, []Status{0}, -1, -1},
		{"flags win", math.MaxInt64, []Status{Status_SUCCESS, Status_SUCCESS}, []uint32{1 | 1<<7, 8 | 3<<5 | 2<<7}, []Status{1, 8}, 1, 1},
		{"a restart", UnknownSeqno, []Status{Status_OOB_RESTART}, nil, []Status{8}, -1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := hadoopMessage(t, "hadoop.hdfs.PipelineAckProto")
			set(m, "seqno", tt.seqno)
			replies := m.Mutable(m.Descriptor().Fields().ByName("reply")).List()
			for _, r := range tt.replies {
				replies.Append(protoreflect.ValueOfEnum(protoreflect.EnumNumber(r)))
			}
			flags := m.Mutable(m.Descriptor().Fields().ByName("flag")).List()
			for _, f := range tt.flags {
				flags.Append(protoreflect.ValueOfUint32(f))
			}
			set(m, "downstreamAckTimeNanos", uint64(9))
			b, err := AppendDelimited(nil, m.Interface())
			require.NoError(t, err)

			var ack PipelineAck
			r := bufio.NewReader(bytes.NewReader(append(b, b...)))
			for range 2 {
				require.NoError(t, ack.Read(r))
				require.Equal(t, tt.seqno, ack.Seqno)
				require.EqualValues(t, 9, ack.DownstreamAckNanos)
				require.Equal(t, len(tt.want), ack.Len())
				for i, status := range tt.want {
					require.Equal(t, status, ack.Status(i))
					require.Equal(t, i == tt.slow, ack.Slow(i))
					require.Equal(t, i == tt.congested, ack.Congested(i))
				}
			}
			require.ErrorIs(t, ack.Read(r), io.EOF)

			if tt.flags == nil {
				require.NoError(t, ack.Read(bufio.NewReader(bytes.NewReader(AppendPipelineAck(nil, tt.seqno, tt.replies...)))))
				require.Equal(t, tt.seqno, ack.Seqno)
				require.Equal(t, tt.want, statuses(&ack))
			}
		})
	}
}

func statuses(a *PipelineAck) []Status {
	out := make([]Status, a.Len())
	for i := range out {
		out[i] = a.Status(i)
	}
	return out
}

func TestABrokenAcknowledgementIsMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"no number":        {0x10, 0x00},
		"torn tag":         {0x80},
		"torn value":       {0x08, 0x80},
		"torn packed list": {0x08, 0x02, 0x12, 0x01, 0x80},
		"too many nodes":   append([]byte{0x08, 0x02}, bytes.Repeat([]byte{0x10, 0x00}, 2000)...),
	} {
		var ack PipelineAck
		require.ErrorIs(t, ack.Parse(b), ErrMalformed, name)
	}
	var ack PipelineAck
	require.ErrorIs(t, ack.Read(bufio.NewReader(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0x0f}))), ErrMalformed)
}

func TestReadingPacketsAndAcknowledgementsAllocatesNothing(t *testing.T) {
	header := PacketHeader{Offset: 64512, Seqno: 1, DataLen: 64512}
	space := make([]byte, 0, MaxPacketHead)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b := header.Append(space, 504)
		_, payload, err := ParsePacketPrefix(b)
		if err == nil {
			_, err = ParsePacketHeader(b[PacketPrefixSize:], payload)
		}
		if err != nil {
			panic(err)
		}
	}))
	var ack PipelineAck
	b := AppendPipelineAck(nil, 3, Status_SUCCESS, Status_SUCCESS, Status_SUCCESS)
	source := bytes.NewReader(b)
	r := bufio.NewReader(source)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		source.Reset(b)
		r.Reset(source)
		if err := ack.Read(r); err != nil {
			panic(err)
		}
	}))
}

func TestADelimitedMessageIsReadAsItWasWritten(t *testing.T) {
	want := &BlockOpResponse{Status: Status_ERROR.Enum(), FirstBadLink: proto.String("127.0.0.1:9866")}
	b, err := AppendDelimited([]byte("before"), want)
	require.NoError(t, err)
	b = b[len("before"):]

	got := &BlockOpResponse{}
	require.NoError(t, ReadDelimited(bufio.NewReader(bytes.NewReader(b)), 100, got))
	require.True(t, proto.Equal(want, got))

	message, rest, err := CutDelimited(append(bytes.Clone(b), "after"...))
	require.NoError(t, err)
	require.Equal(t, "after", string(rest))
	require.NoError(t, Unmarshal(message, got))

	for i := range b {
		err := ReadDelimited(bufio.NewReader(bytes.NewReader(b[:i])), 100, got)
		if i == 0 {
			require.ErrorIs(t, err, io.EOF)
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", i)
	}
	for name, b := range map[string][]byte{
		"longer than the limit": {101},
		"no length":             {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a missing field":       {0},
		"no message":            {1, 0xff},
	} {
		require.ErrorIs(t, ReadDelimited(bufio.NewReader(bytes.NewReader(append(b, make([]byte, 200)...))), 100, got), ErrMalformed, name)
	}
	for _, b := range [][]byte{{}, {5, 1, 2}, {0x80}} {
		_, _, err := CutDelimited(b)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

func TestAnOperationHasItsHead(t *testing.T) {
	m := &ClientReadStatus{Status: Status_CHECKSUM_OK.Enum()}
	b, err := AppendOp(nil, OpCodeReadBlock, m)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 28, 81, 2, 8, 6}, b)
	op, rest, err := CutOp(b)
	require.NoError(t, err)
	require.Equal(t, OpCodeReadBlock, op)
	require.Len(t, rest, 3)
	for _, b := range [][]byte{{0, 28}, {0, 27, 81}} {
		_, _, err := CutOp(b)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

func TestUnknownFieldsOfADataNodeTravelBack(t *testing.T) {
	b, err := proto.Marshal(&DatanodeInfo{Id: &DatanodeID{
		IpAddr: proto.String("127.0.0.1"), HostName: proto.String("localhost"), DatanodeUuid: proto.String("u"),
		XferPort: proto.Uint32(1), InfoPort: proto.Uint32(2), IpcPort: proto.Uint32(3),
	}})
	require.NoError(t, err)
	b = protowire.AppendString(protowire.AppendTag(b, 99, protowire.BytesType), "of a later version")
	var info DatanodeInfo
	require.NoError(t, Unmarshal(b, &info))
	again, err := proto.Marshal(&info)
	require.NoError(t, err)
	require.Equal(t, b, again)
}

func FuzzPacket(f *testing.F) {
	for _, h := range headers {
		f.Add(h.Append(nil, 4))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		header, payload, err := ParsePacketPrefix(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.LessOrEqual(t, header+payload, MaxPacketSize)
		b = b[PacketPrefixSize:]
		h, err := ParsePacketHeader(b[:min(header, len(b))], payload)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := ParsePacketHeader(h.Append(nil, payload-h.DataLen)[PacketPrefixSize:], payload)
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

func FuzzPipelineAck(f *testing.F) {
	f.Add(AppendPipelineAck(nil, UnknownSeqno, Status_SUCCESS, Status_ERROR))
	f.Add([]byte{4, 0x08, 0x02, 0x22, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		var ack PipelineAck
		err := ack.Read(bufio.NewReader(bytes.NewReader(b)))
		if err == nil {
			_ = ack.String()
			require.LessOrEqual(t, ack.Len(), maxAckReplies+1)
			return
		}
		require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
	})
}
