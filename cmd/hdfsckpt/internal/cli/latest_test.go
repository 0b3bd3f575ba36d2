package cli

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

func TestLatestPrintsOnePointerAndNothingElse(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(9)
	newest := j.checkpoint(10)
	j.begin(11)
	require.NoError(t, os.MkdirAll(path.Join(j.dir(), "chk-013"), 0o700))
	require.NoError(t, os.WriteFile(path.Join(j.dir(), "chk-20"), nil, 0o600))
	for _, args := range [][]string{
		{"latest", j.dir()},
		{"latest", r.path("jobs")},
		{"latest", "jobs/" + jobID.String()},
		{"latest", "--job", jobID.String(), r.path("jobs")},
		{"latest", "file://" + j.dir() + "/"},
		{"latest", "--fs", "file:///", j.dir()},
	} {
		got := r.run(args...)
		require.Equal(t, result{stdout: r.neutral(newest.Pointer) + "\n"}, got, "%v", args)
	}
	r.golden("latest.txt", "latest", j.dir())
	r.golden("latest.json", "latest", "--json", j.dir())
}

func TestLatestOfSeveralJobsIsAQuestion(t *testing.T) {
	r := newRig(t)
	a := r.newJob("base", core.JobIDOf("a"))
	a.checkpoint(1)
	b := r.newJob("base", core.JobIDOf("b"))
	b.begin(5)
	require.Equal(t, 0, r.run("latest", "base").code, "a job without a complete checkpoint does not count")
	b.checkpoint(6)
	r.golden("latest-several-jobs.txt", "latest", r.path("base"))
	r.golden("latest-several-jobs.json", "latest", "--json", r.path("base"))
	for _, j := range []*job{a, b} {
		var latest report.Latest
		require.Equal(t, 0, r.json(&latest, "latest", "--job", path.Base(j.dir()), "base").ExitCode)
		require.Equal(t, path.Base(j.dir()), latest.Job)
	}
}

func TestLatestFailsWhereThereIsNone(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	r.golden("latest-none.txt", "latest", j.dir())
	j.begin(1)
	j.savepoint("jobs/"+jobID.String(), 2)
	for _, args := range [][]string{
		{"latest", j.dir()},
		{"latest", "jobs"},
		{"latest", "--job", jobID.String(), "jobs"},
		{"latest", "--job", core.JobIDOf("other").String(), "jobs"},
	} {
		d := r.json(nil, args...)
		require.Equal(t, 1, d.ExitCode, "%v", args)
		require.Equal(t, report.None, d.Errors[0].Kind)
		require.JSONEq(t, "null", string(d.Result))
	}
	require.Equal(t, 2, r.run("latest", "--job", "x", "jobs").code)
	require.Equal(t, 3, r.run("latest", "nowhere").code)
}

func TestLatestTakesAnOlderCheckpointOnlyIfItMayAndTheNewestIsDamaged(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	older := j.checkpoint(1)
	j.checkpoint(2)
	damage(t, path.Join(j.dir(), "chk-2", core.MetadataName), 20)
	r.golden("latest-damaged.txt", "latest", j.dir())
	got := r.golden("latest-older.txt", "latest", "--allow-older", j.dir())
	require.Equal(t, r.neutral(older.Pointer)+"\n", got.stdout)
	r.golden("latest-older.json", "latest", "--allow-older", "--json", j.dir())

	damage(t, path.Join(j.dir(), "chk-1", core.MetadataName), 20)
	require.Equal(t, 1, r.run("latest", "--allow-older", j.dir()).code)
}

func TestLatestNeverPassesOverWhatCannotBeReadNow(t *testing.T) {
	for name, fault := range map[string]faultfs.Injector{
		"metadata":  denies(faultfs.OpOpen, "chk-2/_metadata"),
		"directory": denies(faultfs.OpStat, "chk-2/_metadata"),
		"storage":   fails(faultfs.OpReadAt, "chk-2/_metadata", core.ErrUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			j := r.newJob("jobs", jobID)
			j.checkpoint(1)
			j.checkpoint(2)
			r.inject(fault)
			got := r.run("latest", "--allow-older", j.dir())
			require.Equal(t, 3, got.code)
			require.Empty(t, got.stdout)
		})
	}
}

func TestLatestLooksAgainWhenItsCheckpointVanishes(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	older := j.checkpoint(1)
	j.checkpoint(2)
	r.inject(before(faultfs.OpOpen, "chk-2/_metadata", func() { require.NoError(t, os.RemoveAll(path.Join(j.dir(), "chk-2"))) }))
	require.Equal(t, result{stdout: r.neutral(older.Pointer) + "\n"}, r.run("latest", j.dir()))
}
