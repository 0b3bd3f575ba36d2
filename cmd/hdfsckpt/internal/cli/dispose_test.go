package cli

import (
	"context"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// twoCheckpoints has chk-1 and chk-2, which share a file.
func twoCheckpoints(r *rig) (*job, string, string) {
	j := r.newJob("jobs", jobID)
	j.checkpoint(1)
	j.checkpoint(2)
	return j, path.Join(j.dir(), "chk-1"), path.Join(j.dir(), "chk-2")
}

func TestDisposeOnlyShowsWhatItWouldDoUnlessYes(t *testing.T) {
	r := newRig(t)
	_, older, _ := twoCheckpoints(r)
	r.file("jobs/"+jobID.String()+"/chk-1/notes.txt", []byte("keep me"))
	seen := r.snapshot()
	fsys := r.inject(nil)
	r.golden("dispose-dry-run.txt", "dispose", older)
	r.golden("dispose-dry-run.json", "dispose", "--json", older)
	require.Equal(t, seen, r.snapshot())
	onlyReads(r, fsys)
}

func TestDisposeDeletesWhatTheCheckpointAloneOwnsAndMayBeRepeated(t *testing.T) {
	r := newRig(t)
	j, older, newest := twoCheckpoints(r)
	r.golden("dispose-yes.txt", "dispose", "--yes", older)
	require.NoDirExists(t, older)
	require.Len(t, j.files("shared"), 1, "the other checkpoint needs it")
	require.Equal(t, 0, r.run("verify", "--deep", newest).code)
	r.golden("dispose-again.txt", "dispose", "--yes", older)
	r.golden("dispose-again.json", "dispose", "--yes", "--json", older)

	savepoint := j.savepoint("savepoints", 3)
	require.Equal(t, 0, r.run("dispose", "--yes", savepoint.Pointer+"/_metadata").code)
	entries, err := os.ReadDir(r.path("savepoints"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestDisposeKeepsAndNamesForeignFiles(t *testing.T) {
	r := newRig(t)
	_, older, _ := twoCheckpoints(r)
	r.file("jobs/"+jobID.String()+"/chk-1/notes.txt", []byte("keep me"))
	var d report.Disposal
	require.Equal(t, 0, r.json(&d, "dispose", "--yes", older).ExitCode)
	require.Equal(t, report.Disposed, d.Checkpoints[0].Status)
	require.FileExists(t, path.Join(older, "notes.txt"))
	require.Contains(t, d.Checkpoints[0].Kept, core.KeptObject{Path: r.neutral(path.Join(older, "notes.txt")), Reason: "a foreign file"})

	seen := r.snapshot()
	require.Equal(t, 0, r.json(&d, "dispose", "--yes", older).ExitCode, "it may be repeated")
	require.Contains(t, d.Checkpoints[0].Kept, core.KeptObject{Path: r.neutral(path.Join(older, "notes.txt")), Reason: "a foreign file"})
	require.Equal(t, seen, r.snapshot())
	var l report.Listing
	require.Equal(t, 0, r.json(&l, "ls", path.Dir(older)).ExitCode)
	require.Equal(t, report.Emptied, l.Entries[0].State)
}

func TestDisposeRefusesTheNewestCheckpointOfAJob(t *testing.T) {
	r := newRig(t)
	j, older, newest := twoCheckpoints(r)
	j.begin(3)
	seen := r.snapshot()
	r.golden("dispose-newest.txt", "dispose", "--yes", newest)
	r.golden("dispose-newest.json", "dispose", "--yes", "--json", newest)
	require.Equal(t, seen, r.snapshot())
	require.Equal(t, 1, r.run("dispose", newest).code, "the dry run says what would happen")

	var d report.Disposal
	require.Equal(t, 1, r.json(&d, "dispose", "--yes", newest, older).ExitCode, "it goes on with the others")
	require.Equal(t, report.NotDisposed, d.Checkpoints[0].Status)
	require.Equal(t, report.Disposed, d.Checkpoints[1].Status)
	require.Equal(t, 0, r.run("dispose", "--yes", "--force", newest).code)
	require.NoDirExists(t, newest)
	require.Empty(t, j.files("shared"))
}

func TestDisposeNamesWhatIsLeftAndFinishesWhenItIsRepeated(t *testing.T) {
	r := newRig(t)
	j, older, _ := twoCheckpoints(r)
	stuck := j.files("chk-1")[1]
	clean := r.fsys
	r.inject(denies(faultfs.OpRemove, stuck))
	r.golden("dispose-partial.txt", "dispose", "--yes", older)
	require.Equal(t, []string{stuck}, j.files("chk-1"), "the others are gone")
	require.Equal(t, 3, r.run("verify", older).code, "it is no checkpoint any more")
	var d report.Disposal
	document := r.json(&d, "dispose", "--yes", older)
	require.Equal(t, 1, document.ExitCode)
	require.Equal(t, report.Incomplete, document.Errors[0].Kind)
	require.Equal(t, []string{r.neutral(stuck)}, document.Errors[0].Left)
	require.Equal(t, report.HalfDisposed, d.Checkpoints[0].Status)
	require.Equal(t, []string{r.neutral(stuck)}, d.Checkpoints[0].Left)

	r.fsys = clean
	require.Equal(t, 0, r.json(&d, "dispose", "--yes", older).ExitCode)
	require.Equal(t, report.Disposed, d.Checkpoints[0].Status)
	require.NoDirExists(t, older)
}

func TestDisposeChangesNothingIfItMayNotUncommit(t *testing.T) {
	r := newRig(t)
	_, older, _ := twoCheckpoints(r)
	seen := r.snapshot()
	r.inject(denies(faultfs.OpRename, core.MetadataName))
	var d report.Disposal
	document := r.json(&d, "dispose", "--yes", older)
	require.Equal(t, 3, document.ExitCode)
	require.Equal(t, report.Permission, document.Errors[0].Kind)
	require.Equal(t, report.DisposalError, d.Checkpoints[0].Status)
	require.Equal(t, seen, r.snapshot())
}

func TestDisposeOfDamagedMetadataNeedsToIgnoreIt(t *testing.T) {
	r := newRig(t)
	j, older, newest := twoCheckpoints(r)
	damage(t, path.Join(older, core.MetadataName), 60)
	seen := r.snapshot()
	r.golden("dispose-damaged.txt", "dispose", "--yes", older)
	require.Equal(t, seen, r.snapshot())
	r.golden("dispose-ignore-metadata.txt", "dispose", "--yes", "--ignore-metadata", older)
	require.NoDirExists(t, older)
	require.Len(t, j.files("shared"), 1)
	require.Equal(t, 0, r.run("verify", "--deep", newest).code)
}

func TestDisposeKeepsSharedFilesThatADamagedSiblingMayNeed(t *testing.T) {
	r := newRig(t)
	j, older, newest := twoCheckpoints(r)
	damage(t, path.Join(newest, core.MetadataName), 60)
	var d report.Disposal
	require.Equal(t, 0, r.json(&d, "dispose", "--yes", older).ExitCode)
	require.Equal(t, report.Disposed, d.Checkpoints[0].Status)
	require.Len(t, j.files("shared"), 1)
	require.Equal(t, r.neutral(j.files("shared")[0]), d.Checkpoints[0].Kept[0].Path)
}

func TestDisposeRefusesWhatWasNeverComplete(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.begin(1)
	r.file("empty/file", nil)
	seen := r.snapshot()
	for _, pointer := range []string{path.Join(j.dir(), "chk-1"), j.dir(), "empty", "empty/file"} {
		document := r.json(nil, "dispose", "--yes", "--force", pointer)
		require.Equal(t, 1, document.ExitCode, pointer)
		require.Equal(t, report.Refused, document.Errors[0].Kind, pointer)
	}
	require.Equal(t, seen, r.snapshot())
	require.Equal(t, 3, r.run("dispose", "--yes", "no/such/chk-1").code, "without its parent the path is wrong")
	require.Equal(t, 3, r.run("dispose", "--yes", "hdfs://ns1/ckpt/chk-1").code)
}

func TestDisposeOfAnEmptyDirectoryFindsItGone(t *testing.T) {
	r := newRig(t)
	_, older, _ := twoCheckpoints(r)
	require.NoError(t, os.RemoveAll(older))
	require.NoError(t, os.Mkdir(older, 0o700))
	require.NoError(t, os.Mkdir(r.path("other"), 0o700))
	var d report.Disposal
	require.Equal(t, 0, r.json(&d, "dispose", older).ExitCode)
	require.Equal(t, report.Gone, d.Checkpoints[0].Status)
	require.DirExists(t, older, "a dry run changes nothing")
	require.Equal(t, 0, r.json(&d, "dispose", "--yes", older, "other").ExitCode)
	require.Equal(t, report.Gone, d.Checkpoints[0].Status)
	require.Equal(t, report.Gone, d.Checkpoints[1].Status)
	require.NoDirExists(t, older)
	require.DirExists(t, r.path("other"), "its name is not that of a checkpoint")
}

func TestDisposeThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	r := newRig(t)
	j, older, _ := twoCheckpoints(r)
	ctx, cancel := context.WithCancelCause(t.Context())
	clean := r.fsys
	r.inject(before(faultfs.OpRemove, j.files("chk-1")[0], func() { cancel(report.ErrInterrupted) }))
	var d report.Disposal
	document := r.decode(r.runContext(ctx, "dispose", "--yes", "--json", older, path.Join(j.dir(), "chk-2")), &d)
	require.Equal(t, 130, document.ExitCode)
	require.Len(t, document.Errors, 1)
	require.Equal(t, report.Interrupted, document.Errors[0].Kind)
	require.Equal(t, report.HalfDisposed, d.Checkpoints[0].Status)
	require.Len(t, d.Checkpoints, 1, "nothing more is begun")
	r.fsys = clean
	require.Equal(t, 0, r.run("dispose", "--yes", older).code)
	require.NoDirExists(t, older)
}
