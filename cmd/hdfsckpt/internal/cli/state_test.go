package cli

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// vectors are checkpoints of Spark and what Spark reads in them; the README beside them says more.
const vectors = "../../../../statestore/sparkckpt/testdata/spark.tar.gz"

// unpackSpark unpacks what begins with prefix.
func unpackSpark(t *testing.T, prefix, dir string) {
	t.Helper()
	f, err := os.Open(vectors)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		rest, found := strings.CutPrefix(path.Clean(h.Name), prefix)
		if !found {
			continue
		}
		name := filepath.Join(dir, rest)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
}

// spark copies the checkpoint of a case to the root, under the given name.
func (r *rig) spark(set, name, as string) string {
	r.t.Helper()
	unpackSpark(r.t, path.Join(set, name, "checkpoint"), r.path(as))
	r.age()
	return r.path(as)
}

func tsv(t *testing.T, name string) []map[string]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
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

func TestStateDumpPrintsWhatSparkReads(t *testing.T) {
	r := newRig(t)
	roots := []string{r.path("vectors")}
	unpackSpark(t, "", roots[0])
	if all := os.Getenv("HDFSCKPT_GOLDEN"); all != "" {
		roots = append(roots, filepath.Join(all, "spark"))
	}
	for i, root := range roots {
		equal, refused := 0, 0
		for _, c := range tsv(t, filepath.Join(root, "MANIFEST.tsv")) {
			dir := filepath.Join(root, c["set"], c["name"])
			for _, row := range tsv(t, filepath.Join(dir, "expected", "index.tsv")) {
				args := []string{
					"state", "dump", "--raw", filepath.Join(dir, "checkpoint"), "--operator", row["operator"], "--partition", row["partition"],
					"--store", row["store"], "--version", row["version"],
				}
				if row["checkpoint_id"] != "-" {
					args = append(args, "--checkpoint-id", row["checkpoint_id"])
				}
				got := r.run(args...)
				switch {
				case row["keys"] == "ERROR":
					require.NotZero(t, got.code, "%v", args)
				case c["provider"] == "rocksdb" && got.code != 0:
					require.Equal(t, 3, got.code)
					require.Empty(t, got.stdout)
					require.Contains(t, got.stderr, "RocksDB tables, which are not read here")
					refused++
				default:
					require.Equal(t, 0, got.code, "%v: %s", args, got.stderr)
					sum := sha256.Sum256([]byte(got.stdout))
					require.Equal(t, row["sha256"], hex.EncodeToString(sum[:]), "%v", args)
					require.Empty(t, got.stderr, "%v", args)
					equal++
				}
			}
		}
		t.Logf("%d versions equal what Spark reads, %d need RocksDB", equal, refused)
		require.Positive(t, equal)
		if i == 0 {
			require.Equal(t, 3, refused)
		}
	}
}

const joinStore = "right-keyToNumValues"

