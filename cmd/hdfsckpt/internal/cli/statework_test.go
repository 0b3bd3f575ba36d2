package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// stateRig has a checkpoint of Spark, and works on one store of it.
type stateRig struct {
	*rig
	dir, store string
	choose     []string
}

func newStateRig(t *testing.T) *stateRig {
	r := newRig(t)
	dir := r.spark("generated", "query-join-inner-hdfs-lz4", "query")
	return &stateRig{r, dir, filepath.Join(dir, "state", "0", "1", joinStore), []string{"--partition", "1", "--store", joinStore}}
}

// state runs a verb on the store.
func (r *stateRig) state(verb string, args ...string) result {
	return r.run(slices.Concat([]string{"state", verb}, r.choose, args, []string{r.dir})...)
}

func (r *stateRig) goldenState(name, verb string, args ...string) result {
	r.t.Helper()
	return r.golden(name, slices.Concat([]string{"state", verb}, r.choose, args, []string{r.dir})...)
}

func (r *stateRig) dump(version string) string {
	r.t.Helper()
	got := r.state("dump", "--raw", "--version", version)
	require.Equal(r.t, 0, got.code, got.stderr)
	return got.stdout
}

// names lists the store's directory without temporaries.
func (r *stateRig) names() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.store)
	require.NoError(r.t, err)
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestStateCompactWritesASnapshotAndKeepsEveryRetainedVersion(t *testing.T) {
	r := newStateRig(t)
	want := []string{r.dump("6"), r.dump("7")}
	r.goldenState("state-compact.txt", "compact", "--retain", "2", "--yes")
	require.Equal(t, []string{"6.delta", "6.snapshot", "7.delta", "7.snapshot", "_epoch-1"}, r.names())
	require.Equal(t, want, []string{r.dump("6"), r.dump("7")})
	require.NoError(t, os.Remove(filepath.Join(r.store, "7.delta")))
	require.Equal(t, want[1], r.dump("7"), "the snapshot alone makes the version")
	require.Equal(t, 0, r.state("verify").code)

	r.age()
	got := r.state("compact", "--retain", "2", "--yes")
	require.Equal(t, 0, got.code)
	require.Equal(t, "nothing to do in 1 store\n", got.stdout)
}

func TestStateCompactWritesAsTheOffsetLogPins(t *testing.T) {
	r := newRig(t)
	for name, want := range map[string]string{"query-agg-types-hdfs-snappy-sum": "snappy", "query-fmgws-hdfs-zstd-sum": "zstd", "query-agg-window-hdfs-lzf": "lzf"} {
		dir := r.spark("generated", name, name)
		before := r.run("state", "dump", "--raw", dir)
		require.Equal(t, 0, before.code)
		var info report.StateInfo
		r.json(&info, "state", "info", dir)
		got := r.run("state", "compact", "--yes", "--partition", "0", dir)
		require.Equal(t, 0, got.code, got.stderr)
		last := info.List[len(info.List)-1]
		require.Contains(t, got.stdout, ".snapshot")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "state", "0", "0", strconv.FormatInt(last.Version, 10)+".delta")))
		require.Equal(t, before.stdout, r.run("state", "dump", "--raw", dir).stdout)
		var after report.StateInfo
		r.json(&after, "state", "info", dir)
		require.Equal(t, want, *after.Compression)
		require.Equal(t, *info.RowChecksum, *after.RowChecksum)
		require.True(t, after.List[len(after.List)-1].Footer)
	}
}

func TestWritingVerbsRefuseACheckpointThatHasChangedLately(t *testing.T) {
	for _, changed := range []string{"commits/6", "offsets/6", "state/0/1/" + joinStore + "/7.delta"} {
		r := newStateRig(t)
		lately := now.Add(-9 * time.Minute)
		require.NoError(t, os.Chtimes(filepath.Join(r.dir, changed), lately, lately))
		names := r.names()
		got := r.state("compact", "--yes")
		require.Equal(t, 1, got.code, changed)
		require.Contains(t, got.stderr, changed+" has changed at 2026-12-01T13:56:00Z, less than 10m0s ago: a query may be running")
		require.Equal(t, names, r.names())
		if changed == "commits/6" {
			r.goldenState("state-busy.txt", "compact", "--yes")
		}
		require.Equal(t, 0, r.state("compact", "--yes", "--offline").code)
		require.NotEqual(t, names, r.names())
	}
}

