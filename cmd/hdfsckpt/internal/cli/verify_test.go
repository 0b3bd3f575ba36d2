package cli

import (
	"os"
	"path"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestVerifyOfASoundCheckpoint(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	dir := path.Join(j.dir(), "chk-7")
	r.golden("verify-sound.txt", "verify", dir)
	r.golden("verify-deep.txt", "verify", "--deep", dir)
	r.golden("verify-deep.json", "verify", "--deep", "--json", dir)
	require.Equal(t, 0, r.run("verify", path.Join(dir, core.MetadataName)).code, "the metadata file names it as well")
	require.Equal(t, 0, r.run("verify", c.Pointer+"/").code)
}

func TestVerifyFindsTheOneObjectOfThreeThatIsBad(t *testing.T) {
	for name, tt := range map[string]struct {
		harm  func(t *testing.T, r *rig, file string)
		deep  bool
		kind  report.FindingKind
		exit  int
		found bool // also without --deep
	}{
		"missing": {
			harm: func(t *testing.T, _ *rig, file string) { require.NoError(t, os.Remove(file)) },
			kind: report.Missing, exit: 1, found: true,
		},
		"short": {
			harm: func(t *testing.T, _ *rig, file string) { require.NoError(t, os.Truncate(file, 10)) },
			kind: report.Short, exit: 1, found: true,
		},
		"long": {
			harm: func(t *testing.T, _ *rig, file string) { require.NoError(t, os.Truncate(file, 5<<20)) },
			kind: report.Long, exit: 1, found: true,
		},
		"corrupt": {
			harm: func(t *testing.T, _ *rig, file string) { damage(t, file, 100) },
			kind: report.Corrupt, exit: 1,
		},
		"a directory": {
			harm: func(t *testing.T, _ *rig, file string) {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.Mkdir(file, 0o700))
			},
			kind: report.Corrupt, exit: 1, found: true,
		},
		"no permission to look": {
			harm: func(_ *testing.T, r *rig, file string) { r.inject(denies(faultfs.OpStat, file)) },
			kind: report.Unreadable, exit: 3, found: true,
		},
		"no permission to read": {
			harm: func(_ *testing.T, r *rig, file string) { r.inject(denies(faultfs.OpOpen, file)) },
			kind: report.Unreadable, exit: 3,
		},
		"storage fails while it is read": {
			harm: func(_ *testing.T, r *rig, file string) {
				r.inject(faultfs.Any(fails(faultfs.OpReadAt, file, core.ErrUnavailable), fails(faultfs.OpRead, file, core.ErrUnavailable)))
			},
			kind: report.Unreadable, exit: 3,
		},
		"storage returns wrong bytes": {
			harm: func(_ *testing.T, r *rig, file string) {
				r.inject(faultfs.Match(func(c faultfs.Call) bool { return c.Name == file && c.Op == faultfs.OpReadAt }, faultfs.Fault{Flip: true}))
			},
			kind: report.Corrupt, exit: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			j := r.newJob("jobs", jobID)
			c := j.checkpoint(7)
			bad := j.files("chk-7")[1]
			tt.harm(t, r, bad)
			var v report.Verification
			require.Equal(t, tt.exit, r.json(&v, "verify", "--deep", c.Pointer).ExitCode)
			require.Len(t, v.Checkpoints, 1)
			require.Len(t, v.Checkpoints[0].Findings, 1)
			finding := v.Checkpoints[0].Findings[0]
			require.Equal(t, tt.kind, finding.Kind)
			require.Equal(t, r.neutral("file:"+bad), finding.Path)
			require.NotEmpty(t, finding.Message)
			require.Equal(t, 4, v.Checkpoints[0].Checked, "the others are checked as well")
			want := 0
			if tt.found {
				want = tt.exit
			}
			require.Equal(t, want, r.run("verify", c.Pointer).code)
		})
	}
}

func TestVerifyPrintsOneLineForEachFinding(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(7)
	files := j.files("chk-7")
	require.NoError(t, os.Remove(files[0]))
	require.NoError(t, os.Truncate(files[1], 100))
	require.NoError(t, os.Truncate(files[2], 1000))
	damage(t, j.files("shared")[0], core.ChecksumChunk+17)
	dir := path.Join(j.dir(), "chk-7")
	r.golden("verify-findings.txt", "verify", "--deep", dir)
	r.golden("verify-findings.json", "verify", "--deep", "--json", dir)
}

