package sparkckpt_test

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

func TestEverythingThatSparkWroteIsSound(t *testing.T) {
	fsys := localFS(t)
	stores := 0
	for _, root := range goldenRoots() {
		for _, c := range readTSV(t, filepath.Join(root, "MANIFEST.tsv")) {
			dir := filepath.Join(root, c["set"], c["name"])
			rows := readTSV(t, filepath.Join(dir, "expected", "index.tsv"))
			if rows == nil {
				continue
			}
			want := map[string]map[string]bool{} // versions that Spark loads, by store
			for _, row := range rows {
				store := row["operator"] + "/" + row["partition"] + "/" + row["store"]
				if want[store] == nil {
					want[store] = map[string]bool{}
				}
				if row["keys"] != "ERROR" {
					want[store][row["version"]] = true
				}
			}
			ckpt, err := sparkckpt.Open(t.Context(), fsys, filepath.Join(dir, "checkpoint"))
			require.NoError(t, err)
			operators, problems, err := ckpt.Operators(t.Context())
			require.NoError(t, err)
			require.Empty(t, problems)
			for _, o := range operators {
				found, missing, err := ckpt.StoreIDs(t.Context(), o)
				require.NoError(t, err)
				require.Empty(t, missing)
				for _, id := range found {
					s, err := ckpt.Store(t.Context(), id)
					require.NoError(t, err)
					v, err := s.Verify(t.Context(), nil)
					require.NoError(t, err)
					require.LessOrEqual(t, v.Worst(), sparkckpt.Warning, "%s: %v", s.Dir, v.Findings)
					for _, f := range v.Findings {
						require.Equal(t, sparkckpt.FileLeftOver, f.Kind, "%v", f)
					}
					got := map[string]bool{}
					for _, loadable := range v.Loadable {
						got[fmt.Sprint(loadable)] = true
					}
					require.Equal(t, want[fmt.Sprintf("%d/%d/%s", id.Operator, id.Partition, id.Name)], got, s.Dir)
					require.Equal(t, s.Loadable(), v.Loadable, "names tell the same")
					stores++
				}
			}
		}
	}
	require.Greater(t, stores, 100)
}

// finding is what a test compares.
type finding struct {
	kind     sparkckpt.FindingKind
	severity sparkckpt.Severity
	name     string
	text     string
}

func verify(t *testing.T, fsys core.FileSystem) (sparkckpt.Verified, []finding) {
	t.Helper()
	v, err := openStore(t, open(t, fsys), 0, 0, "default").Verify(t.Context(), nil)
	require.NoError(t, err)
	var found []finding
	for _, f := range v.Findings {
		require.NotEmpty(t, f.Advice, "%v", f)
		found = append(found, finding{f.Kind, f.Severity, path.Base(f.Path), f.Message})
	}
	return v, found
}

