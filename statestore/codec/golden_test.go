package codec_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// goldenCase is a line of MANIFEST.tsv.
type goldenCase struct {
	dir, provider, codec, changelog string
	rowChecksum                     bool
}

// goldenRow is a line of a case's index.tsv.
type goldenRow struct {
	dir, version, id, sha, dump string
	fails                       bool
}

func readTSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
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

// goldenRoots are the vectors that come with the package, and the complete set where HDFSCKPT_GOLDEN names it.
func goldenRoots() []string {
	roots := []string{filepath.Join("testdata", "spark")}
	if all := os.Getenv("HDFSCKPT_GOLDEN"); all != "" {
		roots = append(roots, filepath.Join(all, "spark"))
	}
	return roots
}

func goldenCases(t *testing.T, root string) []goldenCase {
	t.Helper()
	var cases []goldenCase
	for _, row := range readTSV(t, filepath.Join(root, "MANIFEST.tsv")) {
		cases = append(cases, goldenCase{
			dir: filepath.Join(root, row["set"], row["name"]), provider: row["provider"], codec: row["codec"],
			changelog: row["changelog"], rowChecksum: row["row_checksum"] == "true",
		})
	}
	require.NotEmpty(t, cases)
	return cases
}

func (c goldenCase) rows(t *testing.T) []goldenRow {
	t.Helper()
	name := filepath.Join(c.dir, "expected", "index.tsv")
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var rows []goldenRow
	for _, row := range readTSV(t, name) {
		dir := filepath.Join(c.dir, "checkpoint", "state", row["operator"], row["partition"])
		if row["store"] != "default" {
			dir = filepath.Join(dir, row["store"])
		}
		rows = append(rows, goldenRow{
			dir: dir, version: row["version"], id: row["checkpoint_id"], sha: row["sha256"],
			dump: row["dump"], fails: row["keys"] == "ERROR",
		})
	}
	return rows
}

// apply reads one file into m and checks what it says of itself.
func (c goldenCase) apply(t *testing.T, m map[string][]byte, name string, kind codec.Kind) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	on, known, err := codec.DetectRowChecksum(bytes.NewReader(b), int64(len(b)), kind, codec.ReaderOptions{})
	require.NoError(t, err)
	require.True(t, !known || on == c.rowChecksum, "row checksums of %s are detected as %v", name, on)
	for _, parallelism := range []int{1, 3} {
		opts := codec.ReaderOptions{Name: name, RowChecksum: c.rowChecksum, Parallelism: parallelism}
		r, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), kind, opts)
		require.NoError(t, err)
		require.Equal(t, c.codec, r.Compression().String())
		require.Nil(t, r.Footer())
		for rec, err := range r.All() {
			require.NoError(t, err)
			if rec.Removed {
				delete(m, string(rec.Key))
			} else {
				m[string(rec.Key)] = bytes.Clone(rec.Value)
			}
		}
		require.NoError(t, r.Close())
	}
}

func (c goldenCase) load(t *testing.T, dir string, version int) (map[string][]byte, bool) {
	t.Helper()
	base := 0
	m := map[string][]byte{}
	for v := version; v > 0 && base == 0; v-- {
		name := filepath.Join(dir, fmt.Sprintf("%d.snapshot", v))
		if _, err := os.Stat(name); err == nil {
			base = v
			c.apply(t, m, name, codec.Snapshot)
		}
	}
	for v := base + 1; v <= version; v++ {
		name := filepath.Join(dir, fmt.Sprintf("%d.delta", v))
		if _, err := os.Stat(name); err != nil {
			return nil, false
		}
		c.apply(t, m, name, codec.Delta)
	}
	return m, true
}

func dumpOf(m map[string][]byte) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%x %x\n", k, m[k])
	}
	return b.String()
}

// requireDump compares with the dump line by line, or with its hash where it is not there.
func (c goldenCase) requireDump(t *testing.T, row goldenRow, m map[string][]byte) {
	t.Helper()
	got := dumpOf(m)
	if row.dump != "-" {
		f, err := os.Open(filepath.Join(c.dir, "expected", row.dump))
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		want, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"), "%s version %s", row.dir, row.version)
	}
	sum := sha256.Sum256([]byte(got))
	require.Equal(t, row.sha, hex.EncodeToString(sum[:]), "%s version %s", row.dir, row.version)
}

