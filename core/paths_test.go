package core_test

import (
	"encoding/json"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestJobIDRoundTrip(t *testing.T) {
	for range 100 {
		id, err := core.NewJobID()
		require.NoError(t, err)
		parsed, err := core.ParseJobID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, parsed)
		data, err := json.Marshal(map[string]core.JobID{"id": id})
		require.NoError(t, err)
		var back map[string]core.JobID
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, id, back["id"])
	}
}

func TestJobIDOfANameIsTheSameEverywhere(t *testing.T) {
	// A changed value would lose every named job its checkpoints.
	require.Equal(t, "1ed9eb4e194585d9c4f06e46896585f7", core.JobIDOf("word count").String())
	require.Equal(t, core.JobIDOf("a"), core.JobIDOf("a"))
	require.NotEqual(t, core.JobIDOf("a"), core.JobIDOf("b"))
}

func TestJobIDRefusesEveryOtherText(t *testing.T) {
	good := strings.Repeat("0a", 16)
	for _, text := range []string{
		"", "..", "/", "a/../../b", "/etc", `a\b`, "a:b", "\x00", good[:31], good + "0", strings.ToUpper(good), good[:31] + "g",
		" " + good[:31], good[:31] + "\n", strings.Repeat("x", 300), "0x" + good[:30], good[:8] + "-" + good[9:],
	} {
		_, err := core.ParseJobID(text)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", text)
		var id core.JobID
		require.Error(t, id.UnmarshalText([]byte(text)), "%q", text)
	}
}

func FuzzParseJobID(f *testing.F) {
	f.Add(strings.Repeat("0a", 16))
	f.Add("..")
	f.Add(strings.Repeat("0A", 16))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := core.ParseJobID(text)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrInvalid)
			return
		}
		require.Equal(t, text, id.String())
		require.NoError(t, core.CheckComponent(text))
	})
}

func TestCheckpointDirNameRoundTrip(t *testing.T) {
	for _, id := range []int64{0, 1, 9, 10, 42, 1 << 40, math.MaxInt64 - 1, math.MaxInt64} {
		name := core.CheckpointDirName(id)
		parsed, ok := core.ParseCheckpointDirName(name)
		require.True(t, ok, name)
		require.Equal(t, id, parsed)
	}
	require.Equal(t, "chk-7", core.CheckpointDirName(7))
}

func TestCheckpointDirNameCountsOnlyInItsCanonicalForm(t *testing.T) {
	for _, name := range []string{
		"", "chk", "chk-", "chk-a", "chk-abc", "chk--1", "chk-013", "chk-00", "chk-+4", "chk- 5", "chk-5 ", "chk-1e3", "chk-0x10", "chk-1_000",
		"chk-9223372036854775808", "chk-99999999999999999999", "Chk-1", "CHK-1", "chk-٦", "chk-1.disposed", "chk-1/", "chk-1\n", "xchk-1", "chk-1-2", "chk_1",
	} {
		_, ok := core.ParseCheckpointDirName(name)
		require.False(t, ok, "%q", name)
	}
}

func FuzzParseCheckpointDirName(f *testing.F) {
	for _, seed := range []string{"chk-0", "chk-013", "chk--1", "chk-9223372036854775807", "chk-9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, ok := core.ParseCheckpointDirName(name)
		if ok {
			require.GreaterOrEqual(t, id, int64(0))
			require.Equal(t, name, core.CheckpointDirName(id))
		}
	})
}

func TestStateFileNamesAreCanonicalUUIDs(t *testing.T) {
	for range 100 {
		require.True(t, core.IsStateFileName(uuid.NewString()))
	}
	id := "0b7c0b7c-00aa-4000-8000-00000000abcd"
	require.True(t, core.IsStateFileName(id))
	for _, name := range []string{
		"", "_metadata", strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + ".crc", "." + id, id[:35], id + "0",
	} {
		require.False(t, core.IsStateFileName(name), "%q", name)
	}
}