func TestWritingVerbsEndIfAQueryWorksMeanwhile(t *testing.T) {
	for what, c := range map[string]struct {
		op    faultfs.Op
		at    string
		write string
	}{
		"between plan and work":      {faultfs.OpStat, "/commits", "state/0/1/" + joinStore + "/8.delta"},
		"before the snapshot is out": {faultfs.OpCreate, "/owner", "state/0/1/" + joinStore + "/8.delta"},
		"a batch has begun":          {faultfs.OpCreate, "/owner", "offsets/7"},
		"a delta was replaced":       {faultfs.OpCreate, "/owner", "state/0/1/" + joinStore + "/7.delta"},
		"before the clean-up":        {faultfs.OpRename, "/1.delta", "commits/7"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newStateRig(t)
			want := r.dump("6")
			r.inject(before(c.op, c.at, func() {
				content := must(os.ReadFile(filepath.Join(r.store, "6.delta")))
				require.NoError(t, os.WriteFile(filepath.Join(r.dir, c.write), content, 0o644))
			}))
			got := r.state("compact", "--retain", "2", "--yes")
			require.Equal(t, 1, got.code)
			require.Contains(t, got.stderr, "has changed since the work began: a query uses the checkpoint")
			status := report.WorkFailed
			if what == "between plan and work" {
				status = report.WorkRefused
			}
			require.Contains(t, got.stdout, ": "+string(status)+"\n")
			require.Contains(t, got.stderr, c.write)
			require.Equal(t, what == "before the clean-up", slices.Contains(r.names(), "7.snapshot"))
			require.Contains(t, r.names(), "2.delta")
			require.Equal(t, want, r.dump("6"))
		})
	}
}

func TestWhatIsWrittenHasModeAndOwnerOfWhatIsThere(t *testing.T) {
	r := newStateRig(t)
	require.NoError(t, filepath.WalkDir(r.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o640)
		if d.IsDir() {
			mode = 0o750
		}
		if err := os.Chmod(name, mode); err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Lchown(name, 12345, 54321)
	}))
	r.age()
	got := r.state("compact", "--yes")
	require.Equal(t, 0, got.code, got.stderr)
	require.NoError(t, filepath.WalkDir(r.store, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		require.NoError(t, err)
		mode := os.FileMode(0o640)
		if d.IsDir() {
			mode = 0o750
		}
		require.Equal(t, mode, info.Mode().Perm(), name)
		if os.Geteuid() == 0 {
			stat, ok := info.Sys().(*syscall.Stat_t)
			require.True(t, ok)
			require.Equal(t, []uint32{12345, 54321}, []uint32{stat.Uid, stat.Gid}, name)
		}
		return nil
	}))
}

func TestStateRepairWritesADamagedSnapshotAgainAndKeepsTheBadOne(t *testing.T) {
	r := newStateRig(t)
	want := r.dump("6")
	bad := filepath.Join(r.store, "6.snapshot")
	damage(t, bad, 60)
	damaged := must(os.ReadFile(bad))
	r.age()
	r.goldenState("state-verify-damaged.txt", "verify")
	r.goldenState("state-repair-dry-run.txt", "repair")
	require.Equal(t, damaged, must(os.ReadFile(bad)))
	r.goldenState("state-repair.txt", "repair", "--yes")
	require.Equal(t, 0, r.state("verify").code)
	kept, err := os.ReadDir(filepath.Join(r.store, "_quarantine"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, damaged, must(os.ReadFile(filepath.Join(r.store, "_quarantine", kept[0].Name()))))
	for _, name := range []string{"5.delta", "6.delta"} {
		require.NoError(t, os.Remove(filepath.Join(r.store, name)))
	}
	require.Equal(t, want, r.dump("6"), "from the new snapshot")
}

func TestStateRepairNamesWhatCannotBeRebuilt(t *testing.T) {
	r := newStateRig(t)
	damage(t, filepath.Join(r.store, "2.delta"), 60)
	damage(t, filepath.Join(r.store, "6.snapshot"), 60)
	bad := must(os.ReadFile(filepath.Join(r.store, "2.delta")))
	r.age()
	r.goldenState("state-repair-lost.txt", "repair", "--yes")
	require.Equal(t, bad, must(os.ReadFile(filepath.Join(r.store, "2.delta"))))
	require.Contains(t, r.names(), "_quarantine", "what can be repaired is")

	require.NoError(t, os.Remove(filepath.Join(r.store, "1.delta")))
	damage(t, filepath.Join(r.store, "3.snapshot"), 60)
	r.age()
	got := r.state("repair", "--yes")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "3.snapshot cannot be repaired")
}

