package coordinator

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/localfs"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// The Flink versions that know file merging read a checkpoint of packed states, exclusive and shared, as we do, and write the same
// bytes. When Flink disposes of it, the checkpoint goes and its files stay, as those that Flink itself has merged do; the next
// coordinator takes them.
func TestFlinkReadsACheckpointOfPackedStates(t *testing.T) {
	for _, version := range []string{testenv.FlinkVersion, "1.20.3"} {
		flink := testenv.RequireFlink(t, version, testenv.EngineSettings{})
		root := t.TempDir()
		fsys, err := localfs.Open(root, localfs.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, fsys.Close()) })
		job := func() *packingJob { return newPackingJobAt(t, fsys, filepath.ToSlash(root), 2, 6, true, nil) }
		j := job()
		for range 3 {
			_, err := j.c.TriggerCheckpoint(t.Context())
			require.NoError(t, err)
		}
		dir := filepath.Join(root, jobID.String(), core.CheckpointDirName(3))
		data, err := os.ReadFile(filepath.Join(dir, core.MetadataName))
		require.NoError(t, err)
		if version == testenv.FlinkVersion { // the dump needs its names
			checkpoint, err := metadata.Parse(data, "file:"+dir)
			require.NoError(t, err)
			var ours bytes.Buffer
			require.NoError(t, metadata.DumpFlink(&ours, checkpoint, data))
			require.Contains(t, ours.String(), "_tm_hdfsckpt-worker-1")
			require.Contains(t, ours.String(), "SHARED")
			require.Equal(t, string(flink.Call(t, "dump", dir)), ours.String())
		}
		again := flink.Call(t, "rewrite", filepath.Join(dir, core.MetadataName))
		require.Equal(t, data[:len(again)], again, version)
		require.Greater(t, len(data), len(again), "the footer")

		flink.Call(t, "dispose", dir)
		require.NoDirExists(t, dir)
		require.NotEmpty(t, packedFiles(t, root))
		job()
		require.Empty(t, packedFiles(t, root))
	}
}

func packedFiles(t *testing.T, root string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "job_*_tm_hdfsckpt-*", "*"))
	require.NoError(t, err)
	return files
}