func TestStateLooksIntoACheckpoint(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	r.spark("generated", "query-join-outer-rocksdb-lz4-ck2", "rocks")
	seen := r.snapshot()
	fsys := r.inject(nil)
	r.golden("state-ls.txt", "state", "ls", dir)
	r.golden("state-ls.json", "state", "ls", "--json", dir)
	r.golden("state-info.txt", "state", "info", "--partition", "1", "--store", joinStore, dir)
	r.golden("state-info.json", "state", "info", "--json", "--partition", "1", "--store", joinStore, dir)
	r.golden("state-dump.txt", "state", "dump", "--partition", "1", "--store", joinStore, "--version", "4", dir)
	r.golden("state-dump-raw.txt", "state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "4", dir)
	r.golden("state-dump.json", "state", "dump", "--json", "--partition", "1", "--store", joinStore, "--version", "4", dir)
	key := "000000000000000002000000100000006b31000000000000"
	r.golden("state-get.txt", "state", "get", "--partition", "1", "--store", joinStore, "--key", key, dir)
	r.golden("state-get-text.txt", "state", "get", "--format", "text", "--partition", "1", "--store", joinStore, "--key", key, dir)
	r.golden("state-get-none.txt", "state", "get", "--partition", "1", "--store", joinStore, "--version", "4", "--key", "00", dir)
	r.golden("state-diff.txt", "state", "diff", "--partition", "1", "--store", joinStore, "--from", "3", "--to", "7", dir)
	r.golden("state-diff.json", "state", "diff", "--json", "--partition", "1", "--store", joinStore, "--from", "3", "--to", "7", dir)
	r.golden("state-history.txt", "state", "history", "--partition", "1", "--store", joinStore, dir)
	r.golden("state-history.json", "state", "history", "--json", "--partition", "1", "--store", joinStore, "--key", key, dir)
	r.golden("state-history-key.txt", "state", "history", "--partition", "1", "--store", joinStore, "--key", key, dir)
	r.golden("state-verify.txt", "state", "verify", "--partition", "1", dir)
	r.golden("state-verify.json", "state", "verify", "--json", "--partition", "1", dir)
	r.golden("state-compact-dry-run.txt", "state", "compact", "--retain", "2", "--partition", "1", "--store", joinStore, dir)
	r.golden("state-info-ck2.txt", "state", "info", "--partition", "1", "--store", joinStore, r.path("rocks"))
	require.Equal(t, 0, r.run("state", "repair", dir).code)
	require.Equal(t, 1, r.run("state", "rollback", "--version", "3", dir).code)
	onlyReads(r, fsys)
	require.Equal(t, seen, r.snapshot())
}

func TestStateOfCheckpointFormat2TakesTheIDOfTheCommitLog(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-join-outer-rocksdb-lz4-ck2", "rocks")
	var info report.StateInfo
	r.json(&info, "state", "info", "--partition", "1", "--store", joinStore, dir)
	id := ""
	for _, v := range info.List {
		if v.Version == 3 {
			id = v.ID
		}
	}
	named := r.run("state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "3", "--checkpoint-id", id, dir)
	plain := r.run("state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "3", dir)
	require.Equal(t, 0, named.code)
	require.NotEmpty(t, named.stdout)
	require.Equal(t, named, plain)
	require.Equal(t, 1, r.run("state", "dump", "--raw", "--version", "3", "--store", joinStore, "--checkpoint-id", "nobody", dir).code)

	fork := r.spark("generated", "rocksdb-lz4-changelog-v4-fork", "fork")
	r.golden("state-dump-ambiguous.txt", "state", "dump", "--raw", "--version", "3", fork)
	require.Equal(t, 0, r.run("state", "diff", "--from", "3_70e0b738-c14f-4eb3-9c39-50deac0c7124", "--to", "3_94f0bf5d-f61f-43aa-91c4-19c92896e686", fork).code)
}

func TestStateSaysWhatCannotBeRead(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-agg-types-hdfs-zstd", "query")
	r.golden("state-dump-rocksdb.txt", "state", "dump", "--raw", "--version", "2", r.spark("generated", "rocksdb-lz4-no-changelog", "rocks"))
	r.golden("state-dump-missing.txt", "state", "dump", "--raw", "--version", "99", dir)
	r.golden("state-dump-no-store.txt", "state", "dump", "--raw", "--partition", "9", dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "state", "0", "1", "3.delta")))
	require.NoError(t, os.MkdirAll(r.path("nothing"), 0o755))
	for _, snapshot := range []string{"2.snapshot", "3.snapshot", "4.snapshot"} {
		_ = os.Remove(filepath.Join(dir, "state", "0", "1", snapshot))
	}
	r.golden("state-dump-gap.txt", "state", "dump", "--raw", "--partition", "1", "--version", "4", dir)
	r.golden("state-verify-gap.txt", "state", "verify", "--partition", "1", dir)
	r.golden("state-no-checkpoint.txt", "state", "ls", r.path("nothing"))
	require.Equal(t, 3, r.run("state", "ls", r.path("nowhere")).code)
	got := r.run("state", "ls", dir)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, "incomplete")
}

func TestStateDumpPassesOverADamagedSnapshotAndSaysSo(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	args := []string{"state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "3", dir}
	healthy := r.run(args...)
	damage(t, filepath.Join(dir, "state", "0", "1", joinStore, "3.snapshot"), 60)
	got := r.run(args...)
	require.Equal(t, 0, got.code)
	require.Equal(t, healthy.stdout, got.stdout)
	require.Contains(t, got.stderr, "passed over a damaged snapshot")
}

func TestStateWarnsOfAVersionThatTheQueryWillWriteAgain(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	require.NoError(t, os.Remove(filepath.Join(dir, "commits", "6")))
	got := r.run("state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "7", dir)
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stderr, "version 7 is above 6")
	got = r.run("state", "compact", "--partition", "1", "--store", joinStore, "--version", "7", dir)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "a snapshot of it would be wrong then")
}

