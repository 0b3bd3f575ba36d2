package sparkckpt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

func isFormatError(err error) bool {
	return errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion)
}

func memory(t *testing.T) *memfs.FS {
	t.Helper()
	return memfs.New(memfs.Options{})
}

// write makes a file with its directories, or replaces it.
func write(t *testing.T, fsys core.FileSystem, name string, data []byte) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, fsys.MkdirAll(ctx, path.Dir(name)))
	if err := fsys.Remove(ctx, name); !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	w, err := fsys.Create(ctx, name, core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func remove(t *testing.T, fsys core.FileSystem, name string) {
	t.Helper()
	require.NoError(t, fsys.Remove(t.Context(), name))
}

// golden copies a case into memory, at /ckpt.
func golden(t *testing.T, set, name string) *memfs.FS {
	t.Helper()
	fsys := memory(t)
	from := filepath.Join(goldenDir, set, name, "checkpoint")
	require.NoError(t, filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(from, file)
		write(t, fsys, path.Join("/ckpt", filepath.ToSlash(at)), data)
		return err
	}))
	return fsys
}

func read(t *testing.T, fsys core.FileSystem, name string) []byte {
	t.Helper()
	r, err := fsys.Open(t.Context(), name)
	require.NoError(t, err)
	data := make([]byte, r.Size())
	_, err = r.ReadAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return data
}

// flip inverts a byte of a file.
func flip(t *testing.T, fsys core.FileSystem, name string, at int) {
	t.Helper()
	data := read(t, fsys, name)
	data[at] ^= 0xff
	write(t, fsys, name, data)
}

func open(t *testing.T, fsys core.FileSystem) *sparkckpt.Checkpoint {
	t.Helper()
	c, err := sparkckpt.Open(t.Context(), fsys, "/ckpt")
	require.NoError(t, err)
	return c
}

func load(t *testing.T, fsys core.FileSystem, v sparkckpt.Version) (*sparkckpt.View, error) {
	t.Helper()
	return openStore(t, open(t, fsys), 0, 0, "default").Load(t.Context(), v)
}

const sums = "hdfs-lz4-sum-snapshots" // 1 to 8 and 9, snapshots of 4 and 8, no logs

func TestADamagedSnapshotIsPassedOverIfTheDeltasMakeItsVersion(t *testing.T) {
	fsys := golden(t, "generated", sums)
	want, err := load(t, fsys, sparkckpt.Version{Number: 5})
	require.NoError(t, err)
	require.Equal(t, "4.snapshot", want.Base)

	flip(t, fsys, "/ckpt/state/0/0/4.snapshot", 40)
	got, err := load(t, fsys, sparkckpt.Version{Number: 5})
	require.NoError(t, err)
	require.Equal(t, dumpSum(want), dumpSum(got))
	require.Equal(t, "", got.Base)
	require.Len(t, got.Passed, 1)
	require.ErrorIs(t, got.Passed[0], core.ErrCorrupt)

	remove(t, fsys, "/ckpt/state/0/0/1.delta")
	_, err = load(t, fsys, sparkckpt.Version{Number: 5})
	require.ErrorIs(t, err, core.ErrCorrupt, "the damage is named, not a delta that was cleaned up")
	require.ErrorContains(t, err, "4.snapshot")
}

func TestDamageIsNeverTakenForAnAbsentRowChecksum(t *testing.T) {
	fsys := golden(t, "generated", sums)
	for v := int64(2); v <= 9; v++ {
		_ = fsys.Remove(t.Context(), "/ckpt/state/0/0/"+statestore.FileName(v, codec.Delta))
		_ = fsys.Remove(t.Context(), "/ckpt/state/0/0/"+statestore.FileName(v, codec.Snapshot))
	}
	raw := read(t, fsys, "/ckpt/state/0/0/1.delta")
	for at := range raw {
		flipped := bytes.Clone(raw)
		flipped[at] ^= 0x10
		write(t, fsys, "/ckpt/state/0/0/1.delta", flipped)
		view, err := load(t, fsys, sparkckpt.Version{Number: 1})
		if err == nil {
			require.True(t, view.RowChecksum, "byte %d", at)
			continue
		}
		require.True(t, isFormatError(err), "byte %d: %v", at, err)
	}
}

func TestWhatCannotBeLoadedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(t *testing.T, fsys core.FileSystem)
		version sparkckpt.Version
		is      error
		text    string
	}{
		"negative":          {nil, sparkckpt.Version{Number: -1}, fs.ErrInvalid, "version -1"},
		"above the highest": {nil, sparkckpt.Version{Number: 99}, fs.ErrNotExist, "the highest is 9"},
		"an id":             {nil, sparkckpt.Version{Number: 1, ID: "a"}, fs.ErrNotExist, "no checkpoint ids"},
		"a gap":             {func(t *testing.T, f core.FileSystem) { remove(t, f, "/ckpt/state/0/0/6.delta") }, sparkckpt.Version{Number: 7}, fs.ErrNotExist, "6.delta is missing"},
		"a damaged delta":   {func(t *testing.T, f core.FileSystem) { flip(t, f, "/ckpt/state/0/0/6.delta", 30) }, sparkckpt.Version{Number: 7}, core.ErrCorrupt, "6.delta"},
		"a delta that was cut": {func(t *testing.T, f core.FileSystem) {
			write(t, f, "/ckpt/state/0/0/6.delta", read(t, f, "/ckpt/state/0/0/6.delta")[:40])
		}, sparkckpt.Version{Number: 6}, core.ErrCorrupt, "6.delta"},
		"a delta without bytes": {func(t *testing.T, f core.FileSystem) { write(t, f, "/ckpt/state/0/0/6.delta", nil) }, sparkckpt.Version{Number: 6}, core.ErrCorrupt, "6.delta"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := golden(t, "generated", sums)
			if c.damage != nil {
				c.damage(t, fsys)
			}
			_, err := load(t, fsys, c.version)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			var at *fs.PathError
			require.ErrorAs(t, err, &at)
		})
	}
}

func TestVersionZeroIsEmpty(t *testing.T) {
	for _, name := range []string{sums, "rocksdb-lz4-no-changelog"} {
		view, err := load(t, golden(t, "generated", name), sparkckpt.Version{})
		require.NoError(t, err)
		require.Zero(t, view.Len())
	}
}