func TestVerifyTellsDamagedMetadataFromUnreadable(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	r.inject(denies(faultfs.OpOpen, core.MetadataName))
	var v report.Verification
	require.Equal(t, 3, r.json(&v, "verify", c.Pointer).ExitCode)
	require.Equal(t, report.Unknown, v.Checkpoints[0].Verdict)
	require.Equal(t, report.Unreadable, v.Checkpoints[0].Findings[0].Kind)

	r = newRig(t)
	j = r.newJob("jobs", jobID)
	j.checkpoint(7)
	file := path.Join(j.dir(), "chk-7", core.MetadataName)
	damage(t, file, 60)
	r.golden("verify-metadata.txt", "verify", path.Dir(file))
	// What a newer release wrote is not damaged.
	require.NoError(t, os.WriteFile(file, []byte("\x49\x60\x67\x2d\x00\x00\x00\x07"), 0o600))
	require.Equal(t, 3, r.json(&v, "verify", path.Dir(file)).ExitCode)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, 1, r.json(&v, "verify", path.Dir(file)).ExitCode)
	require.Equal(t, report.Corrupt, v.Checkpoints[0].Findings[0].Kind)
}

func TestVerifyGoesOnBehindAPointerThatLeadsNowhere(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	j.begin(8)
	var v report.Verification
	d := r.json(&v, "verify", "nowhere", path.Join(j.dir(), "chk-8"), c.Pointer)
	require.Equal(t, 3, d.ExitCode)
	require.Len(t, d.Errors, 2)
	require.Len(t, v.Checkpoints, 1)
	require.Equal(t, report.Sound, v.Checkpoints[0].Verdict)
	r.golden("verify-nowhere.txt", "verify", "nowhere", path.Join(j.dir(), "chk-8"))

	require.NoError(t, os.Remove(j.files("chk-7")[0]))
	require.Equal(t, 1, r.run("verify", "nowhere", c.Pointer).code, "what is known to be wrong says more")
}

func TestVerifyFindsFilesOfMovedTreesWithPathMap(t *testing.T) {
	r := newRig(t)
	r.copyFlink("f23-rocksdb-incremental")
	r.copyFlink("f23-merging-within-hashmap")
	const incremental = "f23-rocksdb-incremental/checkpoints/26e9cdf2de6b9da656f9393651be738b/chk-8"
	const merged = "f23-merging-within-hashmap/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/chk-6"
	var v report.Verification
	require.Equal(t, 1, r.json(&v, "verify", incremental).ExitCode)
	require.Len(t, v.Checkpoints[0].Findings, 26, "those of the shared directory")
	require.Contains(t, r.run("verify", incremental).stderr, "--path-map OLD=NEW")
	r.golden("verify-path-map.txt", "verify", "--deep", "--path-map", "/tmp/flink-golden="+r.root, r.path(incremental), r.path(merged))
	require.Equal(t, 0, r.run("verify", "--path-map", "hdfs://ns1/x=/y", "--path-map", "file:///tmp/flink-golden/="+r.root+"/", incremental).code)
	require.Equal(t, 1, r.run("verify", "--path-map", "/tmp/flink-gold="+r.root, incremental).code, "only whole components are mapped")
	require.Equal(t, 0, r.run("verify", r.path("f23-merging-within-hashmap/savepoints/savepoint-6bd2fa-3fc4547e9d48")).code)

	segment := r.path("f23-merging-within-hashmap/checkpoints/6bd2fa7d01be4e0250072f87fde49bec/taskowned/job_6bd2fa7d01be4e0250072f87fde49bec_tm_f0159636-a843-411b-8d3e-f8c75374e0e7/92e161fc-1dc3-42b3-b571-f77d87a050b4")
	require.NoError(t, os.Truncate(segment, 6624))
	require.Equal(t, 1, r.json(&v, "verify", "--path-map", "/tmp/flink-golden="+r.root, merged).ExitCode)
	require.Equal(t, report.Short, v.Checkpoints[0].Findings[0].Kind)
	require.Equal(t, r.neutral("file:"+segment), v.Checkpoints[0].Findings[0].Path)
	require.Equal(t, "file:/tmp/flink-golden"+r.neutral(segment)[len("/ckpt"):], v.Checkpoints[0].Findings[0].Recorded)
	require.NoError(t, os.Truncate(segment, 6626))
	require.Equal(t, 0, r.run("verify", "--path-map", "/tmp/flink-golden="+r.root, merged).code, "a merged file may be longer than its segments")
}

