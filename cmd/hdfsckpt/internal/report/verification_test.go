package report

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestJudgeSize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		object core.Object
		found  int64
		want   FindingKind
	}{
		{"equal", core.Object{Size: 10}, 10, ""},
		{"empty", core.Object{Size: 0}, 0, ""},
		{"short", core.Object{Size: 10}, 9, Short},
		{"long", core.Object{Size: 10}, 11, Long},
		{"unknown", core.Object{Size: -1}, 0, ""},
		{"unknown, any", core.Object{Size: -1}, 99, ""},
		{"segments", core.Object{Size: -1, AtLeast: 50}, 50, ""},
		{"behind the segments", core.Object{Size: -1, AtLeast: 50}, 60, ""},
		{"segment cut off", core.Object{Size: -1, AtLeast: 50}, 49, Short},
		{"flag byte", core.Object{Size: 10, FlagByte: true}, 11, ""},
		{"flag byte missing", core.Object{Size: 10, FlagByte: true}, 10, Short},
		{"flag byte, unknown", core.Object{Size: -1, FlagByte: true}, 7, ""},
	} {
		finding := JudgeSize(tt.object, "file:/a", tt.found)
		if tt.want == "" {
			require.Nil(t, finding, tt.name)
			continue
		}
		require.NotNil(t, finding, tt.name)
		require.Equal(t, tt.want, finding.Kind, tt.name)
		require.Equal(t, tt.found, *finding.FoundBytes)
	}
}

func TestJudgeErrorTellsMissingCorruptAndUnreadableApart(t *testing.T) {
	object := core.Object{Path: "file:/old"}
	for want, err := range map[FindingKind]error{Missing: fs.ErrNotExist, Corrupt: core.ErrCorrupt, Unreadable: fs.ErrPermission} {
		f := JudgeError(object, "file:/new", &fs.PathError{Op: "open", Path: "/new", Err: err})
		require.Equal(t, want, f.Kind)
		require.Equal(t, "file:/new", f.Path)
		require.Equal(t, "file:/old", f.Recorded)
		require.NotContains(t, f.Message, "/new", "the finding has a path of its own")
	}
	require.Equal(t, Unreadable, JudgeError(object, "file:/old", errors.New("what")).Kind)
	require.Empty(t, JudgeError(object, "file:/old", errors.New("what")).Recorded)
}

func TestTheVerdictFollowsFromTheFindings(t *testing.T) {
	checked := Outcome{Checked: true}
	with := func(kind FindingKind) Outcome { return Outcome{Checked: true, Finding: &Finding{Kind: kind}} }
	for _, tt := range []struct {
		name     string
		outcomes []Outcome
		ended    bool
		want     Verdict
		exit     int
	}{
		{"nothing to check", nil, false, Sound, 0},
		{"all checked", []Outcome{checked, checked}, false, Sound, 0},
		{"one missing", []Outcome{checked, with(Missing)}, false, Unsound, 1},
		{"one corrupt and one unreadable", []Outcome{with(Unreadable), with(Corrupt)}, false, Unsound, 1},
		{"one unreadable", []Outcome{checked, with(Unreadable)}, false, Unknown, 3},
		{"one not checked", []Outcome{checked, {}}, false, Unknown, 3},
		{"cut off", []Outcome{checked}, true, Unknown, 3},
		{"cut off with a finding", []Outcome{with(Short), {}}, true, Unsound, 1},
	} {
		v := NewVerified("file:/x", 10)
		v.Expect(Inventory{Objects: len(tt.outcomes), Bytes: int64(5 * len(tt.outcomes))})
		for _, o := range tt.outcomes {
			v.Add(o)
		}
		v.Conclude(tt.ended)
		require.Equal(t, tt.want, v.Verdict, tt.name)
		require.NotNil(t, v.Findings)
		require.Equal(t, int64(5*len(tt.outcomes)), v.Bytes)
		require.Equal(t, tt.exit, (&Verification{Checkpoints: []Verified{*v}}).ExitCode(), tt.name)
	}
}

func TestAMissingDirectoryOfMergedFilesIsCountedAndNoFinding(t *testing.T) {
	var v Verified
	v.Add(Outcome{MissingDirectory: true})
	v.Conclude(false)
	require.Equal(t, Sound, v.Verdict)
	require.Equal(t, 1, v.MissingDirectories)
	require.Zero(t, v.Objects)
}

func TestOnlyFilesThatAreMissingElsewhereLookMoved(t *testing.T) {
	for _, tt := range []struct {
		finding Finding
		want    bool
	}{
		{Finding{Kind: Missing, Path: "file:/old/job/shared/a"}, true},
		{Finding{Kind: Missing, Path: "file:/new/job/shared/a"}, false},
		{Finding{Kind: Missing, Path: "file:/new/job/chk-1/a"}, false},
		{Finding{Kind: Missing, Path: "file:/mapped/a", Recorded: "file:/old/a"}, false},
		{Finding{Kind: Short, Path: "file:/old/a"}, false},
	} {
		v := Verification{Checkpoints: []Verified{{Pointer: "file:/new/job/chk-1", Findings: []Finding{tt.finding}}}}
		require.Equal(t, tt.want, v.LooksMoved(), "%+v", tt.finding)
	}
}

func TestFindingsBeyondTheLimitAreCounted(t *testing.T) {
	v := NewVerified("file:/x", 3)
	kinds := []FindingKind{Missing, Short, Long, Corrupt, Unreadable}
	for i := range 100 {
		v.Add(Outcome{Checked: true, Finding: &Finding{Kind: kinds[i%5], Path: fmt.Sprintf("file:/%02d", (i*37)%100)}})
	}
	v.Conclude(false)
	require.Equal(t, Found{Missing: 20, Short: 20, Long: 20, Corrupt: 20, Unreadable: 20}, v.Found)
	require.Equal(t, 100, v.Found.All())
	var paths []string
	for _, f := range v.Findings {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"file:/00", "file:/01", "file:/02"}, paths, "the first by path, whatever the order in which they are found")
	require.Equal(t, Unsound, v.Verdict)
}

func TestJudgeSumComparesTheWholeFile(t *testing.T) {
	object := core.Object{Path: "file:/a", Size: 6, Checksums: &core.Checksums{
		ChunkSize: 4, Sums: []uint32{core.CRC32C([]byte("abcd")), core.CRC32C([]byte("ef"))},
	}}
	require.Nil(t, JudgeSum(object, "file:/a", core.CRC32C([]byte("abcdef")), 6))
	require.Equal(t, Corrupt, JudgeSum(object, "file:/a", core.CRC32C([]byte("abcdeg")), 6).Kind)
	require.Equal(t, Short, JudgeSum(object, "file:/a", core.CRC32C([]byte("abcde")), 5).Kind)
}