func TestTheChecksumFileOfAFormat2ChangelogMustBeRight(t *testing.T) {
	const name = "rocksdb-lz4-changelog-v3-sum"
	version := sparkckpt.Version{Number: 1}
	for what, c := range map[string]struct {
		content string
		fails   bool
	}{
		"wrong value":    {`{"algorithm":"CRC32C","value":1,"mainFileSize":%d}`, true},
		"wrong size":     {`{"algorithm":"CRC32C","value":1,"mainFileSize":1%d}`, true},
		"empty":          {"", true},
		"without fields": {"{}", true},
		"missing":        {"missing", false},
	} {
		t.Run(what, func(t *testing.T) {
			fsys := golden(t, "generated", name)
			s := openStore(t, open(t, fsys), 0, 0, "default")
			v, err := s.Resolve(t.Context(), version)
			require.NoError(t, err)
			file := "/ckpt/state/0/0/" + statestore.ChangelogName(v.Number, v.ID)
			switch c.content {
			case "missing":
				remove(t, fsys, file+".crc")
			default:
				content := c.content
				if strings.Contains(content, "%d") {
					content = fmt.Sprintf(content, len(read(t, fsys, file)))
				}
				write(t, fsys, file+".crc", []byte(content))
			}
			_, err = s.Load(t.Context(), v)
			if c.fails {
				require.ErrorIs(t, err, core.ErrCorrupt)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestTheCommitLogTellsTheIDOfAVersion(t *testing.T) {
	fsys := golden(t, "generated", "query-join-outer-rocksdb-lz4-ck2")
	c := open(t, fsys)
	for _, store := range []string{"left-keyToNumValues", "right-keyWithIndexToValue"} {
		s := openStore(t, c, 0, 1, store)
		v, err := s.Resolve(t.Context(), sparkckpt.Version{Number: 3})
		require.NoError(t, err)
		require.Equal(t, s.Rocks.Of(3)[0].ID, v.ID)
	}

	fsys = golden(t, "generated", "rocksdb-lz4-changelog-v4-fork")
	s := openStore(t, open(t, fsys), 0, 0, "default")
	_, err := s.Resolve(t.Context(), sparkckpt.Version{Number: 3})
	var ambiguous *sparkckpt.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	require.Len(t, ambiguous.IDs, 2)
	require.ErrorIs(t, err, fs.ErrInvalid)

	for _, id := range ambiguous.IDs {
		write(t, fsys, "/ckpt/commits/2", []byte(`v2
{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["of another store","`+id+`"]]}}`))
		s = openStore(t, open(t, fsys), 0, 0, "default")
		v, err := s.Resolve(t.Context(), sparkckpt.Version{Number: 3})
		require.NoError(t, err)
		require.Equal(t, id, v.ID)
	}
}

// changelog writes a changelog of the given version.
func changelog(t *testing.T, fsys core.FileSystem, name string, version int, lineage []codec.LineageEntry, changes ...codec.Change) {
	t.Helper()
	var b bytes.Buffer
	w, err := codec.NewChangelogWriter(&b, version, lineage, codec.WriterOptions{Name: name, NoFooter: true})
	require.NoError(t, err)
	for _, change := range changes {
		require.NoError(t, w.Write(change))
	}
	require.NoError(t, w.Close())
	write(t, fsys, "/ckpt/state/0/0/"+name, b.Bytes())
}

func put(key, value string) codec.Change {
	return codec.Change{Op: codec.ChangePut, Key: []byte(key), Value: []byte(value)}
}

func TestMergesAndRangesAreReplayedAsRocksDBDoes(t *testing.T) {
	for name, c := range map[string]struct{ offsets, want string }{
		"no offset log": {"", "12"},
		"version 2":     {`v1` + "\n" + `{"conf":{"spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion":"2"}}`, "12"},
		"version 1":     {`v1` + "\n" + `{"conf":{"spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion":"1"}}`, "1,2"},
		"not pinned":    {`v1` + "\n" + `{"conf":{}}`, "1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memory(t)
			if c.offsets != "" {
				write(t, fsys, "/ckpt/offsets/0", []byte(c.offsets))
			}
			changelog(t, fsys, "1.changelog", 2, nil, put("a", "1"), put("b", "2"), put("c", "3"), put("d", "4"),
				codec.Change{Op: codec.ChangeMerge, Key: []byte("m"), Value: []byte("1")})
			changelog(t, fsys, "2.changelog", 2, nil,
				codec.Change{Op: codec.ChangeDeleteRange, Key: []byte("b"), End: []byte("d")},
				codec.Change{Op: codec.ChangeMerge, Key: []byte("m"), Value: []byte("2")})
			view, err := load(t, fsys, sparkckpt.Version{Number: 2})
			require.NoError(t, err)
			var keys []string
			for e := range view.All() {
				keys = append(keys, string(e.Key))
			}
			require.Equal(t, []string{"a", "d", "m"}, keys)
			value, found := view.Get([]byte("m"))
			require.True(t, found)
			require.Equal(t, c.want, string(value))
			_, found = view.Get([]byte("b"))
			require.False(t, found)
		})
	}
}

func TestChangelogsThatBeginAtASnapshotNeedItToBeEmpty(t *testing.T) {
	empty := read(t, golden(t, "golden-public", "spark-4.0.0-checkpoint-v2-rocksdb-dedup"),
		"/ckpt/state/0/0/2_c80c40ef-6092-497d-badd-733e1cc8929f.zip")
	full := read(t, golden(t, "generated", "rocksdb-lz4-no-changelog"), "/ckpt/state/0/0/3.zip")
	fsys := memory(t)
	changelog(t, fsys, "4.changelog", 2, nil, put("a", "1"))
	changelog(t, fsys, "5.changelog", 2, nil, put("b", "2"))
	_, err := load(t, fsys, sparkckpt.Version{Number: 5})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "3.changelog is missing")

	write(t, fsys, "/ckpt/state/0/0/3.zip", full)
	_, err = load(t, fsys, sparkckpt.Version{Number: 5})
	var needed *sparkckpt.SnapshotNeededError
	require.ErrorAs(t, err, &needed)
	require.Equal(t, "3.zip", needed.Zip)
	require.ErrorIs(t, err, errors.ErrUnsupported)

	write(t, fsys, "/ckpt/state/0/0/4.zip", empty)
	view, err := load(t, fsys, sparkckpt.Version{Number: 5})
	require.NoError(t, err)
	require.Equal(t, "4.zip", view.Base)
	require.Equal(t, []string{"4.zip", "5.changelog"}, view.Files)
	require.Equal(t, 1, view.Len())

	write(t, fsys, "/ckpt/state/0/0/3.zip", empty)
	view, err = load(t, fsys, sparkckpt.Version{Number: 5})
	require.NoError(t, err)
	require.Equal(t, []string{"3.zip", "4.changelog", "5.changelog"}, view.Files)

	write(t, fsys, "/ckpt/state/0/0/3.zip", full[:100])
	_, err = load(t, fsys, sparkckpt.Version{Number: 5})
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func TestLineagesAreFollowedAndChecked(t *testing.T) {
	line := func(entries ...string) []codec.LineageEntry {
		lineage := []codec.LineageEntry{}
		for _, e := range entries {
			var l codec.LineageEntry
			_, err := fmt.Sscanf(e, "%d_%s", &l.Version, &l.CheckpointUniqueID)
			require.NoError(t, err)
			lineage = append(lineage, l)
		}
		return lineage
	}
	base := func(t *testing.T) *memfs.FS {
		fsys := memory(t)
		changelog(t, fsys, "1_a.changelog", 3, line(), put("x", "1"))
		changelog(t, fsys, "2_b.changelog", 3, line("1_a"), put("y", "2"))
		changelog(t, fsys, "3_c.changelog", 3, line("2_b"), put("x", "3")) // 2_b had a snapshot
		changelog(t, fsys, "3_z.changelog", 3, line("2_b"), put("x", "zombie"))
		changelog(t, fsys, "4_d.changelog", 3, line("2_b", "3_c"), put("z", "4"))
		return fsys
	}
	view, err := load(t, base(t), sparkckpt.Version{Number: 4, ID: "d"})
	require.NoError(t, err)
	require.Equal(t, []string{"1_a.changelog", "2_b.changelog", "3_c.changelog", "4_d.changelog"}, view.Files)
	value, _ := view.Get([]byte("x"))
	require.Equal(t, "3", string(value))

	for name, c := range map[string]struct {
		change func(t *testing.T, fsys core.FileSystem)
		is     error
		text   string
	}{
		"the version itself is missing":   {func(t *testing.T, f core.FileSystem) { remove(t, f, "/ckpt/state/0/0/4_d.changelog") }, fs.ErrNotExist, "neither 4_d.changelog nor 4_d.zip"},
		"one in between is missing":       {func(t *testing.T, f core.FileSystem) { remove(t, f, "/ckpt/state/0/0/3_c.changelog") }, fs.ErrNotExist, "3_c.changelog is missing"},
		"one at a former snapshot is too": {func(t *testing.T, f core.FileSystem) { remove(t, f, "/ckpt/state/0/0/2_b.changelog") }, fs.ErrNotExist, "2_b.changelog is missing"},
		"a version is left out":           {func(t *testing.T, f core.FileSystem) { changelog(t, f, "4_d.changelog", 3, line("1_a", "3_c")) }, core.ErrCorrupt, "lineage"},
		"it leads out of the directory":   {func(t *testing.T, f core.FileSystem) { changelog(t, f, "4_d.changelog", 3, line("3_../../x")) }, core.ErrCorrupt, "lineage"},
		"it names itself":                 {func(t *testing.T, f core.FileSystem) { changelog(t, f, "4_d.changelog", 3, line("4_d")) }, core.ErrCorrupt, "lineage"},
		"it names nothing":                {func(t *testing.T, f core.FileSystem) { changelog(t, f, "4_d.changelog", 3, line()) }, fs.ErrNotExist, "nothing that it builds on"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := base(t)
			c.change(t, fsys)
			_, err := load(t, fsys, sparkckpt.Version{Number: 4, ID: "d"})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestLoadLooksAgainIfTheQueryHasCleanedUpMeanwhile(t *testing.T) {
	fsys := golden(t, "generated", sums)
	s := openStore(t, open(t, fsys), 0, 0, "default")
	want, err := s.Load(t.Context(), sparkckpt.Version{Number: 9})
	require.NoError(t, err)
	require.Equal(t, "8.snapshot", want.Base)
	var b bytes.Buffer
	w, err := codec.NewWriter(&b, codec.Snapshot, codec.WriterOptions{RowChecksum: true})
	require.NoError(t, err)
	for e := range want.All() {
		require.NoError(t, w.Put(e.Key, e.Value))
	}
	require.NoError(t, w.Close())
	write(t, fsys, "/ckpt/state/0/0/9.snapshot", b.Bytes())
	for _, name := range []string{"8.snapshot", "8.delta", "9.delta"} {
		remove(t, fsys, "/ckpt/state/0/0/"+name)
	}
	got, err := s.Load(t.Context(), sparkckpt.Version{Number: 9})
	require.NoError(t, err)
	require.Equal(t, "9.snapshot", got.Base)
	require.Equal(t, dumpSum(want), dumpSum(got))
}

func TestEveryFailureOfTheStorageSurfaces(t *testing.T) {
	injected := errors.New("injected")
	for _, name := range []string{"query-join-inner-hdfs-lz4", "query-join-outer-rocksdb-lz4-ck2"} {
		fsys := golden(t, "generated", name)
		work := func(ctx context.Context, fsys core.FileSystem) (string, error) {
			c, err := sparkckpt.Open(ctx, fsys, "/ckpt")
			if err != nil {
				return "", err
			}
			s, err := c.Store(ctx, statestore.StoreID{Partition: 1, Name: "left-keyToNumValues"})
			if err != nil {
				return "", err
			}
			v, err := s.Resolve(ctx, sparkckpt.Version{Number: 7})
			if err != nil {
				return "", err
			}
			view, err := s.Load(ctx, v)
			if err != nil {
				return "", err
			}
			return dumpSum(view), nil
		}
		counting := faultfs.Wrap(fsys, nil)
		want, err := work(t.Context(), counting)
		require.NoError(t, err)
		for i := range len(counting.Calls()) {
			calls := 0
			faulty := faultfs.Wrap(fsys, func(faultfs.Call) faultfs.Fault {
				calls++
				if calls == i+1 {
					return faultfs.Fault{Err: injected}
				}
				return faultfs.Fault{}
			})
			got, err := work(t.Context(), faulty)
			if err == nil {
				require.Equal(t, want, got, "call %d", i)
				continue
			}
			require.ErrorIs(t, err, injected, "call %d", i)
		}
	}
}

func TestDamagedLogsAreProblemsAndOlderEntriesTell(t *testing.T) {
	fsys := golden(t, "generated", "query-agg-types-hdfs-zstd")
	healthy := open(t, fsys)
	require.Equal(t, "zstd", must(healthy.Pins.Compression()).String())
	last := healthy.LastOffset()
	write(t, fsys, fmt.Sprintf("/ckpt/offsets/%d", last), nil)
	write(t, fsys, "/ckpt/metadata", []byte("{"))
	c := open(t, fsys)
	require.Len(t, c.Problems, 2)
	require.Equal(t, last-1, c.Pins.Batch)
	require.Equal(t, "", c.QueryID)
	require.Equal(t, "zstd", must(c.Pins.Compression()).String())
}

func must[T any](value T, known bool) T {
	if !known {
		panic("unknown")
	}
	return value
}

func TestADirectoryWithoutStateIsNoCheckpoint(t *testing.T) {
	fsys := memory(t)
	_, err := sparkckpt.Open(t.Context(), fsys, "/ckpt")
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, fsys, "/ckpt/state", nil)
	_, err = sparkckpt.Open(t.Context(), fsys, "/ckpt")
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestTheDefaultStoreOfAPartitionThatHasOthersOnlyIsNotThere(t *testing.T) {
	c := open(t, golden(t, "generated", "query-join-inner-hdfs-lz4"))
	for _, name := range []string{"", statestore.DefaultStore} {
		_, err := c.Store(t.Context(), statestore.StoreID{Name: name})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "left-keyToNumValues")
	}
	_, err := c.Store(t.Context(), statestore.StoreID{Name: "left-keyToNumValues"})
	require.NoError(t, err)
}

func TestStoresThatTheMetadataNamesAndAreNotThereAreMissing(t *testing.T) {
	for name, want := range map[string]int{"query-join-inner-hdfs-lz4": 0, "query-limit-hdfs-lz4": 0} {
		c := open(t, golden(t, "generated", name))
		operators, _, err := c.Operators(t.Context())
		require.NoError(t, err)
		_, missing, err := c.StoreIDs(t.Context(), operators[0])
		require.NoError(t, err)
		require.Len(t, missing, want, name)
	}
	fsys := golden(t, "generated", "query-join-inner-hdfs-lz4")
	require.NoError(t, fsys.RemoveAll(t.Context(), "/ckpt/state/0/0"))
	c := open(t, fsys)
	operators, _, err := c.Operators(t.Context())
	require.NoError(t, err)
	found, missing, err := c.StoreIDs(t.Context(), operators[0])
	require.NoError(t, err)
	require.Len(t, found, 4)
	require.Len(t, missing, 4)
	require.Equal(t, statestore.StoreID{Name: "left-keyToNumValues"}, missing[0])
}
