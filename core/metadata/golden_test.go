package metadata

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// goldenEnv names a directory with more golden files, in the layout of testdata/golden: a MANIFEST.tsv in it or in its direct
// subdirectories.
const goldenEnv = "HDFSCKPT_GOLDEN"

// goldenFile is a row of a MANIFEST.tsv.
type goldenFile struct {
	kind, name string
	dir        string // with the _metadata
	expected   string // dump of what Flink reads, "" if there is none
	// reads is "yes", "accepted" or "refused" with what Flink says.
	reads string
	// rewrite is "true" if Flink's reader and writer give the same bytes again.
	rewrite string
	// unreferenced is how many files of a job's tree no snapshot needs.
	unreferenced string
}

func (g goldenFile) data(t testing.TB) []byte {
	data, err := os.ReadFile(filepath.Join(g.dir, "_metadata"))
	require.NoError(t, err)
	return data
}

func goldenFiles(t testing.TB, dir string) []goldenFile {
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimRight(string(manifest), "\n"), "\n")
	header := strings.Split(lines[0], "\t")
	var files []goldenFile
	for _, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		value := func(name string) string {
			if i := slices.Index(header, name); i >= 0 && i < len(fields) {
				return fields[i]
			}
			return ""
		}
		g := goldenFile{
			kind: value("kind"), name: value("name"), dir: filepath.Join(dir, value("path")),
			reads: value("flink_2.3.0_reads"), rewrite: value("rewrite_same_version_identical"),
			unreferenced: value("unreferenced_files_in_tree"),
		}
		if expected := value("expected"); expected != "" {
			g.expected = filepath.Join(dir, expected)
		}
		if public := value("directory"); public != "" {
			g = goldenFile{
				kind: "public", name: public, dir: filepath.Join(dir, public), reads: "yes",
				expected: filepath.Join(dir, "expected", public+".json.gz"),
			}
		}
		files = append(files, g)
	}
	require.NotEmpty(t, files)
	return files
}

// ownGolden are the golden files of this package.
func ownGolden(t testing.TB) []goldenFile { return goldenFiles(t, filepath.Join("testdata", "golden")) }

func TestGoldenFiles(t *testing.T) {
	for _, g := range ownGolden(t) {
		t.Run(g.kind+"/"+g.name, func(t *testing.T) { checkGolden(t, g) })
	}
}

func TestMoreGoldenFiles(t *testing.T) {
	dir := os.Getenv(goldenEnv)
	if dir == "" {
		t.Skip(goldenEnv + " names no directory")
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "*", "MANIFEST.tsv"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "MANIFEST.tsv")); err == nil {
		manifests = append(manifests, filepath.Join(dir, "MANIFEST.tsv"))
	}
	n := 0
	for _, manifest := range manifests {
		files := goldenFiles(t, filepath.Dir(manifest))
		for name, tree := range jobTrees(t, files) {
			t.Run("tree/"+name, func(t *testing.T) { tree.check(t, name) })
		}
		for _, g := range files {
			if _, err := os.Stat(filepath.Join(g.dir, "_metadata")); err != nil {
				continue // of another format, or left out
			}
			n++
			t.Run(g.kind+"/"+g.name, func(t *testing.T) { checkGolden(t, g) })
		}
	}
	require.NotZero(t, n)
	t.Logf("%d files", n)
}

// historic are files that only we and the Flink that wrote them can read.
func historic(g goldenFile) bool { return g.kind == "old-writers" && g.reads != "yes" }

func checkGolden(t *testing.T, g goldenFile) {
	data := g.data(t)
	c, err := Parse(data, "file:"+g.dir)
	if g.reads != "yes" && g.name != "properties-null" && !historic(g) {
		requireRefused(t, err)
		return
	}
	require.NoError(t, err)

	if g.expected != "" {
		var dump bytes.Buffer
		require.NoError(t, DumpFlink(&dump, c, data))
		require.Equal(t, gunzip(t, g.expected), dump.String())
	}
	if c.Version >= oldestWritable && !strings.Contains(g.name, "1.11.6-channels") {
		again, err := Append(nil, c, WriteOptions{Version: c.Version})
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again), "the rewrite differs")
	} else {
		require.NotEqual(t, "true", g.rewrite, "Flink rewrites it")
	}
	// What was read can be written in every version, and says the same then.
	for version := oldestWritable; version <= newestVersion; version++ {
		requireStable(t, c, version)
	}
	objects, err := Objects(c)
	require.NoError(t, err)
	checkObjects(t, g, objects)
}

func requireRefused(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.GreaterOrEqual(t, e.Offset, int64(0))
	require.True(t, e.Err == core.ErrCorrupt || e.Err == core.ErrUnsupportedVersion, "%v", err) //nolint:errorlint // exactly these
}

// requireStable writes c, reads that and writes it again.
func requireStable(t *testing.T, c *Checkpoint, version int) {
	t.Helper()
	first, err := Append(nil, c, WriteOptions{Version: version})
	require.NoError(t, err)
	read, err := Parse(first, "")
	require.NoError(t, err)
	second, err := Append(nil, read, WriteOptions{Version: version})
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, second), "version %d differs", version)
}

func gunzip(t *testing.T, name string) string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

// checkObjects compares with the files beside the _metadata: if there are any, all relative objects must be there with their
// sizes, and nothing else.
func checkObjects(t *testing.T, g goldenFile, objects []core.Object) {
	present := make(map[string]int64)
	err := filepath.WalkDir(g.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if entry.Name() != "_metadata" && err == nil {
			present["file:"+path] = info.Size()
		}
		return err
	})
	require.NoError(t, err)
	if len(present) == 0 {
		return
	}
	for _, o := range objects {
		if !o.Relative {
			continue
		}
		size, there := present[o.Path]
		require.True(t, there, "%s is missing", o.Path)
		require.Equal(t, o.Size, size, o.Path)
		delete(present, o.Path)
	}
	require.Empty(t, present, "no object refers to these")
}
