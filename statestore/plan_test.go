package statestore_test

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// dir makes a listing from names; "1-9" stands for 1.delta to 9.delta, "5s" for 5.snapshot, the rest for itself.
func dir(text string) statestore.Listing { return statestore.Sort(entries(text)) }

func entries(text string) []core.FileInfo {
	var names []string
	for _, word := range strings.Fields(text) {
		var from, to int
		if n, _ := fmt.Sscanf(word, "%d-%d", &from, &to); n == 2 {
			for v := from; v <= to; v++ {
				names = append(names, fmt.Sprintf("%d.delta", v))
			}
		} else if digits, ok := strings.CutSuffix(word, "s"); ok {
			names = append(names, digits+".snapshot")
		} else {
			names = append(names, word)
		}
	}
	return files(names...)
}

func TestPlanReplay(t *testing.T) {
	for _, test := range []struct {
		dir  string
		v    int64
		want string // base+deltas of each plan
		err  error
		text string
	}{
		{dir: "", v: 0, want: "0[]"},
		{dir: "1-5", v: 0, want: "0[]"},
		{dir: "1-5", v: 3, want: "0[1 2 3]"},
		{dir: "1-5", v: -1, err: fs.ErrInvalid},
		{dir: "1-5", v: 6, err: fs.ErrNotExist, text: "the highest is 5"},
		{dir: "1-5", v: math.MaxInt64, err: fs.ErrNotExist},
		{dir: "", v: 1, err: fs.ErrNotExist},
		{dir: "1-12 10s 5s", v: 12, want: "10[11 12] 5[6 7 8 9 10 11 12] 0[1 2 3 4 5 6 7 8 9 10 11 12]"},
		{dir: "1-12 10s 5s", v: 10, want: "10[] 5[6 7 8 9 10] 0[1 2 3 4 5 6 7 8 9 10]"},
		{dir: "1-12 10s 5s", v: 9, want: "5[6 7 8 9] 0[1 2 3 4 5 6 7 8 9]"},
		{dir: "5s", v: 5, want: "5[]"},
		{dir: "5s 6-6", v: 6, want: "5[6]"},
		{dir: "5s 6-6", v: 4, err: fs.ErrNotExist, text: "cleaned up"},
		{dir: "1-2 4-4", v: 2, want: "0[1 2]"},
		{dir: "1-2 4-4", v: 4, err: fs.ErrNotExist, text: "3.delta"},
		{dir: "2s 4-4", v: 4, err: fs.ErrNotExist, text: "3.delta"},
		{dir: "3-4", v: 4, err: fs.ErrNotExist, text: "2.delta"},
		{dir: "1-2 4-6 5s", v: 6, want: "5[6] "},
		{dir: "1-12 10s 16-16", v: 16, err: fs.ErrNotExist, text: "15.delta"},
		{dir: "9-12 99-101 99s", v: 101, want: "99[100 101]"},
	} {
		t.Run(fmt.Sprintf("%s load %d", test.dir, test.v), func(t *testing.T) {
			plans, err := statestore.PlanReplay(dir(test.dir), test.v)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
				require.ErrorContains(t, err, test.text)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, p := range plans {
				require.Equal(t, test.v, p.Version)
				got = append(got, fmt.Sprintf("%d%v", p.Base, p.Deltas))
			}
			require.Equal(t, strings.TrimSpace(test.want), strings.Join(got, " "))
		})
	}
}

func TestAGapNamesTheMissingVersion(t *testing.T) {
	_, err := statestore.PlanReplay(dir("1-2 4-4"), 4)
	var gap *statestore.GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, statestore.GapError{Version: 4, Missing: 3}, *gap)
}