func TestStateRollbackDropsWhatWasGivenUp(t *testing.T) {
	r := newStateRig(t)
	r.goldenState("state-rollback-refused.txt", "rollback", "--version", "6")
	for _, log := range []string{"commits/6", "offsets/6"} {
		require.NoError(t, os.Remove(filepath.Join(r.dir, log)))
	}
	r.age()
	want := r.dump("6")
	r.goldenState("state-rollback-dry-run.txt", "rollback", "--version", "6")
	require.Contains(t, r.names(), "7.delta")
	r.goldenState("state-rollback.txt", "rollback", "--version", "6", "--yes")
	require.NotContains(t, r.names(), "7.delta")
	require.Equal(t, want, r.dump("6"))
	require.Equal(t, 1, r.state("dump", "--raw", "--version", "7").code)
}

func TestStateRollbackIsDoneInAllStoresOrInNone(t *testing.T) {
	r := newStateRig(t)
	r.choose = nil
	require.NoError(t, os.Remove(filepath.Join(r.store, "4.delta")))
	require.NoError(t, os.Remove(filepath.Join(r.store, "6.snapshot")))
	r.age()
	seen := r.snapshot()
	var work report.StateWork
	d := r.json(&work, "state", "rollback", "--version", "5", "--below-commit", "--yes", r.dir)
	require.Equal(t, 1, d.ExitCode)
	require.Len(t, d.Errors, 1)
	require.Contains(t, d.Errors[0].Message, "4.delta is missing")
	statuses := map[report.WorkStatus]int{}
	for _, s := range work.Stores {
		statuses[s.Status]++
	}
	require.Equal(t, map[report.WorkStatus]int{report.WorkRefused: 1, report.WorkPending: 7}, statuses)
	require.Equal(t, seen, r.snapshot())

	require.Equal(t, 0, r.run("state", "rollback", "--version", "3", "--below-commit", "--yes", r.dir).code)
	var listing report.StateListing
	r.json(&listing, "state", "ls", r.dir)
	for _, s := range listing.Stores {
		require.Equal(t, int64(3), *s.Highest)
	}
}

func TestStoresOfRocksDBAreNotWritten(t *testing.T) {
	r := newRig(t)
	dir := r.spark("generated", "query-dedup-rocksdb-lz4", "rocks")
	seen := r.snapshot()
	for _, args := range [][]string{{"compact"}, {"repair"}, {"rollback", "--version", "1", "--below-commit"}} {
		got := r.run(slices.Concat([]string{"state"}, args, []string{"--yes", dir})...)
		require.Equal(t, 3, got.code, args)
		require.Contains(t, got.stderr, "is a RocksDB store, which is not written here")
	}
	require.Equal(t, seen, r.snapshot())
}

func TestWritingVerbsDoNotGuessWhatDamagedLogsSay(t *testing.T) {
	r := newStateRig(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "offsets", "6"), nil, 0o644))
	r.age()
	seen := r.snapshot()
	got := r.state("compact", "--yes")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "offsets/6")
	require.Equal(t, seen, r.snapshot())
}

func TestOfTwoCommandsThatWriteAtTheSameTimeNoneDoesHarm(t *testing.T) {
	for range 5 {
		r := newStateRig(t)
		want := []string{r.dump("6"), r.dump("7")}
		var both sync.WaitGroup
		results := make([]result, 2)
		for i := range results {
			both.Go(func() { results[i] = r.state("compact", "--retain", "2", "--yes", "--offline") })
		}
		both.Wait()
		for _, got := range results {
			if got.code != 0 {
				require.NotEmpty(t, got.stderr)
			}
		}
		require.Equal(t, want, []string{r.dump("6"), r.dump("7")})
		again := r.state("compact", "--retain", "2", "--yes", "--offline")
		require.Equal(t, 0, again.code, "%s after %+v", again.stderr, results)
		require.Equal(t, want, []string{r.dump("6"), r.dump("7")})
		require.Equal(t, 0, r.state("verify").code)
	}
}
