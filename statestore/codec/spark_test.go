package codec_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// Every file that is written here has our footer: that Spark loads it shows that the footer does no harm.
func TestEverySparkLoadsWhatWeWriteAndWeReadWhatItCommitsThen(t *testing.T) {
	for _, spark := range []struct {
		version      string
		rowChecksums bool // 4.1.3 takes no notice of the setting
	}{{"3.5.7", false}, {"4.0.1", false}, {"4.1.3", false}, {testenv.SparkVersion, true}} {
		t.Run(spark.version, func(t *testing.T) {
			engine := testenv.RequireSpark(t, spark.version, testenv.EngineSettings{})
			for _, compression := range []codec.Compression{codec.LZ4, codec.Zstd, codec.LZF, codec.Snappy} {
				for _, rowChecksum := range []bool{false, true}[:1+one(spark.rowChecksums)] {
					name := fmt.Sprintf("%v, row checksums %v", compression, rowChecksum)
					checkBothWays(t, engine, name, compression, rowChecksum)
				}
			}
		})
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkBothWays writes versions 1 to 6, of which 4 is a snapshot alone; Spark loads each and goes on from the last.
func checkBothWays(t *testing.T, engine *testenv.Engine, name string, compression codec.Compression, rowChecksum bool) {
	root := t.TempDir()
	dir := filepath.Join(root, "0", "0")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	opts := codec.WriterOptions{Compression: compression, RowChecksum: rowChecksum, Parallelism: 2}
	random := seeded(t)
	state := make(map[string]string)
	versions := []map[string]string{{}}
	for version := 1; version <= 6; version++ {
		var delta []record
		for range 200 {
			key := fmt.Sprintf("%08d", random.IntN(500))
			value := noise(random, 8*random.IntN(1+(1<<random.IntN(12))))
			delta = append(delta, record{key: key, value: value})
			state[key] = value
			if gone := fmt.Sprintf("%08d", random.IntN(500)); random.IntN(3) == 0 {
				delta = append(delta, record{key: gone, removed: true})
				delete(state, gone)
			}
		}
		versions = append(versions, maps.Clone(state))
		kind, records := codec.Delta, delta
		if version == 4 {
			kind, records = codec.Snapshot, nil
			for _, key := range slices.Sorted(maps.Keys(state)) {
				records = append(records, record{key: key, value: state[key]})
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.%v", version, kind))
		require.NoError(t, os.WriteFile(file, write(t, kind, opts, records), 0o600))
	}

	settings := []string{"stateStore.compression.codec=" + compression.String(), fmt.Sprintf("stateStore.rowChecksum.enabled=%v", rowChecksum)}
	engine.Call(t, "open", append([]string{name, "file://" + root, "0", "0", "default"}, settings...)...)
	for version := 1; version < len(versions); version++ {
		loaded := string(engine.Call(t, "dump", name, fmt.Sprint(version)))
		require.True(t, dumped(versions[version]) == loaded, "%s: Spark loads version %d with other entries", name, version)
	}

	gone := slices.Min(slices.Collect(maps.Keys(state)))
	lines := fmt.Sprintf("put %x %x\ndel %x", "a new key", "by Spark", gone)
	require.Equal(t, "7", string(engine.Call(t, "apply", name, "6", lines)))
	engine.Call(t, "close", name)
	bytes, err := os.ReadFile(filepath.Join(dir, "7.delta"))
	require.NoError(t, err)
	got, err := read(bytes, codec.Delta, codec.ReaderOptions{RowChecksum: rowChecksum})
	require.NoError(t, err)
	require.ElementsMatch(t, []record{{key: "a new key", value: "by Spark"}, {key: gone, removed: true}}, got, name)
}

// A snapshot of which some blocks are stored and others compressed: noise, then zeros.
func TestEverySparkLoadsSnapshotsWithStoredBlocks(t *testing.T) {
	for _, version := range []string{"3.5.7", testenv.SparkVersion} {
		t.Run(version, func(t *testing.T) {
			engine := testenv.RequireSpark(t, version, testenv.EngineSettings{})
			records := valuesOf(60*perBlock, halves(40*perBlock, noisy(seeded(t), 96), zeros))
			state := make(map[string]string)
			for _, r := range records {
				state[r.key] = r.value
			}
			root := t.TempDir()
			dir := filepath.Join(root, "0", "0")
			require.NoError(t, os.MkdirAll(dir, 0o755))
			file := write(t, codec.Snapshot, codec.WriterOptions{Parallelism: 2}, records)
			kinds := make(map[bool]int)
			for _, b := range blocksOf(t, file) {
				kinds[b.stored]++
			}
			require.Greater(t, kinds[true], 20)
			require.Greater(t, kinds[false], 20)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "1.snapshot"), file, 0o600))

			engine.Call(t, "open", "stored", "file://"+root, "0", "0", "default")
			require.True(t, dumped(state) == string(engine.Call(t, "dump", "stored", "1")), "Spark loads other entries")
			require.Equal(t, "2", string(engine.Call(t, "apply", "stored", "1", fmt.Sprintf("del %x", records[0].key))))
			delete(state, records[0].key)
			require.True(t, dumped(state) == string(engine.Call(t, "dump", "stored", "2")), "Spark goes on with other entries")
			engine.Call(t, "close", "stored")
		})
	}
}

func dumped(state map[string]string) string {
	var s strings.Builder
	for _, key := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(&s, "%x %x\n", key, state[key])
	}
	return s.String()
}
