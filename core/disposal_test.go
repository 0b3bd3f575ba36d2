package core_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	uuidA = "aaaaaaaa-0000-4000-8000-000000000000"
	uuidB = "bbbbbbbb-0000-4000-8000-000000000000"
	uuidC = "cccccccc-0000-4000-8000-000000000000"
)

func fileEntry(name string) core.FileInfo { return core.FileInfo{Name: name, Mode: 0o600} }
func dirEntry(name string) core.FileInfo  { return core.FileInfo{Name: name, Mode: fs.ModeDir | 0o700} }

func linkEntry(name string) core.FileInfo {
	return core.FileInfo{Name: name, Mode: fs.ModeSymlink | 0o777}
}

func needed(names ...string) core.NeededNames {
	set := core.NeededNames{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// planned is a plan with the kept names and the word of their reasons that tells them apart.
func planned(plan core.DisposalPlan) (remove, kept []string) {
	for _, k := range plan.Kept {
		kept = append(kept, k.Path+" "+reasonWord(k.Reason))
	}
	return plan.Remove, kept
}

func reasonWord(reason string) string {
	for _, word := range []string{
		"below", "directory that", "merged", "needs it", "foreign", "another file system", "outside", "not a path", "cannot be read", "as asked", "not a part", "newer claim",
	} {
		if strings.Contains(reason, word) {
			return "(" + word + ")"
		}
	}
	return "(?)"
}

func TestPlanDisposal(t *testing.T) {
	const dir, shared = "/job/chk-5", "/job/shared"
	for _, c := range []struct {
		name    string
		entries []core.FileInfo
		objects []core.Object
		needed  core.NeededNames
		blocked string
		noJob   bool // a savepoint: no shared directory
		remove  []string
		kept    []string
	}{
		{
			name:    "nothing but metadata",
			entries: []core.FileInfo{fileEntry("_metadata"), fileEntry("._metadata.disposed"), fileEntry("._metadata.emptied")},
		},
		{
			name:    "own files: named, late, temporaries",
			entries: []core.FileInfo{fileEntry("named.bin"), fileEntry(uuidA), fileEntry("._metadata.inprogress." + uuidB), fileEntry("._sync." + uuidC)},
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/named.bin", Relative: true}},
			remove:  []string{dir + "/named.bin", dir + "/" + uuidA, dir + "/._metadata.inprogress." + uuidB, dir + "/._sync." + uuidC},
		},
		{
			name: "foreign entries",
			entries: []core.FileInfo{
				fileEntry("README"), fileEntry("._metadata.inprogress.x"), fileEntry(uuidA + ".crc"), fileEntry(strings.ToUpper(uuidA)), fileEntry("_metadata.bak"), dirEntry("sub"), dirEntry(uuidB),
			},
			kept: []string{
				dir + "/README (foreign)", dir + "/._metadata.inprogress.x (foreign)", dir + "/" + uuidA + ".crc (foreign)",
				dir + "/" + strings.ToUpper(uuidA) + " (foreign)", dir + "/_metadata.bak (foreign)", dir + "/sub (directory that)", dir + "/" + uuidB + " (directory that)",
			},
		},
		{
			name:    "a named directory is no file",
			entries: []core.FileInfo{dirEntry("sub")},
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/sub"}, {Path: "hdfs://ns1/job/chk-5/sub/deep"}},
			kept:    []string{dir + "/sub (directory that)", dir + "/sub/deep (below)"},
		},
		{
			name:    "symbolic links: one with the name of a state file is unlinked, others are foreign",
			entries: []core.FileInfo{linkEntry(uuidA), linkEntry("x")},
			remove:  []string{dir + "/" + uuidA},
			kept:    []string{dir + "/x (foreign)"},
		},
		{
			name:    "own file that another checkpoint needs",
			entries: []core.FileInfo{fileEntry(uuidA), fileEntry(uuidB)},
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/" + uuidA, Relative: true}},
			needed:  needed(dir+"/"+uuidA, dir+"/"+uuidB),
			kept:    []string{dir + "/" + uuidA + " (needs it)", dir + "/" + uuidB + " (needs it)"},
		},
		{
			name:    "the whole directory is needed by another",
			entries: []core.FileInfo{fileEntry(uuidA)},
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/" + uuidA}, {Path: "hdfs://ns1/job/shared/" + uuidB}},
			needed:  needed("/job"),
			kept:    []string{dir + "/" + uuidA + " (needs it)", shared + "/" + uuidB + " (needs it)"},
		},
		{
			name:    "shared files",
			objects: []core.Object{{Path: "hdfs://ns1/job/shared/" + uuidA}, {Path: "hdfs://ns1/job/shared/" + uuidB}, {Path: "hdfs://ns1/job/shared/deep/" + uuidC}},
			needed:  needed(shared + "/" + uuidB),
			remove:  []string{shared + "/" + uuidA, shared + "/deep/" + uuidC},
			kept:    []string{shared + "/" + uuidB + " (needs it)"},
		},
		{
			name:    "a directory of merged files that another needs covers its files",
			objects: []core.Object{{Path: "hdfs://ns1/job/shared/deep/" + uuidC}, {Path: "hdfs://ns1/job/shared/deeper"}},
			needed:  needed(shared + "/deep"),
			remove:  []string{shared + "/deeper"},
			kept:    []string{shared + "/deep/" + uuidC + " (needs it)"},
		},
		{
			name:    "shared files while a sibling cannot be read",
			entries: []core.FileInfo{fileEntry(uuidB)},
			objects: []core.Object{{Path: "hdfs://ns1/job/shared/" + uuidA}, {Path: "hdfs://ns1/job/chk-5/" + uuidB, Relative: true}},
			blocked: "chk-6 cannot be read, and may need it",
			remove:  []string{dir + "/" + uuidB},
			kept:    []string{shared + "/" + uuidA + " (cannot be read)"},
		},
		{
			name:    "directories in shared, and shared itself",
			objects: []core.Object{{Path: "hdfs://ns1/job/shared/merged", Directory: true}, {Path: "hdfs://ns1/job/shared"}},
			kept:    []string{shared + "/merged (merged)", shared + " (outside)"},
		},
		{
			name: "what belongs to others",
			objects: []core.Object{
				{Path: "hdfs://ns1/job/taskowned/" + uuidA},
				{Path: "hdfs://ns1/job/chk-6/" + uuidA},
				{Path: "hdfs://ns1/job/chk-6/_metadata"},
				{Path: "hdfs://ns1/other/shared/" + uuidA},
				{Path: "hdfs://ns1/job/sharedx/" + uuidA},
				{Path: "hdfs://ns1/job/chk-55/" + uuidA},
				{Path: "hdfs://ns1/job"},
				{Path: "hdfs://ns1/"},
				{Path: "hdfs://ns1/etc/passwd"},
			},
			kept: []string{
				"/job/taskowned/" + uuidA + " (outside)", "/job/chk-6/" + uuidA + " (outside)", "/job/chk-6/_metadata (outside)",
				"/other/shared/" + uuidA + " (outside)", "/job/sharedx/" + uuidA + " (outside)", "/job/chk-55/" + uuidA + " (outside)",
				"/job (outside)", "/ (outside)", "/etc/passwd (outside)",
			},
		},
		{
			name:    "other file systems and broken paths",
			objects: []core.Object{{Path: "hdfs://ns2/job/shared/" + uuidA}, {Path: "file:/job/chk-5/" + uuidA}, {Path: "relative/path"}, {Path: ""}, {Path: "hdfs://ns1"}},
			entries: []core.FileInfo{fileEntry("named.bin")},
			kept: []string{
				dir + "/named.bin (foreign)", "hdfs://ns2/job/shared/" + uuidA + " (another file system)", "file:/job/chk-5/" + uuidA + " (another file system)",
				"relative/path (not a path)", " (not a path)", "hdfs://ns1 (not a path)",
			},
		},
		{
			name: "paths that escape",
			objects: []core.Object{
				{Path: "hdfs://ns1/job/chk-5/../../etc/" + uuidA},
				{Path: "hdfs://ns1/job/shared/../taskowned/" + uuidA},
				{Path: "hdfs://ns1/job/chk-5/../shared/" + uuidB},
				{Path: "hdfs://ns1/../../job/shared/" + uuidC},
			},
			remove: []string{shared + "/" + uuidB, shared + "/" + uuidC},
			kept:   []string{"/etc/" + uuidA + " (outside)", "/job/taskowned/" + uuidA + " (outside)"},
		},
		{
			name:    "one file by several texts is one file",
			entries: []core.FileInfo{fileEntry("named.bin")},
			objects: []core.Object{
				{Path: "hdfs://ns1//job/chk-5//named.bin"}, {Path: "/job/shared/" + uuidA}, {Path: "hdfs://ns1/job/shared//" + uuidA}, {Path: "hdfs://ns1/job/./shared/" + uuidA},
			},
			remove: []string{dir + "/named.bin", shared + "/" + uuidA},
		},
		{
			name:    "named but gone",
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/" + uuidA, Relative: true}},
		},
		{
			name:    "a savepoint has no shared directory",
			noJob:   true,
			entries: []core.FileInfo{fileEntry(uuidA)},
			objects: []core.Object{{Path: "hdfs://ns1/job/chk-5/" + uuidA, Relative: true}, {Path: "hdfs://ns1/job/shared/" + uuidB}},
			remove:  []string{dir + "/" + uuidA},
			kept:    []string{shared + "/" + uuidB + " (outside)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := core.DisposalFacts{
				URI: "hdfs://ns1", Dir: dir, SharedDir: shared, Entries: c.entries, Objects: c.objects, Needed: c.needed, SharedBlocked: c.blocked,
			}
			if c.noJob {
				facts.SharedDir = ""
			}
			remove, kept := planned(core.PlanDisposal(facts))
			require.Equal(t, c.remove, remove)
			require.Equal(t, c.kept, kept)
		})
	}
}

// Whatever the metadata and the siblings say, a plan removes only in the checkpoint's own directory and below the job's
// shared directory, never what is needed, and never the same twice.
func TestPlanDisposalStaysInsideForAnyInput(t *testing.T) {
	generator := loggedRand(t)
	components := []string{"job", "chk-5", "chk-6", "shared", "taskowned", "..", ".", "", uuidA, uuidB, "_metadata", "._metadata.disposed", "x", "deep"}
	anyPath := func() string {
		var b strings.Builder
		for range 1 + generator.IntN(6) {
			b.WriteString("/" + components[generator.IntN(len(components))])
		}
		return b.String()
	}
	for range 20000 {
		facts := core.DisposalFacts{URI: "file://", Dir: "/job/chk-5", SharedDir: "/job/shared", Needed: core.NeededNames{}}
		for range generator.IntN(4) {
			name := components[8+generator.IntN(6)]
			entry := []func(string) core.FileInfo{fileEntry, dirEntry, linkEntry}[generator.IntN(3)](name)
			facts.Entries = append(facts.Entries, entry)
		}
		for range generator.IntN(5) {
			uri := []string{"file:", "file://", "", "hdfs://ns1"}[generator.IntN(4)]
			facts.Objects = append(facts.Objects, core.Object{Path: uri + anyPath(), Directory: generator.IntN(6) == 0})
		}
		for range generator.IntN(3) {
			require.NoError(t, facts.Needed.Add([]core.Object{{Path: "file://" + anyPath()}}))
		}
		if generator.IntN(4) == 0 {
			facts.SharedBlocked = "blocked"
		}
		seen := map[string]bool{}
		for _, name := range core.PlanDisposal(facts).Remove {
			require.NoError(t, core.CheckName("remove", "/", name), "%+v", facts)
			own := strings.HasPrefix(name, "/job/chk-5/") && strings.Count(name, "/") == 3
			require.True(t, own || strings.HasPrefix(name, "/job/shared/") && facts.SharedBlocked == "", "%s of %+v", name, facts)
			require.False(t, own && strings.Contains(name, "metadata"), "%s of %+v", name, facts)
			require.False(t, facts.Needed.Cover(name), "%s of %+v", name, facts)
			require.False(t, seen[name] && !strings.HasPrefix(name, "/job/chk-5/"), "%s twice of %+v", name, facts)
			seen[name] = true
		}
	}
}

func TestNeededNamesKnowAFileByAnyFileSystemAndText(t *testing.T) {
	set := core.NeededNames{}
	require.NoError(t, set.Add([]core.Object{{Path: "hdfs://nn1:8020/a//b/"}, {Path: "/c/d"}, {Path: "file:///e/./f", Directory: true}}))
	for _, name := range []string{"/a/b", "/a/b/below", "/c/d", "/e/f", "/e/f/g/h"} {
		require.True(t, set.Cover(name), name)
	}
	for _, name := range []string{"/", "/a", "/a/bb", "/c", "/e/ff", "/x"} {
		require.False(t, set.Cover(name), name)
	}
	require.ErrorIs(t, set.Add([]core.Object{{Path: "no/path"}, {Path: "/x"}}), fs.ErrInvalid)
	require.True(t, set.Cover("/x"), "the others are added all the same")
}