func TestStateCompactTakesNoVersionForCommittedThatNoLogSaysIs(t *testing.T) {
	r := newRig(t)
	dir := r.spark("golden-public", "spark-2.1.0", "old") // offsets 0 and 1, no commit log, versions 1 and 2
	got := r.run("state", "compact", "--partition", "3", dir)
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stdout, "/3/1.snapshot")
	require.NotContains(t, got.stdout, "/3/2.snapshot")
	got = r.run("state", "compact", "--partition", "3", "--version", "2", dir)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "version 2 is above 1, the newest that is known to be committed")
	require.Equal(t, 1, r.run("state", "rollback", "--version", "0", dir).code)
	require.Equal(t, 0, r.run("state", "rollback", "--version", "1", dir).code)
}

func TestWrongCommandLinesOfStateExitWith2(t *testing.T) {
	r := newRig(t)
	for line, want := range map[string]string{
		"state":                                     "state needs a verb",
		"state lss /a":                              `state has no verb "lss"`,
		"state ls":                                  "ls needs a DIR",
		"state ls /a /b":                            "ls takes one DIR, not 2",
		"state dump --raw --operator -1 /a":         "--operator is -1",
		"state dump --raw --partition -2 /a":        "--partition is -2",
		"state dump --raw --version -1 /a":          "--version is -1",
		"state dump --raw --store ../x /a":          `--store is "../x"`,
		"state dump --raw --store= /a":              "--store is empty",
		"state dump --raw --checkpoint-id x /a":     "--checkpoint-id needs --version",
		"state dump --raw --version x /a":           "invalid argument",
		"state get /a":                              "get needs a --key",
		"state get --key xyz /a":                    `the key "xyz" is not in hexadecimal digits`,
		"state get --key 00 --key-format base64 /a": `--key-format is "base64"`,
		"state get --key 00 --format base64 /a":     `--format is "base64"`,
		"state diff --from 1 /a":                    `--to is ""`,
		"state diff --from 1x --to 2 /a":            `--from is "1x"`,
		"state diff --from 1_ --to 2 /a":            `--from is "1_"`,
		"state verify --parallel 0 /a":              "--parallel is 0",
		"state compact --retain 0 /a":               "--retain is 0",
		"state compact --version 0 /a":              "--version is 0",
		"state rollback /a":                         "rollback needs a --version",
		"state rollback --version -3 /a":            "--version is -3",
		"state history --key zz /a":                 `the key "zz"`,
		"state repair --partition -1 /a":            "--partition is -1",
	} {
		got := r.run(strings.Fields(line)...)
		require.Equal(t, 2, got.code, line)
		require.Contains(t, got.stderr, want, line)
		require.Empty(t, got.stdout, line)
	}
}

func TestEveryVerbOfStateHasHelpWithExamples(t *testing.T) {
	r := newRig(t)
	got := r.golden("help-state.txt", "state", "--help")
	require.Contains(t, got.stdout, "Examples:")
	for _, verb := range []string{"ls", "info", "dump", "get", "diff", "history", "verify", "compact", "repair", "rollback"} {
		got := r.golden("help-state-"+verb+".txt", "state", verb, "--help")
		require.Equal(t, 0, got.code)
		require.Contains(t, got.stdout, "Examples:")
	}
}

func TestAFailureOfTheStorageIsNoFinding(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	r.inject(denies(faultfs.OpOpen, joinStore+"/4.delta"))
	var v report.StateVerification
	d := r.json(&v, "state", "verify", "--partition", "1", "--store", joinStore, dir)
	require.Equal(t, 3, d.ExitCode)
	require.Equal(t, report.Unknown, v.Stores[0].Verdict)
	require.Contains(t, string(d.Result), `"unreadable"`)
	require.Equal(t, 3, r.run("state", "dump", "--raw", "--partition", "1", "--store", joinStore, "--version", "4", dir).code)
}
