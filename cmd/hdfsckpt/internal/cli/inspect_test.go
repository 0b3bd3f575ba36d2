package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestInspectShowsWhatIsInACheckpoint(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(7)
	dir := path.Join(j.dir(), "chk-7")
	r.golden("inspect.txt", "inspect", dir)
	r.golden("inspect-subtasks.txt", "inspect", "--subtasks", "--largest", "0", dir)
	r.golden("inspect.json", "inspect", "--json", "--largest", "2", dir)
	r.golden("inspect-subtasks.json", "inspect", "--json", "--largest", "0", "--subtasks", dir)
}

func TestInspectShowsCheckpointsOfFlink(t *testing.T) {
	r := newRig(t)
	r.copyFlink("f23-rocksdb-incremental")
	r.copyFlink("f23-merging-within-hashmap")
	const incremental = "f23-rocksdb-incremental/checkpoints/26e9cdf2de6b9da656f9393651be738b/chk-8"
	r.golden("inspect-flink-incremental.txt", "inspect", incremental)
	r.golden("inspect-flink-merged.txt", "inspect", "f23-merging-within-hashmap/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/chk-6")
	r.golden("inspect-flink-savepoint.txt", "inspect", "f23-merging-within-hashmap/savepoints/savepoint-6bd2fa-3fc4547e9d48")
}

func TestInspectDumpsWhatFlinkReads(t *testing.T) {
	r := newRig(t)
	r.copyFlink("f23-rocksdb-incremental")
	const dir = "f23-rocksdb-incremental/checkpoints/26e9cdf2de6b9da656f9393651be738b/chk-8"
	data, err := os.ReadFile(r.path(dir, core.MetadataName))
	require.NoError(t, err)
	c, err := metadata.Parse(data, "file:"+r.path(dir))
	require.NoError(t, err)
	var want bytes.Buffer
	require.NoError(t, metadata.DumpFlink(&want, c, data))
	got := r.run("inspect", "--format", "flink-dump", dir)
	require.Equal(t, result{stdout: r.neutral(want.String())}, got)
	require.True(t, json.Valid([]byte(got.stdout)))
	require.Equal(t, 2, r.run("inspect", "--format", "flink-dump", "--json", dir).code)
	require.Equal(t, 3, r.run("inspect", "--format", "flink-dump", "nowhere").code)
}

func TestInspectFailsOnWhatIsNoCheckpoint(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(1)
	j.begin(2)
	damage(t, path.Join(j.dir(), "chk-1", core.MetadataName), 60)
	for _, tt := range []struct {
		pointer string
		exit    int
		kind    report.Kind
	}{
		{"nowhere", 3, report.NotFound},
		{path.Join(j.dir(), "chk-2"), 3, report.NotFound},
		{path.Join(j.dir(), "chk-1"), 1, report.Damaged},
	} {
		d := r.json(nil, "inspect", tt.pointer)
		require.Equal(t, tt.exit, d.ExitCode)
		require.Equal(t, tt.kind, d.Errors[0].Kind)
		require.NotEmpty(t, d.Errors[0].Hint)
	}
}

func TestInspectLetsNoEscapeSequenceThrough(t *testing.T) {
	r := newRig(t)
	r.file("chk-1/state", nil)
	r.bare("chk-1", nil)
	c := &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{{
		Name: "\x1b]0;owned\x07", UID: "a\nb", Parallelism: 1, MaxParallelism: 1,
		Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{ManagedOperator: metadata.NewOperatorHandle(
			[]metadata.NamedState{{Name: "\u202etxt", Offsets: []int64{0}}}, &core.RelativeFileHandle{Name: "st\x1b[31mate", Size: 5})}}},
	}}}
	data, err := metadata.Append(nil, c, metadata.WriteOptions{Version: 5})
	require.NoError(t, err)
	r.file("chk-1/_metadata", data)
	for _, args := range [][]string{{"inspect", "--subtasks", "chk-1"}, {"verify", "chk-1"}, {"dispose", "--force", "chk-1"}} {
		got := r.run(args...)
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "a\nb"} {
			require.NotContains(t, got.stdout+got.stderr, bad)
		}
	}
	require.Contains(t, r.run("inspect", "chk-1").stdout, `\x1b]0;owned\a`)
}