func TestVerifyFindsWhatIsWrongAndSaysWhichVersionsAreLeft(t *testing.T) {
	at := func(name string) string { return "/ckpt/state/0/0/" + name }
	for name, c := range map[string]struct {
		damage   func(t *testing.T, fsys *memfs.FS)
		want     []finding // text is a part of the message
		loadable string
	}{
		"nothing": {func(*testing.T, *memfs.FS) {}, nil, "[1 2 3 4 5 6 7 8 9]"},
		"a damaged snapshot": {
			func(t *testing.T, f *memfs.FS) { flip(t, f, at("4.snapshot"), 50) },
			[]finding{{sparkckpt.FileCorrupt, sparkckpt.Damage, "4.snapshot", "corrupt"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"a damaged delta, and the snapshot behind it": {
			func(t *testing.T, f *memfs.FS) { flip(t, f, at("6.delta"), 50) },
			[]finding{
				{sparkckpt.FileCorrupt, sparkckpt.Damage, "6.delta", "corrupt"},
				{sparkckpt.NotLoadable, sparkckpt.Damage, "0", "versions 6 to 7 cannot be loaded: 6.delta cannot be read"},
			},
			"[1 2 3 4 5 8 9]",
		},
		"a gap at the end": {
			func(t *testing.T, f *memfs.FS) { remove(t, f, at("8.snapshot")); remove(t, f, at("8.delta")) },
			[]finding{{sparkckpt.NotLoadable, sparkckpt.Damage, "0", "version 9 cannot be loaded: 8.delta is missing"}},
			"[1 2 3 4 5 6 7]",
		},
		"an interrupted clean-up": {
			func(t *testing.T, f *memfs.FS) { remove(t, f, at("1.delta")) },
			[]finding{{sparkckpt.NotLoadable, sparkckpt.Warning, "0", "versions 2 to 3 cannot be loaded: 1.delta is missing"}},
			"[4 5 6 7 8 9]",
		},
		"a delta right below a snapshot is gone": {
			func(t *testing.T, f *memfs.FS) { remove(t, f, at("3.delta")) },
			[]finding{{sparkckpt.FileMissing, sparkckpt.Warning, "3.delta", "version 3 cannot be loaded, and 4.snapshot cannot be compared"}},
			"[1 2 4 5 6 7 8 9]",
		},
		"two deltas below a snapshot are gone": {
			func(t *testing.T, f *memfs.FS) { remove(t, f, at("2.delta")); remove(t, f, at("3.delta")) },
			[]finding{{sparkckpt.FileMissing, sparkckpt.Warning, "3.delta", "versions 2 to 3 cannot be loaded, and 4.snapshot cannot be compared"}},
			"[1 4 5 6 7 8 9]",
		},
		"the delta beside a snapshot is gone": {
			func(t *testing.T, f *memfs.FS) { remove(t, f, at("4.delta")) },
			[]finding{{sparkckpt.FileMissing, sparkckpt.Warning, "4.delta", "it is missing: 4.snapshot cannot be compared"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"a snapshot of other content": {
			func(t *testing.T, f *memfs.FS) {
				var b bytes.Buffer
				w, err := codec.NewWriter(&b, codec.Snapshot, codec.WriterOptions{RowChecksum: true})
				require.NoError(t, err)
				require.NoError(t, w.Put(make([]byte, 16), make([]byte, 8)))
				require.NoError(t, w.Close())
				write(t, f, at("4.snapshot"), b.Bytes())
			},
			[]finding{{sparkckpt.SnapshotDiffers, sparkckpt.Damage, "4.snapshot", "15 keys are missing, 1 are too many, 0 have another value"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"a checksum file of Spark 4.1 that disagrees": {
			func(t *testing.T, f *memfs.FS) {
				write(t, f, at("3.delta.crc"), []byte(`{"value":1,"mainFileSize":2}`))
			},
			[]finding{{sparkckpt.ChecksumFile, sparkckpt.Warning, "3.delta.crc", "Spark 4.1 refuses"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"names that upset Spark": {
			func(t *testing.T, f *memfs.FS) {
				write(t, f, at("12_ab.snapshot"), nil)
				write(t, f, at("README.md"), nil)
				require.NoError(t, f.MkdirAll(t.Context(), at("10.delta")))
			},
			[]finding{
				{sparkckpt.NameForeign, sparkckpt.Warning, "12_ab.snapshot", "every load"},
				{sparkckpt.NameForeign, sparkckpt.Warning, "README.md", "no snapshots"},
				{sparkckpt.NameBlocked, sparkckpt.Warning, "10.delta", "never be written"},
			},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"versions that the logs do not lead to": {
			func(t *testing.T, f *memfs.FS) {
				write(t, f, "/ckpt/offsets/6", []byte("v1\n{\"conf\":{\"spark.sql.streaming.stateStore.rowChecksum.enabled\":\"true\"}}"))
				write(t, f, "/ckpt/commits/6", []byte("v1\n{}"))
			},
			[]finding{{sparkckpt.VersionAhead, sparkckpt.Warning, "0", "versions up to 9, and the newest batch in the logs is 6: those above 7"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"a committed version that is gone": {
			func(t *testing.T, f *memfs.FS) {
				write(t, f, "/ckpt/offsets/9", []byte("v1\n{\"conf\":{\"spark.sql.streaming.stateStore.rowChecksum.enabled\":\"true\"}}"))
				write(t, f, "/ckpt/commits/9", []byte("v1\n{}"))
			},
			[]finding{{sparkckpt.NotCommitted, sparkckpt.Damage, "0", "version 10, which the newest batch committed, cannot be loaded"}},
			"[1 2 3 4 5 6 7 8 9]",
		},
		"another compression than pinned": {
			func(t *testing.T, f *memfs.FS) {
				for v := 1; v <= 9; v++ {
					if v > 1 {
						_ = f.Remove(t.Context(), at(fmt.Sprintf("%d.delta", v)))
					}
					_ = f.Remove(t.Context(), at(fmt.Sprintf("%d.snapshot", v)))
				}
				write(t, f, "/ckpt/offsets/0", []byte("v1\n{\"conf\":{\"spark.sql.streaming.stateStore.rowChecksum.enabled\":\"true\",\"spark.sql.streaming.stateStore.compression.codec\":\"zstd\"}}"))
			},
			[]finding{{sparkckpt.OtherCodec, sparkckpt.Damage, "1.delta", "lz4, the offset log pins zstd"}},
			"[1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := golden(t, "generated", sums)
			c.damage(t, fsys)
			v, found := verify(t, fsys)
			require.Equal(t, c.loadable, fmt.Sprint(v.Loadable))
			require.Len(t, found, len(c.want), "%v", found)
			for i, f := range found {
				require.Contains(t, f.text, c.want[i].text)
				f.text = c.want[i].text
				require.Equal(t, c.want[i], f)
			}
		})
	}
}

func TestVerifyOfRocksDBFindsWhatIsWrong(t *testing.T) {
	at := func(name string) string { return "/ckpt/state/0/0/" + name }
	for name, c := range map[string]struct {
		damage   func(t *testing.T, fsys *memfs.FS)
		want     []finding
		loadable string
	}{
		"nothing": {func(*testing.T, *memfs.FS) {}, nil, "[1 2 3 4 5 6 7]"},
		"a damaged changelog": {
			func(t *testing.T, f *memfs.FS) { write(t, f, at("1.changelog"), read(t, f, at("1.changelog"))[:30]) },
			[]finding{
				{sparkckpt.FileCorrupt, sparkckpt.Damage, "1.changelog", "corrupt"},
				{sparkckpt.NotLoadable, sparkckpt.Warning, "0", "1.changelog cannot be read"},
			},
			"[3 4 5 6 7]",
		},
		"a snapshot that lost a table": {
			func(t *testing.T, f *memfs.FS) { require.NoError(t, f.RemoveAll(t.Context(), at("SSTs"))) },
			[]finding{{sparkckpt.FileMissing, sparkckpt.Damage, "", "needs it"}},
			"[1 2 3 4 5 6 7]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := golden(t, "generated", "rocksdb-zstd-changelog-v1-zip")
			c.damage(t, fsys)
			v, found := verify(t, fsys)
			require.Equal(t, c.loadable, fmt.Sprint(v.Loadable))
			require.Equal(t, len(c.want) == 0, len(found) == 0)
			for i, want := range c.want {
				require.Contains(t, found[i].text, want.text)
				require.Equal(t, want.kind, found[i].kind)
				require.Equal(t, want.severity, found[i].severity)
				require.True(t, want.name == "" || want.name == found[i].name)
			}
		})
	}
	fsys := golden(t, "generated", "rocksdb-lz4-changelog-v3-sum")
	s := openStore(t, open(t, fsys), 0, 0, "default")
	name := at("2_" + s.Rocks.Of(2)[0].ID + ".changelog")
	write(t, fsys, name+".crc", []byte("{}"))
	v, found := verify(t, fsys)
	require.Equal(t, []finding{{sparkckpt.ChecksumFile, sparkckpt.Damage, path.Base(name) + ".crc", found[0].text}}, found)
	require.Equal(t, sparkckpt.Damage, v.Worst())
}

func TestHistoryCountsWhatSparkCounts(t *testing.T) {
	fsys := localFS(t)
	compared := 0
	for _, c := range readTSV(t, filepath.Join(goldenDir, "MANIFEST.tsv")) {
		dir := filepath.Join(goldenDir, c["set"], c["name"])
		rows := readTSV(t, filepath.Join(dir, "expected", "index.tsv"))
		if rows == nil {
			continue
		}
		ckpt, err := sparkckpt.Open(t.Context(), fsys, filepath.Join(dir, "checkpoint"))
		require.NoError(t, err)
		events := map[string]map[sparkckpt.Version]sparkckpt.Event{}
		for _, row := range rows {
			store := row["operator"] + " " + row["partition"] + " " + row["store"]
			if events[store] == nil {
				events[store] = map[sparkckpt.Version]sparkckpt.Event{}
				s := openStore(t, ckpt, number(t, row["operator"]), number(t, row["partition"]), row["store"])
				require.NoError(t, s.History(t.Context(), nil, func(e sparkckpt.Event) bool {
					events[store][e.Version] = e
					return true
				}))
			}
			// Of a version with several ids the history has one.
			v := sparkckpt.Version{Number: number(t, row["version"]), ID: strings.TrimPrefix(row["checkpoint_id"], "-")}
			if e, there := events[store][v]; there && e.Err == nil {
				require.Equal(t, number(t, row["keys"]), e.Keys, "%s %s version %s", dir, store, v)
				compared++
			}
		}
	}
	require.Greater(t, compared, 750)
	t.Logf("%d versions", compared)
}

func TestHistoryOfAKeyTellsWhatEachVersionDidToIt(t *testing.T) {
	fsys := memory(t)
	changelog(t, fsys, "1.changelog", 1, nil, put("b", "1"))
	changelog(t, fsys, "2.changelog", 1, nil, put("a", "1"))
	changelog(t, fsys, "3.changelog", 1, nil, put("a", "1"))
	changelog(t, fsys, "4.changelog", 1, nil, put("a", "2"))
	changelog(t, fsys, "5.changelog", 1, nil, codec.Change{Op: codec.ChangeDelete, Key: []byte("a")})
	changelog(t, fsys, "7.changelog", 1, nil, put("a", "3"))
	s := openStore(t, open(t, fsys), 0, 0, "default")
	var got []string
	require.NoError(t, s.History(t.Context(), []byte("a"), func(e sparkckpt.Event) bool {
		got = append(got, fmt.Sprintf("%s %s %s", e.Version, e.Change, e.Value))
		return true
	}))
	require.Equal(t, []string{"1 absent ", "2 added 1", "3 unchanged 1", "4 changed 2", "5 removed ", "7 unknown "}, got)
}

func TestHistoryGoesOnBehindADamagedDeltaWithASnapshot(t *testing.T) {
	fsys := golden(t, "generated", sums)
	flip(t, fsys, "/ckpt/state/0/0/6.delta", 50)
	flip(t, fsys, "/ckpt/state/0/0/8.delta", 50)
	s := openStore(t, open(t, fsys), 0, 0, "default")
	var failed []int64
	require.NoError(t, s.History(t.Context(), []byte("x"), func(e sparkckpt.Event) bool {
		if e.Err != nil {
			require.ErrorIs(t, e.Err, core.ErrCorrupt)
			require.Equal(t, int64(-1), e.Keys)
			require.Equal(t, sparkckpt.UnknownState, e.Change)
			failed = append(failed, e.Version.Number)
		}
		return true
	}))
	require.Equal(t, []int64{6, 7}, failed)
}
