package report

import (
	"fmt"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// DisposalStatus says what became of a checkpoint that was to be disposed of. The values are part of the JSON interface.
type DisposalStatus string

// The statuses.
const (
	Planned       DisposalStatus = "planned"    // it would be disposed of with --yes
	Disposed      DisposalStatus = "disposed"   // it is gone, apart from what is kept
	Gone          DisposalStatus = "gone"       // there was nothing to dispose of
	NotDisposed   DisposalStatus = "refused"    // nothing was changed, and should not be
	HalfDisposed  DisposalStatus = "incomplete" // its disposal has begun; run it again
	DisposalError DisposalStatus = "failed"     // nothing was changed, since something failed
)

// Disposal is the result of dispose.
type Disposal struct {
	// DryRun: nothing was changed. Removed is then what would be.
	DryRun      bool                 `json:"dry_run"`
	Checkpoints []DisposedCheckpoint `json:"checkpoints"`
}

// DisposedCheckpoint is what became of one checkpoint.
type DisposedCheckpoint struct {
	Pointer string         `json:"pointer"`
	Status  DisposalStatus `json:"status"`
	// Removed are the state files and temporaries; the metadata and the empty directory go with them. RemovedBytes is the sum of
	// their recorded sizes.
	Removed      []string `json:"removed"`
	RemovedBytes int64    `json:"removed_bytes"`
	// Kept is what is not the checkpoint's own or needed by another one, with the reason.
	Kept []core.KeptObject `json:"kept"`
	// Left is what should be gone and is not.
	Left []string `json:"left"`
}

// NewDisposedCheckpoint has nothing removed yet.
func NewDisposedCheckpoint(pointer string) DisposedCheckpoint {
	return DisposedCheckpoint{Pointer: pointer, Removed: []string{}, Kept: []core.KeptObject{}, Left: []string{}}
}

// Take copies what a disposal reports. sizes holds the recorded sizes of objects by their qualified paths.
func (d *DisposedCheckpoint) Take(r *core.DisposalReport, uri string, sizes map[string]int64) {
	if r == nil {
		return
	}
	d.Removed = append(d.Removed, r.Removed...)
	d.Kept = append(d.Kept, r.Kept...)
	for _, name := range r.Removed {
		d.RemovedBytes += max(0, sizes[core.Qualify(uri, name)])
	}
}

// Fail takes into account that the disposal failed. uncommitted tells that there is no metadata any more, left are the paths
// that the failure names. The problem gets the kind and the hint that follow from that.
func (d *DisposedCheckpoint) Fail(p *Problem, uncommitted bool, left []string) {
	switch {
	case p.Kind == Invalid && len(d.Removed) == 0:
		d.Status, p.Kind = NotDisposed, Refused
		p.Hint = "only what was complete once is disposed of"
	case uncommitted:
		d.Status = HalfDisposed
		d.Left = append(d.Left, left...)
		p.Left = d.Left
		p.Hint = "it is no complete checkpoint any more; remove the cause and run the same command again"
		if p.Kind != Interrupted {
			p.Kind = Incomplete
		}
	case p.Kind == Damaged || p.Kind == Unsupported:
		p.Hint = "--ignore-metadata deletes what has the form of state files in its own directory"
	}
}

// GuardNewest returns the reason not to dispose of a checkpoint without being forced to: it is the newest complete one of
// its job. siblings are all checkpoints of the job.
func GuardNewest(pointer, dir string, siblings []core.CheckpointEntry) *Problem {
	newest, ok := core.Latest(siblings)
	if !ok || newest.Dir != dir {
		return nil
	}
	return &Problem{
		Kind: Refused, Operation: "dispose", Path: pointer,
		Message: fmt.Sprintf("%s is the newest complete checkpoint of %s: the job could not be restored from it any more", path.Base(dir), path.Dir(dir)),
		Hint:    "if that is what you want, use --force",
	}
}