func TestLatestIsAnErrorRatherThanOlder(t *testing.T) {
	v, err := statestore.PlanLatest(dir("1-12 10s"))
	require.NoError(t, err)
	require.Equal(t, int64(12), v)
	v, err = statestore.PlanLatest(dir(""))
	require.NoError(t, err)
	require.Zero(t, v)
	_, err = statestore.PlanLatest(dir("1-12 16-16"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, int64(12), statestore.LatestLoadable(dir("1-12 16-16")))
	require.Zero(t, statestore.LatestLoadable(dir("3-4")))
	require.Equal(t, []int64{1, 2, 5, 6}, statestore.Loadable(dir("1-2 4-6 5s")))
}

func TestPlanCommit(t *testing.T) {
	for _, test := range []struct {
		dir  string
		base int64
		want statestore.CommitPlan
		err  error
		text string
	}{
		{dir: "", base: 0, want: statestore.CommitPlan{Version: 1}},
		{dir: "1-5", base: 5, want: statestore.CommitPlan{Version: 6}},
		{dir: "1-5", base: 4, want: statestore.CommitPlan{Version: 5, Exists: true}},
		{dir: "1-5", base: 3, err: fs.ErrExist, text: "above 4"},
		{dir: "50-60 55s", base: 0, err: fs.ErrExist, text: "the lowest 50 and the highest 60"},
		{dir: "1-5", base: 6, err: fs.ErrNotExist},
		{dir: "1-2 4-4", base: 4, err: fs.ErrNotExist, text: "3.delta"},
		{dir: "1-5", base: -1, err: fs.ErrInvalid},
		{dir: "1-5", base: math.MaxInt64, err: fs.ErrInvalid},
		{dir: "", base: math.MaxInt64 - 1, err: fs.ErrNotExist},
	} {
		t.Run(fmt.Sprintf("%s after %d", test.dir, test.base), func(t *testing.T) {
			plan, err := statestore.PlanCommit(dir(test.dir), test.base)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
				require.ErrorContains(t, err, test.text)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, plan)
		})
	}
	blocked := statestore.Sort(append(entries("1-2"), core.FileInfo{Name: "3.delta", Mode: fs.ModeDir}))
	_, err := statestore.PlanCommit(blocked, 2)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "3.delta")
	require.Equal(t, int64(2), blocked.Highest())
}

func TestPlanSnapshot(t *testing.T) {
	for _, test := range []struct {
		dir    string
		last   int64
		policy statestore.SnapshotPolicy
		deltas int
		due    bool
		err    error
	}{
		{dir: ""},
		{dir: "1-9", deltas: 9},
		{dir: "1-10", deltas: 10},
		{dir: "1-11", deltas: 11, due: true}, // strictly more than ten, as Spark
		{dir: "1-11 11s", deltas: 0},
		{dir: "1-21 11s", deltas: 10},
		{dir: "1-22 11s", deltas: 11, due: true},
		{dir: "1-12 10s", deltas: 2},
		{dir: "11-22 11s 30.delta.tmp abc.delta", deltas: 11, due: true},
		{dir: "1-2", policy: statestore.SnapshotPolicy{MinDeltas: 1}, deltas: 2, due: true},
		{dir: "1-1", policy: statestore.SnapshotPolicy{MinDeltas: 1}, deltas: 1},
		{dir: "1-4 1s", policy: statestore.SnapshotPolicy{ReplayFactor: 1}, deltas: 3, due: true},
		{dir: "1-4 1s", policy: statestore.SnapshotPolicy{ReplayFactor: 3}, deltas: 3},
		{dir: "1-12 16-16", err: fs.ErrNotExist}, // never 16.snapshot
		{dir: "1-12 16-16", last: 12, err: fs.ErrExist},
		{dir: "1-3 50-60 55s", last: 3, err: fs.ErrExist},
		{dir: "1-9", policy: statestore.SnapshotPolicy{MinDeltas: -1}, err: fs.ErrInvalid},
		{dir: "1-9", policy: statestore.SnapshotPolicy{ReplayFactor: -1}, err: fs.ErrInvalid},
		{dir: "1-9", last: -1, err: fs.ErrInvalid},
	} {
		t.Run(fmt.Sprintf("%s %+v last %d", test.dir, test.policy, test.last), func(t *testing.T) {
			l := dir(test.dir)
			plan, err := statestore.PlanSnapshot(l, test.last, test.policy)
			require.ErrorIs(t, err, test.err)
			if test.err == nil {
				require.Equal(t, statestore.SnapshotPlan{Version: l.Highest(), Deltas: test.deltas, Due: test.due}, plan)
			}
		})
	}
}

func words(steps []statestore.Step) string {
	var got []string
	for _, s := range steps {
		name := s.Name
		if s.Op == statestore.StepVerify {
			name = "verify:" + name
		}
		got = append(got, name)
	}
	return strings.Join(got, " ")
}