func TestVerifyAllowsForTheByteThatBeginsAFileOfChanges(t *testing.T) {
	r := newRig(t)
	r.file("dstl/changes", make([]byte, 101))
	dir := r.bare("chk-1", &metadata.ChangelogHandle{
		Range: metadata.KeyGroupRange{Count: 128}, ID: uuid.UUID{1: 1}.String(),
		Changes: []metadata.KeyedHandle{&metadata.ChangelogFileHandle{
			Range: metadata.KeyGroupRange{Count: 128}, Size: 100, Storage: metadata.FilesystemStorage, ID: uuid.UUID{1: 2}.String(),
			Parts: []metadata.ChangelogPart{{Handle: &core.FileHandle{Path: "file:" + r.path("dstl/changes"), Size: 100}}},
		}},
	})
	require.Equal(t, 0, r.run("verify", "--deep", dir).code)
	require.NoError(t, os.Truncate(r.path("dstl/changes"), 100))
	require.Equal(t, 1, r.run("verify", dir).code)
}

func TestVerifyTakesAnyLengthWhereNoneIsRecorded(t *testing.T) {
	r := newRig(t)
	r.file("chk-1/state", make([]byte, 77))
	dir := r.bare("chk-1", keyGroups(0, &core.RelativeFileHandle{Name: "state", Size: -1}))
	r.golden("verify-unknown-size.txt", "verify", "--deep", dir)
	require.NoError(t, os.Remove(r.path("chk-1/state")))
	require.Equal(t, 1, r.run("verify", dir).code)
}

func TestVerifyCannotLookAtAnUnknownFileSystem(t *testing.T) {
	r := newRig(t)
	dir := r.bare("chk-1", keyGroups(0, &core.FileHandle{Path: "s3://bucket/state", Size: 3}))
	var v report.Verification
	require.Equal(t, 3, r.json(&v, "verify", dir).ExitCode)
	require.Equal(t, report.Unreadable, v.Checkpoints[0].Findings[0].Kind)
}

func TestVerifyRefusesARelativeHandleThatLeadsOut(t *testing.T) {
	r := newRig(t)
	r.file("secret", []byte("xyz"))
	// Append refuses to write such a name, so it is put into the bytes.
	dir := r.bare("chk-1", keyGroups(0, &core.RelativeFileHandle{Name: "AAAsecret", Size: 3}))
	file := path.Join(dir, core.MetadataName)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	at := indexOf(t, data, "AAAsecret")
	copy(data[at:], "../secret")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	fsys := r.inject(nil)
	require.Equal(t, 1, r.run("verify", "--deep", dir).code)
	onlyReads(r, fsys, "secret")
}

func TestVerifyChecksAnObjectOfSeveralCheckpointsOnce(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	a, b := j.checkpoint(1), j.checkpoint(2)
	shared := j.files("shared")[0]
	fsys := r.inject(nil)
	require.Equal(t, 0, r.run("verify", "--deep", a.Pointer, b.Pointer).code)
	opened := 0
	for _, call := range fsys.Calls() {
		if call.Op == faultfs.OpOpen && call.Name == shared {
			opened++
		}
	}
	require.Equal(t, 1, opened)
	require.NoError(t, os.Remove(shared))
	var v report.Verification
	require.Equal(t, 1, r.json(&v, "verify", a.Pointer, b.Pointer).ExitCode)
	for _, c := range v.Checkpoints {
		require.Len(t, c.Findings, 1, "each checkpoint that needs it has the finding")
	}
}

func TestVerifySaysThatACheckpointVanishedMeanwhile(t *testing.T) {
	for name, at := range map[string]func(*job) (faultfs.Op, string){
		"before its metadata is read": func(*job) (faultfs.Op, string) { return faultfs.OpOpen, core.MetadataName },
		"before a file is checked":    func(j *job) (faultfs.Op, string) { return faultfs.OpStat, j.files("chk-7")[0] },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			j := r.newJob("jobs", jobID)
			c := j.checkpoint(7)
			op, file := at(j)
			r.inject(before(op, file, func() { require.NoError(t, os.RemoveAll(path.Join(j.dir(), "chk-7"))) }))
			d := r.json(nil, "verify", "--parallel", "1", c.Pointer)
			require.Equal(t, 3, d.ExitCode)
			require.Len(t, d.Errors, 1)
			require.Equal(t, report.Vanished, d.Errors[0].Kind)
		})
	}
}
