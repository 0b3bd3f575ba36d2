package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// olderFlink reads versions up to 4 only.
const olderFlink = "1.20.3"

func TestFlinkReadsTheGoldenFilesAsWeDo(t *testing.T) {
	flink := testenv.RequireFlink(t, testenv.FlinkVersion, testenv.EngineSettings{})
	files := ownGolden(t)
	if dir := os.Getenv(goldenEnv); dir != "" {
		manifests, err := filepath.Glob(filepath.Join(dir, "*", "MANIFEST.tsv"))
		require.NoError(t, err)
		for _, manifest := range manifests {
			if strings.HasPrefix(filepath.Base(filepath.Dir(manifest)), "flink") {
				files = append(files, goldenFiles(t, filepath.Dir(manifest))...)
			}
		}
	}
	read := 0
	for _, g := range files {
		if g.reads != "yes" || strings.Contains(g.kind, "hostile") {
			continue
		}
		data := g.data(t)
		c, err := Parse(data, "file:"+g.dir)
		require.NoError(t, err, g.name)
		var dump bytes.Buffer
		require.NoError(t, DumpFlink(&dump, c, data))
		require.Equal(t, string(flink.Call(t, "dump", absolute(t, g.dir))), dump.String(), g.name)
		read++
	}
	require.Greater(t, read, 100)
	t.Logf("Flink %s reads %d golden files as we do", testenv.FlinkVersion, read)
}

func absolute(t *testing.T, name string) string {
	name, err := filepath.Abs(name)
	require.NoError(t, err)
	return name
}

// rewritten is what Flink writes of the file, in the same version.
func rewritten(t *testing.T, flink *testenv.Engine, data []byte) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "_metadata")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	again, err := flink.Try(t, "rewrite", name)
	require.NoError(t, err)
	return again
}

func TestFlinkReadsWhatWeWriteAndWritesTheSameBytes(t *testing.T) {
	for _, tt := range []struct {
		flink  string
		newest int
	}{{testenv.FlinkVersion, newestVersion}, {olderFlink, 4}} {
		t.Run(tt.flink, func(t *testing.T) {
			flink := testenv.RequireFlink(t, tt.flink, testenv.EngineSettings{})
			m := newMaker(t)
			m.current = true
			written := 0
			check := func(what string, c *Checkpoint) {
				for version := oldestWritable; version <= tt.newest; version++ {
					body, err := Append(nil, c, WriteOptions{Version: version})
					require.NoError(t, err, what)
					longer, err := Append(nil, c, WriteOptions{Version: version, Footer: m.footer()})
					require.NoError(t, err, what)
					require.True(t, bytes.Equal(body, rewritten(t, flink, longer)), "%s, version %d: Flink writes other bytes", what, version)
					written++
				}
			}
			for _, g := range ownGolden(t) {
				if g.reads != "yes" || g.rewrite != "true" {
					continue // Flink does not write its own file again as it was
				}
				c, err := Parse(g.data(t), "file:/elsewhere")
				require.NoError(t, err, g.name)
				check(g.name, c)
			}
			for i := range 60 {
				check(fmt.Sprint("random ", i), m.checkpoint())
			}
			t.Logf("Flink %s read %d files and wrote the same bytes", tt.flink, written)
		})
	}
}

// counting is what the engine's job answers.
type counting struct {
	Checkpoint    string
	Savepoints    []string
	Keyed, Listed int
}

func count(t *testing.T, flink *testenv.Engine, dir string, options ...string) counting {
	t.Helper()
	var c counting
	require.NoError(t, json.Unmarshal(flink.Call(t, "job", append([]string{dir}, options...)...), &c))
	return c
}

func TestAJobOfFlinkIsRestoredFromWhatWeRewrote(t *testing.T) {
	flink := testenv.RequireFlink(t, testenv.FlinkVersion, testenv.EngineSettings{})
	for _, tt := range []struct {
		name    string
		options []string
	}{
		{"heap, state in the metadata", nil},
		{"heap, state in files", []string{"conf.execution.checkpointing.data-inline-threshold=0"}},
		{"RocksDB, incremental", []string{"conf.state.backend.type=rocksdb", "conf.execution.checkpointing.incremental=true", "conf.execution.checkpointing.data-inline-threshold=0"}},
		{"RocksDB, merged files", []string{
			"conf.state.backend.type=rocksdb", "conf.execution.checkpointing.incremental=true", "conf.execution.checkpointing.file-merging.enabled=true",
			"conf.execution.checkpointing.file-merging.across-checkpoint-boundary=true", "conf.execution.checkpointing.data-inline-threshold=0",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			first := count(t, flink, dir, append([]string{"checkpoints=2", "savepoints=CANONICAL"}, tt.options...)...)
			require.Less(t, first.Keyed, 4000, "the job has to be stopped before its end")
			snapshots := []string{first.Checkpoint, strings.TrimPrefix(first.Savepoints[0], "file:")}
			for i, from := range snapshots {
				for _, version := range []int{0, 4} {
					elsewhere := filepath.Join(t.TempDir(), "moved")
					rewriteTo(t, from, elsewhere, version)
					last := count(t, flink, dir, append([]string{"rate=100000", "restore=file://" + elsewhere}, tt.options...)...)
					require.Equal(t, 4000, last.Keyed, "snapshot %d, version %d", i, version)
					require.Equal(t, 4000, last.Listed, "snapshot %d, version %d", i, version)
				}
			}
		})
	}
}

// rewriteTo reads the checkpoint and writes it to another directory, in its own version for 0, with the files that it has
// beside its metadata. These are taken away from the old directory, so that they are not read there.
func rewriteTo(t *testing.T, from, to string, version int) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	data, err := os.ReadFile(filepath.Join(from, "_metadata"))
	require.NoError(t, err)
	c, err := Parse(data, "file:"+from)
	require.NoError(t, err)
	if version == 0 {
		version = c.Version
	}
	again, err := Append(nil, c, WriteOptions{Version: version, Footer: &Footer{Created: time.Now().UTC().Truncate(time.Millisecond)}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, "_metadata"), again, 0o600))
}
