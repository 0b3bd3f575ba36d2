package metadata

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jobTree is the directory of a real job with all its snapshots. Its files call it madeIn/<name>.
type jobTree struct {
	dir          string
	snapshots    []goldenFile
	unreferenced int // files of which Flink left so many behind
}

const madeIn = "file:/tmp/flink-golden/"

// jobTrees finds the trees that are there as a whole.
func jobTrees(t *testing.T, files []goldenFile) map[string]*jobTree {
	trees := make(map[string]*jobTree)
	for _, g := range files {
		before, after, found := strings.Cut(g.dir, "/jobs/")
		name, rest, nested := strings.Cut(after, "/")
		if g.kind != "jobs" || !found || !nested || rest == "" {
			continue
		}
		if trees[name] == nil {
			trees[name] = &jobTree{dir: filepath.Join(before, "jobs", name)}
		}
		trees[name].snapshots = append(trees[name].snapshots, g)
		n, err := strconv.Atoi(g.unreferenced)
		require.NoError(t, err)
		trees[name].unreferenced = n
	}
	return trees
}

// check looks every object of every snapshot up in the tree, and counts the files that none of them needs.
func (j *jobTree) check(t *testing.T, name string) {
	needed := make(map[string]bool)
	var directories []string
	for _, g := range j.snapshots {
		objects, err := ReadObjects(g.data(t), "file:"+g.dir)
		require.NoError(t, err)
		needed[filepath.Join(g.dir, "_metadata")] = true
		for _, o := range objects {
			path := strings.TrimPrefix(o.Path, "file:")
			if rest, absolute := strings.CutPrefix(o.Path, madeIn+name+"/"); absolute {
				path = filepath.Join(j.dir, rest)
			} else {
				require.True(t, o.Relative, o.Path)
			}
			if o.Directory {
				directories = append(directories, path)
				continue
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			size := info.Size()
			if o.FlagByte {
				size--
			}
			if o.Size != unknownSize {
				require.Equal(t, o.Size, size, path)
			}
			needed[path] = true
		}
	}
	unreferenced := 0
	require.NoError(t, filepath.WalkDir(j.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !needed[path] {
			t.Log("not needed:", path)
			unreferenced++
		}
		return err
	}))
	require.Equal(t, j.unreferenced, unreferenced)
	t.Logf("%d snapshots, %d files, %d directories", len(j.snapshots), len(needed), len(directories))
}