func TestSavepointDirNames(t *testing.T) {
	require.True(t, core.IsSavepointDirName("savepoint-0a1b2c-0123456789ab"))
	for _, name := range []string{"", "savepoint-", "savepoint-0a1b2c-0123456789a", "savepoint-0a1b2c-0123456789abc", "savepoint-0A1b2c-0123456789ab", "savepoint-0a1b2c_0123456789ab", "savepoint-0a1b2-c0123456789ab"} {
		require.False(t, core.IsSavepointDirName(name), "%q", name)
	}
}

func TestQualifyWritesFlinksForms(t *testing.T) {
	require.Equal(t, "file:/a/b", core.Qualify("file://", "/a/b"))
	require.Equal(t, "hdfs://ns1/a/b", core.Qualify("hdfs://ns1", "/a/b"))
	require.Equal(t, "hdfs://nn:8020/a", core.Qualify("hdfs://nn:8020", "/a"))
	require.Equal(t, "/a", core.Qualify("", "/a"))
}

func TestSplitQualifiedUndoesQualify(t *testing.T) {
	generator := loggedRand(t)
	for range 5000 {
		uri, name := randomURI(generator), randomName(generator)
		gotURI, gotName, err := core.SplitQualified(core.Qualify(uri, name))
		require.NoError(t, err, "%q %q", uri, name)
		require.Equal(t, uri, gotURI)
		require.Equal(t, name, gotName)
	}
}

func TestSplitQualifiedForms(t *testing.T) {
	for _, c := range []struct{ text, uri, name string }{
		{"file:/a", "file://", "/a"},
		{"file:///a", "file://", "/a"},
		{"file:///a//b///", "file://", "/a/b"},
		{"file:/a/./b/../c", "file://", "/a/c"},
		{"file:/../../a", "file://", "/a"},
		{"hdfs://ns1/a/b/", "hdfs://ns1", "/a/b"},
		{"hdfs://nn:8020/a", "hdfs://nn:8020", "/a"},
		{"hdfs://ns1//a", "hdfs://ns1", "/a"},
		{"hdfs:///a", "hdfs://", "/a"},
		{"hdfs://ns1/", "hdfs://ns1", "/"},
		{"/a/b", "", "/a/b"},
		{"//a//b", "", "/a/b"},
		{"/", "", "/"},
		{"/a:b/c", "", "/a:b/c"},
		{"s3a://bucket/a%20b+c d", "s3a://bucket", "/a%20b+c d"},
		{"x+y-1.z:/a", "x+y-1.z://", "/a"},
	} {
		uri, name, err := core.SplitQualified(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.uri, uri, c.text)
		require.Equal(t, c.name, name, c.text)
	}
}

func TestSplitQualifiedRefusesWhatIsNoAbsolutePath(t *testing.T) {
	for _, text := range []string{
		"", " ", "a", "a/b", "./a", "../a", ":", ":/a", "://", "://a", "a b:/c", "ä:/c", "file:", "file:a", "file://", "hdfs://ns1", "a:b:c", "C:\\x", `C:x`, "a_b:/c", "\x00:/a", "file:a/b",
	} {
		_, _, err := core.SplitQualified(text)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", text)
	}
}

func FuzzSplitQualified(f *testing.F) {
	for _, seed := range []string{"file:/a", "hdfs://ns1/a/b/", "", "://", "//", "a:b:c", "file:///../..", "x:////", "/a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, name, err := core.SplitQualified(text)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrInvalid)
			return
		}
		require.Equal(t, "/", name[:1])
		require.Equal(t, path.Clean(name), name)
		require.False(t, slices.Contains(strings.Split(name, "/"), ".."), "%q climbs", name)
		if uri == "" && strings.Contains(name, ":") {
			return // Such a name is on no file system, and may read like a scheme.
		}
		againURI, againName, err := core.SplitQualified(core.Qualify(uri, name))
		require.NoError(t, err)
		require.Equal(t, uri, againURI)
		require.Equal(t, name, againName)
	})
}