func TestPlanCleanup(t *testing.T) {
	for _, test := range []struct {
		name, dir string
		last      int64
		policy    statestore.CleanupPolicy
		want      string
		stranded  []int64
		err       error
	}{
		{name: "an empty directory", policy: statestore.CleanupPolicy{Retain: 1}},
		{name: "an old version needs all deltas", dir: "1-20 20s", policy: statestore.CleanupPolicy{Retain: 2}},
		{
			name: "the deltas below the snapshot go, the one beside it stays", dir: "1-20 10s 20s", policy: statestore.CleanupPolicy{Retain: 2},
			want: "verify:10.snapshot 1.delta 2.delta 3.delta 4.delta 5.delta 6.delta 7.delta 8.delta 9.delta",
		},
		{name: "only the newest stays", dir: "19-20 20s", policy: statestore.CleanupPolicy{Retain: 1}, want: "verify:20.snapshot 19.delta"},
		{name: "exactly N versions stay, where Spark keeps N+1", dir: "1-3 2s", policy: statestore.CleanupPolicy{Retain: 2}, want: "verify:2.snapshot 1.delta"},
		{name: "one more retained needs what is below", dir: "1-3 2s", policy: statestore.CleanupPolicy{Retain: 3}},
		{
			name: "companions and older snapshots go with their files, before them", dir: "3-6 3s 5s .3.delta.crc 3.snapshot.crc .9.delta.crc 6.delta.crc",
			policy: statestore.CleanupPolicy{Retain: 1}, want: "verify:5.snapshot 3.snapshot.crc 3.snapshot .3.delta.crc 3.delta 4.delta",
		},
		{
			name: "order is numeric", dir: "8-12 99-99 100-100 99s", policy: statestore.CleanupPolicy{Retain: 2},
			stranded: []int64{8, 9, 10, 11, 12},
		},
		{name: "no more than asked at once", dir: "1-20 20s", policy: statestore.CleanupPolicy{Retain: 1, MaxDeletes: 2}, want: "verify:20.snapshot 1.delta 2.delta"},
		{name: "a former run above is not taken for ours", dir: "1-3 50-60 55s", last: 3, policy: statestore.CleanupPolicy{Retain: 2}, err: fs.ErrExist},
		{
			name: "a former run below is not ours to delete", dir: "1-3 50-60 55s", policy: statestore.CleanupPolicy{Retain: 2},
			want: "verify:55.snapshot 50.delta 51.delta 52.delta 53.delta 54.delta", stranded: []int64{1, 2, 3},
		},
		{name: "a gap at the end stops everything", dir: "1-12 10s 16-16", policy: statestore.CleanupPolicy{Retain: 2}, err: fs.ErrNotExist},
		{name: "a gap in what must stay stops everything", dir: "1-5 7-9 8s", policy: statestore.CleanupPolicy{Retain: 4}, err: fs.ErrNotExist},
		{name: "after a rollback there may be fewer versions than are to stay", dir: "7-9 7s", policy: statestore.CleanupPolicy{Retain: 5}},
		{name: "and a rest below them of a clean-up that was stopped", dir: "5-9 7s", policy: statestore.CleanupPolicy{Retain: 4}},
		{name: "the default keeps 100 of 100", dir: "1-100 1s 2s"},
		{name: "the default keeps 100 of 102", dir: "1-102 2s 3s", want: "verify:3.snapshot 1.delta 2.snapshot 2.delta"},
		{name: "no overflow", dir: "1-5 5s", policy: statestore.CleanupPolicy{Retain: math.MaxInt}},
		{name: "a negative number", dir: "1-5 5s", policy: statestore.CleanupPolicy{Retain: -1}, err: fs.ErrInvalid},
		{name: "a negative bound", dir: "1-5 5s", policy: statestore.CleanupPolicy{MaxDeletes: -1}, err: fs.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := entries(test.dir)
			rand.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			plan, err := statestore.PlanCleanup(statestore.Sort(in), test.last, test.policy)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, words(plan.Steps))
			require.Equal(t, test.stranded, plan.Stranded)
		})
	}
}

func TestCleanupPassesOverADamagedSnapshot(t *testing.T) {
	l := dir("1-20 10s 20s").WithoutSnapshot(10)
	plan, err := statestore.PlanCleanup(l, 0, statestore.CleanupPolicy{Retain: 2})
	require.NoError(t, err)
	require.Empty(t, plan.Steps)
	require.Equal(t, dir("1-5"), dir("1-5").WithoutSnapshot(5))
	require.Equal(t, int64(4), dir("1-4 5s").WithoutSnapshot(5).Highest())
}

