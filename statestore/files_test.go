package statestore_test

import (
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestFileNamesRoundTrip(t *testing.T) {
	for _, v := range []int64{1, 9, 10, 12345, math.MaxInt64} {
		for _, kind := range []codec.Kind{codec.Delta, codec.Snapshot} {
			gotV, gotKind, ok := statestore.ParseFileName(statestore.FileName(v, kind))
			require.True(t, ok)
			require.Equal(t, v, gotV)
			require.Equal(t, kind, gotKind)
		}
		for _, id := range []string{"", "5f935e39-53ec-403b-ac6c-ef25012d78af"} {
			gotV, gotID, zip, ok := statestore.ParseRocksName(statestore.ChangelogName(v, id))
			require.True(t, ok && !zip && gotV == v && gotID == id)
			gotV, gotID, zip, ok = statestore.ParseRocksName(statestore.ZipName(v, id))
			require.True(t, ok && zip && gotV == v && gotID == id)
		}
		epoch, ok := statestore.ParseEpochName(statestore.EpochName(v))
		require.True(t, ok)
		require.Equal(t, v, epoch)
	}
	require.Equal(t, "7.delta", statestore.FileName(7, codec.Delta))
	require.Equal(t, "7.snapshot", statestore.FileName(7, codec.Snapshot))
	require.Equal(t, "7_u.changelog", statestore.ChangelogName(7, "u"))
}

func TestOnlyCanonicalNamesAreVersions(t *testing.T) {
	for _, name := range []string{
		"", ".delta", "delta", "7", "7.", "abc.delta", "README.txt", ".crc", "core.1234", "99999999999999999999.delta", "1e3.delta", "0x10.delta",
		"5.delta.tmp", "1.delta.bak", "03.delta", "+3.delta", "-1.delta", " 5.delta", "5 .delta", "٦.delta", "0.delta", "0.snapshot", "4.Delta",
		"2.SNAPSHOT", "1_0.delta", "1.delta.crc", ".1.delta", "._1.delta", "1.5.delta", "9223372036854775808.delta", "1.delta\n", "12_ab.snapshot",
	} {
		_, _, ok := statestore.ParseFileName(name)
		require.False(t, ok, "%q", name)
		_, _, _, ok = statestore.ParseRocksName(name)
		require.False(t, ok, "%q", name)
	}
	for _, name := range []string{"01.changelog", "1_.changelog", "0.zip", "1_a.b.zip", "_u.zip", "x_u.changelog", "1.changelog.crc"} {
		_, _, _, ok := statestore.ParseRocksName(name)
		require.False(t, ok, "%q", name)
	}
	for _, name := range []string{"_epoch-", "_epoch-0", "_epoch-01", "_epoch--1", "epoch-1", "_epoch-x"} {
		_, ok := statestore.ParseEpochName(name)
		require.False(t, ok, "%q", name)
	}
}

const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"

func TestTemporariesAreKnownByTheirFullForm(t *testing.T) {
	require.Equal(t, ".6.delta."+uuid+".tmp", statestore.TempName("6.delta", uuid))
	for temp, want := range map[string]string{
		".6.delta." + uuid + ".tmp":          "6.delta",
		".6.snapshot." + uuid + ".TID12.tmp": "6.snapshot",
		".6.delta.crc." + uuid + ".tmp":      "6.delta.crc",
	} {
		name, ok := statestore.ParseTempName(temp)
		require.True(t, ok, temp)
		require.Equal(t, want, name)
	}
	for _, temp := range []string{
		"", ".", "6.delta." + uuid + ".tmp", ".06.delta." + uuid + ".tmp", ".6.delta.tmp", "6.delta.tmp", ".6.delta.nouuid.tmp",
		".x.delta." + uuid + ".tmp", "." + uuid + ".tmp", ".6.delta." + uuid + ".TID.tmp", "temp-123", ".6.delta." + uuid + ".tmp.crc",
	} {
		_, ok := statestore.ParseTempName(temp)
		require.False(t, ok, temp)
	}
}

func TestCompanionsBelongToAFile(t *testing.T) {
	for _, name := range statestore.CompanionNames("3.delta") {
		file, ok := statestore.ParseCompanionName(name)
		require.True(t, ok, name)
		require.Equal(t, "3.delta", file)
	}
	for _, name := range []string{".crc", "3.crc", "03.delta.crc", "..3.delta.crc", "3.delta", ".3.delta", "x.snapshot.crc"} {
		_, ok := statestore.ParseCompanionName(name)
		require.False(t, ok, name)
	}
}

func TestStoreDirHasAComponentForNamedStoresOnly(t *testing.T) {
	for store, want := range map[string]string{
		"default": "/x/.hidden/v1.2/3.delta/state/0/7", "": "/x/.hidden/v1.2/3.delta/state/0/7",
		"left-keyToNumValues": "/x/.hidden/v1.2/3.delta/state/0/7/left-keyToNumValues",
	} {
		dir, err := statestore.StoreDir("/x/.hidden/v1.2/3.delta/state", 0, 7, store)
		require.NoError(t, err)
		require.Equal(t, want, dir)
	}
	for _, bad := range []string{"..", "a/b", "a:b", "\x00"} {
		_, err := statestore.StoreDir("/state", 0, 0, bad)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err := statestore.StoreDir("/state", -1, 0, "")
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// files makes entries of regular files.
func files(names ...string) []core.FileInfo {
	var entries []core.FileInfo
	for _, name := range names {
		entries = append(entries, core.FileInfo{Name: name, Size: 100, Mode: 0o600, ModTime: time.Unix(1000, 0)})
	}
	return entries
}

func TestSortPutsEveryEntryInItsPlace(t *testing.T) {
	entries := files("12.delta", "9.delta", "10.snapshot", "10.delta", ".9.delta.crc", "9.delta.crc", ".99.delta.crc", "13.delta.tmp",
		".13.delta."+uuid+".tmp", "._sync."+uuid, "._sync.x", "abc.delta", "README.txt", ".delta", "7", "99999999999999999999.delta", "-1.delta", "0.delta", "03.delta",
		"+4.delta", "4.Delta", "2.SNAPSHOT", ".DS_Store", "._1.delta", ".nfs000000001", "7_u.changelog")
	entries = append(entries,
		core.FileInfo{Name: "14.delta", Mode: fs.ModeDir | 0o700}, core.FileInfo{Name: "lost+found", Mode: fs.ModeDir},
		core.FileInfo{Name: "15.delta", Mode: fs.ModeSymlink | 0o777}, core.FileInfo{Name: "_epoch-2", Mode: fs.ModeDir | 0o700},
		core.FileInfo{Name: "_epoch-10", Mode: fs.ModeDir | 0o700}, core.FileInfo{Name: "_epoch-3", Mode: 0o600})
	l := statestore.Sort(entries)
	written := time.Unix(1000, 0)
	require.Equal(t, []statestore.VersionFiles{
		{Version: 9, Delta: true, DeltaBytes: 100, DeltaTime: written},
		{Version: 10, Delta: true, Snapshot: true, DeltaBytes: 100, SnapshotBytes: 100, DeltaTime: written, SnapshotTime: written},
		{Version: 12, Delta: true, DeltaBytes: 100, DeltaTime: written},
	}, l.Versions)
	require.Equal(t, map[string][]string{"9.delta": {".9.delta.crc", "9.delta.crc"}}, l.Companions)
	require.Equal(t, []statestore.Leftover{{Name: ".99.delta.crc", ModTime: time.Unix(1000, 0)}}, l.Orphans)
	require.Equal(t, []statestore.Leftover{{Name: ".13.delta." + uuid + ".tmp", ModTime: written}, {Name: "._sync." + uuid, ModTime: written}}, l.Temps)
	require.Equal(t, []int64{2, 10}, l.Epochs)
	require.Equal(t, []string{"14.delta", "15.delta"}, l.Blocked)
	require.Len(t, l.Foreign, len(entries)-4-2-1-2-2-2)
	require.Equal(t, int64(12), l.Highest())
	require.Zero(t, statestore.Sort(nil).Highest())
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"1.delta", "1.snapshot", "1_u.changelog", "1.zip", "_epoch-1", ".6.delta." + uuid + ".tmp", ".1.delta.crc"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if v, kind, ok := statestore.ParseFileName(name); ok {
			require.Equal(t, name, statestore.FileName(v, kind))
		}
		if v, id, zip, ok := statestore.ParseRocksName(name); ok && zip {
			require.Equal(t, name, statestore.ZipName(v, id))
		} else if ok {
			require.Equal(t, name, statestore.ChangelogName(v, id))
		}
		if e, ok := statestore.ParseEpochName(name); ok {
			require.Equal(t, name, statestore.EpochName(e))
		}
		if file, ok := statestore.ParseCompanionName(name); ok {
			require.Contains(t, statestore.CompanionNames(file), name)
		}
		l := statestore.Sort(files(name))
		require.Equal(t, 1, len(l.Versions)+len(l.Orphans)+len(l.Temps)+len(l.Foreign))
	})
}
