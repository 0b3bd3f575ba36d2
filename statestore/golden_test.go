package statestore_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// sparkVectors are the checkpoints that came with package codec, and the complete set where HDFSCKPT_GOLDEN names it.
func sparkVectors() []string {
	roots := []string{filepath.Join("codec", "testdata", "spark")}
	if all := os.Getenv("HDFSCKPT_GOLDEN"); all != "" {
		roots = append(roots, filepath.Join(all, "spark"))
	}
	return roots
}

func table(t *testing.T, name string) []map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if os.IsNotExist(err) {
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

// copyCheckpoint copies a checkpoint's state into memory.
func copyCheckpoint(t *testing.T, from string) *memfs.FS {
	t.Helper()
	fsys := newMem()
	require.NoError(t, filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		write(t, fsys, path.Join("/state", filepath.ToSlash(below)), b)
		return err
	}))
	return fsys
}

func dumpSum(t *testing.T, s *statestore.Store, v int64) (string, error) {
	t.Helper()
	view, err := s.Load(t.Context(), v)
	if err != nil {
		return "", err
	}
	defer func() { require.NoError(t, view.Close()) }()
	sum := sha256.New()
	for e, err := range view.All() {
		require.NoError(t, err)
		fmt.Fprintf(sum, "%x %x\n", e.Key, e.Value)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// What Spark wrote is read as Spark reads it; after we have gone on in its directory, its versions are still the same.
func TestStoresThatSparkWrote(t *testing.T) {
	for _, root := range sparkVectors() {
		for _, c := range table(t, filepath.Join(root, "MANIFEST.tsv")) {
			dir := filepath.Join(root, c["set"], c["name"])
			rows := table(t, filepath.Join(dir, "expected", "index.tsv"))
			if c["provider"] != "hdfs" || len(rows) == 0 {
				continue
			}
			t.Run(c["set"]+"/"+c["name"], func(t *testing.T) {
				compression, err := codec.ParseCompression(c["codec"])
				require.NoError(t, err)
				opts := statestore.Options{Compression: compression, RowChecksum: c["row_checksum"] == "true"}
				fsys := copyCheckpoint(t, filepath.Join(dir, "checkpoint", "state"))
				requireVectors(t, fsys, opts, rows)
				requireRowChecksumsAsTheyAre(t, fsys, opts, rows)
				goOn(t, fsys, opts, rows)
				requireVectors(t, fsys, opts, rows)
			})
		}
	}
}

func storeOf(t *testing.T, fsys core.FileSystem, opts statestore.Options, row map[string]string) *statestore.Store {
	t.Helper()
	p, err := statestore.NewProvider(fsys, "/state", opts)
	require.NoError(t, err)
	number := func(column string) int64 {
		n, err := strconv.ParseInt(row[column], 10, 64)
		require.NoError(t, err)
		return n
	}
	s, err := p.Open(t.Context(), statestore.StoreID{Operator: number("operator"), Partition: number("partition"), Name: row["store"]})
	require.NoError(t, err)
	return s
}

func requireVectors(t *testing.T, fsys core.FileSystem, opts statestore.Options, rows []map[string]string) {
	t.Helper()
	for _, row := range rows {
		v, err := strconv.ParseInt(row["version"], 10, 64)
		require.NoError(t, err)
		got, err := dumpSum(t, storeOf(t, fsys, opts, row), v)
		if row["keys"] == "ERROR" {
			require.Error(t, err, "%v", row)
			continue
		}
		require.NoError(t, err, "%v", row)
		require.Equal(t, row["sha256"], got, "%v", row)
	}
}

// requireRowChecksumsAsTheyAre: with the wrong setting nothing is read, rather than rows that are not there.
func requireRowChecksumsAsTheyAre(t *testing.T, fsys core.FileSystem, opts statestore.Options, rows []map[string]string) {
	t.Helper()
	opts.RowChecksum = !opts.RowChecksum
	for _, row := range rows {
		if row["keys"] == "ERROR" || row["keys"] == "0" {
			continue
		}
		v, err := strconv.ParseInt(row["version"], 10, 64)
		require.NoError(t, err)
		_, err = dumpSum(t, storeOf(t, fsys, opts, row), v)
		require.ErrorIs(t, err, fs.ErrInvalid, "%v", row)
	}
}

// goOn commits to every store, repeats its last version, and maintains it.
func goOn(t *testing.T, fsys core.FileSystem, opts statestore.Options, rows []map[string]string) {
	t.Helper()
	done := map[string]bool{}
	for _, row := range rows {
		s := storeOf(t, fsys, opts, row)
		latest, err := s.Latest(t.Context())
		if err != nil || done[s.Dir()] {
			continue
		}
		done[s.Dir()] = true
		if _, err := s.Load(t.Context(), latest-1); err == nil {
			require.NoError(t, tryCommit(t, s, latest-1, load(t, s, latest)))
			require.EqualValues(t, 1, s.Stats().Recommits)
		}
		want := load(t, s, latest).with("added row", "12345678")
		commit(t, s, latest, want)
		require.NoError(t, s.Snapshot(t.Context(), latest+1))
		require.Equal(t, want, load(t, storeOf(t, fsys, opts, row), latest+1))
		require.NoError(t, s.Rollback(t.Context(), latest))
	}
}