func TestReaderReadsWhatSparkWroteInTheHDFSBackedProvider(t *testing.T) {
	for _, root := range goldenRoots() {
		versions := 0
		for _, c := range goldenCases(t, root) {
			if c.provider != "hdfs" {
				continue
			}
			t.Run(filepath.Base(c.dir), func(t *testing.T) {
				for _, row := range c.rows(t) {
					version, err := strconv.Atoi(row.version)
					require.NoError(t, err)
					m, complete := c.load(t, row.dir, version)
					require.Equal(t, !row.fails, complete)
					if complete {
						c.requireDump(t, row, m)
						versions++
					}
				}
			})
		}
		require.Positive(t, versions)
		t.Logf("%s: %d versions equal what Spark reads", root, versions)
	}
}

// changelogs is the chain of files that makes a version, from the empty store on; nil if a zip is needed.
func changelogs(t *testing.T, row goldenRow) []string {
	t.Helper()
	version, err := strconv.Atoi(row.version)
	require.NoError(t, err)
	if row.id == "-" {
		var names []string
		for v := 1; v <= version; v++ {
			names = append(names, filepath.Join(row.dir, fmt.Sprintf("%d.changelog", v)))
		}
		return existing(names)
	}
	last := filepath.Join(row.dir, row.version+"_"+row.id+".changelog")
	b, err := os.ReadFile(last)
	if err != nil {
		return nil
	}
	r, err := codec.NewChangelogReader(bytes.NewReader(b), int64(len(b)), codec.ReaderOptions{})
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	var names []string
	for i, e := range r.Lineage() {
		if i == 0 && e.Version != 1 {
			return nil
		}
		names = append(names, filepath.Join(row.dir, fmt.Sprintf("%d_%s.changelog", e.Version, e.CheckpointUniqueID)))
	}
	if len(names) == 0 && version != 1 {
		return nil
	}
	return existing(append(names, last))
}

func existing(names []string) []string {
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			return nil
		}
	}
	return names
}

func (c goldenCase) replay(t *testing.T, m map[string][]byte, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	opts := codec.ReaderOptions{Name: name, RowChecksum: c.rowChecksum}
	r, err := codec.NewChangelogReader(bytes.NewReader(b), int64(len(b)), opts)
	require.NoError(t, err)
	require.Equal(t, c.codec, r.Compression().String())
	if strings.Contains(c.dir, "generated") { // checkpoints of queries that were restarted may mix versions
		require.Equal(t, c.changelog, fmt.Sprintf("v%d", r.Version()))
	}
	for change, err := range r.All() {
		require.NoError(t, err)
		key := string(change.Key)
		switch change.Op {
		case codec.ChangePut:
			m[key] = bytes.Clone(change.Stored)
		case codec.ChangeMerge:
			m[key] = append(m[key], change.Stored...)
		case codec.ChangeDelete:
			delete(m, key)
		case codec.ChangeDeleteRange:
			maps.DeleteFunc(m, func(k string, _ []byte) bool { return k >= key && k < string(change.End) })
		}
	}
	require.NoError(t, r.Close())
}

func TestChangelogReaderReplaysWhatSparkWroteInRocksDB(t *testing.T) {
	for _, root := range goldenRoots() {
		versions, others := 0, 0
		for _, c := range goldenCases(t, root) {
			if c.provider != "rocksdb" || c.changelog == "-" {
				continue
			}
			t.Run(filepath.Base(c.dir), func(t *testing.T) {
				for _, row := range c.rows(t) {
					names := changelogs(t, row)
					if names == nil || row.fails {
						others++
						continue
					}
					m := map[string][]byte{}
					for _, name := range names {
						c.replay(t, m, name)
					}
					c.requireDump(t, row, m)
					versions++
				}
			})
		}
		require.Positive(t, versions)
		t.Logf("%s: %d versions equal what Spark reads; %d need a zip", root, versions, others)
	}
}
