package sparkckpt_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// goldenDir is where TestMain unpacks the vectors.
var goldenDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sparkckpt")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		goldenDir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = unpack(filepath.Join("testdata", "spark.tar.gz"), goldenDir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // and the tests fail for want of files
	}
	m.Run()
}

func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(name, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
}

// goldenRoots are the vectors that come with the package, and the complete set where HDFSCKPT_GOLDEN names it.
func goldenRoots() []string {
	roots := []string{goldenDir}
	if all := os.Getenv("HDFSCKPT_GOLDEN"); all != "" {
		roots = append(roots, filepath.Join(all, "spark"))
	}
	return roots
}

func readTSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[head[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func localFS(t *testing.T) core.FileSystem {
	t.Helper()
	fsys, err := localfs.Open("/", localfs.Options{UnsafeNoFsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	return fsys
}

func openGolden(t *testing.T, fsys core.FileSystem, elements ...string) *sparkckpt.Checkpoint {
	t.Helper()
	c, err := sparkckpt.Open(t.Context(), fsys, filepath.Join(append([]string{goldenDir}, elements...)...)+"/checkpoint")
	require.NoError(t, err)
	return c
}

func openStore(t *testing.T, c *sparkckpt.Checkpoint, operator, partition int64, name string) *sparkckpt.Store {
	t.Helper()
	s, err := c.Store(t.Context(), statestore.StoreID{Operator: operator, Partition: partition, Name: name})
	require.NoError(t, err)
	return s
}

// dumpSum is the SHA-256 of the dump of a view.
func dumpSum(v *sparkckpt.View) string {
	sum := sha256.New()
	for e := range v.All() {
		_, _ = fmt.Fprintf(sum, "%x %x\n", e.Key, e.Value)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func TestVersionsOfSparkLoadAsInSpark(t *testing.T) {
	fsys := localFS(t)
	for _, root := range goldenRoots() {
		loaded, refused, failed := 0, 0, 0
		for _, c := range readTSV(t, filepath.Join(root, "MANIFEST.tsv")) {
			dir := filepath.Join(root, c["set"], c["name"])
			rows := readTSV(t, filepath.Join(dir, "expected", "index.tsv"))
			if rows == nil {
				continue
			}
			t.Run(c["name"], func(t *testing.T) {
				ckpt, err := sparkckpt.Open(t.Context(), fsys, filepath.Join(dir, "checkpoint"))
				require.NoError(t, err)
				require.Empty(t, ckpt.Problems)
				for _, row := range rows {
					s := openStore(t, ckpt, number(t, row["operator"]), number(t, row["partition"]), row["store"])
					require.Equal(t, c["provider"], s.Provider.String())
					v := sparkckpt.Version{Number: number(t, row["version"]), ID: strings.TrimPrefix(row["checkpoint_id"], "-")}
					view, err := s.Load(t.Context(), v)
					var needed *sparkckpt.SnapshotNeededError
					switch {
					case row["keys"] == "ERROR":
						require.Error(t, err)
						failed++
					case errors.As(err, &needed):
						require.Equal(t, "rocksdb", c["provider"])
						require.ErrorIs(t, err, errors.ErrUnsupported)
						t.Logf("%v", err)
						refused++
					default:
						require.NoError(t, err, "%s version %s", s.Dir, v)
						require.Equal(t, number(t, row["keys"]), int64(view.Len()), "%s version %s", s.Dir, v)
						require.Equal(t, row["sha256"], dumpSum(view), "%s version %s", s.Dir, v)
						require.Empty(t, view.Passed)
						if view.Len() > 0 { // without rows there is nothing to tell it from
							require.Equal(t, c["row_checksum"] == "true", view.RowChecksum)
						}
						loaded++
					}
				}
			})
		}
		t.Logf("%s: %d versions equal what Spark reads, %d need RocksDB, %d cannot be loaded by Spark either", root, loaded, refused, failed)
		require.Positive(t, loaded)
		if root == goldenDir {
			require.Equal(t, 3, refused, "a version that could be loaded is refused now")
		}
	}
}
