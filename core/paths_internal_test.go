package core

import (
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestEpochDirNameRoundTrip(t *testing.T) {
	for _, epoch := range []uint64{1, 9, 10, math.MaxUint64} {
		parsed, ok := parseEpochDirName(epochDirName(epoch))
		require.True(t, ok)
		require.Equal(t, epoch, parsed)
	}
	for _, name := range []string{"", ".epoch-", ".epoch-0", ".epoch-01", ".epoch--1", ".epoch-+1", ".epoch-a", "epoch-1", ".epoch-1 ", ".epoch-18446744073709551616"} {
		_, ok := parseEpochDirName(name)
		require.False(t, ok, "%q", name)
	}
}

func TestNextEpochIsAboveAllThatHaveADirectory(t *testing.T) {
	for _, c := range []struct {
		epochs   []uint64
		occupied []uint64
		want     uint64
	}{
		{nil, nil, 1},
		{[]uint64{1, 2, 3}, nil, 4},
		{[]uint64{10, 9}, nil, 11},
		{nil, []uint64{1, 2}, 3},
		{[]uint64{4}, []uint64{2, 5, 7}, 6},
		{[]uint64{math.MaxUint64}, nil, 0},
		{[]uint64{math.MaxUint64 - 1}, []uint64{math.MaxUint64}, 0},
	} {
		occupied := map[uint64]bool{}
		for _, epoch := range c.occupied {
			occupied[epoch] = true
		}
		require.Equal(t, c.want, nextEpoch(c.epochs, occupied), "%v", c)
	}
}

func TestDisposedMarkNameRoundTrip(t *testing.T) {
	for _, id := range []int64{0, 7, math.MaxInt64} {
		parsed, ok := parseDisposedMarkName(disposedMarkName(id))
		require.True(t, ok)
		require.Equal(t, id, parsed)
	}
	for _, name := range []string{"", ".disposed", "chk-7", "chk-07.disposed", "chk-7.disposed.x", DisposedName} {
		_, ok := parseDisposedMarkName(name)
		require.False(t, ok, "%q", name)
	}
}

func TestNamesInAnEpochDirectoryAreToldApart(t *testing.T) {
	o := &Owner{epochDir: "/j/.epoch-1", dir: "/j/.epoch-1/claim", storage: &Storage{opts: Options{NewUUID: uuid.NewRandom}}}
	base := func(what string) string {
		name, err := o.trashName(what)
		require.NoError(t, err)
		require.Equal(t, o.dir, parentDir(name))
		return name[len(o.dir)+1:]
	}
	require.True(t, isCheckpointTrash(base(CheckpointDirName(7))))
	for _, name := range []string{
		base(CheckpointDirName(7) + MetadataName), base("fenced-epoch-3"), disposedMarkName(7), uuid.NewString(), "chk-7", "chk-7." + uuid.NewString()[:35], "chk-07." + uuid.NewString(), "",
	} {
		require.False(t, isCheckpointTrash(name), "%q", name)
	}
}

func TestTemporariesAreKnownByTheirUUID(t *testing.T) {
	id := uuid.NewString()
	require.True(t, isMetadataTempName(inProgressPrefix+id))
	require.True(t, isBarrierName(barrierPrefix+id))
	for _, name := range []string{"", inProgressPrefix, inProgressPrefix + "x", barrierPrefix, barrierPrefix + id + "x", id, "._metadata", "._metadata.x"} {
		require.False(t, isMetadataTempName(name), "%q", name)
		require.False(t, isBarrierName(name), "%q", name)
	}
	for _, name := range []string{MetadataName, DisposedName, emptiedName} {
		require.True(t, isMetadataName(name))
		require.False(t, isMetadataTempName(name))
		require.False(t, IsStateFileName(name))
	}
}

// A name that is longer than a directory entry may be could not be written.
func TestEveryNameFitsIntoADirectoryEntry(t *testing.T) {
	longest := CheckpointDirName(math.MaxInt64)
	for _, name := range []string{
		longest + MetadataName + "." + uuid.NewString(), "fenced-" + epochDirName(math.MaxUint64)[1:] + "." + uuid.NewString(),
		inProgressPrefix + uuid.NewString(), disposedMarkName(math.MaxInt64), epochDirName(math.MaxUint64),
	} {
		require.NoError(t, CheckComponent(name))
	}
}
