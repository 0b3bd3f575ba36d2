package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestPathErrorNamesOperationAndPathOnce(t *testing.T) {
	require.NoError(t, core.PathError("stat", "/a", nil))
	err := core.PathError("stat", "/a", fs.ErrNotExist)
	require.EqualError(t, err, "stat /a: file does not exist")
	require.Equal(t, err, core.PathError("stat", "/a", err))
	for _, other := range []error{core.PathError("open", "/a", err), core.PathError("stat", "/b", err), core.PathError("stat", "/a", fmt.Errorf("x: %w", err))} {
		require.NotEqual(t, err, other)
		require.ErrorIs(t, other, fs.ErrNotExist)
	}
}

func TestRenameErrorNamesBothNames(t *testing.T) {
	require.NoError(t, core.RenameError("/a", "/b", nil))
	err := core.RenameError("/a", "/b", fs.ErrExist)
	require.EqualError(t, err, "rename /a: to /b: file already exists")
	var pathError *fs.PathError
	require.ErrorAs(t, err, &pathError)
	require.Equal(t, "/a", pathError.Path)
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestSentinelsAreToldApart(t *testing.T) {
	sentinels := []error{
		core.ErrCorrupt, core.ErrUnsupportedVersion, core.ErrNoSpace, core.ErrQuota, core.ErrFenced, core.ErrUnavailable,
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed,
		context.Canceled, context.DeadlineExceeded, errors.ErrUnsupported,
	}
	for i, a := range sentinels {
		for j, b := range sentinels {
			require.Equal(t, i == j, errors.Is(core.PathError("open", "/a", a), b), "%v, %v", a, b)
		}
	}
}

func TestCapabilitiesResolveADurability(t *testing.T) {
	for _, tt := range []struct {
		declared  []core.Durability
		strongest core.Durability
		accepted  []core.Durability // beside the default
	}{
		{nil, core.DurabilityDefault, nil},
		{[]core.Durability{core.Unsynced}, core.Unsynced, []core.Durability{core.Unsynced}},
		{[]core.Durability{core.Unsynced, core.Synced}, core.Synced, []core.Durability{core.Unsynced, core.Synced}},
		{[]core.Durability{core.Replicated, core.Synced}, core.Synced, []core.Durability{core.Replicated, core.Synced}},
		{[]core.Durability{core.Replicated, core.Unsynced}, core.Replicated, []core.Durability{core.Replicated, core.Unsynced}},
	} {
		c := core.Capabilities{Durabilities: tt.declared}
		require.Equal(t, tt.strongest, c.Strongest())
		got, ok := c.Resolve(core.DurabilityDefault)
		require.Equal(t, tt.strongest, got)
		require.Equal(t, len(tt.declared) > 0, ok)
		for asked := core.Unsynced; asked <= core.Synced+1; asked++ {
			got, ok := c.Resolve(asked)
			require.Equal(t, asked, got, "it is never weakened")
			require.Equal(t, contains(tt.accepted, asked), ok, "%v of %v", asked, tt.declared)
		}
	}
}

func contains(list []core.Durability, d core.Durability) bool {
	for _, x := range list {
		if x == d {
			return true
		}
	}
	return false
}

func TestDurabilityHasAName(t *testing.T) {
	for d, want := range map[core.Durability]string{
		core.DurabilityDefault: "default", core.Unsynced: "unsynced", core.Replicated: "replicated", core.Synced: "synced", 9: "invalid",
	} {
		require.Equal(t, want, d.String())
	}
	require.Less(t, core.Unsynced, core.Replicated)
	require.Less(t, core.Replicated, core.Synced)
}

func TestHandlesKnowTheirSize(t *testing.T) {
	// Flink: FileStateHandleTest.testCollectSizeStats
	// Flink: ByteStreamStateHandleTest, its test of size statistics
	for _, tt := range []struct {
		handle core.StreamHandle
		want   int64
	}{
		{&core.BytesHandle{}, 0},
		{&core.BytesHandle{Data: make([]byte, 5)}, 5},
		{&core.FileHandle{Size: 7}, 7},
		{&core.FileHandle{Size: -1}, -1},
		{&core.RelativeFileHandle{Size: math.MaxInt64}, math.MaxInt64},
	} {
		tt.handle.IsStreamHandle()
		require.Equal(t, tt.want, tt.handle.StateSize())
	}
	for dir, want := range map[string]string{
		"hdfs://ns1/a/chk-7": "hdfs://ns1/a/chk-7/x",
		"file:/a":            "file:/a/x",
		"file:/":             "file:/x", // a checkpoint's directory may be the root of a disk
		"hdfs://ns1/":        "hdfs://ns1/x",
	} {
		require.Equal(t, want, (&core.RelativeFileHandle{Dir: dir, Name: "x"}).Path())
	}
}

func TestChecksumsFitASize(t *testing.T) {
	sums := func(chunk, n int) *core.Checksums { return &core.Checksums{ChunkSize: chunk, Sums: make([]uint32, n)} }
	for _, tt := range []struct {
		sums *core.Checksums
		size int64
		ok   bool
	}{
		{nil, 5, true},
		{nil, -1, true},
		{sums(10, 0), 0, true},
		{sums(10, 1), 1, true},
		{sums(10, 1), 10, true},
		{sums(10, 2), 11, true},
		{sums(math.MaxInt, 1), math.MaxInt64, true},
		{sums(10, 1), 0, false},
		{sums(10, 0), 1, false},
		{sums(10, 1), 11, false},
		{sums(10, 2), 10, false},
		{sums(10, 1), -1, false},
		{sums(10, 1), math.MinInt64, false},
		{sums(0, 0), 0, false},
		{sums(-1, 0), 0, false},
		{sums(math.MinInt, 1), 1, false},
	} {
		err := tt.sums.Validate(tt.size)
		if tt.ok {
			require.NoError(t, err, "%+v for %d bytes", tt.sums, tt.size)
		} else {
			require.ErrorIs(t, err, core.ErrCorrupt, "%+v for %d bytes", tt.sums, tt.size)
		}
	}
}

// TestCRC32CIsCastagnolis pins the polynomial by the check value that its catalogues give, and the chunk size: both are in
// files.
func TestCRC32CIsCastagnolis(t *testing.T) {
	require.Equal(t, uint32(0xe3069283), core.CRC32C([]byte("123456789")))
	require.Equal(t, 1<<20, core.ChecksumChunk)
}
