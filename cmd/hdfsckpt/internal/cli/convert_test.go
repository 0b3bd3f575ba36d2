package cli

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestConvertWritesACheckpointThatIsAllThere(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	before := r.snapshot()
	for _, version := range []string{"4", "5", "6"} {
		target := r.path("v" + version)
		var conversion report.Conversion
		require.Equal(t, 0, r.json(&conversion, "convert", "--version", version, c.Pointer, target).ExitCode)
		require.True(t, conversion.Written)
		require.Equal(t, 3, conversion.MadeAbsolute)
		require.Empty(t, conversion.Losses)
		var v report.Verification
		require.Equal(t, 0, r.json(&v, "verify", "--deep", target).ExitCode)
		require.Zero(t, v.Checkpoints[0].WithoutChecksum, "checksums are kept")
		info, err := os.Stat(path.Join(target, core.MetadataName))
		require.NoError(t, err)
		require.Equal(t, info.Size(), conversion.Bytes)
		var diff report.Comparison
		r.json(&diff, "diff", c.Pointer, target)
		require.Equal(t, 4, diff.Files.Kept)
		require.Zero(t, diff.Files.Added+diff.Files.Removed)
		require.NoError(t, os.RemoveAll(target))
	}
	r.age()
	require.Equal(t, before, r.snapshot(), "nothing else was changed")
}

func TestConvertRefusesToLoseAnything(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	r.golden("convert-refused.txt", "convert", "--version", "3", c.Pointer, "/ckpt-v3")
	require.Equal(t, 1, r.run("convert", "--version", "3", c.Pointer, r.path("v3")).code)
	_, err := os.Stat(r.path("v3"))
	require.ErrorIs(t, err, os.ErrNotExist)
	var conversion report.Conversion
	require.Equal(t, 0, r.json(&conversion, "convert", "--version", "3", "--allow-loss", c.Pointer, r.path("v3")).ExitCode)
	require.Len(t, conversion.Losses, 1)
	require.Equal(t, 0, r.run("verify", "--deep", r.path("v3")).code)
}

func TestConvertOfMergedStatesNamesWhatOldFlinksCannotRead(t *testing.T) {
	r := newRig(t)
	r.copyFlink("f23-merging-within-hashmap")
	const merged = "f23-merging-within-hashmap/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/chk-6"
	r.golden("convert-merged.txt", "convert", "--version", "3", merged, "v3")
	require.Equal(t, 0, r.run("convert", "--version", "6", "--path-map", "/tmp/flink-golden="+r.root, merged, "v6").code)
	require.Equal(t, 0, r.run("verify", "--deep", "v6").code, "the paths are those of the new place")
}

func TestConvertKeepsRelativePathsWhereTheyHold(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	dir := path.Join(j.dir(), "chk-7")
	var conversion report.Conversion
	require.Equal(t, 0, r.json(&conversion, "convert", "--version", "6", "--file", c.Pointer, path.Join(dir, "metadata-v6")).ExitCode)
	require.Zero(t, conversion.MadeAbsolute, "the target is in the same directory")
	require.Equal(t, 0, r.run("verify", "--deep", path.Join(dir, "metadata-v6")).code)

	require.Equal(t, 0, r.json(&conversion, "convert", "--version", "6", "--keep-relative", c.Pointer, "elsewhere").ExitCode)
	require.Zero(t, conversion.MadeAbsolute)
	require.Equal(t, 1, r.run("verify", "elsewhere").code, "the files are not there yet")
	for _, file := range j.files("chk-7") {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		r.file("elsewhere/"+path.Base(file), data)
	}
	require.Equal(t, 0, r.run("verify", "--deep", "elsewhere").code)
}

func TestConvertReplacesNothing(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	before := r.snapshot()
	require.Equal(t, 3, r.run("convert", "--version", "6", c.Pointer, path.Join(j.dir(), "chk-7")).code)
	require.Equal(t, before, r.snapshot())
	require.Equal(t, 2, r.run("convert", c.Pointer, "x").code, "a version is needed")
	require.Equal(t, 2, r.run("convert", "--version", "7", c.Pointer, "x").code)
	require.Equal(t, 3, r.run("convert", "--version", "6", "nowhere", "x").code)
}

func TestConvertLeavesNothingBehindWhenItFails(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpCreate, faultfs.OpWrite, faultfs.OpClose, faultfs.OpRename} {
		t.Run(string(op), func(t *testing.T) {
			r := newRig(t)
			j := r.newJob("jobs", jobID)
			c := j.checkpoint(7)
			require.NoError(t, os.Mkdir(r.path("x"), 0o700))
			r.inject(faultfs.Match(func(call faultfs.Call) bool { return call.Op == op && path.Dir(call.Name) == r.path("x") }, faultfs.Fault{Err: core.ErrNoSpace}))
			require.NotEqual(t, 0, r.run("convert", "--version", "6", c.Pointer, "x").code)
			entries, err := os.ReadDir(r.path("x"))
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}

func TestConvertReadsWhatOnlyOldFlinksWrote(t *testing.T) {
	r := newRig(t)
	c := &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{{
		Parallelism: 1, MaxParallelism: 128, Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{
			InputChannels: []metadata.ChannelHandle{metadata.NewMergedChannelHandle(0, []metadata.Channel{{Size: 1}, {Size: 2}}, &core.BytesHandle{Data: []byte("abc")})},
		}}},
	}}}
	var conversion report.Conversion
	require.Equal(t, 0, r.json(&conversion, "convert", "--version", "5", r.write("v6", c), "v5").ExitCode)
	require.Equal(t, 1, conversion.Unmerged)
	require.Equal(t, 6, conversion.FromVersion)
	require.Equal(t, 0, r.run("inspect", "v5").code)
}
