package cli

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestCatWritesTheBytesOfAFile(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	file := j.files("chk-7")[1]
	for _, name := range []string{file, path.Base(file), "chk-7/" + path.Base(file), "file://" + file} {
		require.Equal(t, result{stdout: strings.Repeat("x", 300)}, r.run("cat", c.Pointer, name))
	}
	shared := r.run("cat", c.Pointer, j.files("shared")[0])
	require.Equal(t, strings.Repeat("x", sharedSize), shared.stdout)
}

func TestCatEndsBeforeADamagedChunk(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(7)
	shared := j.files("shared")[0]
	damage(t, shared, core.ChecksumChunk+17)
	got := r.run("cat", c.Pointer, shared)
	require.Equal(t, 1, got.code)
	require.Equal(t, strings.Repeat("x", core.ChecksumChunk), got.stdout, "what is right, and nothing of the damaged chunk")
	require.Contains(t, got.stderr, "checksum")
	r.inject(denies(faultfs.OpOpen, path.Base(shared)))
	require.Equal(t, 3, r.run("cat", c.Pointer, shared).code)
}

func TestCatOfASegmentWritesTheSegmentOnly(t *testing.T) {
	r := newRig(t)
	r.file("packed", []byte("0123456789"))
	segment := func(offset, size int64, sums bool) *metadata.SegmentHandle {
		h := &metadata.SegmentHandle{Path: "file:/old/packed", Offset: offset, Size: size}
		if sums {
			h.Checksums = &core.Checksums{ChunkSize: 100, Sums: []uint32{core.CRC32C([]byte("0123456789")[offset : offset+size])}}
		}
		return h
	}
	dir := r.bare("chk-1", &metadata.IncrementalHandle{Meta: segment(2, 3, true), Private: []metadata.NamedFile{{Handle: segment(6, 4, false)}}})
	moved := "/old=" + r.root
	require.Equal(t, result{stdout: "234"}, r.run("cat", "--path-map", moved, "--segment", "2", dir, "packed"))
	require.Equal(t, result{stdout: "6789"}, r.run("cat", "--path-map", moved, "--segment", "6", dir, r.path("packed")))
	r.golden("cat-segments.txt", "cat", "--path-map", moved, dir, "packed")
	require.Equal(t, 2, r.run("cat", "--path-map", moved, "--segment", "3", dir, "packed").code)

	one := r.bare("chk-2", keyGroups(0, segment(6, 4, false)))
	require.Equal(t, result{stdout: "6789"}, r.run("cat", "--path-map", moved, one, "packed"))
}

func TestCatNeedsOneFile(t *testing.T) {
	r := newRig(t)
	r.file("a/same", []byte("a"))
	r.file("b/same", []byte("b"))
	dir := r.bare("chk-1", &metadata.IncrementalHandle{
		Meta:    &core.FileHandle{Path: "file:" + r.path("a/same"), Size: 1},
		Private: []metadata.NamedFile{{Handle: &core.FileHandle{Path: "file:" + r.path("b/same"), Size: 1}}},
	})
	r.golden("cat-ambiguous.txt", "cat", dir, "same")
	require.Equal(t, result{stdout: "b"}, r.run("cat", dir, "b/same"))
	require.Equal(t, 1, r.run("cat", dir, "ame").code, "only whole components")
	require.Equal(t, 2, r.run("cat", "--segment", "0", dir, "b/same").code)
	require.Equal(t, 2, r.run("cat", "--json", dir, "b/same").code)
	require.Equal(t, 3, r.run("cat", "nowhere", "b/same").code)

	merged := r.write("chk-2", &metadata.Checkpoint{Operators: []metadata.OperatorState{{
		Parallelism: 1, MaxParallelism: 1, Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{
			RawOperator: &metadata.OperatorHandle{Delegate: metadata.EmptySegment{}, Merging: &metadata.Merging{TaskOwnedDir: "file:/t", SharedDir: "file:/s"}},
		}}},
	}}})
	require.Equal(t, 2, r.run("cat", merged, "t").code, "a directory")
}
