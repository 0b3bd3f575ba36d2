package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// Every changelog that is written here has our footer: that Spark's RocksDB provider replays it, in checkpoint format 1, shows that the
// footer does no harm there either. Version 1 is what a store without column families has; Spark reads version 2 from 4.0 on.
func TestEverySparkReplaysOurChangelogsAndWeReadWhatItCommitsThen(t *testing.T) {
	for _, spark := range []struct {
		version      string
		typed        bool // changelogs of version 2
		rowChecksums bool
	}{{"3.5.7", false, false}, {"4.0.1", true, false}, {"4.1.3", true, false}, {testenv.SparkVersion, true, true}} {
		t.Run(spark.version, func(t *testing.T) {
			engine := testenv.RequireSpark(t, spark.version, testenv.EngineSettings{})
			for _, compression := range []codec.Compression{codec.LZ4, codec.Zstd, codec.LZF, codec.Snappy} {
				rocksStore{t: t, engine: engine, version: 1, opts: codec.WriterOptions{Compression: compression}}.passToSparkAndBack()
			}
			if spark.typed {
				rocksStore{t: t, engine: engine, version: 2, opts: codec.WriterOptions{Parallelism: 2}}.passToSparkAndBack()
			}
			if spark.rowChecksums {
				rocksStore{t: t, engine: engine, version: 1, opts: codec.WriterOptions{RowChecksum: true}}.passToSparkAndBack()
			}
		})
	}
}

// rocksStore is a store of RocksDB whose changelogs Spark is to replay.
type rocksStore struct {
	t       *testing.T
	engine  *testenv.Engine
	version int // of the format
	opts    codec.WriterOptions
}

// rocksRow is a row as RocksDB's provider encodes it: behind the version of the encoding.
func rocksRow(row string) []byte { return append([]byte{0}, row...) }

func (c rocksStore) passToSparkAndBack() {
	t := c.t
	name := fmt.Sprintf("changelog %d, %v, row checksums %v", c.version, c.opts.Compression, c.opts.RowChecksum)
	root := t.TempDir()
	dir := filepath.Join(root, "0", "0")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	random := seeded(t)
	state := map[string]string{}
	versions := []map[string]string{{}}
	for version := 1; version <= 4; version++ {
		var changes []codec.Change
		for range 100 {
			key, gone := fmt.Sprintf("%08d", random.IntN(300)), fmt.Sprintf("%08d", random.IntN(300))
			value := noise(random, 8*random.IntN(1+(1<<random.IntN(12))))
			changes = append(changes, codec.Change{Op: codec.ChangePut, Key: rocksRow(key), Value: rocksRow(value)})
			state[key] = value
			if random.IntN(3) == 0 {
				changes = append(changes, codec.Change{Op: codec.ChangeDelete, Key: rocksRow(gone)})
				delete(state, gone)
			}
		}
		versions = append(versions, maps.Clone(state))
		c.write(filepath.Join(dir, fmt.Sprint(version, ".changelog")), changes)
	}

	c.engine.Call(t, "open", name, "file://"+root, "0", "0", "default", "rocksdb=1", "stateStore.rocksdb.changelogCheckpointing.enabled=true",
		"stateStore.compression.codec="+c.opts.Compression.String(), fmt.Sprintf("stateStore.rowChecksum.enabled=%v", c.opts.RowChecksum))
	for _, version := range []int{4, 1} {
		loaded := string(c.engine.Call(t, "dump", name, fmt.Sprint(version)))
		require.True(t, dumped(versions[version]) == loaded, "%s: Spark loads version %d with other entries", name, version)
	}
	gone := slices.Min(slices.Collect(maps.Keys(state)))
	lines := fmt.Sprintf("put %x %x\ndel %x", "by Spark", "12345678", gone)
	require.Equal(t, "5", string(c.engine.Call(t, "apply", name, "4", lines)))
	c.engine.Call(t, "close", name)
	require.Equal(t, []string{
		fmt.Sprintf("put %q %q", rocksRow("by Spark"), rocksRow("12345678")), fmt.Sprintf("delete %q %q", rocksRow(gone), ""),
	}, c.read(filepath.Join(dir, "5.changelog")), name)
}

// write writes a changelog, and makes sure that the footer is there.
func (c rocksStore) write(name string, changes []codec.Change) {
	c.t.Helper()
	var b bytes.Buffer
	w, err := codec.NewChangelogWriter(&b, c.version, nil, c.opts)
	require.NoError(c.t, err)
	for _, change := range changes {
		require.NoError(c.t, w.Write(change))
	}
	require.NoError(c.t, w.Close())
	r, err := codec.NewChangelogReader(bytes.NewReader(b.Bytes()), int64(b.Len()), codec.ReaderOptions{RowChecksum: c.opts.RowChecksum})
	require.NoError(c.t, err)
	require.NotNil(c.t, r.Footer())
	require.NoError(c.t, r.Close())
	require.NoError(c.t, os.WriteFile(name, b.Bytes(), 0o600))
}

func (c rocksStore) read(name string) (changes []string) {
	c.t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(c.t, err)
	r, err := codec.NewChangelogReader(bytes.NewReader(data), int64(len(data)), codec.ReaderOptions{RowChecksum: c.opts.RowChecksum})
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, r.Close()) }()
	for {
		change, err := r.Next()
		if errors.Is(err, io.EOF) {
			return changes
		}
		require.NoError(c.t, err)
		changes = append(changes, fmt.Sprintf("%v %q %q", change.Op, change.Key, change.Value))
	}
}