func TestOneDirectoryWithManyNames(t *testing.T) {
	in := entries("1-12 10s .3.delta.crc .99.delta.crc 13.delta.tmp .13.delta." + uuid + ".tmp abc.delta README.txt .delta 7 " +
		"99999999999999999999.delta -1.delta 0.delta 03.delta +4.delta 4.Delta 2.SNAPSHOT")
	in = append(in, core.FileInfo{Name: "14.delta", Mode: fs.ModeDir}, core.FileInfo{Name: "lost+found", Mode: fs.ModeDir},
		core.FileInfo{Name: "15.delta", Mode: fs.ModeSymlink})
	l := statestore.Sort(in)
	v, err := statestore.PlanLatest(l)
	require.NoError(t, err)
	require.Equal(t, int64(12), v)
	snapshot, err := statestore.PlanSnapshot(l, 0, statestore.SnapshotPolicy{})
	require.NoError(t, err)
	require.False(t, snapshot.Due)
	cleanup, err := statestore.PlanCleanup(l, 0, statestore.CleanupPolicy{Retain: 2})
	require.NoError(t, err)
	require.Equal(t, "verify:10.snapshot 1.delta 2.delta .3.delta.crc 3.delta 4.delta 5.delta 6.delta 7.delta 8.delta 9.delta", words(cleanup.Steps))
}

func TestPlanRollbackDropsTheNewestFirst(t *testing.T) {
	steps, err := statestore.PlanRollback(dir("1-5 4s 4.snapshot.crc"), 3)
	require.NoError(t, err)
	require.Equal(t, "5.delta 4.snapshot.crc 4.snapshot 4.delta", words(steps))
	steps, err = statestore.PlanRollback(dir("1-5"), 5)
	require.NoError(t, err)
	require.Empty(t, steps)
	_, err = statestore.PlanRollback(dir("1-2 4-5"), 4)
	require.ErrorIs(t, err, fs.ErrNotExist)
	steps, err = statestore.PlanRollback(dir("50-51"), 0)
	require.NoError(t, err)
	require.Equal(t, "51.delta 50.delta", words(steps))
}

func TestPlanSweepTakesWhatIsOldAndNotInUse(t *testing.T) {
	l := dir("1-1 .6.delta." + uuid + ".tmp .7.delta." + uuid + ".tmp .99.delta.crc .1.delta.crc temp-123 6.delta.tmp")
	written := time.Unix(1000, 0) // of all files
	require.Empty(t, statestore.PlanSweep(l, written, nil))
	inUse := func(name string) bool { return strings.HasPrefix(name, ".7") }
	require.Equal(t, ".6.delta."+uuid+".tmp .99.delta.crc", words(statestore.PlanSweep(l, written.Add(1), inUse)))
}

// TestStoppingACleanupOrRollbackAnywhereIsSafe tries every prefix of plans over random directories.
func TestStoppingACleanupOrRollbackAnywhereIsSafe(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		last := 1 + r.IntN(30)
		text := fmt.Sprintf("1-%d", last)
		for v := 1; v <= last; v++ {
			if r.IntN(5) == 0 {
				text += fmt.Sprintf(" %ds %d.delta.crc", v, v)
			}
		}
		in := entries(text)
		retain := 1 + r.IntN(last)
		plan, err := statestore.PlanCleanup(statestore.Sort(in), 0, statestore.CleanupPolicy{Retain: retain, MaxDeletes: r.IntN(4)})
		require.NoError(t, err)
		for _, l := range prefixes(in, plan.Steps) {
			loadable := statestore.Loadable(l)
			for v := last - retain + 1; v <= last; v++ {
				require.Contains(t, loadable, int64(v), text)
			}
			_, err := statestore.PlanCleanup(l, 0, statestore.CleanupPolicy{Retain: retain})
			require.NoError(t, err, "the next clean-up goes on")
		}
		to := int64(r.IntN(last + 1))
		steps, err := statestore.PlanRollback(statestore.Sort(in), to)
		require.NoError(t, err)
		lists := prefixes(in, steps)
		for _, l := range lists {
			_, err := statestore.PlanLatest(l)
			require.NoError(t, err, text)
		}
		require.Equal(t, to, lists[len(lists)-1].Highest())
	}
}

// prefixes are the listings after each number of steps.
func prefixes(in []core.FileInfo, steps []statestore.Step) []statestore.Listing {
	lists := []statestore.Listing{statestore.Sort(in)}
	for _, s := range steps {
		if s.Op == statestore.StepDelete {
			in = slices.DeleteFunc(slices.Clone(in), func(e core.FileInfo) bool { return e.Name == s.Name })
		}
		lists = append(lists, statestore.Sort(in))
	}
	return lists
}
