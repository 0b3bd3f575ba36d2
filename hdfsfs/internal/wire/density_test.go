package wire

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func status(name string) *HdfsFileStatus {
	return &HdfsFileStatus{
		FileType: HdfsFileStatus_IS_FILE.Enum(), Path: []byte(name), Length: proto.Uint64(0), Permission: &FsPermission{Perm: proto.Uint32(0)},
		Owner: proto.String(""), Group: proto.String(""), ModificationTime: proto.Uint64(0), AccessTime: proto.Uint64(0),
	}
}

func TestTheShortestMessageIsThatOfRequiredFields(t *testing.T) {
	require.Equal(t, proto.Size(status("")), shortest(status("").ProtoReflect().Descriptor()))
	require.Zero(t, shortest((&RenewLeaseResponse{}).ProtoReflect().Descriptor()))
}

func TestALongMessageIsNotMadeManyTimesAsLong(t *testing.T) {
	listing := &DirectoryListing{RemainingEntries: proto.Uint32(0)}
	for range 10_000 {
		listing.PartialListing = append(listing.PartialListing, status("a-name"))
	}
	b, err := proto.Marshal(&GetListingResponse{DirList: listing})
	require.NoError(t, err)
	require.Greater(t, len(b), maxUnchecked)
	var got GetListingResponse
	require.NoError(t, UnmarshalLarge(b, &got))
	require.Len(t, got.GetDirList().GetPartialListing(), 10_000)

	const n = 1 << 20
	empty := protowire.AppendBytes([]byte{0x0a}, bytes.Repeat([]byte{0x0a, 0x00}, n))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.ErrorIs(t, UnmarshalLarge(empty, &got), ErrMalformed)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))

	for _, torn := range [][]byte{b[:len(b)-1], append(bytes.Clone(b), 0x80), append(bytes.Clone(b), 0x0a, 0xff)} {
		require.ErrorIs(t, UnmarshalLarge(torn, &got), ErrMalformed)
	}
}
