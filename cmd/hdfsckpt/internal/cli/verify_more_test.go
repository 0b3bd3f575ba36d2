package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestVerifySaysThatALocalDiskKeepsNoChecksums(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	r.golden("verify-checksums.txt", "verify", "--checksums", c.Pointer)
	var v report.Verification
	d := r.json(&v, "verify", "--checksums", c.Pointer)
	require.Equal(t, 3, d.ExitCode)
	require.Equal(t, report.Unsupported, d.Errors[0].Kind)
	require.Equal(t, report.Sound, v.Checkpoints[0].Verdict, "what was checked is right")
	require.Equal(t, 4, v.Checkpoints[0].NotCompared)
}

// keeper is a file system that keeps checksums of its files, as HDFS does.
type keeper struct {
	core.FileSystem
	unsupported string
	asked       []string
}

func (k *keeper) FileCRC32C(_ context.Context, name string) (uint32, int64, error) {
	k.asked = append(k.asked, name)
	if name == k.unsupported {
		return 0, 0, &os.PathError{Op: "checksum", Path: name, Err: errors.ErrUnsupported}
	}
	data, err := os.ReadFile(name)
	return core.CRC32C(data), int64(len(data)), err
}

func TestVerifyComparesChecksumsWithoutReading(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	shared := j.files("shared")[0]
	var fsys *faultfs.FS
	check := func(args ...string) report.Verified {
		fsys = r.inject(nil)
		k := &keeper{FileSystem: fsys}
		defer func(old core.FileSystem) { r.fsys = old }(r.fsys)
		r.fsys = k
		var v report.Verification
		r.json(&v, append([]string{"verify", "--checksums", "--parallel", "1", c.Pointer}, args...)...)
		require.True(t, v.Checksums)
		require.Len(t, v.Checkpoints, 1)
		return v.Checkpoints[0]
	}
	v := check()
	require.Equal(t, report.Sound, v.Verdict)
	require.Equal(t, 4, v.Compared)
	require.Zero(t, v.NotCompared)
	for _, call := range fsys.Calls() {
		if call.Op == faultfs.OpOpen {
			require.Equal(t, core.MetadataName, path.Base(call.Name), "a state file was opened")
		}
	}
	require.Positive(t, check("--deep").ReadBytes, "both may be asked for")

	damage(t, shared, core.ChecksumChunk+17)
	v = check()
	require.Equal(t, report.Unsound, v.Verdict)
	require.Equal(t, report.Found{Corrupt: 1}, v.Found)
	require.Equal(t, r.neutral("file:"+shared), v.Findings[0].Path)

	k := &keeper{FileSystem: r.fsys, unsupported: shared}
	r.fsys = k
	var all report.Verification
	require.Equal(t, 0, r.json(&all, "verify", "--checksums", "--parallel", "1", c.Pointer).ExitCode)
	require.Equal(t, 3, all.Checkpoints[0].Compared)
	require.Equal(t, 1, all.Checkpoints[0].NotCompared)
	require.Len(t, k.asked, 4)
}

func TestVerifyListsNoMoreFindingsThanAskedFor(t *testing.T) {
	r := newRig(t)
	h := &metadata.IncrementalHandle{Meta: &core.RelativeFileHandle{Name: "meta", Size: 1}}
	for i := range 20 {
		h.Private = append(h.Private, metadata.NamedFile{Handle: &core.RelativeFileHandle{Name: fmt.Sprintf("file-%02d", i), Size: 1}})
	}
	dir := r.bare("chk-1", h)
	r.golden("verify-max-findings.txt", "verify", "--max-findings", "2", dir)
	for limit, listed := range map[string]int{"1": 1, "20": 20, "21": 21, "0": 21} {
		var v report.Verification
		require.Equal(t, 1, r.json(&v, "verify", "--max-findings", limit, dir).ExitCode)
		require.Len(t, v.Checkpoints[0].Findings, listed)
		require.Equal(t, 21, v.Checkpoints[0].Found.Missing)
	}
	require.Equal(t, 2, r.run("verify", "--max-findings", "-1", dir).code)
}

// merged writes a checkpoint with segments of two files, and the files.
func (r *rig) merged(sums bool) string {
	r.t.Helper()
	h := &metadata.IncrementalHandle{Meta: &core.BytesHandle{}}
	for i := range 10 {
		file, data := fmt.Sprint("packed-", i%2), []byte(fmt.Sprint("segment ", i, "."))
		s := &metadata.SegmentHandle{Path: "file:" + r.path(file), Offset: int64(20 * (i / 2)), Size: int64(len(data))}
		if sums {
			s.Checksums = &core.Checksums{ChunkSize: 100, Sums: []uint32{core.CRC32C(data)}}
		}
		h.Private = append(h.Private, metadata.NamedFile{Handle: s}, metadata.NamedFile{Handle: s})
		old, _ := os.ReadFile(r.path(file))
		whole := make([]byte, max(len(old), int(s.Offset)+20))
		copy(whole, old)
		copy(whole[s.Offset:], data)
		r.file(file, whole)
	}
	c := &metadata.Checkpoint{Operators: []metadata.OperatorState{{
		Parallelism: 1, MaxParallelism: 128, Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{ManagedKeyed: h}}},
	}}}
	data, err := metadata.Append(nil, c, metadata.WriteOptions{Footer: &metadata.Footer{}})
	require.NoError(r.t, err)
	r.file("chk-1/_metadata", data)
	return r.path("chk-1")
}

func TestVerifyDeepReadsTheSegmentsThatAreNeeded(t *testing.T) {
	for _, sums := range []bool{false, true} {
		t.Run(fmt.Sprint("checksums=", sums), func(t *testing.T) {
			r := newRig(t)
			dir := r.merged(sums)
			verify := func(args ...string) report.Verified {
				var v report.Verification
				r.json(&v, append([]string{"verify", dir}, args...)...)
				return v.Checkpoints[0]
			}
			fsys := r.inject(nil)
			v := verify("--deep", "--parallel", "1")
			require.Equal(t, report.Sound, v.Verdict)
			require.Equal(t, int64(100), v.ReadBytes, "each segment once, and nothing between them")
			require.Equal(t, 2, v.Objects)
			require.Equal(t, 2, v.Checked)
			require.Equal(t, map[bool]int{false: 2, true: 0}[sums], v.WithoutChecksum)
			opened := 0
			for _, call := range fsys.Calls() {
				if call.Op == faultfs.OpOpen && path.Base(call.Name) != core.MetadataName {
					opened++
				}
			}
			require.Equal(t, 2, opened, "a file is opened once for all of its segments")

			damage(t, r.path("packed-1"), 15)
			require.Equal(t, report.Sound, verify("--deep").Verdict, "nobody needs the bytes between segments")
			damage(t, r.path("packed-1"), 41)
			v = verify("--deep")
			if !sums {
				require.Equal(t, report.Sound, v.Verdict)
			} else {
				require.Equal(t, report.Found{Corrupt: 1}, v.Found)
				require.Contains(t, v.Findings[0].Message, "offset 40")
			}
			require.Equal(t, report.Sound, verify().Verdict)

			require.NoError(t, os.Truncate(r.path("packed-1"), 85))
			require.Equal(t, report.Found{Short: 1}, verify("--deep").Found, "one finding, however many segments are lost")
			require.NoError(t, os.Remove(r.path("packed-1")))
			require.Equal(t, report.Found{Missing: 1}, verify("--deep").Found)
			require.Equal(t, report.Found{Missing: 1}, verify().Found)
		})
	}
}
