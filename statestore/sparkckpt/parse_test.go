package sparkckpt_test

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

func TestOffsetEntriesAreParsed(t *testing.T) {
	got, err := sparkckpt.ParseOffset([]byte("v1\n{\"batchWatermarkMs\":5,\"batchTimestampMs\":7,\"conf\":{\"a\":\"b\"}}\n{\"logOffset\":0}\n-"))
	require.NoError(t, err)
	require.Equal(t, sparkckpt.OffsetEntry{WatermarkMs: 5, TimestampMs: 7, Conf: map[string]string{"a": "b"}, Sources: []string{`{"logOffset":0}`, "-"}}, got)

	got, err = sparkckpt.ParseOffset([]byte("v1\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1489180207737}\n0"))
	require.NoError(t, err)
	require.Nil(t, got.Conf, "Spark 2.1 pinned nothing")
}

func TestCommitEntriesAreParsed(t *testing.T) {
	for text, want := range map[string]sparkckpt.CommitEntry{
		"v1\n{\"nextBatchWatermarkMs\":1}": {Version: 1, NextWatermarkMs: 1},
		"v1\n{}":                           {Version: 1},
		"v2\n{\"nextBatchWatermarkMs\":0,\"stateUniqueIds\":{}}":                              {Version: 2},
		"v2\n{\"nextBatchWatermarkMs\":0,\"stateUniqueIds\":{\"3\":[[\"a\",\"b\"],[\"c\"]]}}": {Version: 2, UniqueIDs: map[int64][][]string{3: {{"a", "b"}, {"c"}}}},
	} {
		got, err := sparkckpt.ParseCommit([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestDamagedTextsAreCorruptAndLaterVersionsUnsupported(t *testing.T) {
	offset := func(b []byte) error { _, err := sparkckpt.ParseOffset(b); return err }
	commit := func(b []byte) error { _, err := sparkckpt.ParseCommit(b); return err }
	operator := func(b []byte) error { _, err := sparkckpt.ParseOperator(b); return err }
	companion := func(b []byte) error { _, err := sparkckpt.ParseCompanion(b); return err }
	snapshot := func(b []byte) error { _, err := sparkckpt.ParseRocksMetadata(b); return err }
	schema := func(b []byte) error { _, _, err := sparkckpt.ParseSchemas(b); return err }
	for _, c := range []struct {
		parse func([]byte) error
		text  string
		want  error
	}{
		{offset, "", core.ErrCorrupt},
		{offset, "v1", core.ErrCorrupt},
		{offset, "\x00\x00\x00", core.ErrCorrupt},
		{offset, "v1\n{\"batchWatermarkMs\":", core.ErrCorrupt},
		{offset, "v0\n{}", core.ErrCorrupt},
		{offset, "v2\n{}", core.ErrUnsupportedVersion},
		{commit, "", core.ErrCorrupt},
		{commit, "v1\n", core.ErrCorrupt},
		{commit, "v2\n{\"stateUniqueIds\":{\"x\":[]}}", core.ErrCorrupt},
		{commit, "v3\n{}", core.ErrUnsupportedVersion},
		{operator, "v1\n[]", core.ErrCorrupt},
		{operator, "v1\n{\"stateStoreInfo\":[{\"storeName\":\"a\",\"numPartitions\":1000000000000}]}", core.ErrCorrupt},
		{operator, "v1\n{\"stateStoreInfo\":[{\"storeName\":\"a\",\"numPartitions\":-1}]}", core.ErrCorrupt},
		{operator, "v3\n{}", core.ErrUnsupportedVersion},
		{companion, "", core.ErrCorrupt},
		{companion, "{}", core.ErrCorrupt},
		{companion, "{\"value\":1}", core.ErrCorrupt},
		{companion, "{\"value\":99999999999,\"mainFileSize\":1}", core.ErrCorrupt},
		{companion, "{\"algorithm\":\"MD5\",\"value\":1,\"mainFileSize\":1}", core.ErrUnsupportedVersion},
		{snapshot, "v1", core.ErrCorrupt},
		{snapshot, "v1\n{}", core.ErrCorrupt},
		{snapshot, "v2\n{\"sstFiles\":[],\"numKeys\":0}", core.ErrUnsupportedVersion},
		{schema, "", core.ErrCorrupt},
		{schema, "\x00\x02v2", core.ErrCorrupt},
		{schema, "\x00\x02v2\x7f\xff\xff\xff", core.ErrCorrupt},
		{schema, "\x00\x02v3\x7f\xff\xff\xff", core.ErrCorrupt},
		{schema, "\x00\x02v1\x00\x01\xff\x00\x00", core.ErrCorrupt},
		{schema, "\x00\x02v9", core.ErrUnsupportedVersion},
	} {
		require.ErrorIs(t, c.parse([]byte(c.text)), c.want, "%q", c.text)
	}
}

func TestOperatorMetadataNamesStoresAndSchemaFiles(t *testing.T) {
	got, err := sparkckpt.ParseOperator([]byte(`v2
{"operatorInfo":{"operatorId":4,"operatorName":"transformWithStateExec"},"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":1,"numPartitions":2,"stateSchemaFilePaths":["file:/a/b"]}],"operatorPropertiesJson":"{}"}`))
	require.NoError(t, err)
	require.Equal(t, sparkckpt.Operator{
		ID: 4, Name: "transformWithStateExec", Properties: "{}",
		Stores: []sparkckpt.StoreInfo{{Name: "default", PrefixColumns: 1, Partitions: 2, SchemaFiles: []string{"file:/a/b"}}},
	}, got)
}

// javaUTF is DataOutputStream.writeUTF for what is not above U+FFFF.
func javaUTF(s string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s
}

func TestSchemasOfAllVersionsAreParsed(t *testing.T) {
	one := "\x00\x00\x00\x01"
	for text, want := range map[string]struct {
		version int
		schemas []sparkckpt.Schema
	}{
		javaUTF("v1") + javaUTF("k") + javaUTF("v"): {1, []sparkckpt.Schema{{Key: "k", Value: "v"}}},
		javaUTF("v2") + "\x00\x00\x00\x02" + javaUTF("k") + javaUTF("é") + one + javaUTF("\xed\xa0\xbd\xed\xb8\x80\xc0\x80"): {
			2, []sparkckpt.Schema{{Key: "ké", Value: "😀\x00"}},
		},
		javaUTF("v3") + one + javaUTF("fam") + "\x00\x00" + one + javaUTF("k") + "\x00\x01" + one + javaUTF("v") + one + javaUTF("e") + one + javaUTF("{    }"): {
			3, []sparkckpt.Schema{{Family: "fam", Key: "k", Value: "v", KeyEncoder: "e", UserKey: "{    }"}},
		},
	} {
		version, schemas, err := sparkckpt.ParseSchemas([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want.version, version)
		require.Equal(t, want.schemas, schemas)
	}
}

func TestSchemasOfSparkAreJSON(t *testing.T) {
	fsys := localFS(t)
	seen := map[int]int{}
	for _, c := range readTSV(t, filepath.Join(goldenDir, "MANIFEST.tsv")) {
		if !strings.HasPrefix(c["name"], "query-") {
			continue
		}
		ckpt := openGolden(t, fsys, c["set"], c["name"])
		operators, problems, err := ckpt.Operators(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
		for _, o := range operators {
			for _, store := range o.Stores {
				version, schemas, err := ckpt.Schemas(t.Context(), statestore.StoreID{Operator: o.ID, Partition: 1, Name: store.Name})
				require.NoError(t, err)
				require.NotEmpty(t, schemas, "%s operator %d %s", c["name"], o.ID, store.Name)
				seen[version]++
				for _, s := range schemas {
					require.True(t, json.Valid([]byte(s.Key)), s.Key)
					require.True(t, json.Valid([]byte(s.Value)), s.Value)
					require.Equal(t, version == 3, s.Family != "")
				}
			}
		}
	}
	require.Positive(t, seen[2])
	require.Positive(t, seen[3])
}

func FuzzTextsAndSchemas(f *testing.F) {
	for _, seed := range []string{
		"v1\n{\"batchWatermarkMs\":5,\"conf\":{\"a\":\"b\"}}\n-", "v2\n{\"stateUniqueIds\":{\"0\":[[\"a\"]]}}",
		"v1\n{\"sstFiles\":[{\"localFileName\":\"a\",\"dfsSstFileName\":\"b\",\"sizeBytes\":1}],\"numKeys\":-1}",
		"{\"algorithm\":\"CRC32C\",\"value\":-1,\"mainFileSize\":1}", javaUTF("v1") + javaUTF("k") + javaUTF("v"),
		javaUTF("v3") + "\x00\x00\x00\x01" + javaUTF("f") + "\x00\x00" + strings.Repeat("\x00", 18),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			if err != nil && !isFormatError(err) {
				t.Fatalf("%v", err)
			}
		}
		_, err := sparkckpt.ParseOffset(data)
		check(err)
		_, err = sparkckpt.ParseCommit(data)
		check(err)
		_, err = sparkckpt.ParseOperator(data)
		check(err)
		_, err = sparkckpt.ParseCompanion(data)
		check(err)
		_, err = sparkckpt.ParseRocksMetadata(data)
		check(err)
		_, _, err = sparkckpt.ParseSchemas(data)
		check(err)
	})
}
